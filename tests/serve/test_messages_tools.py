"""Tools of a client beside the agent's own: whose call goes where, and what is left of it afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest
from anthropic import beta_tool

from agents.agent import Agent
from agents.testing import http_error
from pager.types import Json
from tests.standin import Reply, call
from tests.support.front import WEATHER, Chat, Front, front_in, said_in, text_of

CALL = call("get_weather", {"city": "Porto"})
TIME: Any = {"name": "get_time", "input_schema": {"type": "object"}}


@pytest.fixture
def front(tmp_path: Path) -> Iterator[Front]:
    with front_in(tmp_path) as opened:
        yield opened


def results(params: Json) -> list[str]:
    return [
        "".join(inner["text"] for inner in block.get("content", ()))
        for message in params["messages"] for block in message["content"] if block["type"] == "tool_result"
    ]  # fmt: skip


def test_a_call_of_the_clients_tool_goes_to_the_client_and_its_result_goes_on_with_the_turn(front: Front) -> None:
    front.provider.script(Reply("I look.", CALL), "It is sunny.")
    chat = Chat(front, tools=[WEATHER])
    asked = chat.say("How is the weather in Porto?")
    assert asked.stop_reason == "tool_use"
    [text, tool] = asked.content
    assert (text.type, tool.type) == ("text", "tool_use")
    assert tool.type == "tool_use"
    assert (tool.name, tool.input) == ("get_weather", {"city": "Porto"})
    answer = chat.result(asked, "sunny, 20 degrees")
    assert (text_of(answer), answer.stop_reason) == ("It is sunny.", "end_turn")
    assert chat.history == "continued; told=1"
    assert results(front.requests[-1]) == ["sunny, 20 degrees"]
    assert "archive" in [tool["name"] for tool in front.requests[-1]["tools"]]
    chat.say("Thanks.")
    assert chat.history == "continued; told=1"


def test_streamed_calls_are_the_same(front: Front) -> None:
    front.provider.script(Reply("I look.", CALL))
    hello: Any = {"model": "any", "max_tokens": 100, "messages": [{"role": "user", "content": "How is it?"}]}
    with front.client.messages.stream(**hello, tools=[WEATHER]) as stream:
        answer = stream.get_final_message()
    assert answer.stop_reason == "tool_use"
    tool = answer.content[-1]
    assert tool.type == "tool_use"
    assert tool.input == {"city": "Porto"}


def test_of_a_mix_in_one_reply_the_agents_run_and_the_clients_are_returned(front: Front) -> None:
    kept = call("archive", {"text": "lives in Porto"})
    front.provider.script(Reply(kept, CALL, call("search_archive", {"query": "Porto"}), call("get_time")), "All done.")
    chat = Chat(front, tools=[WEATHER, TIME])
    asked = chat.say("I live in Porto. How is it there?")
    assert [block.name for block in asked.content if block.type == "tool_use"] == ["get_weather", "get_time"]
    answer = chat.result(asked, "sunny")
    assert text_of(answer) == "All done."
    assert len(results(front.requests[-1])) == 4
    assert len(front.requests) == 2


@beta_tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


@pytest.mark.parametrize("streams", [False, True])
def test_the_sdks_tool_runner_runs_the_clients_tools_beside_the_agents(front: Front, *, streams: bool) -> None:
    """It asks for a thread first, which is refused in the way that makes it go on without."""
    kept = call("archive", {"text": "asks about Porto"})
    front.provider.script(Reply("I look.", CALL, kept, call("get_weather", {"city": "Faro"})), "Sunny in both.")
    question: Any = {"role": "user", "content": "How is it in Porto and in Faro?"}
    runner: Any = front.client.beta.messages.tool_runner(
        model="any", max_tokens=100, tools=[get_weather], messages=[question], stream=streams
    )
    answers = [each.get_final_message() if streams else each for each in runner]
    assert [block.type for block in answers[0].content] == ["text", "tool_use", "tool_use"]
    assert text_of(answers[-1]) == "Sunny in both."
    assert {"sunny in Porto", "sunny in Faro"} <= set(results(front.requests[-1]))
    assert len(front.requests) == 2


def test_a_client_may_bring_the_memory_tool_that_it_runs_itself(front: Front) -> None:
    front.provider.script(Reply(call("memory", {"command": "view", "path": "/memories"})), "It is empty.")
    chat = Chat(front, tools=[{"type": "memory_20250818", "name": "memory"}])
    assert text_of(chat.result(chat.say("What do you have?"), "nothing")) == "It is empty."


def test_hidden_steps_between_two_answers_of_the_client(front: Front) -> None:
    """One turn: the client's tool, the agent's, the client's again."""
    kept = call("archive", {"text": "it was sunny"})
    front.provider.script(Reply("One.", CALL), Reply("Two.", kept), Reply("Three.", CALL), "Four.")
    chat = Chat(front, tools=[WEATHER])
    first = chat.say("go")
    second = chat.result(first, "sunny")
    assert (text_of(second), second.stop_reason) == ("Two.|Three.", "tool_use")
    assert text_of(chat.result(second, "rain")) == "Four."
    assert chat.history == "continued; told=1"
    assert said_in(front.requests[-1]) == ["go"]


