"""Measure the debug view: `python -m tests.bench.bench_view [paint beside agent]`

Times are medians; what is compared alternates. Needs a browser. Exits with 1 when a limit does not hold. The agents to
look at are grown once for each state of the code (100,000 turns in minutes), and kept in build/.

- paint: how soon the view is there, and `selfpager show`, for an agent of 100,000 turns and facts against one of 100,
  both with the same window. A paint counts from the click on the address until the window, the request and what is
  different in it are drawn. `show` is a process of its own, Python's start with it.
- beside: how soon the view of an agent of 10,000 turns is there while another process keeps changing that agent.
- agent: what one open view costs the agent that it shows: CPU time of the agent's process per turn. Blocks of turns
  alternate: the browser shows the agent, an empty page, or the twin, a copy that a third process keeps changing.
  Looking at the twin is the same work on other files: what that costs the agent is the processor that all share.
"""

import json
import shutil
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from playwright.sync_api import Page, ViewportSize

from pager import Limits, Memory, MemoryReader
from tests.bench import grown, texts
from tests.bench.figures import ROOT, Child, Figure, Pair, pair, run, timed
from tests.bench.grown import INSTRUCTIONS, Talk, archive_all
from tests.bench.quick_server import QuickServer
from tests.bench.texts import Texts
from tests.browser.looking import serving
from tests.browser.programs import started

GROWN = ROOT / "build" / "bench-view"  # `make clean` deletes it
OLD, MIDDLE, YOUNG = 100_000, 10_000, 100
PIECE = 1_000  # facts and turns are grown alternately, as they come in life
PAINTS, SHOWS, SCROLLS = 25, 15, 40
SIZE: ViewportSize = {"width": 1280, "height": 900}
JUMP = "part => { const box = document.querySelector('.long'); box.scrollTop = part * box.scrollHeight; }"
ALL_THERE = "() => document.querySelectorAll('.row .fact').length > 5 && !document.querySelector('.row .waits')"
BLOCK_TURNS = 300  # more than a second: the view looks once or twice
ROUNDS, WARM_UP_TURNS = 30, 300
SETTLE_MS = 1_000  # opening and leaving a page is the browser's work, and is over by then
AGENT = """
import sys, time
from agents import Agent
from tests.bench.texts import Texts
texts = Texts(1)
environ = {"ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": sys.argv[3]}
with Agent.load(sys.argv[1], home=sys.argv[2], environ=environ) as agent:
    print("ready", flush=True)
    for line in sys.stdin:
        start = time.process_time()
        for _ in range(int(line)):
            agent.turn(texts.said(1))
        print(time.process_time() - start, flush=True)
"""
TWIN = """
import sys, time
from itertools import count
from pager import Memory
with Memory.open(sys.argv[1], embedder=None) as memory:
    for number in count():
        memory.save_value("bench", str(number))
        time.sleep(0.25)
"""
CONFIG = """
name: agent
model: {id: m, base_url: "${ANTHROPIC_BASE_URL}"}
window: {limit_tokens: 20000}
archival: {embedder: none}
"""


def paint(work: Path) -> list[Figure]:
    for name, size in (("old", OLD), ("young", YOUNG)):
        _put(work / name, size)
    names = ("old", "young")
    with serving(work) as server, started() as browser:
        page = browser.new_page(viewport=SIZE)
        old, young = (lambda: _paint(page, f"{server.address}#old")), (lambda: _paint(page, f"{server.address}#young"))
        paints = pair(old, young, names, rounds=PAINTS, warm_up=2)
        slowest = _slowest_scroll(page, f"{server.address}#old/archive")
    shows = pair(lambda: _show(work, "old"), lambda: _show(work, "young"), names, rounds=SHOWS, warm_up=1)
    scroll = "a jump to anywhere in 100,000 facts, until its rows are there"
    return [
        paints.medians("first paint at 100,000 turns and facts, against 100", 2),
        shows.medians("`show` of the same", 2),
        Figure("... in seconds", "", median(shows.ours), 1.0, " s"),
        Figure(scroll, f"the slowest of {SCROLLS}", slowest, None, " s"),
    ]


