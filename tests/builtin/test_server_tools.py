"""Tools that the provider runs on its own servers: their definitions, and what their blocks become."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from agents.assembly import own_tools
from agents.config import load
from agents.config.errors import ConfigError
from agents.events import Replied, ToolFinished, ToolStarted
from agents.explain import costs
from agents.tools.functions import ToolCallError, run_by_provider
from pager.blocks import sealed_tokens, text_of
from tests.standin import Reply, Standin, call, search_result
from tests.standin.reply import server_call
from tests.support.stage import Stage, results
from tests.support.talk import Talk

SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
NEWS = "Hats are back. " * 20


def written(directory: Path, tool: str, model: str = "id: m, api_key: k") -> Path:
    (directory / "ok.yaml").write_text("- {otherwise: true, say: ok}\n")
    file = directory / "reader.yaml"
    file.write_text(
        dedent(f"""
        name: reader
        model: {{{model}}}
        tools:
          - {{{tool}}}
    """)
    )
    return file


@pytest.mark.parametrize(
    ("tool", "definition"),
    [
        ("server: web_search_20250305, options: {max_uses: 5}", SEARCH),
        ("server: web_fetch_20250910", {"type": "web_fetch_20250910", "name": "web_fetch"}),
        ("server: code_execution_20260120", {"type": "code_execution_20260120", "name": "code_execution"}),
        (
            "server: tool_search_tool_bm25_20251119",
            {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
        ),
    ],
)
def test_a_definition_passes_through_with_the_name_that_the_provider_gave_it(
    tmp_path: Path, tool: str, definition: Any
) -> None:
    [made] = own_tools(load(written(tmp_path, tool), {}))
    assert made.definition == definition
    hello = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "hello"}]}
    Standin(limit_tokens=5_000).create({**hello, "tools": [definition]})
    with pytest.raises(ToolCallError, match="runs on the provider's servers"):
        made.run({})


@pytest.mark.parametrize(
    ("tool", "model", "said"),
    [
        ("server: web_search", "id: m", "'web_search' names no tool of a provider; write its type"),
        ("server: bash_20250124", "id: m", "is a tool that runs here, .*'builtin: shell' runs commands"),
        ("server: text_editor_20250728", "id: m", "is a tool that runs here, .*'builtin: files'"),
        ("server: memory_20250818", "id: m", "is a tool that runs here, .*'memory: {tools: anthropic}'"),
        ("server: web_search_20250305, options: {name: x}", "id: m", "has name, which cannot be set here"),
        (
            "server: web_search_20250305", "provider: openai, id: m",
            r"tools\[0\]\.server .* is run by the servers of the Messages API, which 'provider: openai' does",
        ),
        ("server: web_search_20250305", "provider: scripted, script: ok.yaml", "'provider: scripted' does not have"),
    ],
)  # fmt: skip
def test_what_no_server_runs_is_refused_where_it_is_written(tmp_path: Path, tool: str, model: str, said: str) -> None:
    with pytest.raises(ConfigError, match=rf"reader\.yaml:5:.*{said}"):
        own_tools(load(written(tmp_path, tool, model), {}))


def searched(**pages: str) -> Reply:
    """It looks, finds and calls a tool of ours, all in one reply."""
    found = server_call("web_search", {"query": "hats"}), search_result(**pages)
    return Reply("Let me look.", *found, "I see.", call("archive", {"text": "hats are back"}))


def test_a_search_is_told_stored_sent_back_unchanged_shown_and_untrusted(stage: Stage) -> None:
    stage.says(searched(hats_example=NEWS, caps_example=NEWS), "Noted.", "Yes.")
    agent = stage.agent(run_by_provider(SEARCH))
    events = list(agent.stream("What is new?"))
    started = next(each for each in events if isinstance(each, ToolStarted))
    finished = next(each for each in events if isinstance(each, ToolFinished))
    assert (started.name, started.input) == ("web_search", {"query": "hats"})
    assert (finished.name, finished.text, finished.is_error) == ("web_search", "2 results", False)
    assert events.index(finished) < next(at for at, each in enumerate(events) if isinstance(each, Replied))
    agent.turn("Really?")
    *_, carried, _ = (each for each in stage.requests[-1]["messages"] if each["role"] == "assistant")
    assert [block["type"] for block in carried["content"]] == [
        "text", "server_tool_use", "web_search_tool_result", "text", "tool_use"
    ]  # fmt: skip
    said = stage.service.api.replies[0]["content"][2]
    assert {**carried["content"][2], "cache_control": None} == {**said, "cache_control": None}
    assert agent.memory.fact("f1").via == ("web:caps.example", "web:hats.example")

    step = agent.memory.fact("f1").sources[0].step
    assert step
    assert agent.memory.inspect.step(step).calls == ("web_search", "archive")
    shown = {piece.title: piece.text for piece in agent.memory.inspect.pieces(None)}
    assert shown["agent calls web_search"] == '{\n  "query": "hats"\n}'
    assert shown["result of web_search"].splitlines()[:2] == ["hats.example", "https://hats.example/"]
    text = agent.memory.page_text(step)
    assert 'web_search {"query": "hats"}' in text
    assert "https://caps.example/" in text
    sealed = said["content"][0]["encrypted_content"]
    assert sealed not in text + str(shown)


def test_an_error_of_a_search_is_told(stage: Stage) -> None:
    failed = {**search_result(), "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}}
    stage.says(Reply(server_call("web_search", {"query": "hats"}), failed, "It failed."))
    events = list(stage.agent(run_by_provider(SEARCH)).stream("What is new?"))
    [finished] = [each for each in events if isinstance(each, ToolFinished)]
    assert (finished.text, finished.is_error) == ("max_uses_exceeded", True)


def test_a_paused_search_goes_on_with_the_same_blocks(stage: Stage) -> None:
    pause = Reply(server_call("web_search", {"query": "hats"}, call_id="srvtoolu_1"), stop_reason="pause_turn")
    stage.says(pause, Reply(search_result("srvtoolu_1", hats_example=NEWS), "They are back."), "Yes.")
    agent = stage.agent(run_by_provider(SEARCH))
    assert agent.turn("What is new?").text.endswith("They are back.")
    assert stage.requests[1]["messages"][-1]["content"][0]["id"] == "srvtoolu_1"
    assert agent.turn("Really?").text == "Yes."
    assert not results(stage.last)


def test_what_several_passes_read_is_a_cost_and_no_size(tmp_path: Path) -> None:
    """Usage sums the prompt once for each pass: a prompt of 3,000 tokens is not one of 15,000."""
    talk = Talk(tmp_path, window=20_000)
    talk.fill(3_000)
    looked = [block for _ in range(4) for block in (server_call("web_search", {"query": "x"}), search_result())]
    before = talk.memory.inspect.usage().whole_input
    step = talk.ask("news?", *looked, "None.")
    assert talk.memory.inspect.usage().whole_input - before > 12_000
    talk.memory.append_user("and now?")
    epoch, tokens = talk.memory.request().epoch, talk.memory.request().tokens
    assert epoch == 1
    assert tokens < 6_000
    params = {key: value for key, value in talk.memory.request().params.items() if key != "max_tokens"}
    assert abs(talk.standin.count_tokens({"model": "m", **params}) - tokens) < 0.3 * tokens
    assert talk.memory.inspect.window(step).used_tokens < 6_000
    talk.reopen()
    assert talk.memory.request().tokens < 6_000


def test_what_only_the_provider_reads_is_counted_and_not_read() -> None:
    block = search_result("srvtoolu_1", hats_example=NEWS)
    assert sealed_tokens(block) > 50
    assert sealed_tokens({"type": "text", "text": NEWS}) == 0
    assert text_of(block) == "https://hats.example/\nhats.example"


def test_results_that_fill_the_window_leave_it_whole(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=20_000)
    for number in range(8):
        pages = {f"h{each}_example": NEWS * 4 for each in range(4)}
        talk.ask(f"news {number}?", server_call("web_search", {"query": "x"}), search_result(**pages), "Seen.")
    assert talk.memory.ledger(events=["evict"])
    assert not talk.memory.check()


def test_searches_have_their_price(stage: Stage) -> None:
    stage.says(searched(hats_example=NEWS), "Noted.")
    prices = "prices: {input: 0, output: 0, web_search: 20}\nlimits: {max_usd: 0.02}\n"
    with stage.load(f"tools: [{{server: web_search_20250305}}]\n{prices}") as agent:
        *_, stopped = agent.stream("What is new?")
        assert (agent.meter.usd, stopped.reason) == (0.02, "usd")  # pyright: ignore[reportAttributeAccessIssue]
        assert agent.resume().text == "Noted."
        every = costs.costs(agent.memory)
        assert [cost.usd for cost in every.requests.rows] == [0, 0.02]
        assert (every.usd, every.total.web_search_requests) == (0.02, 1)
