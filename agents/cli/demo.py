"""`selfpager demo`: the whole story, offline, with the real machinery. Each ✓ is looked up before it is printed.

When something is not as it should be, the demo says what and ends with exit code 1.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from agents.cli.common import DONE, Shared, command
from agents.cli.telling import WIDTH, check, heading, prose, require, steps_of, typed, wait_for
from agents.cli.visible import say, visible
from agents.demo.stage import Exchange, Process, Stage, text_of
from agents.meter import Prices
from pager.types import Usage

BAR_CELLS, BAR_EVERY = 40, 10
USABLE = 4_500  # guide.yaml's window without the room for the reply
OPENING = "Hi! My name is Dana, and our budget for the trip is 3,000 euros."
ASKED = "What is our budget?"
CORRECTION = "A correction: with the reservation fees the budget is 3,300 euros."
EXACTLY = "What exactly did I say about the cork shop?"
TASK = "Find out how we get to Vigo."
CACHE_PRICES = Prices(input=1.0, output=0.0, cache_read=0.1, cache_write=1.25)  # in uncached input tokens


@command("demo", home="A fresh directory for the agents of the demo. Default: a temporary one.", as_name=None)
@click.option("--fleet", is_flag=True, help="The story of two workers on a Postgres, which it brings along.")
def demo_command(shared: Shared, *, fleet: bool) -> int:
    """Tell the whole story: facts over restarts, a window that fills, kill -9, and what paging saves.

    No key and no network are needed. The agents stay in the directory that --home names (a fresh one), else in a
    temporary one, for `selfpager show` and `selfpager chat`.

    With --fleet another story: an agent in a Postgres, two workers, one of which is killed in the middle of a turn, and
    the agent as it was before. It needs `pip install 'selfpager[demo-fleet]'`, and leaves nothing.
    """
    if shared.as_name:
        raise click.UsageError("the demo has agents of its own; leave out --as.")
    if fleet:
        if shared.home_address:
            raise click.UsageError("the demo of a fleet brings its own Postgres and leaves nothing; leave out --home.")
        from agents.cli.demo_fleet import tell_of_a_fleet

        return tell_of_a_fleet()
    return tell(shared)


def tell(shared: Shared) -> int:
    """Tell the story of one machine."""
    stage = Stage.make(Path(shared.home_address or tempfile.mkdtemp(prefix="selfpager-demo-")), os.environ)
    prose(
        "Processes, kill, SQLite and Chroma are real; only the model is played, by a script. A line with ✓ was looked "
        "up in the agent's state before it was printed."
    )
    trip = text_of("trip.txt").splitlines()
    with ThreadPoolExecutor(1) as beside, stage.start("chat", "everything") as another:
        whole = beside.submit(list, map(another.say, (OPENING, ASKED, CORRECTION, *trip, EXACTLY)))
        turns = facts(stage)
        with stage.start("chat", "guide") as talk:
            turns += window(stage, talk, trip)
        kill(stage)
        savings(stage, turns, whole.result())
    before_the_question = turns[-2]
    look_further(stage, unseen=before_the_question.usages[-1][0])
    return DONE


def facts(stage: Stage) -> list[Exchange]:
    """Chapter 1: a fact outlives its process, and is superseded."""
    heading("1  Facts outlive the process")
    with stage.start("chat", "guide") as talk:
        typed("selfpager chat guide.yaml", f"process {talk.pid}, which ends after this message")
        turns = [show(talk.say(OPENING))]
    with stage.memory("guide") as memory:
        (fact,) = memory.inspect.newest_facts()
        check(fact.actor == "agent", f"{fact.id} “{fact.text}” is on disk, archived by the agent with its tool")
    with stage.start("chat", "guide") as talk:
        typed("selfpager chat guide.yaml", f"process {talk.pid}, which knows only what is on disk")
        turns += [show(talk.say(ASKED)), show(talk.say(CORRECTION))]
    with stage.memory("guide") as memory:
        human = next(block for block in memory.core() if block.name == "human").value
        old, new = memory.history.fact_versions("budget")
        superseded = old.superseded_by is not None and new.superseded_by is None
        told = f"it found the budget; {old.id} is superseded by {new.id} and still there"
        check("Dana" in human and old.text in turns[1].answer and superseded, told)
    return turns


def window(stage: Stage, talk: Process, trip: Sequence[str]) -> list[Exchange]:
    """Chapter 2: the window fills, the oldest steps leave, and one of them is quoted word for word."""
    heading(f"2  {len(trip)} turns through a window of 6,000 tokens")
    prose(f"A request may have {USABLE:,} tokens. When it is too full the oldest steps leave.")
    turns: list[Exchange] = []
    for number, text in enumerate(trip, start=1):
        turn = talk.say(text)
        turns.append(turn)
        evicted = turn.paged("evict")
        if evicted:
            first, last, size = evicted[0], evicted[-1], sum(movement["tokens"] for movement in evicted)
            span = f"{first['page_id']} to {last['page_id']} leave: {size:,} tokens"
            say(f"     ▼ {span}, because {first['reason']}", fg="yellow")
        if number % BAR_EVERY == 0:
            bar(number, turn)
    turns.append(show(talk.say(EXACTLY)))
    with stage.memory("guide") as memory:
        sizes = [usage.whole_input for turn in turns for _, usage in turn.usages]
        evictions = sum(bool(turn.paged("evict")) for turn in turns)
        largest = f"{len(sizes)} requests, the largest of {max(sizes):,} tokens"
        check(max(sizes) <= USABLE and evictions >= 2, f"{largest}; {evictions} evictions, made without a model")
        page_id = next(arguments["page_id"] for name, arguments, _ in turns[-1].calls if name == "page_in")
        text, found = memory.page_text(page_id), turns[-1].calls[0][2]
        left = [movement for turn in turns[:-1] for movement in turn.paged("evict") if movement["page_id"] == page_id]
        told = f"{page_id} had left; search_recall found it, page_in read it, word for word"
        check(text in trip and bool(left) and page_id in found and text in turns[-1].answer, told)
    return turns


def kill(stage: Stage) -> None:
    """Chapter 3: kill -9 while a tool is at work, and the resumed task."""
    heading("3  kill -9 in the middle of a call")
    (stage.home / "slow").touch()
    with stage.start("run", "errand", TASK) as run:
        typed(f'selfpager run errand.yaml "{TASK}"', f"process {run.pid}")
        wait_for(stage.home / "asked.log")
        typed(f"kill -9 {run.pid}", "while it waits for the railway's slow server")
        killed = run.kill() == -signal.SIGKILL
    with stage.memory("errand") as memory:
        before = steps_of(memory)
        (unfinished,) = memory.open_calls
        begun = killed and unfinished.name == "timetable" and unfinished.begun
        check(begun, "it ended by signal 9; on disk: timetable has begun and has no result")
    (stage.home / "slow").unlink()
    with stage.start("run", "errand", "--resume") as run:
        typed("selfpager run errand.yaml --resume", f"process {run.pid}")
        ended = [event["reason"] for event in run.events() if event["event"] == "stopped"]
    with stage.memory("errand") as memory:
        after = steps_of(memory)
        same = ended == ["done"] and all(step[: len(old)] == old for old, step in zip(before, after, strict=False))
        blocks = [block for step in after for block in step]
        calls = Counter(block["id"] for block in blocks if block["type"] == "tool_use")
        results = Counter(block["tool_use_id"] for block in blocks if block["type"] == "tool_result")
        grown = f"{len(before)} steps stand as they stood, {len(after) - len(before)} came after"
        told = f"{grown}; each of {len(calls)} calls has one result"
        check(same and not memory.open_calls and calls == results, told)
        texts = sorted(fact.text for fact in memory.inspect.newest_facts())
        told = "the task is done: both facts are stored once, the idempotent tool ran again"
        check(len(texts) == 2 and len((stage.home / "asked.log").read_text().splitlines()) == 2, told)
    checked = subprocess.run(
        stage.command("check", "errand"), env=dict(stage.environ), capture_output=True, check=False
    )
    check(checked.returncode == 0, "selfpager check errand: all laws hold, and both stores agree")


def savings(stage: Stage, paging: Sequence[Exchange], everything: Sequence[Exchange]) -> None:
    """Chapter 4: the same conversation with everything in the prompt."""
    heading("4  What paging saves")
    prose("Another agent was told the same, with a window of 200,000 tokens:")
    say(f"{'':>5}{'everything in the prompt':>36}{'paging':>36}")
    say(f"{'turn':>5}" + f"{'request':>12}{'sent':>12}{'cached':>12}" * 2)
    for until in (10, len(paging)):
        line = f"{until:>5}"
        for turns in (everything, paging):
            all_, (_, last) = total(turns[:until]), turns[until - 1].usages[-1]
            cached = all_.cache_read_input_tokens / all_.whole_input
            line += f"{last.whole_input:>12,}{all_.whole_input:>12,}{cached:>12.0%}"
        say(line)
    for name, turns in (("everything", everything), ("guide", paging)):
        with stage.memory(name) as memory:
            steps = [each for turn in turns for each in turn.usages]
            stored = [(request.step, request.usage) for request in memory.inspect.requests(0, len(steps)).rows[::-1]]
            require(stored == steps, f"the {len(steps)} requests of {name} are on disk with these numbers")
    whole, paged = total(everything), total(paging)
    less = round(100 * (1 - paged.whole_input / whole.whole_input))
    price = round(100 * (1 - CACHE_PRICES.usd(paged) / CACHE_PRICES.usd(whole)))
    check(less > 0, f"{less} % less was sent, which costs {price} % less: the cache reads at a tenth")


def look_further(stage: Stage, unseen: str) -> None:
    """Chapter 5: commands that work as they are printed. `unseen`: a step that was answered without a text."""
    heading("5  Go on: see it in a browser, ask why it did not see a text, talk to it")
    home, script = shlex.quote(str(stage.home)), Path(sys.executable).parent / "selfpager"
    program = str(script) if script.is_file() else f"{sys.executable} -m agents"
    if shutil.which("selfpager") == program:
        program = "selfpager"
    typed(f"{program} view guide --home {home}")
    typed(f'{program} trace guide "cork shop" --at {unseen} --home {home}')
    typed(f"{program} chat {shlex.quote(str(stage.home / 'guide.yaml'))} --home {home}")


def total(turns: Sequence[Exchange]) -> Usage:
    """Return the usage of all requests."""
    return sum((usage for turn in turns for _, usage in turn.usages), Usage())


def show(turn: Exchange) -> Exchange:
    """Print a message, the calls that it led to, and how the answer begins. Return the turn."""
    calls = [
        f"{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})" for name, given, _ in turn.calls
    ]
    answer = [("agent", " ".join(turn.answer.splitlines()[:2]), 2)]  # of what was found, the best
    for label, text, most in (("Dana", turn.asked, 2), *(("·", text, 1) for text in calls), *answer):
        lines = textwrap.wrap(visible(" ".join(text.split())), WIDTH - 9)
        say(f"{label:>6} " + f"\n{'':7}".join(lines[:most]) + (" …" if len(lines) > most else ""))
    return turn


def bar(number: int, turn: Exchange) -> None:
    """Print how full the window is, in one line."""
    used = [event for event in turn.events if event["event"] == "replied"][-1]["window_tokens"]
    cells = round(BAR_CELLS * used / USABLE)
    text = turn.asked if len(turn.asked) <= 22 else f"{turn.asked[:21]}…"
    say(f"{number:>4} {'#' * cells}{'.' * (BAR_CELLS - cells)} {used:>5,}  {visible(text)}")
