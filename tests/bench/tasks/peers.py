"""The same tasks by agents that others wrote, each in an environment of its own, before our Messages API."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from agents.testing import ScriptedServer
from tests.bench.proof import environments
from tests.bench.tasks import policy, world
from tests.bench.tasks.world import Site

PEERS = ("deepagents", "pydantic_ai")
SCRIPTS = Path(__file__).parents[1] / "peers"
HEAD = ["agent", "window", "answered", "tasks done", "requests", "refused as too long", "tokens sent", "s"]


def rows(windows: Sequence[int], tasks: int, sites: int) -> Iterator[list[str]]:
    """Yield a row for each peer and window; one that cannot be installed is left out, and that is said."""
    cache = environments.cache_directory(os.environ)
    for peer in PEERS:
        if why := environments.install(cache, peer):
            print(f"{peer} is left out: {why}", file=sys.stderr)
            continue
        for window in windows:
            with TemporaryDirectory(prefix="bench-peer-") as place, ScriptedServer(limit_tokens=window) as server:
                server.otherwise(policy.reply)
                start = monotonic()
                done, answered = _live(
                    environments.python(cache, peer), peer, server, Path(place), window, tasks, sites
                )
                usages = [reply["usage"] for reply in server.replies]
                sent = sum(sum(each[name] for name in each if name.endswith("input_tokens")) for each in usages)
                refused = len(server.requests) - len(server.replies)
                yield [
                    environments.pinned(peer), f"{window:,}", f"{answered} of {tasks}", f"{done} of {tasks}",
                    f"{len(server.requests):,}", str(refused), f"{sent:,}", f"{monotonic() - start:.0f}",
                ]  # fmt: skip


def _live(
    python: Path | None, peer: str, server: ScriptedServer, place: Path, window: int, tasks: int, sites: int
) -> tuple[int, int]:
    """Return how many tasks a peer ended, and how many questions it answered."""
    root = place / "tree"
    todo: list[Site] = world.build(root, tasks=tasks, sites=sites)
    command = [str(python), str(SCRIPTS / f"{peer}_tasks.py"), server.base_url, str(window), str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def say(text: str) -> str:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(text) + "\n")
            process.stdin.flush()
            answer: dict[str, Any] = json.loads(process.stdout.readline())
            return str(answer.get("text", ""))

        done = 0
        for number, site in enumerate(todo):
            if number == tasks // 2:
                world.publish_updates(root, todo)
                say(world.UPDATE_TASK)
            done += site.name in say(site.task)
        shutil.rmtree(root / "reports")
        shutil.rmtree(root / "updates")
        answered = sum(site.answer in say(site.question) for site in todo)
        process.stdin.close() if process.stdin else None
    return done, answered
