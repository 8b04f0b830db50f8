"""YAML files, read strictly: the only file that knows PyYAML, which is loaded at the first use.

`read` walks the nodes of a file, and of the files that it `extends`, once. That gives plain data with every `${VAR}`
replaced, and for every key and value the place where it was written. Problems are a ConfigError.

Scalars are those of YAML 1.2's core schema, as in editors: `off`, `yes` and `2026-05-03` are texts (PyYAML's own 1.1
would read them as false, true and a date). Merge keys (<<) are read. One document per file, no custom tags, no
duplicate keys.

    >>> document = read(Path("agent.yaml"), os.environ)
    >>> document.data["name"], str(document.at("name").value)
    ('assistant', 'agent.yaml:2:7')
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn, cast

from agents.config.errors import NEAR, ConfigError, ConfigPlace, ConfigProblem
from agents.config.variables import SURROGATE, expand
from pager.safety import foreign_files

MAX_VALUES = 100_000  # aliases of aliases can stand for more values than fit into memory
_TAG = "tag:yaml.org,2002:"
_SCALARS = {
    "null": re.compile(r"(?:~|null|Null|NULL|)\Z"),
    "bool": re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"),
    "int": re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z"),
    "float": re.compile(
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
    ),
    "merge": re.compile(r"<<\Z"),
}
_RESOLVERS = {None: [(_TAG + kind, pattern) for kind, pattern in _SCALARS.items()]}
_ADVICE = (
    ("found character '\\t'", "there is a tab here; YAML is indented with spaces only. Replace it with spaces."),
    ("mapping values are not allowed", "':' is not expected here. Check the indentation, or put the value in quotes."),
    ("could not find expected ':'", "a ':' is missing: every line of a mapping reads 'key: value'."),
    ("unexpected end of stream", "the quote that opens here is never closed. Close it."),
    ("but found '<block sequence start>'", "a list cannot begin here. Check the indentation of this line."),
    ("expected <block end>", "this does not fit the lines above. Check the indentation, the quotes and the brackets."),
    ("expected ',' or", "a list or mapping in brackets is not closed before this, or a ',' is missing."),
    ("found undefined alias", "this alias (*) has no anchor (&) of that name before it."),
    ("found duplicate anchor", "this anchor (&) exists already. Give it another name."),
    ("but found another document", "a second document begins here (---). One file describes one agent."),
    ("that cannot start any token", "no value can begin with this character. Put the value in quotes."),
)
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """The places of a value and its key, and what is wrong with its variables."""

    value: ConfigPlace
    key: ConfigPlace  # the place of the value where there is no key
    mistakes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """Plain data, and where every part of it was written, by its path."""

    data: Any
    written: dict[KeyPath, Written]
    files: tuple[Path, ...] = ()  # this one, and those that it extends

    def at(self, *path: str | int) -> Written:
        """Return where `path` was written, or the nearest part above it that exists."""
        while path not in self.written:
            path = path[:-1]
        return self.written[path]


def read(path: Path, environ: Mapping[str, str]) -> Document:
    """Return the mapping in `path`, laid over the files that it extends. Raise ConfigError if a file is not readable
    YAML; variables that could not be replaced are left in the document as the `mistakes` of their places."""
    problems: list[ConfigProblem] = []
    document = base = _read_mapping(path, None, environ, problems)
    chain = [path]
    while named := _take_extends(base, problems):
        path, place = named
        chain.append(path)
        if any(path.resolve() == other.resolve() for other in chain[:-1]):
            circle = " -> ".join(map(str, chain))
            problems.append(ConfigProblem(place, f"extends goes in a circle: {circle}. Take one of them out."))
            break
        base = _read_mapping(path, place, environ, problems)
        document = _lay_over(base, document)
    if problems:
        raise ConfigError(problems)
    document.data.pop("extends", None)  # the last file's may be empty
    return Document(document.data, document.written, tuple(chain))


def read_list(path: Path, named_at: ConfigPlace) -> Document:
    """Return the list in `path`; its variables are not replaced. Raise ConfigError, at `named_at` if there is no such
    file."""
    problems: list[ConfigProblem] = []
    document = _Walk(path, {}, problems).document(named_at, "")
    if not isinstance(document.data, list):
        _fail(document.at().value, "a script is a list of entries: lines that begin with '- '.")
    if problems:
        raise ConfigError(problems)
    return document


def read_front_matter(path: Path) -> tuple[Document, str]:
    """Return the mapping between the lines `---` at the beginning of a text file, and the text behind it. Variables
    are not replaced. Raise ConfigError."""
    text, problems = _text(path, None, "").replace("\r\n", "\n"), list[ConfigProblem]()
    found = _FRONT_MATTER.match(text)
    if not found:
        way = "Begin the file with '---', 'name: ...', 'description: ...', and '---' again"
        _fail(ConfigPlace(path, 1, 1), f"the file has no front matter. {way}.")
    document = _Walk(path, {}, problems).document(None, "", text=f"\n{found[1]}")  # lines keep their numbers
    if not isinstance(document.data, dict):
        _fail(document.at().value, "front matter is a mapping: lines of 'key: value', the first one 'name: ...'.")
    if problems:
        raise ConfigError(problems)
    return document, text[found.end() :]


def _read_mapping(
    path: Path, named_at: ConfigPlace | None, environ: Mapping[str, str], problems: list[ConfigProblem]
) -> Document:
    """Return one file. Problems that allow reading on are added to `problems`; any other raises them all."""
    try:
        document = _Walk(path, environ, problems).document(named_at, "extends: ")
        if not isinstance(document.data, dict):
            _fail(document.at().value, "an agent is a mapping: lines of 'key: value', the first one 'name: ...'.")
        return document
    except ConfigError as error:
        raise ConfigError([*problems, *error.problems]) from None


def _take_extends(document: Document, problems: list[ConfigProblem]) -> tuple[Path, ConfigPlace] | None:
    """Take `extends` out of a document, and return the file that it names and the place."""
    value, written = document.data.pop("extends", None), document.written.pop(("extends",), None)
    if written is None or value is None or value == "":
        return None
    if isinstance(value, str) and not written.mistakes:
        return written.value.file.parent / value, written.value
    mistakes = written.mistakes or ("extends names one file, such as 'extends: base.yaml'.",)
    problems += [ConfigProblem(written.value, mistake) for mistake in mistakes]
    return None


def _lay_over(base: Document, over: Document) -> Document:
    """Join mappings key by key, in the order of the base, and replace everything else."""
    replaced = set[KeyPath]()

    def join(below: Any, above: Any, path: KeyPath) -> Any:
        if not (isinstance(below, dict) and isinstance(above, dict)):
            replaced.add(path)
            return above
        joined = dict(cast("dict[str, Any]", below))
        for key, item in cast("dict[str, Any]", above).items():
            joined[key] = join(joined[key], item, (*path, key)) if key in joined else item
        return joined

    data = join(base.data, over.data, ())
    gone = {path for path in base.written for end in range(len(path)) if path[: end + 1] in replaced}
    remaining = {path: written for path, written in base.written.items() if path not in gone}
    return Document(data, {**remaining, **over.written})


def _fail(place: ConfigPlace, message: str) -> NoReturn:
    raise ConfigError([ConfigProblem(place, message)])


def _text(path: Path, named_at: ConfigPlace | None, key: str) -> str:
    """Return the text of a file. `named_at` is the place that names it, if another file does."""
    try:
        raw = foreign_files.read_bytes(path)
    except FileNotFoundError:
        siblings = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        stems = {Path(other).stem: other for other in sorted(siblings) if Path(other).suffix == path.suffix}
        near = get_close_matches(path.stem, stems, n=1, cutoff=NEAR)
        hint = f"Did you mean {str(path.with_name(stems[near[0]]))!r}?" if near else "Check the path."
        what = f"{key}there is no file {path}" if named_at else "there is no such file"
        _fail(named_at or ConfigPlace(path), f"{what}. {hint}")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        _fail(named_at or ConfigPlace(path), f"{path} cannot be read ({reason}). It has to be a readable file.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        readable = raw[: error.start].decode("utf-8-sig", "replace")
        _fail(_end_of(path, readable), "this is not UTF-8. Save the file in the encoding UTF-8.")


def _end_of(path: Path, text: str) -> ConfigPlace:
    lines = text.replace("\r\n", "\n").split("\n")
    return ConfigPlace(path, len(lines), len(lines[-1]) + 1)


def _compose(path: Path, text: str, needs: str) -> Any:
    """Return PyYAML's root node. Its parser in Python is used: the one in C words its messages differently."""
    import yaml
    from yaml.reader import ReaderError

    class CoreLoader(yaml.BaseLoader):
        yaml_implicit_resolvers = _RESOLVERS

    try:
        root = cast("Any", yaml).compose(text, CoreLoader)
    except ReaderError as error:
        _fail(_end_of(path, text[: error.position]), "YAML cannot hold this invisible character. Delete it.")
    except yaml.MarkedYAMLError as error:
        problem = str(error.problem)
        unclosed = error.context_mark if "unexpected end of stream" in problem else None
        mark = unclosed or error.problem_mark or error.context_mark
        message = next((advice for words, advice in _ADVICE if words in problem), f"this is not YAML: {problem}.")
        # A brace ends a value inside { } and [ ].
        if "expected ',' or" in problem and mark and text[max(0, mark.index - 1) : mark.index + 1] == "${":
            message = 'inside { } and [ ] a variable has to be in quotes: "${VAR}".'
        _fail(ConfigPlace(path, mark.line + 1, mark.column + 1) if mark else ConfigPlace(path), message)
    if root is None:
        _fail(ConfigPlace(path, 1, 1), f"the file is empty. It needs at least {needs}.")
    return root


