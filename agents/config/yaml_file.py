"""YAML files, read strictly: the only file that knows PyYAML, which is loaded at the first use.

`read` gives the tree of a file laid over the file that it `extends`, and that one's, and so on; every node knows the
file, line and column that it comes from. What is wrong is a ConfigError that says where, and what to do.

Scalars are those of YAML 1.2's core schema, as in editors: `off`, `yes` and `2026-05-03` are texts (PyYAML's own 1.1
makes false, true and a date of them). One document per file, no custom tags, no merge keys, no duplicate keys.

    >>> tree = read(Path("agent.yaml"), {})
    >>> plain(tree)["name"], str(tree.at(["name"]).place)
    ('assistant', 'agent.yaml:2:7')
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from agents.config.nodes import HALF, ConfigError, Node, Place, Problem, expand, merge

if TYPE_CHECKING:
    from yaml import Dumper, Loader, MappingNode, Mark, MarkedYAMLError, ScalarNode
    from yaml import Node as Raw

MOST_NODES = 100_000  # aliases of aliases can stand for more than any memory holds
_TAG = "tag:yaml.org,2002:"
_SCALARS = {
    "null": re.compile(r"(?:~|null|Null|NULL|)\Z"),
    "bool": re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"),
    "int": re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z"),
    "float": re.compile(
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
    ),
}
_ADVICE = (
    ("found character '\\t'", "there is a tab here; YAML is indented with spaces only. Replace it with spaces."),
    ("mapping values are not allowed", "':' is not expected here. Check the indentation, or put the value in quotes."),
    ("could not find expected ':'", "a ':' is missing: every line of a mapping reads 'key: value'."),
    ("unexpected end of stream", "a quote that is opened here is never closed. Close it."),
    ("but found '<block sequence start>'", "a list begins where none can. Check the indentation of this line."),
    ("expected <block end>", "this does not fit the lines above. Check the indentation, the quotes and the brackets."),
    ("expected ',' or", "the brackets of a list or mapping opened before are not closed, or a ',' is missing."),
    ("found undefined alias", "this alias (*) has no anchor (&) of that name before it."),
    ("found duplicate anchor", "this anchor (&) exists already. Give it another name."),
    ("but found another document", "a second document begins here (---). One file describes one agent."),
    ("that cannot start any token", "no value can begin with this character. Put the value in quotes."),
)


def read(path: Path, environ: Mapping[str, str]) -> Node:
    """The mapping in `path`, laid over what it extends. `environ` is for `extends` alone: see `tree.expand`."""
    problems: list[Problem] = []
    root = _parsed(path, None, problems)
    chain = [path]
    below = root
    while (found := _base_of(below, environ, problems)) is not None:
        base, place = found
        chain.append(base)
        if any(_same_file(base, other) for other in chain[:-1]):
            circle = " -> ".join(map(str, chain))
            problems.append(Problem(place, f"extends goes in a circle: {circle}. Take one of them out."))
            break
        below = _parsed(base, place, problems)
        root = merge(below, root)
    if problems:
        raise ConfigError(problems)
    members = cast("dict[str, Node]", root.value)
    return replace(root, value={key: node for key, node in members.items() if key != "extends"})


def _base_of(root: Node, environ: Mapping[str, str], problems: list[Problem]) -> tuple[Path, Place] | None:
    node = cast("dict[str, Node]", root.value).get("extends")
    if node is None or node.value is None:
        return None
    expanded, faults = expand(node, environ)
    problems += faults
    if faults or expanded.value == "":
        return None
    if not isinstance(expanded.value, str):
        problems.append(Problem(node.place, "extends names one file, such as 'extends: base.yaml'."))
        return None
    return node.place.file.parent / expanded.value, node.place


def _same_file(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def _parsed(path: Path, extended_at: Place | None, problems: list[Problem]) -> Node:
    """One file. What the rest can be read in spite of is added to `problems`; anything else raises all of them."""
    try:
        root = _Building(path, problems).build(_composed(path, _text(path, extended_at)))
        if not isinstance(root.value, dict):
            _refuse(root.place, "an agent is a mapping: lines of 'key: value', the first one 'name: ...'.")
        return root
    except ConfigError as error:
        raise ConfigError([*problems, *error.problems]) from None
    except RecursionError:
        raise ConfigError([*problems, Problem(Place(path), "this is nested too deeply to be read.")]) from None


def _refuse(place: Place, message: str) -> NoReturn:
    raise ConfigError([Problem(place, message)])


def _text(path: Path, extended_at: Place | None) -> str:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        near = get_close_matches(path.name, [other.name for other in _neighbours(path)], n=1)
        hint = f"did you mean {str(path.with_name(near[0]))!r}?" if near else "Check the path."
        if extended_at:
            _refuse(extended_at, f"extends: there is no file {path}; {hint}")
        _refuse(Place(path), f"there is no such file; {hint}")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        _refuse(extended_at or Place(path), f"{path} cannot be read ({reason}). It has to be a readable file.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        good = raw[: error.start].decode("utf-8-sig", "replace")
        _refuse(_place_of(path, good, len(good)), "this is not UTF-8. Save the file in the encoding UTF-8.")


def _neighbours(path: Path) -> list[Path]:
    try:
        return sorted(path.parent.iterdir())
    except OSError:
        return []


def _place_of(path: Path, text: str, index: int) -> Place:
    before = text[:index].replace("\r\n", "\n").split("\n")
    return Place(path, len(before), len(before[-1]) + 1)


def _composed(path: Path, text: str) -> Raw:
    from yaml import MarkedYAMLError
    from yaml.reader import ReaderError

    try:
        loader = _loader()(text)
        raw = loader.get_single_node()
    except ReaderError as error:
        _refuse(_place_of(path, text, error.position), "YAML cannot hold this invisible character. Delete it.")
    except MarkedYAMLError as error:
        mark = _where(error)
        _refuse(_at(path, mark) if mark else Place(path), _syntax_advice(error, text))
    if raw is None:
        _refuse(Place(path, 1, 1), "the file is empty; it needs at least 'name: ...'.")
    return raw


def _where(error: MarkedYAMLError) -> Mark | None:
    unclosed = "unexpected end of stream" in str(error.problem)
    return (error.context_mark if unclosed else None) or error.problem_mark or error.context_mark


def _syntax_advice(error: MarkedYAMLError, text: str) -> str:
    problem = str(error.problem)
    mark = error.problem_mark
    # In { } and [ ] a brace ends a value.
    if "expected ',' or" in problem and mark and text[max(0, mark.index - 1) : mark.index + 1] == "${":
        return 'inside { } and [ ] an expansion stands in quotes: "${VAR}".'
    for known, advice in _ADVICE:
        if known in problem:
            return advice
    return f"this is not YAML: {problem}."


def _at(path: Path, mark: Mark) -> Place:
    return Place(path, mark.line + 1, mark.column + 1)


class _Building:
    """From PyYAML's nodes to ours."""

    def __init__(self, path: Path, problems: list[Problem]) -> None:
        self._path = path
        self._problems = problems
        self._open: set[int] = set()
        self._count = 0

    def build(self, raw: Raw, key_place: Place | None = None) -> Node:
        from yaml import MappingNode, ScalarNode, SequenceNode

        place = self._place(raw)
        self._count += 1
        if self._count > MOST_NODES:
            _refuse(place, f"with its aliases this file stands for more than {MOST_NODES} values. Use fewer.")
        if isinstance(raw, ScalarNode):
            return Node(self._scalar(raw), place, key_place)
        if id(raw) in self._open:
            _refuse(place, "this contains itself by an alias (*). Write it out.")
        self._open.add(id(raw))
        if isinstance(raw, MappingNode):
            value = self._mapping(raw)
        else:
            value = [self.build(item) for item in cast("SequenceNode", raw).value]
        self._open.discard(id(raw))
        if raw.tag not in (f"{_TAG}map", f"{_TAG}seq"):
            self._unknown_tag(raw)
        return Node(value, place, key_place)

    def _place(self, raw: Raw) -> Place:
        return _at(self._path, cast("Mark", raw.start_mark))

    def _mapping(self, raw: MappingNode) -> dict[str, Node]:
        found: dict[str, Node] = {}
        for raw_key, raw_value in cast("list[tuple[Raw, Raw]]", raw.value):
            place = self._place(raw_key)
            key = self._key(raw_key, place)
            item = self.build(raw_value, place)
            if key is None:
                continue
            if key in found:
                first = cast(Place, found[key].key_place)
                self._problems.append(
                    Problem(place, f"the key {key!r} stands in this mapping already, in line {first.line}. Remove one.")
                )
            else:
                found[key] = item
        return found

    def _key(self, raw: Raw, place: Place) -> str | None:
        value = self.build(raw).value
        if isinstance(value, str):
            if value == "<<" and not cast("ScalarNode", raw).style:
                self._problems.append(Problem(place, "merge keys (<<) are not read here; use extends."))
                return None
            return value
        hint = f'put it in quotes: "{raw.value}"' if isinstance(raw.value, str) else "give it a name"
        self._problems.append(Problem(place, f"a key has to be text; {hint}."))
        return None

    def _scalar(self, raw: ScalarNode) -> str | int | float | bool | None:
        kind = raw.tag.removeprefix(_TAG)
        text = cast(str, raw.value)
        if kind in _SCALARS and not _SCALARS[kind].match(text):
            self._problems.append(Problem(self._place(raw), f"{text!r} is no {kind}, as its tag says."))
            return text
        match kind:
            case "null":
                return None
            case "bool":
                return text.lower() == "true"
            case "int":
                return self._whole_number(raw)
            case "float":
                return float(re.sub(r"\.(inf|nan)", r"\1", text.lower()))
            case "str":
                if HALF.search(text):
                    self._problems.append(Problem(self._place(raw), "\\ud800 to \\udfff are no characters. Remove it."))
                return text
            case _:
                self._unknown_tag(raw)
                return text

    def _whole_number(self, raw: ScalarNode) -> int | str:
        text = cast(str, raw.value)
        try:
            return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
        except ValueError:  # Python reads no decimal of thousands of digits
            self._problems.append(Problem(self._place(raw), f"a number of {len(text)} digits is too long to be read."))
            return text

    def _unknown_tag(self, raw: Raw) -> None:
        self._problems.append(Problem(self._place(raw), f"the tag {raw.tag!r} has no meaning here. Remove it."))


