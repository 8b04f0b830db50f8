"""Workers as an operator runs them: processes of `selfpager serve` on one Postgres, asked over HTTP.

with Fleet.of(postgres, work, model.base_url) as fleet:
    [worker] = fleet.start(1, "--open", "500")
    fleet.know(10_000)
    worker.client().post("/v1/agents/a7/turns", json={"text": "hello"})
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import httpx

from agents.serve.keys import Keys
from pager import Home
from pager.clock import SystemClock
from tests.bench.figures import ROOT
from tests.support.postgres import Postgres, rows_of

CONFIG = """\
name: clerk
model: {{id: m, base_url: "{base_url}", api_key: none, max_output_tokens: 1000}}
window: {{limit_tokens: 60000}}
archival: {{embedder: none}}
"""
TICKS = os.sysconf("SC_CLK_TCK")
# Agents that are copies of `a0`, row by row.
_COPIES = """
    WITH source AS (SELECT * FROM selfpager.agents WHERE name = 'a0'),
    made AS (INSERT INTO selfpager.agents (name, format, seq, folded)
        SELECT 'a' || n, format, seq, folded FROM source, generate_series(1, %s - 1) n RETURNING id),
    bases AS (INSERT INTO selfpager.bases SELECT made.id, b.seq, b.at, b.size_bytes, b.versions
        FROM made, source, selfpager.bases b WHERE b.agent = source.id),
    chunks AS (INSERT INTO selfpager.chunks SELECT made.id, c.number, c.seq, c.data
        FROM made, source, selfpager.chunks c WHERE c.agent = source.id)
    INSERT INTO selfpager.commits SELECT made.id, c.seq, c.part, c.at, c.data
        FROM made, source, selfpager.commits c WHERE c.agent = source.id"""


class Worker:
    """One process, and what it takes of the machine."""

    def __init__(self, command: list[str], key: str, log: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        self.url, self._key = f"http://127.0.0.1:{port}", key
        options = ["--port", str(port), "--advertise", self.url, "--json"]
        with log.open("ab") as errors:
            self.process = subprocess.Popen([*command, *options], cwd=ROOT, stdout=subprocess.PIPE, stderr=errors)

    def wait_until_it_answers(self) -> None:
        assert self.process.stdout
        assert json.loads(self.process.stdout.readline())["address"] == self.url

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers={"x-api-key": self._key}, timeout=300)

    @property
    def megabytes(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text().partition("VmRSS:")[2]
        return int(status.split()[0]) / 1000

    @property
    def files(self) -> int:
        return len([*Path(f"/proc/{self.process.pid}/fd").iterdir()])

    def spent(self) -> float:
        return spent(self.process.pid)

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process.returncode is not None:
            return
        self.process.send_signal(how)
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


class Fleet:
    """Workers on one Postgres, which know one configuration."""

    def __init__(self, postgres: Postgres, address: str, work: Path, base_url: str, opened: ExitStack) -> None:
        self.postgres, self.address, self._work, self._opened = postgres, address, work, opened
        self.home = Home(address)
        _, self._key = Keys(self.home, SystemClock()).add("bench", "", "admin", None)
        (work / "clerk.yaml").write_text(CONFIG.format(base_url=base_url))

    @classmethod
    @contextmanager
    def of(cls, postgres: Postgres, work: Path, base_url: str, **options: Any) -> Generator[Self]:
        with ExitStack() as opened:
            yield cls(postgres, postgres.address(**options), work, base_url, opened)

    def start(self, count: int, *options: str) -> list[Worker]:
        command = [sys.executable, "-m", "agents", "serve", str(self._work / "clerk.yaml"), "--home", self.address]
        found = list[Worker]()
        for _ in range(count):
            found.append(Worker([*command, *options], self._key, self._work / "log"))
            self._opened.callback(found[-1].end, signal.SIGKILL)
        for worker in found:
            worker.wait_until_it_answers()
        return found

    def know(self, count: int, worker: Worker) -> None:
        """Let there be so many agents, `a0` and those after it, each of a few turns."""
        with worker.client() as client:
            assert client.post("/v1/agents", json={"id": "a0"}).status_code == 201
            for number in range(5):
                assert client.post("/v1/agents/a0/turns", json={"text": f"Is seat {number} free?"}).status_code == 200
        ask = rows_of(self.address).server.ask
        ask(_COPIES, (count,))
        for table in ("agents", "bases", "chunks", "commits"):
            ask(f"VACUUM ANALYZE selfpager.{table}")

    def postgres_spent(self) -> float:
        """Return the CPU time of Postgres: of all its processes that live now."""
        pids = [row[0] for row in self.postgres.run("SELECT pid FROM pg_stat_activity")]
        return sum(map(spent, pids))


def spent(pid: int) -> float:
    """Return the seconds of CPU time that a process has taken; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS
