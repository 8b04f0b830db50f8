"""Bubblewrap: commands see a read-only system, write in one directory, and reach nothing else.

Inside there is no other process, no network (unless the YAML has `network: true`), no socket of a service (/run and
/tmp are empty), no key of the person (`SECRET_PLACES`), no memory of any agent, and no way to write what is protected.
Everything in the sandbox ends with its first process.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

TRIAL_SECONDS = 20
# Below the person's home directory. It stays readable but for these, because programs are installed in it.
SECRET_PLACES = (
    ".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".netrc", ".npmrc", ".pypirc", ".git-credentials",
    ".pgpass", ".password-store", ".config/gcloud", ".config/gh", ".config/git/credentials", ".config/pip",
    ".local/share/keyrings", ".mozilla", ".config/google-chrome", ".config/chromium",
    ".bash_history", ".zsh_history", ".python_history",
)  # fmt: skip


def command_inside(
    words: Sequence[str], directory: Path, *, network: bool, hidden: Iterable[Path] = (), fixed: Sequence[Path] = ()
) -> list[str]:
    """Return the command that runs `words` in the sandbox. `hidden` paths cannot be read, `fixed` ones not written."""
    options = ["--die-with-parent", "--unshare-all", *(["--share-net"] if network else []), "--cap-drop", "ALL"]
    options += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for empty in (Path("/tmp"), Path("/run"), Path("/var/run"), Path("/var/tmp")):
        if empty.is_dir() and not empty.is_symlink():
            options += ["--tmpfs", str(empty)]
    resolver = Path("/etc/resolv.conf").resolve()
    if network and resolver.is_relative_to("/run") and resolver.is_file():
        options += ["--ro-bind", str(resolver), str(resolver)]
    is_fixed = any(directory.is_relative_to(each) for each in fixed)
    options += ["--ro-bind" if is_fixed else "--bind", str(directory), str(directory)]
    for each in fixed:
        if each.is_relative_to(directory) and each.exists():
            options += ["--ro-bind", str(each), str(each)]
    home = Path(os.environ.get("HOME") or os.sep)
    for secret in (*(home / each for each in SECRET_PLACES), *hidden):  # last, because they may be in the directory
        options += _mask(secret.resolve())
    return ["bwrap", *options, "--chdir", str(directory), "--", *words]


def _mask(path: Path) -> list[str]:
    if not os.path.exists(path):  # noqa: PTH110 - a Path raises where the directory above cannot be read
        return []
    return ["--tmpfs", str(path), "--remount-ro", str(path)] if path.is_dir() else ["--ro-bind", "/dev/null", str(path)]


@cache
def reason_against() -> str:
    """Return why there is no sandbox on this machine; empty if there is one. It is tried once in a process."""
    if sys.platform != "linux" or not shutil.which("bwrap"):
        return "bubblewrap (bwrap) is not installed"
    words = command_inside(["true"], Path(os.sep, "usr"), network=False)
    words[words.index("--bind")] = "--ro-bind"
    try:
        done = subprocess.run(words, capture_output=True, timeout=TRIAL_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not work here: {error}"
    return f"bubblewrap does not work here: {done.stderr.decode(errors='replace').strip()}" if done.returncode else ""
