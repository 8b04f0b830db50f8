"""A perfect worker that sees only its prompt: what it should do next follows from the request alone.

It keeps a line of work ("work 12: ..."), with what is left to read and what it has found so far: in core, or where an
agent has only files in a file of notes, and without either in its reply. The line with the highest number in the prompt
is the newest one. Which tools there are, and how they are called, is in the request (`Hands`).
"""

import re
from dataclasses import dataclass, field, replace
from typing import Any

from agents.testing import Reply, call
from pager.types import Json
from tests.bench.tasks.world import MONTHS, UPDATE_TASK

AT_ONCE = 5  # files in one reply
BLOCK = "work"
_ASKS_SUMMARY = "ummar"  # what a framework asks for when its window fills
_LINE = re.compile(r"work (\d+): (\w+) \| left:(.*?) \| pallets (\d+) \| gate (\d+|-) \| foreman (\w+|-) ([\d-]+)")
_TASK = re.compile(r"Find all reports about (\w+) with search_files")
_HIT = re.compile(r"(reports/\d{4}-\d{2}/r\d{4}|updates/u\d{2})\.md")
_INCOMPLETE = re.compile(r"search stopped|It stopped|not readable")  # a search that has not seen all files
_REPORT = re.compile(r"Report (r\d{4}) of (\S+), site (\w+)\.")
_PALLETS = re.compile(r"Delivered to (\w+): (\d+) pallets")
_GATE = re.compile(r"The code of the gate of (\w+) is (\d{4})")
_FOREMAN = re.compile(r"The foreman of (\w+) is (\w+), as of ([\d-]+)")
_QUESTION = re.compile(
    r"(?:What is the code of the gate|How many pallets were delivered to|Who is the foreman) ?(?:of )?(\w+)"
)


@dataclass(frozen=True, slots=True)
class Work:
    """The line of work."""

    number: int
    site: str
    left: tuple[str, ...] = ()
    pallets: int = 0
    gate: str = "-"
    foreman: str = "-"
    since: str = "-"

    def __str__(self) -> str:
        left = " ".join(path.removeprefix("reports/") for path in self.left)
        found = f"pallets {self.pallets} | gate {self.gate} | foreman {self.foreman} {self.since}"
        return f"work {self.number}: {self.site} | left: {left} | {found}"

    @classmethod
    def read(cls, text: str) -> "Work | None":
        """Return the newest line in a text."""
        found = max(_LINE.finditer(text), key=lambda each: int(each[1]), default=None)
        if found is None:
            return None
        left = tuple(f"reports/{path}" if path[0] == "2" else path for path in found[3].split())
        return cls(int(found[1]), found[2], left, int(found[4]), found[5], found[6], found[7])

    def after(self, results: list[str]) -> "Work":
        """Return the line when these files have been read."""
        now, text = self, "\n".join(results)
        now = replace(now, pallets=now.pallets + sum(int(n) for site, n in _PALLETS.findall(text) if site == self.site))
        for site, code in _GATE.findall(text):
            now = replace(now, gate=code) if site == self.site else now
        for site, who, since in _FOREMAN.findall(text):
            if site == self.site and since > now.since:
                now = replace(now, foreman=who, since=since)
        return replace(now, number=self.number + 1, left=self.left[len(results) :])


@dataclass(frozen=True, slots=True)
class Hands:
    """What the worker can do with the tools of a request."""

    tools: frozenset[str]

    @property
    def has_core(self) -> bool:
        return "core_append" in self.tools

    @property
    def has_notes(self) -> bool:
        """Return True if files are all that lasts."""
        return "write_file" in self.tools and not self.has_core

    @property
    def keeps(self) -> bool:
        return self.has_core or self.has_notes

    def search(self, text: str, path: str) -> Json:
        if "grep" in self.tools:  # deepagents
            return call("grep", pattern=text, path=f"/{path}", output_mode="content")
        return call("search_files", pattern=re.escape(text), path=path)

    def read(self, path: str) -> Json:
        return call("read_file", file_path=f"/{path}") if "grep" in self.tools else call("read_file", path=path)

    def note(self, name: str, text: str) -> Json:
        if "grep" in self.tools:
            return call("write_file", file_path=f"/notes/{name}.txt", content=text)
        return call("write_file", path=f"notes/{name}.txt", text=text)

    def write_down(self, before: "Work | None", now: "Work") -> list[Json]:
        if self.has_notes:
            return [self.note(f"work-{now.number:05d}", str(now))]
        if before is None:
            return [call("core_append", block=BLOCK, text=str(now))]
        return [call("core_replace", block=BLOCK, old_text=str(before), new_text=str(now))]

    def recall(self, site: str) -> Json:
        """Look up what is known of a site."""
        if self.has_notes:
            return self.search(f"foreman of {site} is", "notes")
        return call("search_archive", query=f"The foreman of {site}", limit=5)

    def keep(self, facts: list[tuple[str, str]]) -> list[Json]:
        """Keep facts, each with its key."""
        if self.has_notes:
            return [self.note("fact-" + key.replace("/", "-"), text) for key, text in facts]
        return [call("archive", text=text, key=key) for key, text in facts]


@dataclass(slots=True)
class Seen:
    """The request as the worker sees it."""

    hands: Hands
    everything: str
    task: str  # the newest task or question
    calls: list[Json] = field(default_factory=list[Json])  # of the last reply
    results: list[str] = field(default_factory=list[str])  # of those calls
    has_failed: bool = False  # one of those calls
    since: str = ""  # what was said and read since the task

    @classmethod
    def of(cls, params: Json) -> "Seen":
        """Read a request."""
        hands = Hands(frozenset(str(tool.get("name")) for tool in params.get("tools") or ()))
        pieces, task, since = list[str](), "", list[str]()
        calls, results, has_failed = list[Json](), list[str](), False
        for message in params["messages"]:
            blocks: Any = message["content"]
            blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
            made = [block for block in blocks if block["type"] == "tool_use"]
            if message["role"] == "assistant":
                calls, results, has_failed = made, [], False
            for block in blocks:
                text = _text(block)
                pieces.append(text)
                since.append(text)
                if block["type"] == "tool_result":
                    results.append(text)
                    # To write a note once more is an error in the other frameworks, and none to the worker.
                    has_failed |= hands.has_core and bool(block.get("is_error"))
                elif message["role"] == "user" and not text.startswith(("<recalled", "<digest")):
                    asked = [
                        *_TASK.finditer(text),
                        *_QUESTION.finditer(text),
                        *re.finditer(re.escape(UPDATE_TASK), text),
                    ]
                    if asked:  # what a framework sums up holds several in one text: the last one counts
                        task, since = text[max(each.start() for each in asked) :], []
        return cls(hands, "\n".join(pieces), task, calls, results, has_failed, "\n".join(since))


def _text(block: Json) -> str:
    if block["type"] == "tool_use":
        return str(block["input"])
    content = block.get("content", block.get("text", ""))
    return content if isinstance(content, str) else "\n".join(str(each.get("text", "")) for each in content)


def reply(params: Json) -> Reply:
    """Return what the worker does next."""
    seen = Seen.of(params)
    if (
        not params.get("tools")
        and seen.task
        and (now := Work.read(seen.everything))
        and _ASKS_SUMMARY in seen.everything
    ):
        return Reply(f"{seen.task}\n{now}")
    if UPDATE_TASK in seen.task:
        return _update(seen)
    if found := _TASK.search(seen.task):
        return _work(seen, found[1])
    return _answer(seen)


def _work(seen: Seen, site: str) -> Reply:
    now, hands = Work.read(seen.everything), seen.hands
    if now is None or now.site != site:
        return _begin(seen, site, now)
    reads = [each for each in seen.calls if each["name"] == "read_file"]
    read = [text for text in seen.results if _REPORT.search(text)]
    if reads and len(read) == len(reads) and tuple(_path(each) for each in reads) == now.left[: len(reads)]:
        return _go_on(hands, now, now.after(read))
    if now.left:
        return Reply("", calls=_reads(hands, now))
    if not hands.keeps or (any(_is_fact(each) for each in seen.calls) and not seen.has_failed):
        return _end(hands, str(now))
    if seen.has_failed or not any(each["name"] in ("search_archive", "grep", "search_files") for each in seen.calls):
        return Reply("", calls=[hands.recall(site)])  # something newer may be known already
    return Reply("", calls=hands.keep(_facts(now.after(seen.results))))


