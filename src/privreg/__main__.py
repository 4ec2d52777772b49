"""`python -m privreg`."""

import sys

from privreg.cli import main

sys.exit(main())
