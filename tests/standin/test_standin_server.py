"""The strict stand-in over HTTP: what it was in process, it is on the wire, faults included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import httpx2
import pytest

from agents.testing import disconnect, http_error, stall, truncate
from agents.testing.messages_server import MessagesServer
from tests.standin import Reply, Standin, call, server_call, thinking
from tests.standin.faults import KINDS, PROFILES, Faults, read_profile
from tests.standin.server import StandinProcess, StandinService, write_line

Json = dict[str, Any]
LOOK: Json = {"name": "look", "input_schema": {"type": "object"}}
SEARCH: Json = {"type": "web_search_20250305", "name": "web_search"}
ARCHIVE: Json = {"name": "archive", "input_schema": {"type": "object"}}
SHORT_SECONDS = 0.001


def ask(*messages: Json, **fields: Any) -> Any:
    said = list(messages) or [{"role": "user", "content": "Hello"}]
    return {"model": "m", "max_tokens": 500, "messages": said, "tools": [LOOK, SEARCH], **fields}


def client_of(base_url: str, **options: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=base_url, api_key="none", **{"max_retries": 0, **options})


def streamed(client: anthropic.Anthropic, params: Any) -> Json:
    with client.messages.stream(**params) as stream:
        return stream.get_final_message().to_dict()


@pytest.fixture(scope="module")
def process() -> Iterator[StandinProcess]:
    with StandinProcess(limit=8_000, seed=5, models={"small": 3_000}) as started:
        yield started


@pytest.fixture
def client(process: StandinProcess) -> Iterator[anthropic.Anthropic]:
    assert process.log()["unsaid"] == 0, "the test before left lines of its script"
    with client_of(process.base_url) as made:
        yield made


# ---- a process of its own


def test_it_answers_as_scripted_and_signs_its_thinking(process: StandinProcess, client: anthropic.Anthropic) -> None:
    process.script(Reply(thinking("which way?"), "Let me look.", call("look", {"at": "sea"})), "Fine.")
    first = streamed(client, ask())
    assert [block["type"] for block in first["content"]] == ["thinking", "text", "tool_use"]
    assert first["content"][0]["signature"]
    result = {"type": "tool_result", "tool_use_id": first["content"][2]["id"], "content": "blue"}
    talk = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": first["content"]},
        {"role": "user", "content": [result]},
    ]
    assert streamed(client, ask(*talk))["content"][0]["text"] == "Fine."
    talk[0] = {"role": "user", "content": "Another beginning"}
    with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
        streamed(client, ask(*talk))


def test_what_it_refuses_it_keeps(process: StandinProcess, client: anthropic.Anthropic) -> None:
    before = process.log()
    with pytest.raises(anthropic.BadRequestError, match="at least one message is required"):
        client.messages.create(model="m", max_tokens=5, messages=[])
    streamed(client, ask())
    after = process.log()
    assert [each["message"] for each in after["rejected"][len(before["rejected"]) :]] == [
        "messages: at least one message is required"
    ]
    assert (after["asked"] - before["asked"], after["accepted"] - before["accepted"]) == (2, 1)
    (accepted,) = process.requests(before["accepted"])
    assert accepted == ask()
    (said,) = process.replies(before["accepted"])
    assert said["stop_reason"] == "end_turn"


def test_counting_and_windows_are_the_models_own(process: StandinProcess, client: anthropic.Anthropic) -> None:
    words: Any = {"messages": [{"role": "user", "content": "and so on " * 1_200}]}
    counted = client.messages.count_tokens(model="m", **words).input_tokens
    assert 3_000 < counted < 7_000
    assert client.models.retrieve("small").max_input_tokens == 3_000
    assert client.models.retrieve("other").max_input_tokens == 8_000
    assert client.messages.create(model="m", max_tokens=50, **words).usage.input_tokens == counted
    with pytest.raises(anthropic.BadRequestError, match=f"prompt is too long: {counted} tokens > 3000 maximum"):
        client.messages.create(model="small", max_tokens=50, **words)
    process.limit(2_000, "large")
    with pytest.raises(anthropic.BadRequestError, match="> 2000 maximum"):
        client.messages.create(model="large", max_tokens=50, **words)


def test_scripted_faults_come_in_their_turn(process: StandinProcess) -> None:
    process.script(http_error(429, retry_after=SHORT_SECONDS), http_error(529, retry_after=SHORT_SECONDS), "Here.")
    with client_of(process.base_url, max_retries=2) as client:
        assert streamed(client, ask())["content"][0]["text"] == "Here."
    process.script(disconnect(), truncate(), stall(after=0.2))
    with client_of(process.base_url, timeout=0.5) as client:
        with pytest.raises(httpx2.RemoteProtocolError):
            streamed(client, ask())
        assert streamed(client, ask())["stop_reason"] is None
        with pytest.raises(httpx2.ReadTimeout):
            streamed(client, ask())
        assert streamed(client, ask())["stop_reason"] == "end_turn"


def test_random_faults_can_be_turned_on_and_off(process: StandinProcess, client: anthropic.Anthropic) -> None:
    process.faults("500=1")
    with pytest.raises(anthropic.InternalServerError):
        streamed(client, ask())
    assert process.log()["faults"]["500"] >= 1
    process.faults("none")
    assert streamed(client, ask())["content"]


def test_a_reply_keeps_everything_on_its_way_to_the_process(
    process: StandinProcess, client: anthropic.Anthropic
) -> None:
    process.script(
        Reply.stopped_by("STOP", "until here"),
        Reply.pause("hats", "One moment."),
        Reply("many", output_tokens=321),
    )
    stopped = streamed(client, ask())
    assert (stopped["stop_reason"], stopped["stop_sequence"]) == ("stop_sequence", "STOP")
    assert streamed(client, ask())["stop_reason"] == "pause_turn"
    assert streamed(client, ask())["usage"]["output_tokens"] == 321
    with pytest.raises(ValueError, match="without a fault"):
        write_line(disconnect("with words of its own"))


def test_the_cache_forgets_what_nobody_asked_for_in_five_minutes() -> None:
    long: Any = [{"type": "text", "text": "word " * 2_000, "cache_control": {"type": "ephemeral"}}]

    def read(client: anthropic.Anthropic) -> int:
        message = client.messages.create(
            model="m", max_tokens=50, system=long, messages=[{"role": "user", "content": "hi"}]
        )
        return message.usage.cache_read_input_tokens or 0

    with StandinProcess(limit=8_000) as process, client_of(process.base_url) as client:
        assert read(client) == 0
        process.wait(4)
        assert read(client) > 1_024
        process.wait(5)
        assert read(client) == 0


def test_a_process_that_cannot_start_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="did not start"), StandinProcess(limit=1_000, faults="hail=1"):
        pass


# ---- random faults


def test_the_same_seed_gives_the_same_faults() -> None:
    def drawn(seed: int) -> list[str]:
        faults = Faults(seed, "heavy,stall=0.05")
        return [faults.draw() for _ in range(1_000)]

    assert drawn(1) == drawn(1) != drawn(2)
    assert set(drawn(1)) == {"", *KINDS}
    assert 0.3 < sum(map(bool, drawn(1))) / 1_000 < 0.6


def test_a_profile_is_read_strictly() -> None:
    assert read_profile("outages,429=0.5")["429"] == 0.5
    assert read_profile("") == read_profile("none") == {}
    for wrong in ("hail", "hail=1", "429", "some=0.5"):
        with pytest.raises(ValueError, match="is no fault"):
            read_profile(wrong)
    assert all(sum(chances.values()) < 1 for chances in PROFILES.values())


def keeps(params: Json) -> Reply:
    """Archive what was said; search for what was asked."""
    content = params["messages"][-1]["content"]
    said = content if isinstance(content, str) else content[-1].get("text", "")
    if not said:  # a result
        return Reply("Noted.")
    return Reply(call("search_archive", {"query": said}) if "?" in said else call("archive", {"text": said}))


@pytest.mark.parametrize(
    ("kind", "reason", "types"),
    [
        ("refusal", "refusal", []),
        ("empty", "end_turn", []),
        ("blank", "end_turn", ["text"]),
        ("only_thinking", "end_turn", ["thinking"]),
        ("pause_turn", "pause_turn", ["server_tool_use"]),
        ("max_tokens", "max_tokens", ["tool_use"]),
    ],
)
def test_odd_replies_end_for_their_reason(kind: str, reason: str, types: list[str]) -> None:
    service = StandinService(Standin(limit_tokens=5_000), faults=Faults(1, f"{kind}=1"), replies=keeps)
    said = [{"role": "user", "content": "I prefer window seats at the front"}]
    with MessagesServer(service) as server, client_of(server.base_url) as client:
        message = streamed(client, ask(*said, tools=[ARCHIVE, SEARCH]))
    assert (message["stop_reason"], [block["type"] for block in message["content"]]) == (reason, types)
    if kind == "max_tokens":
        assert message["content"][0]["input"] == {"text": "I prefer window s"}


def test_a_paused_turn_goes_on_with_what_the_search_found() -> None:
    service = StandinService(Standin(limit_tokens=5_000))
    service.script(Reply(server_call("web_search", {"query": "hats"}), stop_reason="pause_turn"))
    with MessagesServer(service) as server, client_of(server.base_url) as client:
        paused = streamed(client, ask())
        talk = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": paused["content"]}]
        rest = streamed(client, ask(*talk))
        assert [block["type"] for block in rest["content"]] == ["web_search_tool_result", "text"]
        talk.append({"role": "assistant", "content": rest["content"]})
        streamed(client, ask(*talk, {"role": "user", "content": "And?"}))
    assert service.rejected == []