def beside(work: Path) -> list[Figure]:
    _put(work / "ten", MIDDLE)
    with Child("-c", TWIN, work / "ten"), serving(work) as server, started() as browser:
        page = browser.new_page(viewport=SIZE)
        _paint(page, f"{server.address}#ten")
        seconds = [_paint(page, f"{server.address}#ten") for _ in range(PAINTS)]
    name = "first paint at 10,000 turns and facts, beside a writing process"
    return [Figure(name, f"worst {max(seconds):.2f} s", median(seconds), 1.0, " s")]


def _put(directory: Path, size: int) -> None:
    """Put a copy of an agent of so many turns and facts there, which is grown if this code has not grown it before."""
    code = sha256()
    for file in (*sorted(ROOT.glob("pager/**/*.py")), Path(grown.__file__), Path(texts.__file__)):
        code.update(file.read_bytes())
    kept = GROWN / code.hexdigest()[:16] / str(size)
    if not kept.exists():
        for older in GROWN.glob("*"):
            if older != kept.parent:
                shutil.rmtree(older)
        kept.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=kept.parent) as unfinished:
            print(f"growing an agent of {size:,} turns ...", file=sys.stderr, flush=True)
            _grow(Path(unfinished) / "agent", size)
            (Path(unfinished) / "agent").rename(kept)
    shutil.copytree(kept, directory)


def _grow(directory: Path, size: int) -> None:
    words, limits = Texts(), Limits.for_window(100_000)
    facts = words.facts(size)
    with Memory.open(directory, instructions=INSTRUCTIONS, embedder=None, limits=limits) as memory:
        for start in range(0, size, PIECE):
            archive_all(memory, facts[start : start + PIECE])
            Talk(memory, words).turns_in_batches(min(PIECE, size - start))


def _paint(page: Page, address: str) -> float:
    page.goto("about:blank")
    start = time.perf_counter()
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    page.wait_for_selector("#panel .change")
    return time.perf_counter() - start


def _show(home: Path, name: str) -> float:
    command = [sys.executable, "-m", "agents", "show", name, "--home", str(home)]
    return timed(lambda: subprocess.run(command, check=True, capture_output=True))


def _slowest_scroll(page: Page, address: str) -> float:
    """From a jump of the scroll bar until no row in sight is empty."""
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("#panel .row .fact")
    slowest = 0.0
    for number in range(SCROLLS):
        start = time.perf_counter()
        page.evaluate(JUMP, (number * 37 % SCROLLS) / SCROLLS)
        page.wait_for_function(ALL_THERE)
        slowest = max(slowest, time.perf_counter() - start)
    return slowest


def agent(work: Path) -> list[Figure]:
    file, home = work / "agent.yaml", work / "home"
    file.write_text(CONFIG)
    with QuickServer() as server, Child("-c", AGENT, file, home, server.base_url) as running:
        assert running.line() == "ready"
        running.ask(WARM_UP_TURNS)
        (home / "twin").mkdir()
        with MemoryReader.open(home / "agent") as reader:
            reader.export(home / "twin" / "pager.db")
        with Child("-c", TWIN, home / "twin"):
            seconds = _watched(running, home)
    watched = Pair(("watched", "alone"), seconds["agent"], seconds["nothing"])
    beside = Pair(("beside", "alone"), seconds["twin"], seconds["nothing"])
    return [
        watched.rounds("CPU time of a turn with one view open, against none", 1.02),
        beside.rounds("... with a view of another agent open (the processor's share)"),
    ]


def _watched(running: Child, home: Path) -> dict[str, list[float]]:
    """CPU seconds per turn, a value per round, for each thing that the browser shows; who is first rotates."""
    seconds: dict[str, list[float]] = {"agent": [], "nothing": [], "twin": []}
    names = list(seconds)
    with Child("-m", "agents", "view", "--no-browser", "--json", "--home", home) as view, started() as browser:
        page = browser.new_page(viewport=SIZE)
        address = json.loads(view.line())["address"]
        for number in range(ROUNDS):
            for shown in names[number % 3 :] + names[: number % 3]:
                page.goto("about:blank")
                if shown != "nothing":
                    page.goto(f"{address}#{shown}")
                    page.wait_for_selector("body[data-ready]")
                page.wait_for_timeout(SETTLE_MS)
                seconds[shown].append(float(running.ask(BLOCK_TURNS)) / BLOCK_TURNS)
    return seconds


if __name__ == "__main__":
    sys.exit(run({"paint": paint, "beside": beside, "agent": agent}, sys.argv[1:], "playwright"))
