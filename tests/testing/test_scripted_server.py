"""The scripted server as its clients see it: through the real SDK, over real HTTP."""

import json
import socket
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import Agent, testing
from agents.models.replies import STOP_REASONS
from agents.testing import Fault, Reply, ScriptedServer, call, disconnect, fixture, http_error, stall, thinking
from agents.testing.messages_server import MessagesServer, Sending
from pager import tokens

scripted = fixture.scripted  # pytest finds it here, wherever the plugin is not installed
Json = dict[str, Any]
LOOK: Json = {"name": "look", "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}}}
MARK = {"type": "ephemeral"}


def client_of(scripted: ScriptedServer, **options: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=scripted.base_url, api_key="none", **{"max_retries": 0, **options})


@pytest.fixture
def client(scripted: ScriptedServer) -> Iterator[anthropic.Anthropic]:
    scripted.otherwise("Yes.")
    with client_of(scripted) as made:
        yield made


@pytest.fixture(scope="module")
def stage() -> Generator[tuple[ScriptedServer, anthropic.Anthropic]]:
    """One for many examples of a property."""
    with ScriptedServer() as started, client_of(started) as made:
        yield started, made


def hello(*content: Any, **fields: Any) -> Any:
    said = list(content) or [{"type": "text", "text": "Hello"}]
    return {"model": "m", "max_tokens": 1_000, "messages": [{"role": "user", "content": said}], **fields}


def streamed(client: anthropic.Anthropic, params: Json) -> tuple[Json, list[Any]]:
    with client.messages.stream(**params) as stream:
        events = list(stream)
        return stream.get_final_message().to_dict(), events


def heard(client: anthropic.Anthropic) -> tuple[str, Exception | None]:
    """The text that came, and what ended it."""
    seen = ""
    try:
        with client.messages.stream(**hello()) as stream:
            for piece in stream.text_stream:
                seen += piece
    except (anthropic.AnthropicError, httpx2.TransportError) as error:
        return seen, error
    return seen, None


def plain(blocks: Any) -> list[Json]:
    """Content without what the server adds, and without the fields in which there is nothing."""
    return [
        {name: value for name, value in block.items() if name not in {"id", "caller"} and value is not None}
        for block in blocks
    ]


# ---- the wire


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
    max_leaves=6,
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
BLOCKS = st.lists(
    TEXTS.map(lambda text: {"type": "text", "text": text})
    | TEXTS.map(thinking)
    | st.dictionaries(st.text("abc", min_size=1), JSON_VALUES, max_size=3).map(lambda given: call("look", **given)),
    max_size=5,
)


@given(blocks=BLOCKS, stop_reason=st.sampled_from([reason for reason in STOP_REASONS if reason != "max_tokens"]))
def test_any_reply_is_the_same_streamed_and_not(
    stage: tuple[ScriptedServer, anthropic.Anthropic], blocks: list[Json], stop_reason: str
) -> None:
    server, client = stage
    reply = Reply(*blocks, stop_reason=stop_reason)
    server.script(reply, reply)
    params = hello(tools=[LOOK], max_tokens=5_000)
    message, _ = streamed(client, params)
    assert plain(message["content"]) == blocks
    whole = client.messages.create(**params).to_dict()
    assert plain(whole["content"]) == blocks
    assert whole["stop_reason"] == message["stop_reason"] == stop_reason
    assert whole["usage"] == message["usage"]


@pytest.mark.parametrize(
    ("line", "raw", "stop_reason"),
    [
        (Reply(call("look", at="the se"), stop_reason="max_tokens"), '{"at": "the se"', "max_tokens"),
        (testing.broken_call("look", '{"at": "se'), '{"at": "se', "tool_use"),
    ],
)
def test_a_call_that_is_cut_or_broken_is_not_json_on_the_wire(
    scripted: ScriptedServer, client: anthropic.Anthropic, line: Reply, raw: str, stop_reason: str
) -> None:
    scripted.script(line)
    message, events = streamed(client, hello(tools=[LOOK]))
    assert "".join(event.partial_json for event in events if event.type == "input_json") == raw
    assert message["stop_reason"] == stop_reason
    assert message["content"][0].keys().isdisjoint({"raw_json"})


def test_max_tokens_cuts_what_is_longer(scripted: ScriptedServer, client: anthropic.Anthropic) -> None:
    scripted.script("one two three four five six seven eight nine ten")
    message, _ = streamed(client, hello(max_tokens=6))
    assert message["stop_reason"] == "max_tokens"
    assert message["content"][0]["text"] == "one two three four"
    assert message["usage"]["output_tokens"] == 6


# ---- what goes wrong


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, "BadRequest"), (401, "Authentication"), (429, "RateLimit"), (500, "InternalServer"), (529, "APIStatus")],
)
def test_an_http_error_has_the_shape_of_the_api(
    scripted: ScriptedServer, client: anthropic.Anthropic, status: int, kind: str
) -> None:
    scripted.script(http_error(status, "no"))
    with pytest.raises(getattr(anthropic, f"{kind}Error")) as caught:
        streamed(client, hello())
    assert caught.value.status_code == status
    body: Any = caught.value.body
    assert (body["type"], body["error"]["message"], body["request_id"]) == ("error", "no", caught.value.request_id)


