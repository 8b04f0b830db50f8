"""A realistic load on a memory, in a process that may be killed at any moment.

Every call of the memory that returned is acknowledged with a line; `tests.crash.witness` holds the memory to it. What
a life says is short, and unique: each text carries a word of its own.

`scripted` covers every kind of call, the same way every time, and can die at any of its commits. `live` goes on with
whatever memory it finds, at random, until it is killed.
"""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

from pager import BlockSpec, Limits, Memory, send_command
from pager.types import Json
from tests.crash.children import heard, say
from tests.crash.commit_points import CommitPoints
from tests.standin import Reply, Standin, call, thinking
from tests.support.clock import START, HandClock
from tests.support.embedders import Words
from tests.support.talk import database_of

WINDOW = 4_000
SECRET = "the secret is xyzzyplugh"
TOOLS: list[Json] = [
    {"name": "fetch", "description": "Reads an order.", "input_schema": {"type": "object"}},
    {"name": "archive", "description": "Keeps a fact.", "input_schema": {"type": "object"}},
]
CORE = {"human": BlockSpec(description="who", limit_tokens=150), "notes": BlockSpec(limit_tokens=100)}
COMMON = ["the", "a", "seat", "window", "order", "Porto", "train", "rain", "when", "is", "not", "never", "ticket"]


def open_memory(directory: Path, *, life: int = 0, **changes: Any) -> Memory:
    """`life` sets the clock: each begins a day after the one before."""
    opening: dict[str, Any] = {
        "limits": Limits.for_window(WINDOW), "tools": TOOLS, "instructions": "Be brief.", "core": CORE, "model": "m",
        "embedder": Words(), "clock": HandClock(START + timedelta(days=life)), **changes,
    }  # fmt: skip
    return Memory.open(directory, **opening)


def standin() -> Standin:
    """The same provider for every life: what it signed in one it knows in the next."""
    return Standin(limit_tokens=WINDOW, seed=7)


