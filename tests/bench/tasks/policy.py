"""A perfect worker that sees only its prompt: what it should do next follows from the request alone.

It keeps a line of work in core ("work 12: ..."), with what is left to read and what it has found so far. The line with
the highest number in the prompt is the newest one. Without memory tools it writes the line into its reply, and has it
until the window is full.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Any

from agents.testing import Reply, call
from pager.types import Json
from tests.bench.tasks.world import MONTHS, UPDATE_TASK

AT_ONCE = 5  # files in one reply
BLOCK = "work"
GIVE_UP = 3  # beginnings of a task, without an end
_LINE = re.compile(r"work (\d+): (\S+) \| left:(.*?) \| pallets (\d+) \| gate (\S+) \| foreman (\S+) (\S+)")
_TASK = re.compile(r"Find all reports about (\w+) with search_files")
_HIT = re.compile(r"(reports/\d{4}-\d{2}/r\d{4}|updates/u\d{2})\.md")
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


@dataclass(slots=True)
class Seen:
    """The request as the worker sees it."""

    tools: set[str]
    everything: str
    task: str  # the newest task or question
    calls: list[Json] = field(default_factory=list[Json])  # of the last reply
    results: list[str] = field(default_factory=list[str])  # of those calls
    since: str = ""  # what was said and read since the task

    @classmethod
    def of(cls, params: Json) -> "Seen":
        """Read a request."""
        tools = {str(tool["name"]) for tool in params.get("tools", ())}
        pieces, task, since = list[str](), "", list[str]()
        calls, results = list[Json](), list[str]()
        for message in params["messages"]:
            blocks: Any = message["content"]
            blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
            made = [block for block in blocks if block["type"] == "tool_use"]
            if message["role"] == "assistant":
                calls, results = made, []
            for block in blocks:
                text = _text(block)
                pieces.append(text)
                since.append(text)
                if block["type"] == "tool_result":
                    results.append(text)
                elif (
                    message["role"] == "user"
                    and (_TASK.search(text) or UPDATE_TASK in text or _QUESTION.search(text))
                    and not text.startswith(("<recalled", "<digest"))
                ):
                    task, since = text, []
        return cls(tools, "\n".join(pieces), task, calls, results, "\n".join(since))


def _text(block: Json) -> str:
    if block["type"] == "tool_use":
        return str(block["input"])
    content = block.get("content", block.get("text", ""))
    return content if isinstance(content, str) else "\n".join(str(each.get("text", "")) for each in content)


def reply(params: Json) -> Reply:
    """Return what the worker does next."""
    seen = Seen.of(params)
    if UPDATE_TASK in seen.task:
        return _update(seen)
    if found := _TASK.search(seen.task):
        return _work(seen, found[1])
    return _answer(seen)


def _work(seen: Seen, site: str) -> Reply:
    now = Work.read(seen.everything)
    if now is None or now.site != site:
        searches = [each for each in seen.calls if each["name"] == "search_files"]
        if len(searches) == len(seen.results) == len(MONTHS):
            hits = list(dict.fromkeys(hit for text in seen.results for hit in _HIT.findall(text)))
            return _go_on(seen, now, Work(now.number + 1 if now else 1, site, tuple(hits)))
        if not seen.tools & {"core_append"} and seen.everything.count("I look for the reports.") >= GIVE_UP:
            return _end(seen, "I could not keep what I had read.")
        return Reply(
            "I look for the reports.",
            calls=[call("search_files", pattern=f"site {site}\\.", path=f"reports/{month}") for month in MONTHS],
        )
    reads = [each for each in seen.calls if each["name"] == "read_file"]
    read = [text for text in seen.results if _REPORT.search(text)]
    if reads and len(read) == len(reads) and tuple(_path(each) for each in reads) == now.left[: len(reads)]:
        return _go_on(seen, now, now.after(read))
    if now.left:
        return Reply("", calls=_reads(now))
    if any(each["name"] in ("archive", "remember") for each in seen.calls):
        return _end(seen, str(now))
    return _end(seen, str(now)) if not seen.tools & {"archive"} else Reply("", calls=_facts(now))


def _path(made: Json) -> str:
    return str(made["input"]["path"]).removesuffix(".md")


def _reads(now: Work) -> list[Json]:
    return [call("read_file", path=f"{path}.md") for path in now.left[:AT_ONCE]]


def _go_on(seen: Seen, before: Work | None, now: Work) -> Reply:
    """Write the line of work down and read on."""
    reads = _reads(now)
    if "core_append" not in seen.tools:
        return Reply(str(now), calls=reads) if reads else _end(seen, str(now))
    if before is None:
        return Reply("", calls=[call("core_append", block=BLOCK, text=str(now)), *reads])
    return Reply("", calls=[call("core_replace", block=BLOCK, old_text=str(before), new_text=str(now)), *reads])


def _facts(now: Work) -> list[Json]:
    told = {
        "gate": f"The code of the gate of {now.site} is {now.gate}.",
        "pallets": f"Pallets delivered to {now.site} in all: {now.pallets}.",
        "foreman": f"The foreman of {now.site} is {now.foreman}, as of {now.since}.",
    }
    return [call("archive", text=text, key=f"{now.site}/{key}") for key, text in told.items()]


def _end(seen: Seen, summary: str) -> Reply:
    return Reply("", calls=[call("task_done", summary=summary)]) if "task_done" in seen.tools else Reply(summary)


def _update(seen: Seen) -> Reply:
    names = [each["name"] for each in seen.calls] if seen.since else []
    if "search_files" in names:
        paths = sorted(set(_HIT.findall("\n".join(seen.results))))
        return Reply("", calls=[call("read_file", path=f"{path}.md") for path in paths])
    if "read_file" in names:
        changed = [found for text in seen.results for found in _FOREMAN.findall(text)]
        if "archive" not in seen.tools:
            return _end(seen, "; ".join(f"The foreman of {s} is {w}, as of {d}." for s, w, d in changed))
        return Reply(
            "",
            calls=[
                call("archive", text=f"The foreman of {s} is {w}, as of {d}.", key=f"{s}/foreman")
                for s, w, d in changed
            ],
        )
    if "archive" in names:
        return _end(seen, "All is corrected.")
    return Reply("", calls=[call("search_files", pattern="foreman", path="updates")])


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
    if kind == "foreman" and found:
        newest = max(found, key=lambda each: each[2])
        return Reply(f"It is {newest[1]}.")
    if found:
        return Reply(f"It is {next(group for group in found[-1].groups() if group)}.")
    if "search_archive" in seen.tools and not any(each["name"] == "search_archive" for each in seen.calls):
        return Reply("", calls=[call("search_archive", query=seen.task, limit=5)])
    return Reply("I do not know.")