@pytest.mark.parametrize("after", [0.3, 0.6, 1.0])
def test_a_lost_connection_is_a_raw_transport_error(
    scripted: ScriptedServer, client: anthropic.Anthropic, after: float
) -> None:
    scripted.script(disconnect("These words arrive only in part, and never the end of them. " * 4, after=after))
    seen, error = heard(client)
    assert isinstance(error, httpx2.RemoteProtocolError)
    assert seen.startswith("These words")
    assert scripted.replies[0]["content"][0]["text"].startswith(seen)


@pytest.mark.parametrize("after", [0.3, 1.0])
def test_a_truncated_stream_ends_quietly_without_a_reason(
    scripted: ScriptedServer, client: anthropic.Anthropic, after: float
) -> None:
    scripted.script(testing.truncate(call("look", at="a very long way from here, and further still"), after=after))
    message, events = streamed(client, hello(tools=[LOOK]))
    assert message["stop_reason"] is None
    assert "message_stop" not in [event.type for event in events]


def test_the_server_goes_on_after_a_client_that_gave_up_waiting(scripted: ScriptedServer) -> None:
    scripted.script(stall("Some words, and then nothing more for as long as anybody waits. " * 3), "Next.")
    with client_of(scripted, timeout=0.5) as client:
        seen, error = heard(client)
        message, _ = streamed(client, hello())
    assert isinstance(error, httpx2.ReadTimeout)
    assert seen.startswith("Some words")
    assert plain(message["content"]) == [{"type": "text", "text": "Next."}]


def test_a_stalled_stream_does_not_hold_up_the_end() -> None:
    """`close` ends it: the client sees the connection go, without any timeout of its own."""
    own = ScriptedServer()
    own.script(stall("words " * 40))
    with client_of(own, timeout=60) as client, client.messages.stream(**hello()) as stream:
        next(stream.text_stream)
        own.close()
        with pytest.raises(httpx2.TransportError):
            list(stream)


def test_an_error_in_the_middle_of_a_stream_and_too_long_are_in_the_words_of_the_provider(
    scripted: ScriptedServer, client: anthropic.Anthropic
) -> None:
    scripted.script(testing.stream_error("half of this comes through " * 4), testing.too_long(tokens=900, limit=800))
    seen, error = heard(client)
    assert seen
    assert isinstance(error, anthropic.APIStatusError)
    assert "Overloaded" in error.message
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long: 900 tokens > 800 maximum"):
        streamed(client, hello())


@pytest.mark.parametrize("fault", [disconnect(), testing.truncate()])
def test_without_streaming_a_broken_answer_is_a_lost_connection(
    scripted: ScriptedServer, client: anthropic.Anthropic, fault: Fault
) -> None:
    scripted.script(fault)
    with pytest.raises((anthropic.APIConnectionError, httpx2.TransportError)):
        client.messages.create(**hello())


