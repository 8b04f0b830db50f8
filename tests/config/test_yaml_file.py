from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.config import yaml_file
from agents.config.errors import ConfigError
from tests.config.conftest import problems, write

any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
tricky = st.sampled_from(
    [
        *("off", "yes", "true", "NULL", "~", "0o17", "0x1F", "1e3", ".5", ".inf", "2026-05-03", "1_000", "12:30"),
        *("é", "🙂", "'", "%", "@", "`", "!x", "&x", "*x", "---", "...", "?", "? a", "{", "]", "-", "- a", "a: b", "#"),
        *("", " x", "x ", "a #b", "|", "=", "<<", '"', "\ufeff", "a\tb", "a\r\nb", "\x85", "\u2028", "a\x85b\n"),
        *("a\n b\n", "\n", "a\n\n", "  a\nb", "\n a", "a \nb", "a\n---\nb"),
    ]
)
texts = any_text | tricky
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
data = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=15
)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        *(("off", "off"), ("yes", "yes"), ("No", "No"), ("2026-05-03", "2026-05-03"), ("12:30", "12:30")),
        *(("true", True), ("False", False), ("null", None), ("~", None), ("", None), ("none", "none")),
        *(("17", 17), ("-3", -3), ("017", 17), ("0o17", 15), ("0x1F", 31), ("60_000", "60_000")),
        *((".5", 0.5), ("1e3", 1000.0), ("3.", 3.0), ("-.inf", float("-inf")), ("1.2.3", "1.2.3")),
        *(("'17'", "17"), ('"true"', "true"), ("!!str 17", "17"), ("!!float 17", 17.0), ("=", "="), ("5m", "5m")),
    ],
)
def test_scalars_are_those_of_the_core_schema(written: str, read: object) -> None:
    value = yaml_file.read(write(f"a: {written}\n"), {}).data["a"]
    assert (value, type(value)) == (read, type(read))


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("a: &x {b: 1}\nc: [*x, *x]\n", {"a": {"b": 1}, "c": [{"b": 1}, {"b": 1}]}),
        *((f"a: 1\nextends: {nothing}\n", {"a": 1}) for nothing in ("", "~", '""', "${NONE:-}")),
    ],
)
def test_aliases_stand_for_what_they_name_and_extends_may_be_empty(text: str, data: object) -> None:
    assert yaml_file.read(write(text), {}).data == data


