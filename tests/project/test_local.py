"""The opt-in test for models of one's own, tried on two servers that are always here: it passes where the laws hold,
with a model that uses its tools and with one that never does."""

from pathlib import Path

import pytest

from agents.testing import ScriptedServer
from tests.local.live_model import live
from tests.standin.chat import ChatStandin
from tests.standin.chat_server import ChatServer
from tests.support.answers import keeps_and_finds
from tests.support.stage import Stage

pytestmark = pytest.mark.slow


def test_it_passes_with_a_model_that_uses_its_tools(tmp_path: Path) -> None:
    with ScriptedServer() as server:
        server.otherwise(keeps_and_finds)
        life = live(tmp_path, server.base_url)
    assert (life.turns, life.calls > 0, life.facts_by_agent > 0, life.evictions > 0) == (16, True, True, True)
    assert life.untried == []


def test_it_passes_with_a_model_that_calls_nothing(tmp_path: Path, stage: Stage) -> None:
    life = live(tmp_path, stage.base_url)
    assert (life.turns, life.calls, life.facts_by_agent, life.evictions > 0) == (16, 0, 0, True)
    assert [law.split(" (")[0] for law in life.untried] == [
        "a call is sent back with its result", "a fact that the model stores is there, as its own",
    ]  # fmt: skip
    assert str(life).count("NOT TRIED with this model: ") == 2


def test_it_passes_on_the_wire_of_chat_completions(tmp_path: Path) -> None:
    with ChatServer(ChatStandin(limit_tokens=8_192)) as server:
        life = live(tmp_path, server.url, provider="openai")
    refused = "chat_template_kwargs: Extra inputs are not permitted"  # asked once, for `thinking: off`
    assert (life.turns, life.evictions > 0, server.rejected) == (16, True, [refused])


def test_it_fails_where_nothing_is_paged_out(tmp_path: Path, stage: Stage) -> None:
    with pytest.raises(AssertionError, match="nothing was paged out"):
        live(tmp_path, stage.base_url, window=60_000, turns=2)
