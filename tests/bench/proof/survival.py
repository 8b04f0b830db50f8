"""Survival: what is left when a process is killed, a file is torn, an input is giant, a model is away, or two write.

Every side is put through the same, each as a process with a directory of its own, before the strict stand-in. What is
told is what the run saw: how many of the turns that were answered came back afterwards, and what was raised. A turn
counts as answered when the side has returned from it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Any

from tests.bench.peers.lines import MARK
from tests.bench.proof import survival_talk, tears
from tests.bench.proof.sides import LANGGRAPH, OURS, RUNNER, WRONG, Ended, Side
from tests.standin.server import StandinProcess

Json = dict[str, Any]
WINDOW = 20_000
KEPT = 30  # turns that every side has before its files are torn
FACTS = 300  # so many that ours has a vector index, too
SECONDS = 120.0
WITH_TOOLS = (OURS, RUNNER, LANGGRAPH)
_PLACE = re.compile(r"/\S*/")  # where a file happened to be
REPLIES = "tests.bench.proof.survival_talk:reply"


@dataclass(frozen=True, slots=True)
class Stage:
    """Where one side is put through one thing."""

    name: str
    standin: StandinProcess
    directory: Path
    cache: Path

    def start(self, directory: Path | None = None) -> Side:
        more = ["survives"] if self.name in WITH_TOOLS else []
        return Side.start(self.name, self.standin.base_url, directory or self.directory, self.cache, *more)


def figures(work: Path, cache: Path, names: Sequence[str], *, kills: int, torn_files: int) -> Json:
    ordeals: dict[str, Callable[[Stage], str]] = {
        "kill -9": lambda stage: killed(stage, kills),
        "torn files": lambda stage: torn(stage, torn_files),
        "1 MB message": giant_message,
        "10 MB tool result": giant_result,
        "provider down, then kill -9": provider_down,
        "summariser down": summariser_down,
        "two writers": two_writers,
    }
    found: Json = {"kills": kills, "ordeals": {title: {} for title in ordeals}}
    for title, ordeal in ordeals.items():
        for name in names:
            with StandinProcess(limit=WINDOW, replies=REPLIES, models={"down": 1}) as standin:
                place = work / "".join(letter for letter in f"{title} {name}" if letter.isalnum())
                found["ordeals"][title][name] = ordeal(Stage(name, standin, place, cache))
    return found


def mark(number: int) -> str:
    """Each a fact to be kept, so that a side which keeps nothing but facts has every chance."""
    return f"{MARK}the number of this turn is N{number:05}N."


def missing(answered: Sequence[str], said: Sequence[str]) -> int:
    whole = "\n".join(said)
    return sum(text not in whole for text in answered)


# kill -9


def killed(stage: Stage, kills: int) -> str:
    """Each time in a turn, somewhere: after a share of what the turn before took."""
    random, numbers = Random(7), count(1)
    answered: list[str] = []
    cut_off: list[str] = []
    broken: list[str] = []
    for _ in range(kills):
        try:
            side = stage.start()
        except WRONG as error:
            broken.append(str(error))
            break
        try:
            took = 0.0
            for text in [mark(next(numbers)) for _ in range(2)]:
                start = monotonic()
                side.ask("turn", text=text, seconds=SECONDS)
                took = monotonic() - start
                answered.append(text)
            side.say("turn", text=(last := mark(next(numbers))))
            sleep(random.uniform(0, took))
            if not side.has_answered():
                cut_off.append(last)
        except WRONG as error:
            broken.append(str(error))
        side.kill()
    return _what_is_left(stage, answered, f"{kills} kills", broken, cut_off)


def _what_is_left(
    stage: Stage, answered: Sequence[str], after: str, broken: Sequence[str] = (), cut_off: Sequence[str] = ()
) -> str:  # fmt: skip
    try:
        with stage.start() as side:
            said = side.ask("said", seconds=SECONDS)
    except WRONG as error:
        return f"{after}: does not open any more ({_short(str(error))})"
    lost, also = missing(answered, said), f"; {len(broken)} times: {_short(broken[0])}" if broken else ""
    if cut_off:
        also += f"; of {len(cut_off)} turns cut off {len(cut_off) - missing(cut_off, said)} are on disk"
    return f"{after}: {lost or 'none'} of {len(answered)} answered turns lost{also}"


# torn files


def torn(stage: Stage, most: int) -> str:
    """Killed with files half written to, then each file in turn, `most` of them, is torn in every way."""
    side = stage.start()
    answered = [mark(number) for number in range(KEPT)]
    facts = [f"fact number {number} is about hats" for number in range(FACTS)] if stage.name == OURS else []
    try:
        if facts:
            side.ask("archive", texts=facts)
            side.ask("search", text="hats")
        for text in answered:
            side.ask("turn", text=text, seconds=SECONDS)
    finally:
        side.kill()
    files = sorted(path for path in stage.directory.rglob("*") if path.is_file() and path.stat().st_size)
    files = [path for path in files if path.suffix != ".yaml"]
    if not files:
        return "it has no files"
    files = sorted(Random(7).sample(files, min(most, len(files))))
    ends = [
        (_after_a_tear(stage, file, tear(file.read_bytes(), place), answered, facts), file.name)
        for file in files for tear in tears.KINDS for place in tears.PLACES
    ]  # fmt: skip
    return tears.told(ends)


def _after_a_tear(stage: Stage, file: Path, torn: bytes, answered: Sequence[str], facts: Sequence[str]) -> str:
    copy = stage.directory.with_name(f"{stage.directory.name}-torn")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(stage.directory, copy)
    (copy / file.relative_to(stage.directory)).write_bytes(torn)
    try:
        side = stage.start(copy)
    except Ended:
        return "crashed at opening"
    except WRONG:
        return "refused to open"
    with side:
        try:
            lost = missing(answered, side.ask("said", seconds=SECONDS))
            if facts:
                lost += missing(facts, side.ask("search", text="hats", limit=len(facts), seconds=SECONDS))
            side.ask("turn", text=mark(99_999), seconds=SECONDS)
        except Ended:
            return "crashed later"
        except WRONG:
            return "failed later"
    return tears.WELL if not lost else "lost all" if lost == len(answered) + len(facts) else "lost some without a word"


# giants


def giant_message(stage: Stage) -> str:
    return _giant(stage, "a very long line of a log with 12345 in it\n" * 24_000)


def giant_result(stage: Stage) -> str:
    if stage.name not in WITH_TOOLS:
        return "not put through: it runs no tools here"
    return _giant(stage, survival_talk.WISH)


def _giant(stage: Stage, text: str) -> str:
    with stage.start() as side:
        side.ask("turn", text="hello", seconds=SECONDS)
        ends = [_try(side, each) for each in (text, "and now something short", "and again")]
    first = f"refused ({_short(ends[0])})" if ends[0] else "answered"
    after = {0: "later turns answered", 1: "one of two later turns fails"}.get(sum(map(bool, ends[1:])))
    return f"{first}; {after or 'every later turn fails, too'}"


def _try(side: Side, text: str) -> str:
    """Why a turn failed, or nothing."""
    try:
        side.ask("turn", text=text, seconds=SECONDS)
    except WRONG as error:
        return str(error)
    return ""


def _failed(side: Side) -> bool:
    try:
        side.answer(SECONDS)
    except WRONG:
        return True
    return False


def _short(text: str) -> str:
    for known in ("prompt is too long", "request_too_large", "Overloaded"):
        if known in text:
            return known
    return _PLACE.sub("", text).partition(" (")[0].partition(". ")[0][:100]


# models that are away


def provider_down(stage: Stage) -> str:
    """Something is said while the provider is down, and the process dies."""
    with _away(stage) as (side, text):
        failed = _try(side, text)
        side.kill()
    assert failed, "the stand-in was down"
    with stage.start() as side:
        kept = not missing([text], side.ask("said", seconds=SECONDS))
        if not kept:
            return "what was said is lost"
        if stage.name not in (OURS, LANGGRAPH):
            return "what was said is kept, without an answer"
        try:
            side.ask("resume", seconds=SECONDS)
        except WRONG as error:
            return f"what was said is kept; to resume fails ({_short(str(error))})"
    return "what was said is kept, and answered by resume"


@contextmanager
def _away(stage: Stage) -> Iterator[tuple[Side, str]]:
    side = stage.start()
    try:
        side.ask("turn", text=mark(1), seconds=SECONDS)
        stage.standin.faults("529=1.0")
        yield side, mark(2)
    finally:
        stage.standin.faults("none")
        side.close()


def summariser_down(stage: Stage) -> str:
    if stage.name != OURS:
        return "it has no summariser here"
    words = "some words that fill a window " * 60
    with stage.start() as side:
        failed = [end for number in range(80) if (end := _try(side, f"{mark(number)} {words}"))]
        moved = side.ask("moved")
    if failed:
        return f"{len(failed)} of 80 turns failed ({_short(failed[0])})"
    return f"80 of 80 turns answered, {moved['epoch'] - 1} evictions with the digest that needs no model"


# two writers


def two_writers(stage: Stage) -> str:
    with stage.start() as first:
        first.ask("turn", text=mark(0), seconds=SECONDS)
        try:
            second = stage.start()
        except WRONG as error:
            return f"the second is refused: {_short(str(error).partition(': ')[2])}"
        answered = [mark(0)]
        with second:
            for number in range(1, 11, 2):
                said = {first: mark(number), second: mark(number + 1)}
                for side, text in said.items():
                    side.say("turn", text=text)
                answered += [text for side, text in said.items() if not _failed(side)]
    return _what_is_left(stage, answered, "both write")
