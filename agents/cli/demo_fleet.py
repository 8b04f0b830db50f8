"""`selfpager demo --fleet`: an agent in a Postgres, and two workers. Each ✓ is looked up before it is printed.

Everything that it makes is ended and deleted at its end, however it ends.
"""

import os
import signal
import tempfile
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from time import monotonic
from types import FrameType

from agents.cli.common import DONE, INTERRUPTED
from agents.cli.telling import WIDTH, check, heading, prose, steps_of, typed, wait_for
from agents.cli.visible import say, visible
from agents.demo.postgres import Postgres
from agents.demo.workers import LEASE_SECONDS, Fleet, LostError, Worker
from pager.clock import SystemClock

AGENT, BEFORE = "dana", "earlier"
TURNS = f"/v1/agents/{AGENT}/turns"
BUDGET, ASKED, BOOKING = "Our budget is 3,000 EUR.", "What is our budget?", "Book us the 8:13 to Vigo."
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def tell_of_a_fleet() -> int:
    """Tell the story. Return the exit code."""
    try:
        with _ending() as (postgres, fleet, first, second):
            start(postgres, first, second)
            two_doors(fleet, first, second)
            moment = SystemClock().now()
            kill(fleet, first, second)
            as_it_was(fleet, second, moment)
            end(fleet, second)
    except KeyboardInterrupt:
        say("interrupted; the workers and their Postgres are ended, and their files are deleted.", err=True)
        return INTERRUPTED
    is_gone = not postgres.directory.exists() and not fleet.folder.exists()
    check(is_gone, "Postgres has ended, too, and all files of this demo are deleted")
    prose("With a Postgres of yours: docs/fleet.md")
    return DONE


@contextmanager
def _ending() -> Generator[tuple[Postgres, Fleet, Worker, Worker]]:
    """Yield a Postgres, a fleet on it and its two workers; end and delete them behind the block, whatever happens."""
    before = {each: signal.signal(each, _interrupt) for each in ENDS}
    caches = tempfile.tempdir
    try:
        with Postgres() as postgres, tempfile.TemporaryDirectory(prefix="selfpager-demo-") as folder:
            tempfile.tempdir = folder  # of the caches of this process
            fleet = Fleet.make(Path(folder), postgres.address, os.environ)
            with fleet.worker() as first, fleet.worker() as second:
                try:
                    yield postgres, fleet, first, second
                finally:
                    for each in ENDS:
                        signal.signal(each, signal.SIG_IGN)  # a second Ctrl-C leaves nothing half deleted
    finally:
        tempfile.tempdir = caches
        for each, handler in before.items():
            signal.signal(each, handler)


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


def start(postgres: Postgres, first: Worker, second: Worker) -> None:
    """Chapter 1: a Postgres and two workers."""
    prose(
        "Postgres, the workers, kill and what is between them are real; only the model is played, by a script. A line "
        "with ✓ was looked up before it was printed."
    )
    heading("1  A Postgres, and two workers that share nothing else")
    say(f"PostgreSQL {postgres.version} on a socket (process {postgres.pid}); its address is $SELFPAGER_HOME")
    typed("selfpager keys add demo --scope admin", "prints a key; the home keeps its hash")
    for number, worker in enumerate((first, second), start=1):
        typed(f"selfpager serve desk.yaml --advertise {worker.url}", f"worker {number}, process {worker.pid}")
    first.wait_until_it_answers()
    second.wait_until_it_answers()


def two_doors(fleet: Fleet, first: Worker, second: Worker) -> None:
    """Chapter 2: an agent is made, and answers whichever worker is asked."""
    heading("2  One agent, whichever worker is asked")
    typed(f'curl {first.url}/v1/agents -d \'{{"id": "{AGENT}", "config": "desk"}}\'')
    first.post("/v1/agents", {"id": AGENT, "config": "desk"})
    shown("worker 1", BUDGET)
    said_by("agent", first, AGENT, BUDGET)
    shown("worker 2", ASKED)
    answer = said_by("agent", second, AGENT, ASKED)
    owner = fleet.home.owner(AGENT)
    passed_on = owner is not None and owner["url"] == first.url and "3,000" in answer
    check(passed_on, "worker 1 has the agent open: worker 2 passed the question on to it")


