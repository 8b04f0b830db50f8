from hypothesis import given
from hypothesis import strategies as st

from agents.view.answers import changed_lines

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "d e"]), max_size=14)


@given(LINES, LINES)
def test_each_text_can_be_read_off(before: list[str], after: list[str]) -> None:
    """Without the lines of the other one, and with those that are not shown."""
    told = changed_lines("\n".join(before), "\n".join(after))
    hidden = sum(int(line) for sign, line in told if sign == "~")
    for own, text in (("-", before), ("+", after)):
        lines = "\n".join(text).splitlines()
        shown = [line for sign, line in told if sign in (own, " ")]
        assert len(shown) + hidden == len(lines)
        rest = iter(lines)
        assert all(any(line == other for other in rest) for line in shown), "in order"


def test_what_is_the_same_far_away_is_not_shown() -> None:
    before = [f"line {number}" for number in range(20)]
    lines = changed_lines("\n".join(before), "\n".join([*before[:10], "new", *before[10:]]))
    near = [(" ", "line 8"), (" ", "line 9"), ("+", "new"), (" ", "line 10"), (" ", "line 11")]
    assert lines == [("~", "8"), *near, ("~", "8")]
    assert changed_lines("", "") == []
    assert changed_lines("", "a") == [("+", "a")]
