"""Other projects' tests against our adapters, and the MCP conformance suite: `make judges`.

`python -m tests.judges` makes environments under build/judges/, from the versions in `projects.toml` and outside of the
locks, downloads the projects' sources, and runs their tests with ours put in the place of theirs (`plugins/`). Nothing
of them is in this repository. A test that fails has to be in `projects.toml` with the reason; so has one that is left
out, and one that is listed and passes is an error, too. The table goes into docs/frameworks/index.md.
"""
