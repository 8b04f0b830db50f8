"""From a configuration to an agent: what is not in the file comes from the model's record, within reason."""

from __future__ import annotations

import pytest

from agents import assembly as building
from agents.config.agent_config import AgentConfig
from agents.models.model import Model


class Recorded:
    """A model of which only the record is asked for."""

    def __init__(self, known: int | None) -> None:
        self._known = known

    def max_input_tokens(self) -> int | None:
        return self._known


@pytest.mark.parametrize(
    ("known", "window", "told"), [(150_000, 150_000, 0), (1_000_000, 200_000, 0), (None, 100_000, 1)]
)
def test_the_window_is_the_models_and_nobody_is_billed_for_a_million(known: int | None, window: int, told: int) -> None:
    remarks: list[str] = []
    model: Model = Recorded(known)  # type: ignore[assignment]
    assert building.window_limits(AgentConfig(name="a"), model, remarks).limit_tokens == window
    assert len(remarks) == told
