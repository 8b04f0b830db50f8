"""`python -m agents` is `selfpager`."""

from agents.cli.main import main

main()
