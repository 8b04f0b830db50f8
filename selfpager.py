"""The command `selfpager`. It looks whether the package `agents` is ours, and then runs it.

openai-agents ships a package `agents`, too. pip installs one over the other without a word. This module is beside that
package, so it is there whichever came last.
"""

import sys
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from importlib.util import find_spec
from pathlib import Path

OURS = '"""An agent on top of `pager`'  # how agents/__init__.py begins
OTHER = "openai-agents"
ONE_MUST_GO = "Only one of them can be in an environment. Keep one:"


def main() -> None:
    """Run the console script; where `agents` is not ours, say how to repair that."""
    if conflict := find_conflict():
        print(conflict, file=sys.stderr)  # noqa: T201 - nothing of the command line can be imported yet
        if not is_ours():
            sys.exit(1)
    from agents.cli.main import main as run

    run()


def is_ours() -> bool:
    """Return True if `import agents` would import our package."""
    spec = find_spec("agents")
    if spec is None or spec.origin is None:
        return False
    with Path(spec.origin).open(encoding="utf-8", errors="replace") as file:
        return file.read(len(OURS)) == OURS


def find_conflict() -> str:
    """Return what is wrong with the package `agents` here and the commands that repair it; "" if nothing is."""
    if is_ours():
        try:
            distribution(OTHER)
        except PackageNotFoundError:
            return ""
        return f"selfpager has overwritten the package `agents` of {OTHER}. {ONE_MUST_GO}\n{_commands(OTHER)}"
    others = [name for name in packages_distributions().get("agents", ()) if name != "selfpager"]
    if not others:
        again = "pip install --force-reinstall --no-deps selfpager"
        return f"files of selfpager's package `agents` are missing. Another distribution took them along:\n  {again}"
    return f"{others[0]} has overwritten the package `agents` of selfpager. {ONE_MUST_GO}\n{_commands(others[0])}"


def _commands(other: str) -> str:
    ours = f"pip uninstall -y {other} && pip install --force-reinstall --no-deps selfpager"
    theirs = f"pip uninstall -y selfpager && pip install --force-reinstall --no-deps {other}"
    kept = "(the memory stays: selfpager-memory)"
    return f"  selfpager       {ours}\n  {other:<14}  {theirs}  {kept}"


if __name__ == "__main__":
    main()