def test_a_byte_order_mark_and_foreign_line_ends_are_fine() -> None:
    document = yaml_file.read(write(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n"), {})
    assert document.data == {"a": 1, "b": 2}
    assert str(document.at("b").value) == "a.yaml:2:4"


BRACKETS = "a list or mapping in brackets is not closed before this, or a ',' is missing."
INDENT = "Check the indentation, the quotes and the brackets."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1:1: the file is empty. It needs at least 'name: ...'."),
        ("# only this\n", "1:1: the file is empty. It needs at least 'name: ...'."),
        ("- a\n", "1:1: an agent is a mapping: lines of 'key: value', the first one 'name: ...'."),
        ("hello\n", "1:1: an agent is a mapping: lines of 'key: value', the first one 'name: ...'."),
        ("a: 1\nb:\n\tc: 2\n", "3:1: there is a tab here; YAML is indented with spaces only. Replace it with spaces."),
        ("a:\t1\n", "1:3: there is a tab here; YAML is indented with spaces only. Replace it with spaces."),
        ("a: b: c\n", "1:5: ':' is not expected here. Check the indentation, or put the value in quotes."),
        ("a: 1\nb\nc: 2\n", "3:1: a ':' is missing: every line of a mapping reads 'key: value'."),
        ("a:\n  b: 1\n c: 2\n", f"3:2: this does not fit the lines above. {INDENT}"),
        ("a: 1\n  b: 2\n", "2:4: ':' is not expected here. Check the indentation, or put the value in quotes."),
        ("a: 1\n- b\n", f"2:1: this does not fit the lines above. {INDENT}"),
        ("a: 'x\nb: 1\n", "1:4: the quote that opens here is never closed. Close it."),
        ("a: [1, 2\nb: 1\n", f"2:2: {BRACKETS}"),
        ("a: {b: ${X}}\n", '1:9: inside { } and [ ] a variable has to be in quotes: "${VAR}".'),
        ("a: @x\n", "1:4: no value can begin with this character. Put the value in quotes."),
        ("a: *x\n", "1:4: this alias (*) has no anchor (&) of that name before it."),
        ("a: 1\n---\nb: 2\n", "2:1: a second document begins here (---). One file describes one agent."),
        ("a: &x [*x]\n", "1:4: this contains itself through an alias (*). Write it out."),
        ("a: 1\nb: \x07\n", "2:4: YAML cannot hold this invisible character. Delete it."),
        (b"a: 1\nb: gr\xfcn\n", "2:6: this is not UTF-8. Save the file in the encoding UTF-8."),
        ("a: 1\n".encode("utf-16"), "1:1: this is not UTF-8. Save the file in the encoding UTF-8."),
        ("a: 1\nb: 2\na: 3\n", "3:1: the key 'a' is in this mapping already, in line 1. Remove one."),
        ("a: {b: 1, b: 1}\n", "1:11: the key 'b' is in this mapping already, in line 1. Remove one."),
        ("12: a\n", '1:1: a key has to be text. Put it in quotes: "12".'),
        ("? [a]\n: b\n", "1:3: a key has to be text. Give it a name."),
        ("a: {<<: 5}\n", "1:5: << merges mappings: give an alias such as *base, or a list of them."),
        ("a: &x {b: 1, <<: *x}\n", "1:4: this merges itself through an alias (*). Write it out."),
        ("a: !secret b\n", "1:4: the tag '!secret' has no meaning here. Remove it."),
        ("a: !!set {}\n", "1:4: the tag 'tag:yaml.org,2002:set' has no meaning here. Remove it."),
        ("a: !!int x\n", "1:4: 'x' is not of the type int, which its tag names."),
        (f"a: {'1' * 5000}\n", "1:4: a number of 5000 digits is too long to be read."),
        ('a: "x\\ud800"\n', "1:4: \\ud800 to \\udfff are not characters. Remove it."),
        ("extends: [b]\n", "1:10: extends names one file, such as 'extends: base.yaml'."),
        ("a: 1\nextends: ${B}\n", "2:10: the environment variable B is not set. Set it, or give a default: ${B:-...}."),
        ("a: 1\nextends: .\n", "2:10: . cannot be read (Is a directory). It has to be a readable file."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(text: str | bytes, message: str) -> None:
    assert problems(write(text, "bad.yaml")) == [f"bad.yaml:{message}"]


@pytest.mark.slow
def test_what_would_fill_the_memory_is_refused() -> None:
    deep, laughs = "a: " + "[" * 5000, ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    assert problems(write(deep)) == ["a.yaml: this is nested too deeply to be read."]
    laughs += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    [message] = problems(write("\n".join(laughs)))
    assert message.endswith("with its aliases this file stands for more than 100000 values. Use fewer.")


def test_all_duplicates_are_listed() -> None:
    path = write("a: 1\na: 2\nextends: b.yaml\n")
    write("c: {d: 1, d: 2}\n5: x\n", "b.yaml")
    assert problems(path) == [
        "a.yaml:2:1: the key 'a' is in this mapping already, in line 1. Remove one.",
        "b.yaml:1:11: the key 'd' is in this mapping already, in line 1. Remove one.",
        'b.yaml:2:1: a key has to be text. Put it in quotes: "5".',
    ]


def test_a_missing_file_is_named_and_a_near_one_proposed() -> None:
    write("name: x\n", "configs/assistant.yaml")
    write("name: x\n", "base.yaml")
    near = "there is no such file. Did you mean 'configs/assistant.yaml'?"
    assert problems(Path("configs/assitant.yaml")) == [f"configs/assitant.yaml: {near}"]
    assert problems(Path("nowhere/x.yaml")) == ["nowhere/x.yaml: there is no such file. Check the path."]
    base = "a.yaml:2:10: extends: there is no file bas.yaml. Did you mean 'base.yaml'?"
    assert problems(write("a: 1\nextends: bas.yaml\n")) == [base]


def test_extends_lays_a_file_over_its_base_and_places_follow() -> None:
    path = write("extends: ../mid.yaml\nmodel: {id: top}\n", "sub/top.yaml")
    write("extends: ${WHERE:-far}/base.yaml\nmodel: {id: mid, thinking: off}\ntools: [a]\n", "mid.yaml")
    write("name: base\nmodel: {cache_ttl: 1h}\ntools: [b, c]\n", "far/base.yaml")
    document = yaml_file.read(path, {})
    model = {"cache_ttl": "1h", "id": "top", "thinking": "off"}
    assert document.data == {"name": "base", "model": model, "tools": ["a"]}
    places = [str(document.at(*key.split(".")).value) for key in ("name", "model.id", "model.thinking", "tools")]
    assert places == [
        "sub/../far/base.yaml:1:7", "sub/top.yaml:2:13", "sub/../mid.yaml:2:28", "sub/../mid.yaml:3:8"
    ]  # fmt: skip
    write("name: other\n", "elsewhere/base.yaml")
    assert yaml_file.read(path, {"WHERE": "elsewhere"}).data["name"] == "other"


def test_a_circle_of_extends_is_named() -> None:
    write("extends: ../c.yaml\n", "sub/b.yaml")
    write("extends: ./a.yaml\n", "c.yaml")
    circle = "a.yaml -> sub/b.yaml -> sub/../c.yaml -> sub/../a.yaml"
    assert problems(write("extends: sub/b.yaml\n")) == [
        f"sub/../c.yaml:1:10: extends goes in a circle: {circle}. Take one of them out."
    ]
    [own] = problems(write("extends: self.yaml\n", "self.yaml"))
    assert own.startswith("self.yaml:1:10: extends goes in a circle")


mappings = st.dictionaries(st.sampled_from("abc"), data, max_size=3)


@given(mappings, mappings)
@example({"a": 1, "b": {"c": [1, 2], "d": {"e": 1}}, "f": {"g": 1}}, {"b": {"c": [3], "d": {"x": 2}}, "f": 5, "j": 6})
def test_a_base_is_joined_key_by_key_and_every_place_is_in_the_file_that_gave_the_value(
    tmp_path_factory: pytest.TempPathFactory, base: dict, over: dict
) -> None:
    folder = tmp_path_factory.mktemp("both")
    (folder / "base.yaml").write_text(yaml_file.dump(base), encoding="utf-8", newline="")
    top = folder / "top.yaml"
    top.write_text(yaml_file.dump({**over, "extends": "base.yaml"}), encoding="utf-8", newline="")

    def rule(base: Any, over: Any) -> Any:
        if not (isinstance(base, dict) and isinstance(over, dict)):
            return over
        keys = [*base, *(key for key in over if key not in base)]
        return {key: rule(base.get(key), over[key]) if key in over else base[key] for key in keys}

    def check(path: tuple[str, ...], value: Any, below: Any, above: Any) -> None:
        for key, item in value.items() if isinstance(value, dict) else ():
            in_over = isinstance(above, dict) and key in above
            assert document.at(*path, key).value.file.name == ("top.yaml" if in_over else "base.yaml")
            if in_over and isinstance(below, dict) and key in below:
                check((*path, key), item, below[key], above[key])

    document = yaml_file.read(top, {})
    assert repr(document.data) == repr(rule(base, over))  # repr: the order of keys, and 1 is not True
    check((), document.data, base, over)


@given(st.dictionaries(texts.filter(lambda key: key != "extends"), data, min_size=1, max_size=4))
@example({"a": "x\n  y\n\nz"})
def test_what_is_dumped_reads_back_as_the_same(tmp_path_factory: pytest.TempPathFactory, members: dict) -> None:
    path = tmp_path_factory.mktemp("dump") / "a.yaml"
    path.write_text(yaml_file.dump(members), encoding="utf-8", newline="")
    assert repr(yaml_file.read(path, {}).data) == repr(members)


@given(st.binary(max_size=60) | any_text.map(str.encode) | st.lists(tricky, max_size=8).map("\n".join).map(str.encode))
def test_any_file_is_read_or_refused_with_a_place(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "a.yaml"
    path.write_bytes(content)
    try:
        assert isinstance(yaml_file.read(path, {}).data, dict)
    except ConfigError as error:
        assert all(problem.place.line >= 1 and problem.place.column >= 1 for problem in error.problems)


def test_merge_keys_are_laid_below_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(
        'base: &base {a: 1, b: 1, c: 1}\nmore: &more {<<: *base, b: 2, d: "${D}"}\n'
        "x: {<<: *more, c: 3}\ny: {c: 4, <<: [{e: 5, a: 5}, *more]}\n",
        encoding="utf-8",
    )
    document = yaml_file.read(path, {"D": "seven"})
    assert document.data["x"] == {"a": 1, "b": 2, "c": 3, "d": "seven"}
    assert document.data["y"] == {"a": 5, "b": 2, "c": 4, "d": "seven", "e": 5}
    assert document.at("x", "a").value.line == 1
    assert document.at("x", "c").value.line == 3


def test_merges_of_merges_take_no_longer_than_they_have_keys(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    lines = ["a0: &a0 {k: 1}"] + [f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 200)]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert yaml_file.read(path, {}).data["a199"] == {"k": 1}
