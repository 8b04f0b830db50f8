"""The command line in a process of its own, as a person or a script starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "agents"]
TIMEOUT_S = 120


def environment(**more: str) -> dict[str, str]:
    """Without whatever the person who runs the tests has set for agents of their own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SELFPAGER", "ANTHROPIC"))}
    return {**kept, "PYTHONPATH": str(ROOT), **more}


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def events(self) -> list[dict[str, Any]]:
        """Lines of JSON."""
        return [json.loads(line) for line in self.out.splitlines()]


def selfpager(*arguments: str | Path, said: str = "", cwd: Path | None = None, **environ: str) -> Done:
    """Run it to its end; `said` is its standard input."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)], input=said, cwd=cwd, env=environment(**environ), timeout=TIMEOUT_S,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


def write_agent(folder: Path, more: str = "", *, name: str = "x", model: str = "provider: rehearsal, id: m") -> Path:
    """A small agent's YAML file. `more` are further lines."""
    path = folder / f"{name}.yaml"
    path.write_text(f"name: {name}\nmodel: {{{model}}}\nwindow: {{limit_tokens: 20000}}\n{more}", encoding="utf-8")
    return path