class Load:
    def __init__(self, directory: Path, life: int, random: Random, say: Callable[..., None], **changes: Any) -> None:
        self.directory = directory
        self.life = life
        self.random = random
        self.say = say
        self.texts = 0
        self.standin = standin()
        self.memory = open_memory(directory, life=life, **changes)
        self.say("opened")

    def text(self, words: int = 6) -> str:
        self.texts += 1
        return " ".join([f"w{self.life}x{self.texts}", *self.random.choices(COMMON, k=words)])

    # the conversation

    def user(self, words: int = 10) -> None:
        text = self.text(words)
        self.say("page", self.memory.append_user(text), text)

    def reply(self, *blocks: Json | str) -> str:
        request = self.memory.request()
        said = blocks or (thinking("hm"), self.text(20))
        message = self.standin.create({"model": "m", **request.params}, Reply(*said))
        page = self.memory.append_assistant(message)
        self.say("reply", page, [block["id"] for block in message["content"] if block["type"] == "tool_use"])
        return page

    def count_tokens(self) -> int:
        params = {name: value for name, value in self.memory.request().params.items() if name != "max_tokens"}
        return self.standin.count_tokens({"model": "m", **params})

    def calls(self) -> None:
        """Parallel calls: of a tool elsewhere, and of a memory tool, whose effect and result are one transaction."""
        kinds = [self._fetch, self._archive_tool, self._fetch, self._archive_tool][: self.random.randint(1, 4)]
        self.reply(thinking("so"), *(call(*arguments()) for arguments in kinds))
        self.run_calls()

    def run_calls(self) -> None:
        for each in self.memory.open_calls:
            if each.name == "archive":
                self.memory_tool(each.id, each.input)
            else:
                self.tool(each.id)

    def _fetch(self) -> tuple[str, Json]:
        return "fetch", {"order": self.text(0)}

    def _archive_tool(self) -> tuple[str, Json]:
        return "archive", {"text": self.text(), "key": self.random.choice(["seat", "hotel", "train"])}

    def tool(self, call_id: str, words: int = 30) -> None:
        self.memory.begin_call(call_id)
        self.say("begun", call_id)
        text = self.text(words)
        self.memory.append_result(call_id, text)
        self.say("result", call_id, text[:500])

    def memory_tool(self, call_id: str, arguments: Json) -> None:
        with self.memory.transaction():
            fact = self.memory.archive(arguments["text"], key=arguments["key"], actor="agent")
            self.memory.append_result(call_id, f"stored as {fact.id}", memory_tool=True)
        self.say("fact", fact.id, fact.text)
        self.say("result", call_id, f"stored as {fact.id}")

    # facts, pages, core

    def archive(self, key: str | None = None) -> str:
        fact = self.memory.archive(self.text(), key=key, tags=["travel"])
        self.say("fact", fact.id, fact.text)
        return fact.id

    def forget(self, page: str) -> None:
        self.memory.forget(page, "it is over")
        self.say("forgotten", page)

    def core_line(self) -> str:
        line = self.text(3)
        self.memory.core_append("human", line, actor="agent")
        self.say("core", line)
        return line

    def drop_line(self, line: str) -> None:
        self.say("dropping", line)
        self.memory.core_replace("human", line, "")

    def move_line(self, line: str) -> None:
        """From core to the archive: afterwards it stands in one of them, not in both."""
        self.say("moving", line)
        fact = self.memory.move_to_archive("human", line)
        self.say("fact", fact.id, line)

    def pin(self, page: str) -> None:
        self.memory.page_in(page, pin=True)
        self.say("pinned", page)

    def unpin(self, page: str) -> None:
        self.say("unpinning", page)
        self.memory.page_out(page)

    def record(self) -> None:
        text = self.text(12)
        self.say("page", self.memory.record("user", text, name="Dana"), text)

    def record_many(self) -> None:
        texts = [self.text(5) for _ in range(5)]
        pages = self.memory.record_many({"role": "user", "text": text, "session": "old"} for text in texts)
        for page, text in zip(pages, texts, strict=True):
            self.say("page", page, text)
        self.memory.record_many([{"role": "user", "text": self.text(5)}], embed=False)
        self.memory.embed_pending()

    # others

    def send_command(self, kind: str) -> None:
        """As another process would; the owner takes it at its next step."""
        text = self.text(3)
        arguments = {"text": text, **({"block": "notes"} if kind == "core_append" else {})}
        self.say("left", send_command(self.directory, kind, arguments, self.memory._clock), kind, text)

    def garbage(self) -> None:
        (self.directory / "inbox").mkdir(exist_ok=True)
        (self.directory / "inbox" / f"{self.text(0)}.json").write_text("{")

    def recover(self) -> None:
        self.say("interrupted", self.memory.answer_interrupted())
        self.run_calls()
        if self.memory.turn_is_open:
            self.reply()

    def close(self) -> None:
        self.memory.close()
        self.say("closed")


def told_by(points: CommitPoints) -> Callable[..., None]:
    """Return a `say` that counts as the return of the call before it."""

    def tell(*what: Any) -> None:
        points.returned()
        say(*what)

    return tell


def scripted(directory: Path, deadly: int, when: str) -> None:
    """Make every kind of call, the same ones in every run. Dies before or after its commit number `deadly`."""
    points = CommitPoints(deadly, after=when == "after", directory=directory)
    load = Load(directory, 1, Random(1), told_by(points))
    load.record()
    load.record_many()
    pinned, seat = load.archive(), load.archive("seat")
    load.archive("seat")
    load.forget(load.archive())
    load.pin(pinned)
    line, moved = load.core_line(), load.core_line()
    load.user()
    load.reply()
    load.memory.search_archive("seat window")
    load.memory.search_recall("Dana")
    load.drop_line(line)
    load.move_line(moved)
    for kind in ("message", "archive", "core_append"):
        load.send_command(kind)
    load.garbage()
    send_command(load.directory, "forget", {"page_id": seat, "reason": "a person says so"}, load.memory._clock)
    send_command(load.directory, "forget", {"page_id": "f999", "reason": "is refused"}, load.memory._clock)
    load.user()
    load.calls()
    load.reply(*(call("fetch", {"order": str(number)}) for number in range(3)))
    first, second, third = [each.id for each in load.memory.open_calls]
    load.tool(first, words=1_200)  # is spilled
    load.memory.hold_call(second)
    load.memory.begin_call(third)
    load.say("begun", third)
    load.memory.answer_interrupted()
    load.tool(second)
    size = load.count_tokens()
    load.memory.report_too_long(f"prompt is too long: {size} tokens > {size - 1} maximum")
    load.reply()
    load.unpin(pinned)
    load.user()
    request = load.memory.request()
    load.memory.append_assistant(load.standin.create({"model": "m", **request.params}, Reply.refusal("no")))
    for _ in range(8):  # the window fills: a notice, evictions
        load.user(words=120)
        load.calls()
        load.reply()
    load.close()
    load.memory = open_memory(directory, life=2, instructions="Be very brief.")
    load.user()
    load.reply()
    load.close()
    load.say("done", points.commits)


