"""The parts of a score that are shown add up to the score that is shown."""

from hypothesis import given
from hypothesis import strategies as st

from agents.explain.scores import rounded

NAMES = st.sampled_from(["words", "neighbours", "meaning", "late", "who"])


@given(st.dictionaries(NAMES, st.floats(-30, 30)))
def test_what_is_shown_adds_up(parts: dict[str, float]) -> None:
    score, shown = rounded(sum(parts.values()), parts)
    assert round(sum(shown.values()), 2) == score
    assert abs(score - sum(parts.values())) <= 0.0051
    for name, value in parts.items():
        assert abs(shown.get(name, 0.0) - value) <= 0.02
