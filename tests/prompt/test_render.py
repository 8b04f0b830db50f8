"""Cache marks and pairs of calls and results. (tests/laws and the strict stand-in look at every other rule.)"""

import json
from pathlib import Path

import pytest

from pager.prompt.render import unpaired_calls
from tests.standin import Reply, call, thinking
from tests.support import Talk


@pytest.mark.parametrize("ttl", [None, "5m", "1h"])
def test_the_cache_is_read_up_to_where_the_last_request_ended(tmp_path: Path, ttl: str | None) -> None:
    talk = Talk(tmp_path, cache_ttl=ttl, instructions="word " * 1_500)
    talk.ask("look", thinking("hm"), *(call("weather", {"city": str(number)}) for number in range(30)))
    sent = 0
    for reply in (Reply(thinking("so"), call("weather", {})), Reply("ok")):
        talk.answer()
        usage = talk.standin.replies[-1]["usage"]
        sent = usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
        talk.reply(reply)
        assert talk.standin.replies[-1]["usage"]["cache_read_input_tokens"] >= sent > 1_000
    assert usage["cache_creation"]["ephemeral_1h_input_tokens" if ttl == "1h" else "ephemeral_5m_input_tokens"] > 0


def test_every_request_is_made_again_byte_for_byte_with_its_cache_marks(tmp_path: Path) -> None:
    talk, sent = Talk(tmp_path, window=6_000), dict[str, str]()
    while len(talk.memory.ledger(events=["epoch"])) < 3:
        step = talk.ask("look", thinking("hm"), call("weather", {"city": "Évora"}))
        sent[step] = json.dumps(talk.last and talk.last.params)
        talk.answer("it rains and it pours " * 20)
        step = talk.reply("It rains.")
        sent[step] = json.dumps(talk.last and talk.last.params)
    assert {step: json.dumps(talk.memory.history.rebuild(step)) for step in sent} == sent


def test_calls_without_results_are_named() -> None:
    user = {"role": "user", "content": [{"type": "text", "text": "a"}]}
    asks = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1"}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1"}]}
    assert unpaired_calls([user, asks, result]) == []
    assert unpaired_calls([user, asks, user]) == ["c1"]
    assert unpaired_calls([user, asks]) == []
