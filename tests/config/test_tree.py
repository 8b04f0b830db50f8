from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.config.nodes import ConfigError, Expanded, Node, Place, Problem, escape, expand, merge, plain

names = st.sampled_from("abc")
numbers = st.integers(0, 9)
pieces = st.sampled_from(["${", "$${", "}", "{", ":-", "A", "B", "${A}", "${B:-x}", "${Z}", "${Z:-}", "-", " ", "é"])
texts = st.lists(pieces, max_size=8).map("".join) | st.text(max_size=10)
data = st.recursive(
    numbers | texts | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)
mappings = st.dictionaries(names, data, max_size=3)


def tree(value: object, file: str = "a.yaml", line: int = 1) -> Node:
    place = Place(Path(file), line, 1)
    if isinstance(value, dict):
        return Node({key: tree(item, file, line + 1) for key, item in value.items()}, place, place)
    if isinstance(value, list):
        return Node([tree(item, file, line + 1) for item in value], place, place)
    assert value is None or isinstance(value, str | int)
    return Node(value, place, place)


# merge


def test_mappings_are_joined_and_everything_else_is_replaced() -> None:
    base = {"a": 1, "b": {"c": [1, 2], "d": {"e": 1}}, "f": {"g": 1}, "h": None}
    over = {"b": {"c": [3], "d": {"x": 2}}, "f": 5, "h": {"i": 1}, "j": 6}
    assert plain(merge(tree(base), tree(over))) == {
        "a": 1,
        "b": {"c": [3], "d": {"e": 1, "x": 2}},
        "f": 5,
        "h": {"i": 1},
        "j": 6,
    }


@given(mappings)
def test_nothing_and_the_same_change_nothing(one: dict) -> None:
    assert plain(merge(tree({}), tree(one))) == one
    assert plain(merge(tree(one), tree({}))) == one
    assert plain(merge(tree(one), tree(one))) == one


@given(data, data)
def test_merged_is_what_the_rule_says_at_every_path(base: object, over: object) -> None:
    def rule(base: Any, over: Any) -> Any:
        if not (isinstance(base, dict) and isinstance(over, dict)):
            return over
        keys = [*base, *(key for key in over if key not in base)]
        return {key: rule(base.get(key), over[key]) if key in over else base[key] for key in keys}

    merged = plain(merge(tree(base), tree(over)))
    assert repr(merged) == repr(rule(base, over))  # repr: the order of keys, and 1 is not True


@given(mappings, mappings)
def test_the_place_of_a_value_is_in_the_file_that_gave_it(base: dict, over: dict) -> None:
    merged = merge(tree(base, "base.yaml"), tree(over, "over.yaml"))

    def check(node: Node, below: Any, above: Any) -> None:
        for key, item in (node.value if isinstance(node.value, dict) else {}).items():
            in_over = isinstance(above, dict) and key in above
            assert item.place.file == Path("over.yaml" if in_over else "base.yaml")
            if in_over and isinstance(below, dict) and key in below:
                check(item, below[key], above[key])

    check(merged, base, over)


# expand


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("${A}", "one"),
        ("x${A}y${A}", "xoneyone"),
        ("${EMPTY}", ""),
        ("${EMPTY:-other}", "other"),  # as in the shell
        ("${A:-other}", "one"),
        ("${NONE:-other}", "other"),
        ("${NONE:-}", ""),
        ("${NONE:-a:-b $c}", "a:-b $c"),
        ("${NONE:-two\nlines}", "two\nlines"),
        ("${LIKE_ONE}", "${A}"),  # what comes out is not expanded again
        ("$${A}", "${A}"),
        ("$$${A}", "$${A}"),
        ("$${A} ${A}", "${A} one"),
        ("$A $ {A} $$ 5$", "$A $ {A} $$ 5$"),
    ],
)
def test_expansions(text: str, expanded: str) -> None:
    node, problems = expand(tree(text), {"A": "one", "EMPTY": "", "LIKE_ONE": "${A}"})
    assert (node.value, problems) == (expanded, [])