def test_results_with_words_behind_them(front: Front) -> None:
    front.provider.script(Reply(CALL), "Both are read.")
    chat = Chat(front, tools=[WEATHER])
    [tool] = chat.say("How is it?").content
    assert tool.type == "tool_use"
    result = {
        "type": "tool_result",
        "tool_use_id": tool.id,
        "content": [{"type": "text", "text": "rain"}],
        "is_error": True,
    }
    assert text_of(chat.say([result, {"type": "text", "text": "Never mind."}])) == "Both are read."
    assert said_in(front.requests[-1]) == ["How is it?", "Never mind."]


def test_a_missing_result_is_refused_in_the_apis_words(front: Front) -> None:
    front.provider.script(Reply(CALL))
    chat = Chat(front, tools=[WEATHER])
    chat.say("How is it?")
    with pytest.raises(anthropic.BadRequestError, match="`tool_use` ids were found without `tool_result` blocks"):
        chat.say("Well?")


def test_another_result_for_a_call_that_was_answered_is_another_branch(front: Front) -> None:
    front.provider.script(Reply("I look.", CALL), http_error(400, "no"), "It rains.")
    chat = Chat(front, tools=[WEATHER])
    asked = chat.say("How is it?")
    with pytest.raises(anthropic.InternalServerError):
        chat.result(asked, "sunny")
    chat.messages.pop()
    assert text_of(chat.result(asked, "rain")) == "It rains."
    assert chat.history == "begun; told=3"
    assert results(front.requests[-1]) == ["rain"]


def test_tool_choice_forces_the_clients_tool(front: Front) -> None:
    front.provider.script(Reply(CALL))
    chat = Chat(front, tools=[WEATHER], tool_choice={"type": "tool", "name": "get_weather"})
    assert chat.say("Porto").stop_reason == "tool_use"
    assert front.requests[0]["tool_choice"] == {"type": "tool", "name": "get_weather"}


def test_a_call_that_waits_for_a_client_survives_a_restart_and_another_door(front: Front) -> None:
    front.provider.script(Reply("I look.", CALL), "It is sunny.")
    chat = Chat(front, tools=[WEATHER])
    asked = chat.say("How is it?")
    front.close()
    with Agent.load(front.file, home=front.home, as_name="clerk") as agent:
        stopped = agent.resume().stopped
        assert stopped.reason == "approval"
        assert "get_weather" in stopped.text
    front.open()
    front.client = front.client_of()
    assert text_of(chat.result(asked, "sunny")) == "It is sunny."
    assert results(front.requests[-1]) == ["sunny"]


def test_another_door_may_say_something_else_and_the_clients_history_is_told_anew(front: Front) -> None:
    front.provider.script(Reply("I look.", CALL), "Hello, too.", "It is sunny.")
    chat = Chat(front, tools=[WEATHER])
    asked = chat.say("How is it?")
    front.close()
    with Agent.load(front.file, home=front.home, as_name="clerk") as agent:
        agent.turn("hello from elsewhere")
    front.open()
    front.client = front.client_of()
    assert text_of(chat.result(asked, "sunny")) == "It is sunny."
    assert chat.history == "begun; told=3"
    assert said_in(front.requests[-1]) == ["How is it?"]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Front]:
    """An agent that gives money back, in the middle of a turn that another client will interrupt."""
    module = f"of_{tmp_path.name}"  # each test imports one of its own
    source = 'def refund(order: int) -> str:\n    """Give money back."""\n    return "paid"\n'
    (tmp_path / f"{module}.py").write_text(source)
    with front_in(tmp_path, more=f"tools: [{{use: '{module}:refund'}}]") as opened:
        yield opened


def test_what_its_tools_did_is_known_when_another_client_came_between_a_call_and_its_result(shop: Front) -> None:
    shop.provider.script(Reply("I see.", call("refund", {"order": 7}), CALL, CALL), "Hello.", "Sunny.", "Welcome.")
    chat = Chat(shop, tools=[WEATHER])
    asked = chat.say("Refund 7. How is it in Porto?")
    Chat(shop).say("hello")
    assert text_of(chat.result(asked, "sunny")) == "Sunny."
    assert chat.history == "begun; told=3"
    assert results(shop.requests[-1]) == ["paid", "sunny", "sunny"]
    chat.say("Thanks.")
    assert chat.history == "continued; told=1"


