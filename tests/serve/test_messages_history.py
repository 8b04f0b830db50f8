"""Histories that clients send again: what is new is told, and nothing else; branches; retries; kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anthropic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.agent import Agent
from agents.events import Stopped, Text, Thinking
from agents.models.model import FinishedReply, Model
from agents.serve.messages_history import Place, digests, plan
from agents.serve.messages_records import mark_sent, repeat_step
from agents.serve.messages_request import read
from agents.serve.messages_turn import Turn
from pager.types import Json
from tests.serve.conftest import wait_until
from tests.standin import Reply, call
from tests.support.front import WEATHER, Chat, Front, front_in, said_in, text_of

HELLO: Any = {"model": "any", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture
def front(tmp_path: Path) -> Iterator[Front]:
    with front_in(tmp_path) as opened:
        yield opened


def talk(params: Json) -> list[tuple[str, str]]:
    """The conversation in a request to the provider, without what the memory put into it."""
    return [
        (message["role"], block["text"])
        for message in params["messages"] for block in message["content"]
        if block["type"] == "text" and not block["text"].startswith("<")
    ]  # fmt: skip


# what it costs


def whole_input(answer: anthropic.types.Message) -> int:
    usage = answer.usage
    return usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)


@pytest.mark.slow
def test_150_turns_that_are_sent_again_cost_what_a_paged_window_costs(tmp_path: Path) -> None:
    with front_in(tmp_path, window=8_000) as front:
        front.provider.replies = lambda _: Reply("That is noted, and here is what follows from it. " * 6)
        chat = Chat(front)
        sizes: list[int] = []
        for number in range(150):
            sizes.append(whole_input(chat.say(f"Turn {number}: and so we went on and on and on. " * 6)))
            assert chat.history == ("begun; told=1" if number == 0 else "continued; told=1")
        grows = (sizes[10] - sizes[0]) / 10  # by each turn, before anything leaves the window
        unpaged = [sizes[0] + grows * number for number in range(150)]
        assert unpaged[-1] > 4 * 8_000
        assert sum(sizes) < sum(unpaged) / 4
        assert max(sizes) <= 6_000  # the window less the reply
        assert sum(sizes[100:]) < 1.3 * sum(sizes[50:100])
        assert len(front.requests) == 150


def test_a_long_history_from_elsewhere_is_told_once_within_the_window(tmp_path: Path) -> None:
    with front_in(tmp_path, window=8_000) as front:
        chat = Chat(front)
        for number in range(60):
            chat.messages.append({"role": "user", "content": f"Question {number}. " + "We went on and on. " * 10})
            chat.messages.append({"role": "assistant", "content": f"Answer {number}. " + "So it is. " * 10})
        answer = chat.say("And now?")
        assert chat.history == "begun; told=121"
        assert whole_input(answer) <= 6_000
        assert len(front.requests) == 1
        said = said_in(front.requests[0])
        assert said[-1] == "And now?"
        assert said[-2].startswith("Question 59.")
        chat.say("And then?")
        assert chat.history == "continued; told=1"
        front.close()
        with front.memory() as memory:
            assert memory.search_recall("Question 3")
            assert not memory.check()


def test_a_history_from_elsewhere_with_calls(front: Front) -> None:
    chat = Chat(front, tools=[WEATHER])
    chat.messages = [
        {"role": "user", "content": "How is it?"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "x"},
            {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Porto"}},
            {"type": "tool_use", "id": "t2", "name": "get_weather", "input": {"city": "Faro"}},
        ]},
    ]  # fmt: skip
    results = [{"type": "tool_result", "tool_use_id": call_id, "content": call_id} for call_id in ("t2", "t1")]
    assert text_of(chat.say(results)) == "ok"
    assert chat.history == "begun; told=3"
    sent = front.requests[0]["messages"]
    assert [block["tool_use_id"] for block in sent[-1]["content"]] == ["t2", "t1"]


# branches


def test_an_edited_message_begins_a_branch_and_the_old_one_can_be_gone_back_to(front: Front) -> None:
    front.provider.script("One.", "Two.", "Three.", "Two, again.", "Four.")
    chat = Chat(front)
    for text in ("first", "second", "third"):
        chat.say(text)
    edited = Chat(front)
    edited.messages = list(chat.messages[:2])
    edited.say("second, but edited")
    assert edited.history == "branched; after=s2; told=1"
    assert talk(front.requests[-1]) == [("user", "first"), ("assistant", "One."), ("user", "second, but edited")]
    chat.say("fourth")
    assert chat.history == "branched; after=s6; told=1"
    assert said_in(front.requests[-1]) == ["first", "second", "third", "fourth"]
    front.close()
    with front.memory() as memory:
        assert [row.page_id for row in memory.ledger(events=["branch"])] == ["s2", "s6"]
        assert memory.search_recall("edited")[0].page_id == "s7"
        assert not memory.check()


def test_a_conversation_that_begins_anew_has_an_empty_window_and_the_same_memory(tmp_path: Path) -> None:
    with front_in(tmp_path, more="core: {blocks: {human: {value: 'Her name is Dana.'}}}") as front:
        Chat(front).say("The ferry to Berlenga leaves from Peniche at nine.")
        other = Chat(front)
        other.say("From where does the ferry to Berlenga leave?")
        assert other.history == "begun; told=1"
        assert said_in(front.requests[-1]) == ["From where does the ferry to Berlenga leave?"]
        everything = str(front.requests[-1]["messages"])
        assert "Her name is Dana." in everything
        assert "leaves from Peniche at nine" in everything  # put in by the memory, as something that was said before


def test_two_conversations_side_by_side_are_not_mixed_up(front: Front) -> None:
    one, two = Chat(front), Chat(front)
    for number in range(4):
        one.say(f"one {number}")
        assert said_in(front.requests[-1]) == [f"one {each}" for each in range(number + 1)]
        two.say(f"two {number}")
        assert said_in(front.requests[-1]) == [f"two {each}" for each in range(number + 1)]


def test_a_reply_that_a_client_joined_or_trimmed_is_the_same(front: Front) -> None:
    front.provider.script(Reply("One. ", call("archive", {"text": "x"})), " Two.\n")
    chat = Chat(front)
    chat.say("hello")
    chat.messages[-1]["content"] = "One.\n\nTwo."
    chat.say("and?")
    assert chat.history == "continued; told=1"


# retries


def test_the_same_request_while_its_answer_was_not_taken_makes_no_second_turn(front: Front) -> None:
    first = front.post(HELLO, **{"x-stainless-retry-count": "0"}).json()
    again = front.post(HELLO, **{"x-stainless-retry-count": "1"})
    assert again.json() == first
    assert again.headers["selfpager-history"] == "repeated; told=0"
    streamed = front.post({**HELLO, "stream": True}, **{"x-stainless-retry-count": "1"}).text
    assert first["id"] in streamed
    assert '"text":"ok"' in streamed
    assert len(front.requests) == 1
    # Without a sign of a retry, somebody says the same once more.
    assert front.post(HELLO).headers["selfpager-history"] == "begun; told=1"
    assert len(front.requests) == 2


def test_an_idempotency_key_is_one_request(front: Front) -> None:
    first = front.post(HELLO, **{"idempotency-key": "k1"}).json()
    assert front.post(HELLO, **{"idempotency-key": "k1"}).json() == first
    other = front.post({**HELLO, "max_tokens": 50}, **{"idempotency-key": "k1"})
    assert (other.status_code, len(front.requests)) == (400, 1)
    assert "was used for another request" in other.json()["error"]["message"]
    front.post(HELLO, **{"idempotency-key": "k2"})
    assert len(front.requests) == 2


def test_a_key_has_its_own_answer_though_another_one_asked_the_same(front: Front) -> None:
    front.provider.script("One.", "Two.")
    first = front.post(HELLO, **{"idempotency-key": "k1"}).json()
    front.post(HELLO, **{"idempotency-key": "k2"})
    assert front.post(HELLO, **{"idempotency-key": "k1"}).json() == first
    assert len(front.requests) == 2


def test_a_retry_of_a_turn_with_calls_has_the_same_calls(front: Front) -> None:
    front.provider.script(Reply("I look.", call("get_weather", {"city": "Porto"})))
    body = {**HELLO, "tools": [WEATHER]}
    first = front.post(body).json()
    assert front.post(body, **{"x-stainless-retry-count": "1"}).json() == first
    assert first["content"][1]["input"] == {"city": "Porto"}


# kills


@contextmanager
def server_to_kill(front: Front, folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "tests.support.front_child", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def client_of(front: Front, url: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=f"{url}/a/clerk", api_key=front.key, max_retries=0)


def ask_and_kill(front: Front, folder: Path, body: Any) -> None:
    """Serve in a process that is killed while the model answers this request."""
    front.close()
    with server_to_kill(front, folder) as (process, url):

        def dies(_: Json) -> Reply:
            os.kill(process.pid, signal.SIGKILL)
            return Reply("nobody hears this")

        front.provider.replies = dies
        with client_of(front, url) as client, pytest.raises(anthropic.APIConnectionError):
            client.messages.create(**body)
        process.wait()


@pytest.mark.slow
def test_killed_between_request_and_answer_the_request_sent_again_is_one_turn(tmp_path: Path) -> None:
    with front_in(tmp_path) as front:
        ask_and_kill(front, tmp_path, HELLO)
        front.provider.replies = lambda _: Reply("Here I am.")
        with server_to_kill(front, tmp_path) as (_, url), client_of(front, url) as client:
            assert text_of(client.messages.create(**HELLO)) == "Here I am."
        with front.memory() as memory:
            assert [row.kind for row in memory.inspect.steps(0, 9).rows] == ["assistant", "user"]
        front.open()


@pytest.mark.slow
def test_killed_in_a_turn_it_is_gone_on_with_unasked_as_the_client_asked(tmp_path: Path) -> None:
    body: Any = {**HELLO, "tools": [WEATHER], "system": "Speak like a pirate.", "max_tokens": 321}
    due = tmp_path / "home" / ".due" / "clerk"
    with front_in(tmp_path) as front:
        ask_and_kill(front, tmp_path, body)
        front.provider.replies = lambda _: Reply("I look.", call("get_weather", {"city": "Porto"}))
        with server_to_kill(front, tmp_path) as (_, url), client_of(front, url) as client:
            wait_until(lambda: not due.exists())
            answer = client.messages.create(**body)
            assert ([block.type for block in answer.content], answer.stop_reason) == (["text", "tool_use"], "tool_use")
            front.provider.replies = lambda _: Reply("It is sunny.")
            result = {"type": "tool_result", "tool_use_id": answer.content[1].id, "content": "sunny"}  # type: ignore[union-attr]
            content = [block.to_dict() for block in answer.content]
            history = [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
            assert text_of(client.messages.create(**{**body, "messages": body["messages"] + history})) == "It is sunny."
        [_, alone, last] = front.requests
        assert alone["max_tokens"] == 321
        assert alone["tools"] == last["tools"]
        assert alone["system"][0]["text"].endswith("Speak like a pirate.")
        front.open()


class Numbers(Model):
    """Answers with a number that no other reply has; on demand with a call of the client's tool, or of the agent's."""

    name = "numbers"

    def __init__(self) -> None:
        self.requests: list[Json] = []
        self.own: set[str] = set()  # the replies that called the agent's tool

    def stream(self, params: Json) -> Generator[Text | Thinking, None, FinishedReply]:
        self.requests.append(params)
        said = f"reply {len(self.requests)}"
        content: list[Json] = [{"type": "text", "text": said}]
        words = str(params["messages"][-1]["content"][-1].get("text", ""))
        if "own" in words:
            self.own.add(said)
            content.append({"type": "tool_use", "id": "own", "name": "keep", "input": {"text": said}})
        if "tool" in words and any(tool["name"] == "get_weather" for tool in params.get("tools", ())):
            content.append({"type": "tool_use", "id": "same", "name": "get_weather", "input": {}})
        yield Text(said)
        return FinishedReply({"content": content, "stop_reason": "tool_use" if content[1:] else "end_turn"})


def keep(text: str) -> str:
    """Keep a text."""
    return f"kept {text}"


def numbered(folder: Path) -> tuple[Agent, Numbers]:
    model = Numbers()
    agent = Agent(name="a", model=model, tools=[keep], home=folder, embedder=None, window=60_000, memory_tools="none")
    return agent, model


def asked(messages: list[Any], **more: Any) -> Turn:
    body = {"model": "m", "max_tokens": 100, "messages": messages, "tools": [WEATHER], **more}
    return Turn(read(body), repr(body))


def run(agent: Agent, turn: Turn, *, finishes: bool = True) -> None:
    memory = agent.memory

    def replied() -> None:
        if finishes:
            turn.replied(memory)

    tell = partial(turn.tell, memory)
    with closing(agent.stream_told(tell, elsewhere=turn.asked.tool_names, also=replied)) as events:
        for event in events:
            if isinstance(event, Stopped) and finishes:
                turn.finish(memory, event)


def flushes(agent: Agent, action: Callable[[], object]) -> int:
    """How many commits of an action wait for the disk."""
    statements: list[str] = []
    connection = agent.memory._store._connection
    connection.set_trace_callback(statements.append)
    try:
        action()
    finally:
        connection.set_trace_callback(None)
    settings = [each for each in statements if each == "COMMIT" or each.startswith("PRAGMA synchronous")]
    return sum(
        each == "COMMIT" and "NORMAL" not in before for before, each in zip(["", *settings], settings, strict=False)
    )


def test_a_turn_waits_for_the_disk_as_often_as_any_other(tmp_path: Path) -> None:
    agent, _ = numbered(tmp_path)
    others = [flushes(agent, partial(agent.turn, f"from another door {number}")) for number in range(3)]
    history, ours, marks = list[Any](), list[int](), list[int]()
    for number in range(3):
        history.append({"role": "user", "content": f"hello {number}"})
        turn = asked(history)
        ours.append(flushes(agent, partial(run, agent, turn)))
        marks.append(flushes(agent, partial(mark_sent, agent.memory, turn.digest)))
        assert turn.answer is not None
        history.append({"role": "assistant", "content": list(turn.answer.content)})
    assert (others[-1], ours[-1], marks) == (2, 2, [0, 0, 0])  # the first ones also open an epoch
    agent.close()


def test_killed_behind_the_reply_the_answer_is_read_and_the_model_not_asked_again(tmp_path: Path) -> None:
    agent, model = numbered(tmp_path)
    messages = [{"role": "user", "content": "hello"}]
    run(agent, asked(messages), finishes=False)
    agent.close()
    agent, other = numbered(tmp_path)
    again = asked(messages)
    run(agent, again)
    assert again.answer is not None
    assert [block["text"] for block in again.answer.content] == ["reply 1"]
    assert (len(model.requests), len(other.requests)) == (1, 0)
    # A client that has read the whole stream goes on without asking for it once more.
    after = asked([*messages, {"role": "assistant", "content": "reply 1"}, {"role": "user", "content": "and?"}])
    run(agent, after)
    assert after.plan.kind == "continued"
    agent.close()


def test_killed_behind_the_reply_a_client_that_has_read_it_may_go_on_at_once(tmp_path: Path) -> None:
    agent, _ = numbered(tmp_path)
    messages = [{"role": "user", "content": "hello"}]
    run(agent, asked(messages), finishes=False)
    agent.close()
    agent, model = numbered(tmp_path)
    history = [*messages, {"role": "assistant", "content": "reply 1"}, {"role": "user", "content": "and?"}]
    after = asked(history)
    run(agent, after)
    assert after.plan.kind == "begun"
    assert _flat(model.requests[-1]["messages"])[-3:] == ["hello", "reply 1", "and?"]
    assert not agent.memory.check()
    agent.close()


def test_killed_behind_the_reply_it_is_one_turn_also_when_somebody_else_was_first(tmp_path: Path) -> None:
    agent, model = numbered(tmp_path)
    messages = [{"role": "user", "content": "hello"}]
    run(agent, asked(messages), finishes=False)
    run(agent, asked([{"role": "user", "content": "another conversation"}]))
    again = asked(messages)
    run(agent, again)
    assert again.answer is not None
    assert [block["text"] for block in again.answer.content] == ["reply 1"]
    assert len(model.requests) == 2
    agent.close()


KINDS = ("say", "tool", "own", "own tool", "killed", "go back", "edit", "retry", "anew", "elsewhere", "reopen")
MOVES = st.lists(
    st.tuples(st.sampled_from([*KINDS, "say"]), st.integers(0, 99)), min_size=1, max_size=25,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(MOVES)
def test_the_model_sees_the_history_of_who_asks_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, moves: list[tuple[str, int]]
) -> None:
    """The judge is the history that the client sends: without hidden steps it is what the provider has to get. Of a
    reply that called the agent's own tool it gets the result, too."""
    folder = tmp_path_factory.mktemp("life")
    agent, model = numbered(folder)
    histories: list[list[Any]] = [[]]
    elsewhere = set[str]()  # what was said through another door stands in whatever branch the agent was in
    for number, (move, which) in enumerate(moves):
        history = list(histories[which % len(histories)])
        if move == "reopen":
            agent.close()
            requests, own = model.requests, model.own
            agent, model = numbered(folder)
            model.requests, model.own = requests, own
            continue
        if move == "elsewhere" and agent.memory.accepts_message:
            histories.append([])
            elsewhere |= {f"from another door {number}", agent.turn(f"from another door {number}").text}
            continue
        if move == "go back":
            history = history[: 2 * (which % (len(history) // 2 + 1))]
        if move == "anew":
            history = []
        if move == "edit" and history:
            place = which % len(history)
            if isinstance(history[place]["content"], str):
                history[place] = {**history[place], "content": f"edited {number}"}
        is_asked = bool(history) and history[-1]["role"] == "user"  # it got no answer, and comes again
        if move == "retry" and not is_asked and len(history) > 1 and isinstance(history[-1]["content"], str):
            history = history[:-1]
        elif not is_asked:
            history.append({"role": "user", "content": _next(history, move, number)})
        turn = asked(history)
        before = len(model.requests)
        if move == "killed":
            run(agent, turn, finishes=False)
            histories.append(history)
            continue
        run(agent, turn)
        mark_sent(agent.memory, turn.digest)
        assert turn.answer is not None
        told = len(_flat(history))
        history.append({"role": "assistant", "content": _plain([dict(block) for block in turn.answer.content])})
        if len(model.requests) > before:
            assert _compare(model.requests[-1], history, elsewhere, model.own) >= told
        histories.append(history)
    assert not agent.memory.check()
    agent.close()


def _plain(content: list[Json]) -> Any:
    return content[0]["text"] if len(content) == 1 else content


def _next(history: list[Any], move: str, number: int) -> Any:
    calls = [] if not history or isinstance(history[-1]["content"], str) else history[-1]["content"]
    ids = [block["id"] for block in calls if block["type"] == "tool_use"]
    if ids:
        return [{"type": "tool_result", "tool_use_id": each, "content": f"sunny {number}"} for each in ids]
    return f"{move if move in ('tool', 'own', 'own tool') else ''} said {number}"


def _compare(params: Json, history: list[Any], elsewhere: set[str], own: set[str]) -> int:
    got = [each for each in _flat(params["messages"]) if not each.startswith("<")]
    kept = {each for each in got if each.startswith("kept ")}
    seen = [each for each in got if each not in elsewhere | kept]
    assert seen == _flat(history)[: len(seen)]  # the last of it has answered this request
    if not any(each.startswith("edited") for each in seen):  # behind an edit replies are the client's
        assert kept == {f"kept {each}" for each in own & {*got}}
    return len(seen)


def _flat(messages: list[Any]) -> list[str]:
    found: list[str] = []
    for message in messages:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "text":
                found.append(block["text"])
            elif block["type"] == "tool_use":
                found += ["call"] if block["name"] != "keep" else []
            else:
                inner = block["content"]
                found.append(inner if isinstance(inner, str) else inner[0]["text"])
    return found


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_two_histories_have_the_same_digest_where_they_are_the_same(first: list[int], second: list[int]) -> None:
    def of(words: list[int]) -> list[str]:
        roles = ("user", "assistant")
        messages = [{"role": roles[i % 2], "content": f"word {word}"} for i, word in enumerate(words)]
        body = {"model": "m", "max_tokens": 1, "messages": messages}
        return digests(read(body).messages)

    for index, (one, two) in enumerate(zip(of(first), of(second), strict=False)):
        assert (one == two) == (first[: index + 1] == second[: index + 1])


@given(st.data())
def test_a_plan_tells_all_that_is_behind_the_last_place_that_serves(data: st.DataObject) -> None:
    history = [f"h{index}" for index in range(data.draw(st.integers(1, 8)))]
    known = {
        each: Place(f"s{i}", data.draw(st.booleans())) for i, each in enumerate(history) if data.draw(st.booleans())
    }
    here = data.draw(st.none() | st.sampled_from(range(len(history))))
    made = plan(history, known.get, lambda index: index == here)
    ends = [i for i, each in enumerate(history[:-1]) if each in known and known[each].ends_turn and i != here]
    if here == len(history) - 1:
        assert (made.kind, made.told) == ("repeated", len(history))
    elif here is not None and here > max(ends, default=-1):
        assert (made.kind, made.told) == ("continued", here + 1)
    elif ends:
        assert (made.kind, made.told, made.after) == ("branched", ends[-1] + 1, f"s{ends[-1]}")
    else:
        assert (made.kind, made.told) == ("begun", 0)


def test_a_step_that_is_told_again_keeps_its_results_and_where_they_came_from(tmp_path: Path) -> None:
    """Ids that were used are other ones then, and calls of the client's tools are open again."""
    agent, _ = numbered(tmp_path)
    memory = agent.memory
    calls = [{"type": "tool_use", "id": each, "name": each, "input": {}} for each in ("ours", "theirs", "last")]
    memory.append_user("go")
    memory.append_assistant({"role": "assistant", "content": calls, "stop_reason": "tool_use"})
    memory.append_result("last", "it failed", is_error=True, memory_tool=True)
    memory.append_result("ours", "from a page", source="web:example.org")
    memory.branch(None, "another conversation")
    memory.append_user("go")
    repeat_step(memory, "s2", {"theirs"})
    assert [call.name for call in memory.open_calls] == ["theirs"]
    results = [part for part in memory.inspect.said_parts("s4") if part.slot == "result"]
    assert [(part.text, part.searchable) for part in results] == [("from a page", True), ("it failed", False)]
    assert results[1].block["is_error"]
    assert memory.inspect.step("s4").via == ("web:example.org",)
    memory.append_result(memory.open_calls[0].id, "here")
    assert not memory.check()
    agent.close()