def test_its_own_window_is_kept() -> None:
    with ScriptedServer(limit_tokens=100) as small, client_of(small) as client:
        small.otherwise("Yes.")
        assert client.models.retrieve("m").max_input_tokens == 100
        with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: \d+ tokens > 100 maximum"):
            streamed(client, hello({"type": "text", "text": "word " * 101}))
        with pytest.raises(anthropic.BadRequestError, match=r"exceed context limit: 50 \+ 51 > 100"):
            streamed(client, hello({"type": "text", "text": ("word " * 50).strip()}, max_tokens=51))
        assert streamed(client, hello({"type": "text", "text": ("word " * 50).strip()}, max_tokens=50))[0]["content"]
        assert len(small.replies) == 1


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("messages", b"{", "not valid JSON"),
        ("messages", b"[]", "valid dictionary"),
        ("messages", b'{"model": "m", "max_tokens": 5}', "messages: Field required"),
        ("messages", b'{"model": "m", "max_tokens": 5, "messages": []}', "at least one message"),
        ("messages/count_tokens", b'{"messages": []}', "model: Field required"),
        ("other", b"{}", "Not found"),
    ],
)
def test_what_is_no_request_is_refused(scripted: ScriptedServer, path: str, body: bytes, words: str) -> None:
    answer = httpx2.post(f"{scripted.base_url}/v1/{path}", content=body, trust_env=False)
    assert (answer.status_code, answer.json()["type"]) == (404 if path == "other" else 400, "error")
    assert words in answer.json()["error"]["message"]


def test_a_call_without_its_result_is_refused(scripted: ScriptedServer, client: anthropic.Anthropic) -> None:
    params = hello()
    params["messages"] += [{"role": "assistant", "content": [{**call("look"), "id": "toolu_1"}]}, *params["messages"]]
    with pytest.raises(anthropic.BadRequestError, match="without `tool_result` blocks immediately after: toolu_1"):
        streamed(client, params)


# ---- what it costs


def test_the_count_is_tiktokens_and_the_bill_agrees(scripted: ScriptedServer, client: anthropic.Anthropic) -> None:
    params = hello({"type": "text", "text": "How many tokens are these?"}, system="Be brief.")
    counted = client.messages.count_tokens(model="m", messages=params["messages"], system="Be brief.").input_tokens
    assert counted == tokens.total("How many tokens are these?") + tokens.total("Be brief.")
    usage = streamed(client, params)[0]["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"]) == (counted, 0)


def long(name: str, **fields: Any) -> Json:
    return {"type": "text", "text": f"{name} " + "and so on " * 600, **fields}


def billed(client: anthropic.Anthropic, *blocks: Json, **fields: Any) -> tuple[int, int, int]:
    """Read from the cache, written to it, neither."""
    usage = streamed(client, hello(*blocks, **fields))[0]["usage"]
    return usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"], usage["input_tokens"]


def test_what_one_request_marked_the_next_one_reads(scripted: ScriptedServer, client: anthropic.Anthropic) -> None:
    first, second, rest = (tokens.total(long(name)["text"]) for name in ("one", "two", "three"))
    assert billed(client, long("one", cache_control=MARK), long("two")) == (0, first, second)
    assert billed(client, long("one"), long("two", cache_control=MARK)) == (first, second, 0)
    marked = [long("one"), long("two"), long("three", cache_control=MARK)]
    assert billed(client, *marked) == (first + second, rest, 0)
    assert billed(client, *marked) == (first + second + rest, 0, 0)


def test_a_changed_prefix_an_unmarked_and_a_short_one_read_nothing(
    scripted: ScriptedServer, client: anthropic.Anthropic
) -> None:
    billed(client, long("one", cache_control=MARK))
    assert billed(client, long("one", cache_control=MARK), system="other")[0] == 0
    assert billed(client, long("one"))[0] == 0
    short = {"type": "text", "text": "a hundred words at most", "cache_control": MARK}
    assert billed(client, short) == billed(client, short) == (0, 0, tokens.total(short["text"]))


def test_a_mark_looks_twenty_blocks_back(scripted: ScriptedServer, client: anthropic.Anthropic) -> None:
    billed(client, long("one", cache_control=MARK))
    word = {"type": "text", "text": "word"}
    assert billed(client, long("one"), *[word] * 19, {**word, "cache_control": MARK})[0] == 0
    assert billed(client, long("one"), *[word] * 18, {**word, "cache_control": MARK})[0] > 0


@pytest.mark.parametrize(("control", "minutes"), [(MARK, 5), ({**MARK, "ttl": "1h"}, 60)])
def test_the_cache_forgets_after_its_time(control: Json, minutes: int) -> None:
    now = 0.0
    with ScriptedServer(now=lambda: now) as server, client_of(server) as client:
        server.otherwise("Yes.")
        marked = long("one", cache_control=control)
        assert billed(client, marked)[1] > 0
        for seconds, is_read in ((-1, True), (-1, True), (0, False)):  # a read renews it
            now += 60 * minutes + seconds
            assert (billed(client, marked)[0] > 0) == is_read
        created = server.replies[0]["usage"]["cache_creation"]
        assert created[f"ephemeral_{'1h' if minutes == 60 else '5m'}_input_tokens"] > 0


