"""Plain data that knows where it was written, so that whoever refuses a value can say where it stands.

A `Node` is a text, a number, true/false, nothing, a list of nodes or a mapping of names to nodes. Pure: nothing here
reads a file.

    >>> base = Node({"id": Node("${MODEL:-small}", Place(Path("base.yaml"), 1, 5))}, Place(Path("base.yaml"), 1, 1))
    >>> whole, problems = expand(base, {"MODEL": "large"})
    >>> plain(whole), str(whole.at(["id"]).place)
    ({'id': 'large'}, 'base.yaml:1:5')
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from pager.errors import PagerError

# `$${` stands for `${`; a `${` that begins nothing else is a mistake, and is found by the last alternative.
_PIECE = re.compile(r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^{}]*))?\}|\$\{")

HALF = re.compile("[\ud800-\udfff]")  # half a character: no text, and nothing can write it


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A position in a file, counted from 1 as editors do. Line 0: the file as a whole."""

    file: Path
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else str(self.file)


@dataclass(frozen=True, slots=True)
class Problem:
    place: Place
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class ConfigError(PagerError):
    """A configuration that cannot be used: every problem that was found, each with its place, one per line."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.place))
        super().__init__("\n".join(map(str, self.problems)))


@dataclass(frozen=True, slots=True)
class Node:
    """A value and its place; inside a mapping also the place of its key."""

    value: str | int | float | bool | list[Node] | dict[str, Node] | None
    place: Place
    key_place: Place | None = None

    def at(self, path: Sequence[str | int]) -> Node:
        """The node at `path`, or the last one on the way to it that exists."""
        node = self
        for item in path:
            below = node._below(item)
            if below is None:
                break
            node = below
        return node

    def find(self, path: Sequence[str | int]) -> Node | None:
        """The node at `path`."""
        node: Node | None = self
        for item in path:
            node = node._below(item) if node else None
        return node

    def _below(self, item: str | int) -> Node | None:
        if isinstance(self.value, dict):
            return self.value.get(item) if isinstance(item, str) else None
        if isinstance(self.value, list) and isinstance(item, int) and item < len(self.value):
            return self.value[item]
        return None

    def with_value(self, path: Sequence[str], value: str) -> Node:
        """This tree with another text at `path`, which leads through mappings."""
        if not path:
            return replace(self, value=value)
        members = cast("dict[str, Node]", self.value)
        return replace(self, value={**members, path[0]: members[path[0]].with_value(path[1:], value)})


class Expanded(str):
    """A text that is one expansion and nothing else, so that a field of numbers may read it as a number."""

    source: str

    def __new__(cls, text: str, source: str) -> Expanded:
        expanded = super().__new__(cls, text)
        expanded.source = source
        return expanded


def plain(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {key: plain(item) for key, item in node.value.items()}
    if isinstance(node.value, list):
        return [plain(item) for item in node.value]
    return node.value


def merge(base: Node, over: Node) -> Node:
    """`over` laid on `base`: mappings are joined key by key, everything else is replaced. Base's order comes first."""
    if not (isinstance(base.value, dict) and isinstance(over.value, dict)):
        return over
    joined = dict(base.value)
    for key, item in over.value.items():
        joined[key] = merge(joined[key], item) if key in joined else item
    return replace(over, value=joined)


def expand(node: Node, environ: Mapping[str, str]) -> tuple[Node, list[Problem]]:
    """Every text with its `${VAR}` replaced, and what could not be: those texts stay as they were written."""
    problems: list[Problem] = []
    return _expand(node, environ, problems), problems


def _expand(node: Node, environ: Mapping[str, str], problems: list[Problem]) -> Node:
    if isinstance(node.value, dict):
        return replace(node, value={key: _expand(item, environ, problems) for key, item in node.value.items()})
    if isinstance(node.value, list):
        return replace(node, value=[_expand(item, environ, problems) for item in node.value])
    if not isinstance(node.value, str) or "${" not in node.value:
        return node
    faults = list(dict.fromkeys(_faults(node.value, environ)))
    problems += [Problem(node.place, fault) for fault in faults]
    return node if faults else replace(node, value=_expanded(node.value, environ))


def _faults(text: str, environ: Mapping[str, str]) -> Iterable[str]:
    for piece in _PIECE.finditer(text):
        name = piece["name"]
        if piece[0] == "${":
            shown = text[piece.start() : piece.start() + 30].split("\n", maxsplit=1)[0]
            yield (
                f"{shown!r} is no expansion; the forms are ${{VAR}} and ${{VAR:-default}} (a default holds no "
                "braces), and $${ stands for a plain ${."
            )
        elif name and piece["default"] is None and name not in environ:
            yield f"the environment variable {name} is not set; set it, or give a default: ${{{name}:-...}}."
        elif name and HALF.search(environ.get(name, "")):
            yield f"the environment variable {name} is not UTF-8; set it again."


def _expanded(text: str, environ: Mapping[str, str]) -> str:
    def value(piece: re.Match[str]) -> str:
        name, default = piece["name"], piece["default"]
        if name is None:
            return "${"
        return environ[name] if default is None else environ.get(name) or default  # `:-` as in the shell

    expanded = _PIECE.sub(value, text)
    only = _PIECE.fullmatch(text)
    return Expanded(expanded, text) if only and only["name"] else expanded


def escape(text: str) -> str:
    """`text` written so that `expand` gives it back."""
    return text.replace("${", "$${")
