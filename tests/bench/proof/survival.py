"""Survival: what is left when a process is killed, a file is torn, an input is giant, a model is away, or two write.

Every side is put through the same, each as a process with a directory of its own, before the strict stand-in. What is
told is what the run saw: how many of the turns that were answered came back afterwards, and what was raised. A turn
counts as answered when the side has returned from it.
"""

import re
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from time import monotonic, sleep

from pager.types import Json
from tests.bench.peers.giant_tool import read_everything
from tests.bench.peers.lines import MARK
from tests.bench.proof.sides import FAILURES, LANGGRAPH, OURS, RUNNER, Ended, Side
from tests.standin import Reply, Standin, call
from tests.standin.server import StandinServer

WINDOW = 20_000
KEPT = 30  # turns that every side has before its files are torn
FACTS = 300  # so many that ours has a vector index, too
SECONDS = 120.0
WITH_TOOLS = (OURS, RUNNER, LANGGRAPH)
WISH = "use your tool"
PLACES = (0.05, 0.5)  # of a file's length. The middle alone would say little: a log begun anew is used at its beginning
PAGE = 4_096
WELL = "lost nothing"
FEW = 3  # files that are named


def reply(params: Json) -> Reply:
    """Call the giant tool or store a fact where the message asks for it, else answer in a word."""
    content = params["messages"][-1]["content"]
    text = content if isinstance(content, str) else content[0].get("text", "")
    offered = {tool["name"] for tool in params.get("tools") or []}
    if text.startswith(WISH) and read_everything.__name__ in offered:
        return Reply(call(read_everything.__name__))
    if text.startswith(MARK) and "memory" in offered:
        name = "".join(letter for letter in text if letter.isalnum())[:40]
        return Reply(call("memory", {"command": "create", "path": f"/memories/{name}.md", "file_text": text}))
    return Reply("Noted.")


@dataclass(frozen=True, slots=True)
class Stage:
    """Where one side is put through one thing."""

    name: str
    standin: StandinServer
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
            with StandinServer(Standin(limit_tokens=WINDOW), replies=reply, windows={"down": 1}) as standin:
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
    random, texts = Random(7), map(mark, count(1))
    answered: list[str] = []
    cut_off: list[str] = []
    broken: list[str] = []
    for _ in range(kills):
        try:
            side = stage.start()
        except FAILURES as error:
            broken.append(str(error))
            break
        try:
            took = 0.0
            for text in (next(texts), next(texts)):
                start = monotonic()
                side.ask("turn", text=text, seconds=SECONDS)
                took = monotonic() - start
                answered.append(text)
            side.send("turn", text=(last := next(texts)))
            sleep(random.uniform(0, took))
            if not side.has_answered():
                cut_off.append(last)
        except FAILURES as error:
            broken.append(str(error))
        side.kill()
    return _what_is_left(stage, answered, f"{kills} kills", broken, cut_off)


def _what_is_left(
    stage: Stage, answered: Sequence[str], after: str, broken: Sequence[str] = (), cut_off: Sequence[str] = ()
) -> str:
    try:
        with stage.start() as side:
            said = side.ask("said", seconds=SECONDS)
    except FAILURES as error:
        return f"{after}: does not open any more ({_short(error)})"
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
    ends = [
        (_after_a_tear(stage, file, tear(file.read_bytes(), place), answered, facts), file.name)
        for file in sorted(Random(7).sample(files, min(most, len(files))))
        for tear in (cut, blank)
        for place in PLACES
    ]
    return summed_up(ends)


def cut(content: bytes, place: float) -> bytes:
    return content[: int(len(content) * place)]


def blank(content: bytes, place: float) -> bytes:
    """Replace a page by noughts."""
    start = int(len(content) * place) // PAGE * PAGE
    page = content[start : start + PAGE]
    return content[:start] + bytes(len(page)) + content[start + len(page) :]


def summed_up(ends: Sequence[tuple[str, str]]) -> str:
    """Say how often it ended how; of bad ends, which files it was, if they are few."""
    parts: list[str] = []
    for end, times in Counter(end for end, _ in ends).items():
        names = {name for each, name in ends if each == end}
        parts.append(f"{times} {end}" + (f" ({', '.join(sorted(names))})" if end != WELL and len(names) <= FEW else ""))
    return f"{len(ends)} tears of {len({name for _, name in ends})} files: {', '.join(parts)}"


