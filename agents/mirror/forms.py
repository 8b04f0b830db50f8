"""The files of a mirror as texts: front matter, whose values are JSON on one line each, and a body. Pure.

>>> print(form({"key": "seat", "tags": ["travel"]}, "prefers window seats"), end="")
---
key: "seat"
tags: ["travel"]
---
prefers window seats
>>> parse("---\\nkey: \\"seat\\"\\n---\\nprefers window seats\\n").fields
{'key': 'seat'}
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pager import Block, Fact, one_line
from pager.errors import RejectedError
from pager.inspect import StepRow

MARK = "---"
VERSION = 1
MOST_NAME_CHARS = 2000  # of a key or a tag that is normalized: marks without end would take hours
_LINE = re.compile(r"([a-z_]+):[ \t]*(.*)")
ABOUT = """\
This folder mirrors what the agent remembers. `selfpager export` writes it, `selfpager import` takes your edits back.

- `core/` has the texts that are always in the prompt. Edit what stands below the second line of dashes.
- `facts/` has a file for each fact, past ones too. Edit the text, `key` or `tags` of a current one, set `until`, or
  delete the file to end the fact. A file of another name that ends in `.md` is a new fact. Values are JSON on one line.
- `recall/` has what was said, by day. It cannot be edited.
"""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file: the values of its front matter, the line of each, its body, and the line on which that begins."""

    fields: Mapping[str, Any]
    lines: Mapping[str, int]
    body: str
    body_line: int


class MalformedError(RejectedError):
    """A file is no file of a mirror, because of one of its lines."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


@dataclass(slots=True)
class _Reading:
    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    lines: dict[str, int] = field(default_factory=dict[str, int])


def form(fields: Mapping[str, Any], body: str) -> str:
    """Return a file. Values that are None or empty are left out."""
    lines = [
        f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items() if value not in (None, [])
    ]
    return "\n".join((MARK, *lines, MARK, body)) + "\n"


def parse(text: str) -> Parsed:
    """Return the parts of a file; one without front matter is all body. Raises MalformedError."""
    lines = text.split("\n")
    if lines[0].rstrip() != MARK:
        return Parsed({}, {}, text, 1)
    found = _Reading()
    for number, line in enumerate(lines[1:], start=2):
        if line.rstrip() == MARK:
            return Parsed(found.fields, found.lines, "\n".join(lines[number:]), number + 1)
        if line.strip():
            _read_line(line, number, found)
    raise MalformedError(1, f"the front matter has no end; close it with a line {MARK}")


def _read_line(line: str, number: int, found: _Reading) -> None:
    match = _LINE.fullmatch(line.rstrip())
    if not match:
        raise MalformedError(number, f'{line[:60]!r} is no value; write name: value, such as key: "seat"')
    name, value = match.groups()
    if name in found.fields:
        raise MalformedError(number, f"{name} stands twice; leave one of the two out")
    try:
        found.fields[name] = json.loads(value)
    except (ValueError, RecursionError):
        way = f"write JSON, a text in double quotes: {name}: {json.dumps(value[:60], ensure_ascii=False)}"
        raise MalformedError(number, f"the value of {name} is no JSON; {way}") from None
    found.lines[name] = number


def same_text(one: str, other: str) -> bool:
    """Return True for texts that differ in what editors and git change by themselves alone."""
    return plain(one) == plain(other)


def plain(text: str) -> str:
    """Return a text without what editors and git change by themselves: CR LF, blanks at the ends of lines and below."""
    return "\n".join(line.rstrip(" \t") for line in re.split(r"\r\n|\r|\n", text)).rstrip("\n")


def plain_name(text: str, line: int) -> str:
    """Return a key or a tag as the memory stores it. Raises MalformedError for half a character."""
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        raise MalformedError(line, "a key or a tag has half a character here, such as \\ud800; take that out")
    return unicodedata.normalize("NFC", text).strip() if len(text) <= MOST_NAME_CHARS else text


def refuse_conflict(file: Parsed) -> None:
    """Raise MalformedError for a text in which git has left the marks of a conflict."""
    lines = file.body.split("\n")
    marked = [number for number, line in enumerate(lines) if line.startswith(("<<<<<<< ", ">>>>>>> "))]
    if len(marked) > 1:
        raise MalformedError(
            file.body_line + marked[0], "git left a conflict here; choose what is right, and remove its marks"
        )


def instant(moment: datetime | None) -> str | None:
    """Return a moment as it stands in a file: in UTC, so that it is the same on every machine."""
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="microseconds")


def about_file(name: str, facts: int) -> str:
    """Return the file that makes a folder a mirror: of which agent, and up to which fact."""
    return form({"mirror": VERSION, "agent": name, "facts": facts}, f"# {name}\n\n{ABOUT}".rstrip("\n"))


def block_file(block: Block, version: int) -> str:
    """Return the file of a core block."""
    fields = {"block": block.name, "version": version, "about": block.description, "via": list(block.via)}
    return form(fields, block.value)


def fact_file(fact: Fact) -> str:
    """Return the file of a fact."""
    fields = {
        "id": fact.id, "key": fact.key, "tags": list(fact.tags), "from": instant(fact.valid_from),
        "until": instant(fact.valid_until), "stored": instant(fact.at), "by": fact.actor,
        "sources": [str(source) for source in fact.sources], "supersedes": fact.supersedes,
        "superseded_by": fact.superseded_by, "forgotten": fact.forgotten,
    }  # fmt: skip
    return form(fields, fact.text)


def day_file(day: str, steps: Iterable[tuple[StepRow, str]]) -> str:
    """Return the file of a day. What was said is quoted line by line, so that none of it reads as our heading."""
    parts = [f"# {day}"]
    for row, text in steps:
        via = f" [via {', '.join(row.via)}]" if row.via else ""
        parts.append(f"## {row.page_id} {row.at:%H:%M:%S} {one_line(row.who)}{via}")
        parts.append("\n".join(f"> {line}".rstrip() for line in re.split(r"\r\n|\r|\n", text)))
    return "\n\n".join(parts) + "\n"