# ---- scripts


def test_functions_get_the_request_and_otherwise_answers_when_no_line_is_left(
    scripted: ScriptedServer, client: anthropic.Anthropic
) -> None:
    scripted.script(lambda request: call("look", at=request["model"]))
    scripted.otherwise(lambda request: f"{len(request['messages'])} message")
    assert streamed(client, hello(tools=[LOOK]))[0]["content"][0]["input"] == {"at": "m"}
    for _ in range(2):
        assert streamed(client, hello())[0]["content"][0]["text"] == "1 message"


def fails(_: Json) -> str:
    raise AssertionError("the agent sent something else")


@pytest.mark.parametrize(
    ("lines", "text"), [([fails], "the agent sent something else"), ([], "no line is left for request 1")]
)
def test_a_mistake_in_the_script_is_told_once_and_fails_the_test(
    lines: list[Any], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = fixture.scripted.__wrapped__(monkeypatch)  # type: ignore[attr-defined]
    server: ScriptedServer = next(running)
    server.script(*lines)
    with client_of(server, max_retries=3) as client, pytest.raises(anthropic.BadRequestError, match=text):
        streamed(client, hello())
    assert len(server.requests) == 1
    with pytest.raises(AssertionError, match=text):
        next(running)


def test_what_is_no_line_and_what_is_no_stop_reason_are_refused_at_once(scripted: ScriptedServer) -> None:
    with pytest.raises(TypeError, match="no line of a script"):
        scripted.script(429)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no stop reason 'tired'"):
        Reply("x", stop_reason="tired")
    for wrong in (5, {"name": "look"}, None):
        with pytest.raises(ValueError, match=r"is no block of a reply; give texts and .*call\('tool'"):
            Reply(calls=[wrong])  # type: ignore[list-item]


def test_an_agent_in_a_test_needs_no_key_and_no_address(scripted: ScriptedServer, tmp_path: Path) -> None:
    scripted.script(Reply(text="I keep that.", calls=[call("archive", text="likes hats")]), "Noted.")
    (tmp_path / "x.yaml").write_text("name: x\narchival: {embedder: none}\n", encoding="utf-8")
    with Agent.load(tmp_path / "x.yaml", home=tmp_path) as agent:
        assert agent.turn("I like hats.").text == "Noted."
        assert [fact.text for fact in agent.memory.inspect.newest_facts()] == ["likes hats"]


class Defective:
    asked = 0

    def create(self, params: Json) -> Sending:
        self.asked += 1
        raise KeyError("no such rule")

    def count_tokens(self, params: Json) -> int:
        return 1

    def model(self, model_id: str) -> Json: ...


def test_a_defect_behind_the_server_is_told_once_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    service = Defective()
    with (
        MessagesServer(service) as server,
        anthropic.Anthropic(base_url=server.base_url, api_key="none", max_retries=3) as client,
    ):
        with pytest.raises(anthropic.InternalServerError, match="KeyError: 'no such rule'"):
            streamed(client, hello())
        assert client.messages.count_tokens(model="m", messages=hello()["messages"]).input_tokens == 1
    assert service.asked == 1
    assert "KeyError" in caplog.text


def test_nothing_here_loads_a_providers_sdk() -> None:
    code = (
        "import json, sys; import agents.testing.fixture; early = 'http.server' in sys.modules;"
        "from agents.testing import ScriptedServer; ScriptedServer().close();"
        "print(json.dumps([early, *sorted({'anthropic', 'chromadb'} & sys.modules.keys())]))"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert json.loads(said) == [False]


@pytest.mark.parametrize("body", [b"", b'{"max_tokens": 5'])
def test_a_request_that_was_cut_short_gets_no_answer_and_asks_nothing(scripted: ScriptedServer, body: bytes) -> None:
    with socket.create_connection(("127.0.0.1", int(scripted.base_url.rpartition(":")[2]))) as client:
        client.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n" + body)
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""
    assert not scripted.requests
