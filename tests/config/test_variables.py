import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.config.variables import escape, expand

pieces = st.sampled_from(["${", "$${", "}", "{", ":-", "A", "B", "${A}", "${B:-x}", "${Z}", "${Z:-}", "-", " ", "é"])
texts = st.lists(pieces, max_size=8).map("".join) | st.text(max_size=10)


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("${A}", "one"),
        ("x${A}y${A}", "xoneyone"),
        ("${EMPTY:-}", ""),
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
    assert expand(text, {"A": "one", "EMPTY": "", "LIKE_ONE": "${A}"}) == (expanded, [])


FORMS = "is not a variable. Write ${VAR} or ${VAR:-default} (without braces in the default), or $${ for a plain ${."
UNSET = "the environment variable NONE is not set. Set it, or give a default: ${NONE:-...}."
EMPTY = "the environment variable EMPTY is empty. Set it, or allow that: ${EMPTY:-}."
NO_TEXT = "the environment variable BYTES is not valid UTF-8. Set it again."


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        *((text, f"{text!r} {FORMS}") for text in ("${}", "${1A}", "${A", "${A:?no}", "${ A }", "${NONE:-${A}}")),
        *((text, UNSET) for text in ("${NONE}", "${NONE} ${NONE}")),
        *((text, EMPTY) for text in ("${EMPTY}", "http://${EMPTY}:80")),
        *((text, NO_TEXT) for text in ("${BYTES}", "${BYTES:-x}")),
    ],
)
def test_a_mistake_is_told_once_and_the_text_stays(text: str, mistake: str) -> None:
    assert expand(text, {"A": "one", "BYTES": "gr\udcfcn", "EMPTY": ""}) == (text, [mistake])


@given(texts)
@example("$${A}")
@example("$$${")
def test_what_is_escaped_comes_back(text: str) -> None:
    assert expand(escape(text), {}) == (text, [])