def test_what_its_tools_did_is_known_when_the_same_request_comes_again_behind_another_client(shop: Front) -> None:
    shop.provider.script(Reply("I pay.", call("refund", {"order": 7})), http_error(400, "no"), "Hello.", "It is paid.")
    chat = Chat(shop)
    with pytest.raises(anthropic.InternalServerError):
        chat.say("Refund 7.")
    Chat(shop).say("hello")
    chat.messages.pop()
    assert text_of(chat.say("Refund 7.")) == "I pay.|It is paid."
    assert results(shop.requests[-1]) == ["paid"]
    assert said_in(shop.requests[-1]) == ["Refund 7."]


def test_an_approved_call_goes_on_when_the_paused_answer_is_sent_back(tmp_path: Path) -> None:
    (tmp_path / "till.py").write_text('def refund(order: int) -> str:\n    """Give money back."""\n    return "done"\n')
    with front_in(tmp_path, more="tools: [{use: 'till:refund', approve: always}]") as front:
        front.provider.script(Reply("I refund it.", call("refund", {"order": 7})), "It was refunded.")
        chat = Chat(front)
        chat.say("refund 7")
        with front.server.workers.use("clerk") as agent:
            [waiting] = agent.memory.open_calls
        front.server.workers.approve("clerk", waiting.id, allowed=True)
        answer = front.client.messages.create(messages=chat.messages, **chat.options)
        assert (text_of(answer), answer.stop_reason) == ("It was refunded.", "end_turn")
        assert results(front.requests[-1]) == ["done"]
        chat.messages[-1]["content"] += [block.to_dict() for block in answer.content]
        chat.say("Thanks.")
        assert chat.history == "continued; told=1"


def test_a_call_of_the_agents_that_asks_a_person_pauses_the_turn(tmp_path: Path) -> None:
    (tmp_path / "pausing_shop.py").write_text(
        'def refund(order: int) -> str:\n    """Give money back."""\n    return "done"\n'
    )
    more = "tools: [{use: 'pausing_shop:refund', approve: always}]"
    with front_in(tmp_path, more=more) as front:
        front.provider.script(Reply("I refund it.", call("refund", {"order": 7})), "It was not refunded, then.")
        chat = Chat(front)
        paused = chat.say("refund 7")
        assert paused.stop_reason == "pause_turn"
        assert "refund waits for approval and was not run" in text_of(paused)
        again = front.client.messages.create(messages=chat.messages, **chat.options)
        assert again.stop_reason == "pause_turn"
        answer = chat.say("Then leave it.")
        assert text_of(answer) == "It was not refunded, then."
        assert chat.history.startswith("continued")


def test_a_paused_turn_that_another_client_ended_is_told_of_and_can_be_asked_for_again(tmp_path: Path) -> None:
    (tmp_path / "left_desk.py").write_text(
        'def refund(order: int) -> str:\n    """Give money back."""\n    return "done"\n'
    )
    with front_in(tmp_path, more="tools: [{use: 'left_desk:refund', approve: always}]") as front:
        front.provider.script(Reply("I refund it.", call("refund", {"order": 7})), "Hello.", "It was not refunded.")
        chat = Chat(front)
        chat.say("refund 7")
        Chat(front).say("hello")
        with pytest.raises(anthropic.BadRequestError, match="its paused turn was left when something else was said"):
            front.client.messages.create(messages=chat.messages, **chat.options)
        assert text_of(chat.say("What came of it?")) == "It was not refunded."
        assert results(front.requests[-1]) == ["a client of the Messages API began another conversation"]


def test_a_call_that_may_have_run_is_not_said_not_to_have(tmp_path: Path) -> None:
    """A tool that may run again is left open after a crash; then something else is said."""
    (tmp_path / "looking.py").write_text("def look() -> str:\n    'Look.'\n    return 'seen'\n", encoding="utf-8")
    with front_in(tmp_path, more="tools:\n  - use: looking:look\n    idempotent: true") as front:
        front.provider.script("Hello.", "Hello again.")
        chat = Chat(front)
        chat.say("Hello.")
        with front.server.workers.use("clerk") as agent:  # through another door
            agent.memory.append_user("look")
            looking = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
            agent.memory.append_assistant({"role": "assistant", "content": [looking], "stop_reason": "tool_use"})
            agent.memory.begin_call("toolu_1")
        chat.say("Something else.")
        with front.server.workers.use("clerk") as agent:
            assert "may have run" in agent.memory.page_text("s4")