@cache
def _loader() -> type[Loader]:
    """PyYAML's parser in Python: its C one words its messages differently, and agents are small."""
    from yaml import BaseLoader

    class CoreLoader(BaseLoader):
        yaml_implicit_resolvers = _resolvers()

    return cast("type[Loader]", CoreLoader)


@cache
def _resolvers() -> dict[Any, list[tuple[str, re.Pattern[str]]]]:
    return {None: [(f"{_TAG}{kind}", pattern) for kind, pattern in _SCALARS.items()]}


@cache
def _dumper() -> type[Dumper]:
    from yaml import SafeDumper

    class CoreDumper(SafeDumper):
        yaml_implicit_resolvers = _resolvers()  # texts that `read` would take for something else get quotes

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: SafeDumper, value: str) -> ScalarNode:
        return cast("Any", dumper).represent_scalar(f"{_TAG}str", value, style=_style(value))

    CoreDumper.add_representer(str, text)
    return cast("type[Dumper]", CoreDumper)


def _style(text: str) -> str | None:
    if text == "<<":
        return "'"
    lines = text.split("\n")
    if not all(line.isprintable() for line in lines):
        return '"'  # PyYAML would write some of the rarer line breaks as they are, and read them as others
    whole = len(lines) > 1 and bool(lines[0].strip()) and all(line == line.rstrip() for line in lines)
    return "|" if whole else None


def dump(data: Any) -> str:
    """Plain data as YAML that reads back as the same: long texts as blocks, keys in their order."""
    from yaml import dump as write

    return write(data, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=110)