FORMS = "the forms are ${VAR} and ${VAR:-default} (a default holds no braces), and $${ stands for a plain ${."


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("${NONE}", ["the environment variable NONE is not set; set it, or give a default: ${NONE:-...}."]),
        ("${NONE} ${NONE}", ["the environment variable NONE is not set; set it, or give a default: ${NONE:-...}."]),
        ("${}", ["'${}' is no expansion; " + FORMS]),
        ("${1A}", ["'${1A}' is no expansion; " + FORMS]),
        ("a ${A", ["'${A' is no expansion; " + FORMS]),
        ("${A:?no}", ["'${A:?no}' is no expansion; " + FORMS]),
        ("${ A }", ["'${ A }' is no expansion; " + FORMS]),
        ("${NONE:-${A}}", ["'${NONE:-${A}}' is no expansion; " + FORMS]),
    ],
)
def test_what_cannot_be_expanded_is_said_and_stays(text: str, messages: list[str]) -> None:
    node, problems = expand(tree({"a": [text]}), {"A": "one"})
    assert plain(node) == {"a": [text]}
    assert [problem.message for problem in problems] == messages
    assert {str(problem.place) for problem in problems} == {"a.yaml:3:1"}


def test_a_variable_that_is_no_text_is_refused() -> None:
    for text in ("${A}", "${A:-x}"):
        node, [problem] = expand(tree(text), {"A": "gr\udcfcn"})
        assert (node.value, problem.message) == (text, "the environment variable A is not UTF-8; set it again.")


def test_keys_are_never_expanded() -> None:
    assert plain(expand(tree({"${A}": "${A}"}), {"A": "one"})[0]) == {"${A}": "one"}


def test_only_a_text_that_is_one_expansion_knows_where_it_comes_from() -> None:
    whole, problems = expand(tree(["${A}", "${N:-5}", "$${A}", "${A} ", "${A}${A}", "A"]), {"A": "7"})
    assert isinstance(whole.value, list)
    assert not problems
    found = [item.value.source if isinstance(item.value, Expanded) else None for item in whole.value]
    assert found == ["${A}", "${N:-5}", None, None, None, None]


@given(data)
@example("$${A}")
@example(["$$${", {"a": "${A}"}])
def test_what_is_escaped_comes_back(value: object) -> None:
    def escaped(value: object) -> object:
        if isinstance(value, dict):
            return {key: escaped(item) for key, item in value.items()}
        if isinstance(value, list):
            return [escaped(item) for item in value]
        return escape(value) if isinstance(value, str) else value

    node, problems = expand(tree(escaped(value)), {})
    assert (plain(node), problems) == (value, [])


@given(data, st.dictionaries(st.sampled_from("AB"), st.text("x${}A", max_size=5)))
def test_expansion_keeps_the_shape_the_places_and_all_but_texts(value: object, environ: dict[str, str]) -> None:
    before = tree(value)
    after, problems = expand(before, environ)

    def check(one: Node, other: Node) -> None:
        assert (one.place, one.key_place) == (other.place, other.key_place)
        if isinstance(one.value, dict):
            assert isinstance(other.value, dict)
            assert list(one.value) == list(other.value)
            for key, item in one.value.items():
                check(item, other.value[key])
        elif isinstance(one.value, list):
            assert isinstance(other.value, list)
            for item, twin in zip(one.value, other.value, strict=True):
                check(item, twin)
        elif isinstance(one.value, str) and "${" in one.value:
            assert isinstance(other.value, str)
        else:
            assert one.value is other.value

    check(before, after)
    assert all("${" in problem.message for problem in problems)


# the rest


def test_at_goes_as_far_as_there_is_something() -> None:
    root = tree({"a": [{"b": 1}]})
    assert root.at(["a", 0, "b"]).value == 1
    assert plain(root.at(["a", 0, "x", "y"])) == {"b": 1}
    assert plain(root.at(["a", 5])) == [{"b": 1}]
    assert root.at(["x"]) is root
    assert root.at([0]) is root


def test_find_finds_all_or_nothing() -> None:
    root = tree({"a": [{"b": None}]})
    found = root.find(["a", 0, "b"])
    assert found
    assert found.value is None
    assert root.find([]) is root
    assert [root.find(path) for path in (["x"], ["a", 1], ["a", "b"], ["a", 0, "b", "c"], ["x", "y"])] == [None] * 5


def test_with_value_changes_one_place_of_a_copy() -> None:
    root = tree({"a": {"b": "1", "c": "2"}})
    assert plain(root.with_value(["a", "b"], "3")) == {"a": {"b": "3", "c": "2"}}
    assert plain(root) == {"a": {"b": "1", "c": "2"}}


def test_problems_are_listed_in_the_order_of_the_file() -> None:
    file = Path("a.yaml")
    problems = [Problem(Place(file, 10, 2), "c"), Problem(Place(file, 9, 3), "b"), Problem(Place(file), "a")]
    assert str(ConfigError(problems)) == "a.yaml: a\na.yaml:9:3: b\na.yaml:10:2: c"
