"""The strict stand-in over HTTP: what it was in process, it is on the wire, faults included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import httpx2
import pytest

from agents.testing import disconnect, http_error, stall, truncate
from agents.testing.messages_server import MessagesServer
from tests.standin import Reply, Standin, call, thinking
from tests.standin.faults import KINDS, PROFILES, Faults, read_profile
from tests.standin.server import StandinProcess, StandinService, write_line
from tests.support.params import MARK, Params, request, result, said, text, user

SHORT_SECONDS = 0.001


def client_of(base_url: str, **options: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=base_url, api_key="none", **{"max_retries": 0, **options})


def streamed(client: anthropic.Anthropic, *messages: Params, **fields: Any) -> Params:
    params: Any = request(*(messages or (user("Hello"),)), **fields)
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
    first = streamed(client)
    assert [block["type"] for block in first["content"]] == ["thinking", "text", "tool_use"]
    behind = [said(first), user(result(first["content"][2]["id"]))]
    assert streamed(client, user("Hello"), *behind)["content"][0]["text"] == "Fine."
    with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
        streamed(client, user("Another beginning"), *behind)


def test_what_it_refuses_it_keeps(process: StandinProcess, client: anthropic.Anthropic) -> None:
    before = process.log()
    with pytest.raises(anthropic.BadRequestError, match="at least one message is required"):
        client.messages.create(model="m", max_tokens=5, messages=[])
    streamed(client)
    after = process.log()
    (rejected,) = after["rejected"][len(before["rejected"]) :]
    assert rejected["message"] == "messages: at least one message is required"
    assert (after["asked"] - before["asked"], after["accepted"] - before["accepted"]) == (2, 1)
    assert process.requests(before["accepted"]) == [request(user("Hello"))]
    (reply,) = process.replies(before["accepted"])
    assert reply["stop_reason"] == "end_turn"


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
        assert streamed(client)["content"][0]["text"] == "Here."
    process.script(disconnect(), truncate(), stall(after=0.2))
    with client_of(process.base_url, timeout=0.5) as client:
        with pytest.raises(httpx2.RemoteProtocolError):
            streamed(client)
        assert streamed(client)["stop_reason"] is None
        with pytest.raises(httpx2.ReadTimeout):
            streamed(client)
        assert streamed(client)["stop_reason"] == "end_turn"


def test_random_faults_can_be_turned_on_and_off(process: StandinProcess, client: anthropic.Anthropic) -> None:
    process.faults("500=1")
    with pytest.raises(anthropic.InternalServerError):
        streamed(client)
    assert process.log()["faults"]["500"] >= 1
    process.faults("none")
    assert streamed(client)["content"]


def test_a_reply_keeps_everything_on_its_way_to_the_process(
    process: StandinProcess, client: anthropic.Anthropic
) -> None:
    process.script(
        Reply.stopped_by("STOP", "until here"), Reply.pause("hats", "One moment."), Reply("many", output_tokens=321)
    )
    stopped = streamed(client)
    assert (stopped["stop_reason"], stopped["stop_sequence"]) == ("stop_sequence", "STOP")
    assert streamed(client)["stop_reason"] == "pause_turn"
    assert streamed(client)["usage"]["output_tokens"] == 321
    with pytest.raises(ValueError, match="without a fault"):
        write_line(disconnect("with words of its own"))


def test_the_cache_forgets_what_nobody_asked_for_in_five_minutes() -> None:
    long = [text("word " * 2_000, cache_control=MARK)]
    with StandinProcess(limit=8_000) as process, client_of(process.base_url) as client:
        read: list[int] = []
        for minutes in (0, 4, 5):
            process.wait(minutes)
            read.append(streamed(client, system=long)["usage"]["cache_read_input_tokens"])
    assert (read[0], read[1] > 1_024, read[2]) == (0, True, 0)


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
    look = Reply(call("look", {"at": "the window seats"}))
    service = StandinService(Standin(limit_tokens=5_000), faults=Faults(1, f"{kind}=1"), replies=lambda _: look)
    with MessagesServer(service) as server, client_of(server.base_url) as client:
        message = streamed(client)
    assert (message["stop_reason"], [block["type"] for block in message["content"]]) == (reason, types)
    if kind == "max_tokens":
        assert message["content"][0]["input"] == {"at": "the wind"}


def test_a_paused_turn_goes_on_with_what_the_search_found() -> None:
    service = StandinService(Standin(limit_tokens=5_000))
    service.script(Reply.pause("hats"))
    with MessagesServer(service) as server, client_of(server.base_url) as client:
        paused = said(streamed(client))
        rest = said(streamed(client, user("Hello"), paused))
        assert [block["type"] for block in rest["content"]] == ["web_search_tool_result", "text"]
        streamed(client, user("Hello"), paused, rest, user("And?"))
    assert service.rejected == []