class _Walk:
    def __init__(self, path: Path, environ: Mapping[str, str], problems: list[ConfigProblem]) -> None:
        self._written: dict[KeyPath, Written] = {}
        self._path = path
        self._environ = environ
        self._problems = problems
        self._open = set[int]()
        self._merged: dict[int, list[tuple[Any, Any]] | None] = {}  # by nodes; None: not complete yet

    def document(self, named_at: ConfigPlace | None, key: str, *, text: str | None = None) -> Document:
        try:
            needs = "one entry, such as '- say: hello'" if text is None and not key else "'name: ...'"
            root = _compose(self._path, _text(self._path, named_at, key) if text is None else text, needs)
            return Document(self._value(root, ()), self._written)
        except RecursionError:
            _fail(ConfigPlace(self._path), "this is nested too deeply to be read.")

    def _value(self, node: Any, path: KeyPath, key: ConfigPlace | None = None) -> Any:
        place = self._place(node)
        self._written[path] = Written(place, key or place)
        if len(self._written) > MAX_VALUES:
            _fail(place, f"with its aliases this file stands for more than {MAX_VALUES} values. Use fewer.")
        if node.id == "scalar":
            value = self._scalar(node, place)
            if isinstance(value, str):
                value, mistakes = expand(value, self._environ)
                self._written[path] = Written(place, key or place, tuple(mistakes))
            return value
        if id(node) in self._open:
            _fail(place, "this contains itself through an alias (*). Write it out.")
        if node.tag not in (f"{_TAG}map", f"{_TAG}seq"):
            self._unknown_tag(node, place)
        self._open.add(id(node))
        if node.id == "mapping":
            value = self._mapping(node, path)
        else:
            value = [self._value(item, (*path, index)) for index, item in enumerate(node.value)]
        self._open.discard(id(node))
        return value

    def _place(self, node: Any) -> ConfigPlace:
        return ConfigPlace(self._path, node.start_mark.line + 1, node.start_mark.column + 1)

    def _mapping(self, node: Any, path: KeyPath) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in self._pairs(node):
            place, key = self._place(key_node), key_node.value
            if key_node.tag != f"{_TAG}str":
                hint = f'Put it in quotes: "{key}".' if isinstance(key, str) else "Give it a name."
                self._problem(place, f"a key has to be text. {hint}")
            elif key in found:
                first = self._written[*path, key].key.line
                self._problem(place, f"the key {key!r} is in this mapping already, in line {first}. Remove one.")
            else:
                self._scalar(key_node, place)
                found[key] = self._value(value_node, (*path, key), place)
        return found

    def _pairs(self, node: Any) -> list[tuple[Any, Any]]:
        """Return the keys and values of a mapping: its own, then those that it merges (<<) and does not have."""
        if (found := self._merged.get(id(node))) is not None:
            return found
        if id(node) in self._merged:
            _fail(self._place(node), "this merges itself through an alias (*). Write it out.")
        self._merged[id(node)] = None
        own, merged = list[tuple[Any, Any]](), dict[str, tuple[Any, Any]]()
        for key, value in node.value:
            if key.tag != f"{_TAG}merge":
                own.append((key, value))
                continue
            for each in value.value if value.id == "sequence" else [value]:
                if each.id != "mapping":
                    self._problem(
                        self._place(key), "<< merges mappings: give an alias such as *base, or a list of them."
                    )
                    break
                for pair in self._pairs(each):
                    merged.setdefault(str(pair[0].value), pair)
        names = {str(key.value) for key, _ in own}
        self._merged[id(node)] = pairs = [*own, *(pair for name, pair in merged.items() if name not in names)]
        return pairs

    def _scalar(self, node: Any, place: ConfigPlace) -> str | int | float | bool | None:
        kind, text = node.tag.removeprefix(_TAG), cast("str", node.value)
        if kind in _SCALARS and not _SCALARS[kind].match(text):
            self._problem(place, f"{text!r} is not of the type {kind}, which its tag names.")
            return text
        match kind:
            case "null":
                return None
            case "bool":
                return text.lower() == "true"
            case "float":
                return float(re.sub(r"\.(inf|nan)", r"\1", text.lower()))
            case "int":
                try:
                    return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
                except ValueError:  # Python reads no decimal of thousands of digits
                    self._problem(place, f"a number of {len(text)} digits is too long to be read.")
            case "str" | "merge":
                if SURROGATE.search(text):
                    self._problem(place, "\\ud800 to \\udfff are not characters. Remove it.")
            case _:
                self._unknown_tag(node, place)
        return text

    def _unknown_tag(self, node: Any, place: ConfigPlace) -> None:
        self._problem(place, f"the tag {node.tag!r} has no meaning here. Remove it.")

    def _problem(self, place: ConfigPlace, message: str) -> None:
        self._problems.append(ConfigProblem(place, message))


def dump(data: Any) -> str:
    """Return plain data as YAML that reads back as the same: long texts as blocks, keys in their order."""
    import yaml

    class CoreDumper(yaml.SafeDumper):
        yaml_implicit_resolvers = _RESOLVERS  # texts that `read` would take for something else get quotes

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def represent(dumper: Any, text: str) -> Any:
        lines = text.split("\n")
        style = "|" if len(lines) > 1 and all(line == line.rstrip() for line in lines) and lines[0].strip() else None
        if not all(map(str.isprintable, lines)):
            style = '"'  # PyYAML would write some rare line breaks as they are, and read them as others
        return dumper.represent_scalar(f"{_TAG}str", text, style=style)

    CoreDumper.add_representer(str, represent)
    return yaml.dump(data, Dumper=CoreDumper, sort_keys=False, allow_unicode=True, width=110)