def _after_a_tear(stage: Stage, file: Path, torn: bytes, answered: Sequence[str], facts: Sequence[str]) -> str:
    copy = stage.directory.with_name(f"{stage.directory.name}-torn")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(stage.directory, copy)
    (copy / file.relative_to(stage.directory)).write_bytes(torn)
    try:
        side = stage.start(copy)
    except Ended:
        return "crashed at opening"
    except FAILURES:
        return "refused to open"
    with side:
        try:
            lost = missing(answered, side.ask("said", seconds=SECONDS))
            if facts:
                lost += missing(facts, side.ask("search", text="hats", limit=len(facts), seconds=SECONDS))
            side.ask("turn", text=mark(99_999), seconds=SECONDS)
        except Ended:
            return "crashed later"
        except FAILURES:
            return "failed later"
    return WELL if not lost else "lost all" if lost == len(answered) + len(facts) else "lost some without a word"


# giants


def giant_message(stage: Stage) -> str:
    return _giant(stage, "a very long line of a log with 12345 in it\n" * 24_000)


def giant_result(stage: Stage) -> str:
    if stage.name not in WITH_TOOLS:
        return "not put through: it runs no tools here"
    return _giant(stage, WISH)


def _giant(stage: Stage, text: str) -> str:
    with stage.start() as side:
        side.ask("turn", text="hello", seconds=SECONDS)
        first, *later = [_failure(side, each) for each in (text, "and now something short", "and again")]
    begun = f"refused ({_short(first)})" if first else "answered"
    after = ("later turns answered", "one of two later turns fails", "every later turn fails, too")
    return f"{begun}; {after[sum(map(bool, later))]}"


def _failure(side: Side, text: str) -> str:
    """Return why a turn failed, or nothing."""
    try:
        side.ask("turn", text=text, seconds=SECONDS)
    except FAILURES as error:
        return str(error)
    return ""


def _short(error: object) -> str:
    text = str(error)
    for reason in ("prompt is too long", "request_too_large", "Overloaded"):
        if reason in text:
            return reason
    without_places = re.sub(r"/\S*/", "", text)
    return without_places.partition(" (")[0].partition(". ")[0][:100]


# models that are away


def provider_down(stage: Stage) -> str:
    """Something is said while the provider is down, and the process dies."""
    side, text = stage.start(), mark(2)
    try:
        side.ask("turn", text=mark(1), seconds=SECONDS)
        stage.standin.faults.chances = {"529": 1.0}
        assert _failure(side, text), "the stand-in was down"
    finally:
        stage.standin.faults.chances = {}
        side.kill()
    with stage.start() as side:
        if missing([text], side.ask("said", seconds=SECONDS)):
            return "what was said is lost"
        if stage.name not in (OURS, LANGGRAPH):
            return "what was said is kept, without an answer"
        try:
            side.ask("resume", seconds=SECONDS)
        except FAILURES as error:
            return f"what was said is kept; to resume fails ({_short(error)})"
    return "what was said is kept, and answered by resume"


def summariser_down(stage: Stage) -> str:
    if stage.name != OURS:
        return "it has no summariser here"
    words = "some words that fill a window " * 60
    with stage.start() as side:
        failed = [why for number in range(80) if (why := _failure(side, f"{mark(number)} {words}"))]
        moved = side.ask("moved")
    if failed:
        return f"{len(failed)} of 80 turns failed ({_short(failed[0])})"
    return f"80 of 80 turns answered, {moved['epoch'] - 1} evictions with the digest that needs no model"


def two_writers(stage: Stage) -> str:
    with stage.start() as first:
        first.ask("turn", text=mark(0), seconds=SECONDS)
        try:
            second = stage.start()
        except FAILURES as error:
            return f"the second is refused: {_short(str(error).partition(': ')[2])}"
        answered = [mark(0)]
        with second:
            for number in range(1, 11, 2):
                texts = {first: mark(number), second: mark(number + 1)}
                for side, text in texts.items():
                    side.send("turn", text=text)
                for side, text in texts.items():
                    with suppress(*FAILURES):
                        side.answer(SECONDS)
                        answered.append(text)
    return _what_is_left(stage, answered, "both write")