def _begin(seen: Seen, site: str, now: Work | None) -> Reply:
    """Find the reports of a site. Who has only notes looks first if there is a line in them."""
    hands = seen.hands
    searches = [each for each in seen.calls if each["name"] in ("search_files", "grep")]
    is_complete = not seen.has_failed and not any(map(_INCOMPLETE.search, seen.results))
    if len(searches) == len(seen.results) == len(MONTHS) and is_complete:
        hits = list(dict.fromkeys(hit for text in seen.results for hit in _HIT.findall(text)))
        return _go_on(hands, now, Work(now.number + 1 if now else 1, site, tuple(hits)))
    if hands.has_notes and now is None and not searches:
        return Reply("", calls=[hands.search("work ", "notes")])
    searching = [hands.search(f"site {site}.", f"reports/{month}") for month in MONTHS]
    return Reply("I look for the reports.", calls=searching)


def _path(made: Json) -> str:
    given = made["input"]
    return str(given.get("path") or given.get("file_path")).strip("/").removesuffix(".md")


def _is_fact(made: Json) -> bool:
    return made["name"] == "archive" or "notes/fact-" in str(made["input"])


def _reads(hands: Hands, now: Work) -> list[Json]:
    return [hands.read(f"{path}.md") for path in now.left[:AT_ONCE]]


def _go_on(hands: Hands, before: Work | None, now: Work) -> Reply:
    """Write the line of work down and read on."""
    reads = _reads(hands, now)
    if not hands.keeps:
        return Reply(str(now), calls=reads) if reads else _end(hands, str(now))
    return Reply("", calls=[*hands.write_down(before, now), *reads])


def _facts(now: Work) -> list[tuple[str, str]]:
    return [
        (f"{now.site}/gate", f"The code of the gate of {now.site} is {now.gate}."),
        (f"{now.site}/pallets", f"Pallets delivered to {now.site} in all: {now.pallets}."),
        (f"{now.site}/foreman", f"The foreman of {now.site} is {now.foreman}, as of {now.since}."),
    ]


def _end(hands: Hands, summary: str) -> Reply:
    return Reply("", calls=[call("task_done", summary=summary)]) if "task_done" in hands.tools else Reply(summary)


def _update(seen: Seen) -> Reply:
    hands, names = seen.hands, [each["name"] for each in seen.calls] if seen.since else []
    if {"search_files", "grep"} & set(names):
        paths = sorted(set(_HIT.findall("\n".join(seen.results))))
        return Reply("", calls=[hands.read(f"{path}.md") for path in paths])
    if "read_file" in names:
        changed = [found for text in seen.results for found in _FOREMAN.findall(text)]
        told = [(f"{site}/foreman-new", f"The foreman of {site} is {who}, as of {day}.") for site, who, day in changed]
        if hands.has_core:
            told = [(key.removesuffix("-new"), text) for key, text in told]
        return Reply("", calls=hands.keep(told)) if hands.keeps else _end(hands, " ".join(text for _, text in told))
    if "archive" in names or "write_file" in names:
        return _end(hands, "All is corrected.")
    return Reply("", calls=[hands.search("foreman", "updates")])


def _answer(seen: Seen) -> Reply:
    asked = _QUESTION.search(seen.task)
    site = asked[1] if asked else ""
    patterns = {
        "code": rf"code of the gate of {site} is (\d{{4}})|{site} \|.*? gate (\d{{4}})",
        "pallets": rf"delivered to {site} in all: (\d+)|{site} \| left:  \| pallets (\d+)",
        "foreman": rf"foreman of {site} is (\w+), as of ([\d-]+)",
    }
    kind = next((each for each in patterns if each in seen.task), "foreman")
    found = list(re.finditer(patterns[kind], seen.everything))
    looked = any(each["name"] in ("search_archive", "grep", "search_files") for each in seen.calls)
    if seen.hands.keeps and not looked:  # what is in sight may be an older report
        find = call("search_archive", query=seen.task, limit=5)
        return Reply("", calls=[find if seen.hands.has_core else seen.hands.search(site, "notes")])
    if kind == "foreman" and found:
        return Reply(f"It is {max(found, key=lambda each: each[2])[1]}.")
    if found:
        return Reply(f"It is {next(group for group in found[-1].groups() if group)}.")
    return Reply("I do not know.")
