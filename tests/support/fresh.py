"""The wheels in an environment of its own, as somebody gets it.

It borrows the dependencies of this one, so that nothing is downloaded; pager and agents are its own.
"""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]


def clean_environ(home: Path) -> dict[str, str]:
    """Return the variables of somebody who has set nothing for Python, selfpager or a model."""
    ours = ("PYTHON", "SELFPAGER", "ANTHROPIC", "OPENAI")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1", "HOME": str(home)}


def run(*command: str | Path, cwd: Path, fails: bool = False, errors: bool = False) -> str:
    """Run a command to its end. Return what it printed; with `errors` on its standard error."""
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=clean_environ(cwd), capture_output=True, text=True, check=False
    )
    assert bool(done.returncode) == fails, done.stdout + done.stderr
    return done.stderr if errors else done.stdout


def build_wheels(folder: Path) -> list[Path]:
    """Build both wheels into a folder: that of the agent, and that of the memory."""
    for source in (ROOT, ROOT / "memory"):
        run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=source)
    return sorted(folder.glob("*.whl"))


def install(wheels: Iterable[Path], folder: Path) -> Path:
    """Make a virtual environment in a folder and install the wheels into it. Return the directory of its programs."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    python = folder / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps")
    run(*pip, *wheels, cwd=folder.parent)
    paths = run(python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])", cwd=folder.parent)
    borrowed = sysconfig.get_paths()["purelib"]
    (Path(paths.strip()) / "borrowed.pth").write_text(f"{borrowed}\n", encoding="utf-8")
    return folder / "bin"