def kill(fleet: Fleet, first: Worker, second: Worker) -> None:
    """Chapter 3: kill -9 of a worker in the middle of a call that must not run twice."""
    heading("3  kill -9 in the middle of a booking")
    slow, booked = fleet.folder / "slow", fleet.folder / "booked.log"
    slow.touch()
    with ThreadPoolExecutor(1) as beside:
        asking = beside.submit(first.post, TURNS, {"text": BOOKING}, **{"idempotency-key": "booking"})
        typed(f"curl {first.url}{TURNS} -H 'Idempotency-Key: booking' …", BOOKING)
        wait_for(booked)
        typed(f"kill -9 {first.pid}", "worker 1: the railway has booked, and has not answered yet")
        killed, at = first.kill() == -signal.SIGKILL, monotonic()
        with suppress(LostError):
            asking.result()
            killed = False
    slow.unlink()
    with fleet.home.read(AGENT, embedder=None) as memory:
        before, (cut_off,) = steps_of(memory), memory.open_calls
    begun = killed and cut_off.name == "book" and cut_off.begun
    check(begun, "the caller got no answer; in Postgres: the call of book has begun and has no result")
    typed(f"curl {second.url}{TURNS} -H 'Idempotency-Key: booking' …", "the same request, to worker 2")
    answer = second.post(TURNS, {"text": BOOKING}, **{"idempotency-key": "booking"})
    shown("agent", answer["text"])
    took = f"worker 2 went on {monotonic() - at:.1f} s after the kill; a lease is {LEASE_SECONDS} s"
    owner = fleet.home.owner(AGENT)
    check(owner is not None and owner["url"] == second.url, took)
    with fleet.home.read(AGENT, embedder=None) as memory:
        after, left_open = steps_of(memory), memory.open_calls
    stands = all(new[: len(old)] == old for old, new in zip(before, after, strict=False)) and not left_open
    blocks = [block for step in after for block in step]
    said = [block["text"] for block in blocks if block["type"] == "text" and block["text"] == BOOKING]
    calls = Counter(block["id"] for block in blocks if block["type"] == "tool_use")
    results = Counter(block["tool_use_id"] for block in blocks if block["type"] == "tool_result")
    told = f"nothing is lost: {len(before)} steps stand as they stood, {len(after) - len(before)} came after"
    check(stands and calls == results, f"{told}; each of {len(calls)} calls has one result")
    cut = next(block for block in blocks if block.get("tool_use_id") == cut_off.id)
    once = len(booked.read_text(encoding="utf-8").splitlines()) == 1 and len(said) == 1 and "may have run" in str(cut)
    check(once, "nothing ran twice: the agent was told that the call may have run, and looked; one booking is there")


def as_it_was(fleet: Fleet, second: Worker, moment: datetime) -> None:
    """Chapter 4: another agent, of what this one was before."""
    heading("4  The agent as it was before the booking")
    at = moment.isoformat(timespec="microseconds")
    typed(f"selfpager restore {AGENT} --at {at} --as {BEFORE}")
    fleet.run("restore", AGENT, "--at", at, "--as", BEFORE)
    shown("worker 2", ASKED)
    now, then = (said_by(name, second, name, ASKED) for name in (AGENT, BEFORE))
    check("2,860" in now and "3,000" in then and "2,860" not in then, f"{BEFORE} knows nothing of what came after")


def end(fleet: Fleet, second: Worker) -> None:
    """Chapter 5: the end of a worker, which gives back its agents."""
    heading("5  A worker ends in order")
    typed(f"kill {second.pid}", "worker 2")
    code = second.stop()
    owners = [fleet.home.owner(name) for name in (AGENT, BEFORE)]
    check(code == DONE and owners == [None, None], "it gave back its agents: whoever is next waits for no lease")
    for name in (AGENT, BEFORE):
        fleet.run("check", name)
    check(fleet.home.names() == [AGENT, BEFORE], "selfpager check: all laws hold for both agents")


def said_by(label: str, worker: Worker, agent: str, text: str) -> str:
    """Say something to an agent, show its answer, and return it."""
    answer = worker.post(f"/v1/agents/{agent}/turns", {"text": text})["text"]
    shown(label, answer)
    return answer


def shown(label: str, text: str) -> None:
    """Print a line of a conversation."""
    line = f"{label:>8}  {visible(' '.join(text.split()))}"
    say(line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…")
