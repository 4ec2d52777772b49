"""`python -m privreg`."""

import sys

from privreg.pipeline.cli import main

sys.exit(main())
