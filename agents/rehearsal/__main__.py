"""`python -m agents.rehearsal --port 8123`: the rehearsal as a process of its own."""

import sys

from agents.rehearsal.server import main

sys.exit(main())
