"""The command line: `selfpager COMMAND`. Promises an exit code and one sentence for each error.
Only the console script and `agents/__main__.py` call it.

`main` lists the commands and turns errors into exit codes; `chat`, `run`, `show`, `upkeep`, `configs` and `demo` hold
them. `common` has their options, `terminal`, `drawing` and `visible` print. Each imports what is heavy when it runs.
"""