def purging(directory: Path, deadly: int, when: str) -> None:
    """Purge between two facts, without an embedder (its index is Chroma, whose crashes are tested elsewhere)."""
    points = CommitPoints(deadly, after=when == "after")
    load = Load(directory, 1, Random(1), told_by(points), embedder=None)
    gone = load.memory.archive(SECRET, key="secret").id
    load.archive()
    load.user()
    load.reply(f"you said that {SECRET}, I see")
    load.memory.purge(gone)
    load.say("purged")
    load.archive()
    load.close()
    load.say("done", points.commits)


def withdrawing(directory: Path, deadly: int, when: str) -> None:
    """Withdraw a turn with calls, one of them unanswered, facts and a core edit. The commits are those of the undo."""
    load = Load(directory, 1, Random(1), say, embedder=None)
    load.archive("seat")
    load.user()
    load.reply()
    load.user()
    load.reply(thinking("so"), call("archive", {"text": "aisle", "key": "seat"}), call("fetch", {}), call("fetch", {}))
    archive, fetch, _ = load.memory.open_calls
    load.memory_tool(archive.id, archive.input)
    load.core_line()
    load.memory.begin_call(fetch.id)
    points = CommitPoints(deadly, after=when == "after", directory=directory)
    points.watch(database_of(load.memory))
    load.memory.undo()
    points.returned()
    say("withdrawn")
    say("done", points.commits)


def live(directory: Path, life: int) -> None:
    """Anything at any time, for ever."""
    load = Load(directory, life, Random(life), say)
    load.recover()
    lines = [line for block in load.memory.core() if block.name == "human" for line in block.value.splitlines()]
    pinned = [pin.page_id for pin in load.memory._store.prompt.pins()]

    def turn() -> None:
        load.user(load.random.choice([5, 30, 120]))
        if load.random.random() < 0.7:
            load.calls()
        load.reply()

    def core() -> None:
        lines.append(load.core_line())
        if len(lines) > 3:
            load.random.choice([load.drop_line, load.move_line])(lines.pop(0))

    def pin() -> None:
        pinned.append(load.archive())
        load.pin(pinned[-1])
        if len(pinned) > 2:
            load.unpin(pinned.pop(0))

    acts: list[Callable[[], Any]] = [
        *[turn] * 4,
        lambda: load.archive(load.random.choice([None, "seat", "hotel"])),
        lambda: load.send_command(load.random.choice(["message", "archive", "core_append"])),
        lambda: load.record() if load.random.random() < 0.5 else load.record_many(),
        lambda: load.forget(load.archive()),
        core,
        pin,
    ]
    while True:
        load.random.choice(acts)()


def write_pairs(directory: Path, count: int) -> None:
    """Facts, two at once, and a message; each told when its call has returned and before the next begins."""
    with open_memory(directory, embedder=None) as memory:
        say("open")
        for number in range(count):
            with memory.transaction():
                memory.archive(f"left {number}")
                memory.archive(f"right {number}")
            say("pair", number)
        say("page", memory.append_user("are you there?"))
        heard()
