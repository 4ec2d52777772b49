"""`python -m privreg`."""

import sys

from privreg.command_line.main import main

sys.exit(main())
