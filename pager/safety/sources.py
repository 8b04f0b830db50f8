"""Sources: where a text came from, as `kind[:name]`, such as `said:Dana`, `web:example.org` or `agent`.

What a source of an untrusted kind says may be wrong on purpose. What an agent writes after it has read such a text is
untrusted, too: its source is `agent`, and `via` names what it had read. A fact may have several sources, and is trusted
if one of them is.

    >>> str(Source("agent", step="s5", via=("mcp:github", "web:example.org")))
    'agent via mcp:github, web:example.org'
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, cast

from pager.errors import RejectedError, brief

UNTRUSTED_KINDS = ("file", "mcp", "mcp-client", "tool", "web")
TRUSTED_KINDS = ("agent", "api", "helper", "import", "mount", "person", "program", "said", "unknown")
MAX_NAME_CHARS = 100
MAX_NAMES = 40  # of one text; of more, all of the most frequent kind become one
SHOWN_NAMES = 3  # in what a model reads
_SEVERAL = ":*"  # no name has a star
_HOST = re.compile(r"^(\w+://)?[^/]*")  # it has no upper case
_NOT_IN_NAMES = re.compile(r"[^\w.:/@+-]+")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a text came from: a kind and a name, the newest step then, and the untrusted sources behind it."""

    kind: str
    name: str = ""
    step: str | None = None
    via: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.origin} via {', '.join(self.via)}" if self.via else self.origin

    @property
    def origin(self) -> str:
        """Return kind and name as one text."""
        return f"{self.kind}:{self.name}" if self.name else self.kind

    @property
    def untrusted(self) -> tuple[str, ...]:
        """Return the untrusted sources among this one and those behind it. A kind that is not known is untrusted."""
        return self.via if self.kind in TRUSTED_KINDS else (self.origin, *self.via)

    def concerns(self, wanted: str) -> bool:
        """Return True if this is the wanted source, or was written after something of it had been read."""
        return names_one(self.origin, wanted) or any(names_one(each, wanted) for each in self.via)


def read_source(text: Any) -> Source:
    """Return the source that a text names. Nothing in its name can be taken for other text."""
    kind, _, name = text.partition(":") if isinstance(text, str) else ("", "", "")
    if kind not in UNTRUSTED_KINDS and kind not in TRUSTED_KINDS:
        kinds = ", ".join(sorted((*UNTRUSTED_KINDS, *TRUSTED_KINDS)))
        raise RejectedError(f"{brief(text)} is no source; write kind:name, such as web:example.org. Kinds are {kinds}.")
    name = name if name == "*" else clean_name(name)
    return Source(kind, _HOST.sub(lambda host: host[0].lower(), name) if kind == "web" else name)


def untrusted_among(source: str | Collection[str] | None) -> tuple[str, ...]:
    """Return the untrusted sources among one or several that are named."""
    if not source:
        return ()
    if not isinstance(source, str | list | tuple | set | frozenset):
        raise RejectedError(f"source is {brief(source)}; give one, such as web:example.org, or a list of them.")
    named = (source,) if isinstance(source, str) else source
    return union(*(read_source(name).untrusted for name in named))


def stored_name(name: Any) -> str:
    """Return a name as it was stored. A file of others may hold any value: what we never write is of that file."""
    try:
        return read_source(name).origin
    except RejectedError:
        return "file"


def are_untrusted(names: Any) -> bool:
    """Return True for a list of names of untrusted sources, as they are stored."""
    return isinstance(names, list) and all(
        stored_name(name) == name and is_untrusted(name) for name in cast("list[Any]", names)
    )


def clean_name(name: str) -> str:
    """Return a name as a source carries it: letters, digits and a few signs on one line, bounded in length."""
    return _NOT_IN_NAMES.sub("_", name.strip()).strip("_")[:MAX_NAME_CHARS].rstrip("_")


def names_one(name: str, wanted: str) -> bool:
    """Return True if a source's name is the wanted one. A kind alone (`web`) means all of its names."""
    kind = wanted.partition(":")[0]
    return name in (wanted, kind + _SEVERAL) or (kind == wanted and name.startswith(f"{kind}:"))


def is_untrusted(name: str) -> bool:
    """Return True if a source of this name is untrusted."""
    return name.partition(":")[0] not in TRUSTED_KINDS


def untrusted_of(sources: Collection[Source]) -> tuple[str, ...]:
    """Return the names that make a text untrusted; none if one of its sources is trusted."""
    found = [source.untrusted for source in sources]
    return union(*found) if all(found) else ()


def union(*several: Iterable[str]) -> tuple[str, ...]:
    """Return all names, sorted. Where they are too many, `web:*` stands for all that are of the web."""
    names = {name for each in several for name in each}
    while len(names) > MAX_NAMES:
        kinds = Counter(name.partition(":")[0] for name in names)
        kind = max(kinds, key=lambda each: (kinds[each], each))
        if kinds[kind] == 1:
            break
        names = {name for name in names if name.partition(":")[0] != kind} | {kind + _SEVERAL}
    return tuple(sorted(names))


def label(names: Collection[str]) -> str:
    """Return what a model reads behind the id of an untrusted text: ` [via web:example.org]`; empty without names."""
    if not names:
        return ""
    shown = ", ".join(sorted(map(stored_name, names))[:SHOWN_NAMES])
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return f" [via {shown}{more}]"
