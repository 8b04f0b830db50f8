"""Spans and metrics: what a turn becomes for whoever watches, and that nobody pays who does not."""

import json
import subprocess
import sys
from typing import Any

import pytest

from agents import Agent
from agents.events import ToolStarted
from tests.standin import Reply, call
from tests.support.hands import Hands
from tests.support.helping import DONE, ask, helper, lead, plays
from tests.support.stage import Stage, stage_in

trace = pytest.importorskip("opentelemetry.sdk.trace")

from opentelemetry import trace as trace_api  # noqa: E402
from opentelemetry.sdk.metrics import MeterProvider  # noqa: E402
from opentelemetry.sdk.metrics.export import InMemoryMetricReader  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402

SECRET = "the code is xyzzy blue"


class Watching:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        provider = trace.TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.provider = provider
        monkeypatch.setattr(trace_api, "_TRACER_PROVIDER", provider)
        monkeypatch.setattr("opentelemetry.metrics._internal._METER_PROVIDER", MeterProvider([self.reader]))

    @property
    def spans(self) -> list[Any]:
        """The spans of ours; the provider's SDK makes its own."""
        return [span for span in self.all if span.instrumentation_scope.name in ("selfpager", "theirs", "web")]

    @property
    def all(self) -> list[Any]:
        return list(self.exporter.get_finished_spans())

    def one(self, name: str) -> Any:
        [found] = [span for span in self.spans if span.name == name]
        return found

    @property
    def points(self) -> dict[str, Any]:
        data = self.reader.get_metrics_data()
        found = data.resource_metrics[0].scope_metrics[0].metrics if data else []
        return {metric.name: list(metric.data.data_points) for metric in found}


@pytest.fixture
def watching(monkeypatch: pytest.MonkeyPatch) -> Watching:
    monkeypatch.delenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", raising=False)
    return Watching(monkeypatch)


def talk(stage: Stage, **options: Any) -> Agent:
    """A conversation in which the memory is searched, changed and told to forget."""
    stage.says(
        Reply(call("archive", {"text": SECRET, "key": "code"}), call("search_archive", {"query": SECRET})),
        Reply(
            call("archive", {"text": f"{SECRET} and new", "key": "code"}),
            call("core_append", {"block": "human", "text": SECRET}),
        ),
        Reply(call("forget", {"page_id": "f2", "reason": f"no longer: {SECRET}"}), call("fetch", {"order": SECRET})),
        f"Noted: {SECRET}",
    )
    return stage.agent(Hands().fetch, **options)


def test_a_turn_is_a_tree_of_spans_by_the_conventions(stage: Stage, watching: Watching) -> None:
    turn = talk(stage).turn(f"remember {SECRET}")
    names = [span.name for span in watching.spans]
    assert names.count("chat m") == 4
    root = watching.one("invoke_agent agent")
    assert root.parent is None
    by_id = {span.context.span_id: span for span in watching.spans}

    def path(span: Any) -> list[str]:
        return [span.name, *(path(by_id[span.parent.span_id]) if span.parent else ())]

    assert {span.context.trace_id for span in watching.spans} == {root.context.trace_id}
    memory = [path(span) for span in watching.spans if "_memory " in span.name]
    assert memory == [
        ["create_memory agent", "execute_tool archive", "invoke_agent agent"],
        ["search_memory agent", "execute_tool search_archive", "invoke_agent agent"],
        ["create_memory agent", "execute_tool archive", "invoke_agent agent"],
        ["update_memory agent", "execute_tool archive", "invoke_agent agent"],
        ["update_memory agent", "execute_tool core_append", "invoke_agent agent"],
        ["delete_memory agent", "execute_tool forget", "invoke_agent agent"],
    ]
    for span in watching.spans:
        assert span.attributes["gen_ai.operation.name"] == span.name.split()[0]
        assert span.attributes["gen_ai.agent.name"] == "agent"
        assert span.start_time <= span.end_time
        if span.parent is not None:
            above = by_id[span.parent.span_id]
            assert above.start_time <= span.start_time <= span.end_time <= above.end_time
    [search] = [span for span in watching.spans if span.name == "search_memory agent"]
    assert search.attributes["selfpager.page.ids"] == ("f1",)
    assert search.attributes["gen_ai.memory.record.count"] == 1
    [gone] = [span for span in watching.spans if span.name == "delete_memory agent"]
    assert gone.attributes["gen_ai.memory.record.id"] == "f2"
    assert root.attributes["gen_ai.usage.input_tokens"] == turn.usage.whole_input
    assert root.attributes["gen_ai.usage.output_tokens"] == turn.usage.output_tokens
    assert root.attributes["selfpager.stopped"] == "answered"
    assert root.attributes["selfpager.cost.usd"] > 0
    chats = [span for span in watching.spans if span.name == "chat m"]
    assert (
        sum(span.attributes["gen_ai.usage.cache_read.input_tokens"] for span in chats)
        == turn.usage.cache_read_input_tokens
    )
    assert [span.attributes["selfpager.page.id"] for span in chats] == list(turn.steps)


def test_no_text_is_in_a_span_or_a_metric_unless_it_is_asked_for(
    stage: Stage, watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(stage).turn(f"remember {SECRET}")
    told = [span.to_json() for span in watching.spans]
    assert "xyzzy" not in "".join(told) + str(watching.points)
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    watching.exporter.clear()
    with stage_in(stage.directory.with_name("second")) as second:
        talk(second).turn(f"remember {SECRET}")
    root = watching.one("invoke_agent agent")
    assert json.loads(root.attributes["gen_ai.input.messages"])[0]["parts"][0]["content"] == f"remember {SECRET}"
    assert json.loads(root.attributes["gen_ai.output.messages"])[0]["parts"][0]["content"] == f"Noted: {SECRET}"
    [gone] = [span for span in watching.spans if span.name == "delete_memory agent"]
    assert gone.attributes["selfpager.reason"] == f"no longer: {SECRET}"
    [search] = [span for span in watching.spans if span.name == "search_memory agent"]
    assert search.attributes["gen_ai.memory.query.text"] == SECRET


def test_metrics_count_tokens_time_and_dollars(stage: Stage, watching: Watching) -> None:
    turn = talk(stage).turn("go")
    points = watching.points
    assert points["gen_ai.client.operation.duration"][0].count == 4
    used = {point.attributes["gen_ai.token.type"]: point.sum for point in points["gen_ai.client.token.usage"]}
    assert used == {"input": turn.usage.whole_input, "output": turn.usage.output_tokens}
    assert points["selfpager.client.cost"][0].value > 0


def test_what_leaves_the_prompt_is_told_with_its_reason(stage: Stage, watching: Watching) -> None:
    stage.follows(lambda _: Reply("it is so " * 100))
    agent = stage.agent(window=6_000, core={})
    for number in range(12):
        agent.turn(f"turn {number}: " + "and so we went on " * 60)
    events = [event for span in watching.spans for event in span.events]
    evicted = [event for event in events if event.name == "selfpager.evict"]
    assert evicted
    assert all(event.attributes["selfpager.page.id"].startswith("s") for event in evicted)
    assert all(event.attributes["selfpager.reason"] for event in evicted)


def test_an_error_ends_every_span_and_says_its_class_alone(stage: Stage, watching: Watching) -> None:
    class Broken:  # of the model's methods one fails
        def __getattr__(self, name: str) -> Any:
            return getattr(model, name)

        def stream(self, _: Any) -> Any:
            yield from ()
            raise RuntimeError(SECRET)

    model = stage.model()
    broken: Any = Broken()
    with pytest.raises(RuntimeError):
        stage.agent(model=broken).turn("hello")
    root = watching.one("invoke_agent agent")
    assert root.attributes["error.type"] == "RuntimeError"
    assert root.status.status_code.name == "ERROR"
    assert "xyzzy" not in "".join(span.to_json() for span in watching.spans)


def test_a_turn_that_is_left_ends_its_spans_without_an_error(stage: Stage, watching: Watching, hands: Hands) -> None:
    stage.says(Reply(call("fetch", {"order": "one"})))
    events = stage.agent(hands.fetch).stream("where?")
    for event in events:
        if isinstance(event, ToolStarted):
            break
    events.close()
    assert {span.name for span in watching.spans} == {"chat m", "execute_tool fetch", "invoke_agent agent"}
    assert watching.one("invoke_agent agent").status.status_code.name == "UNSET"


def test_spans_of_others_stand_below_the_call_that_makes_them(stage: Stage, watching: Watching) -> None:
    def look() -> str:
        """Look."""
        with watching.provider.get_tracer("theirs").start_as_current_span("GET"):
            return "there"

    stage.says(Reply(call("look", {})), "Seen.")
    with watching.provider.get_tracer("web").start_as_current_span("request"):
        stage.agent(look).turn("look")
    assert watching.one("GET").parent.span_id == watching.one("execute_tool look").context.span_id
    assert watching.one("invoke_agent agent").parent.span_id == watching.one("request").context.span_id


def test_a_helper_stands_below_the_call_that_asks_it(stage: Stage, watching: Watching) -> None:
    helper(stage, "reader", "tools: [{use: 'tests.support.helping:look'}]")
    stage.follows(plays(x=[ask("reader", "count the hats"), "Two."], reader=[call("look"), DONE]))
    with stage.load(lead("- agent: reader.yaml")) as agent:
        agent.turn("how many hats?")
    inner, outer = watching.one("invoke_agent reader"), watching.one("execute_tool reader")
    assert inner.parent.span_id == outer.context.span_id
    assert watching.one("execute_tool look").parent.span_id == inner.context.span_id
    assert outer.start_time <= inner.start_time <= inner.end_time <= outer.end_time
    assert {span.context.trace_id for span in watching.all} == {outer.context.trace_id}
    told = {span.context.span_id for span in watching.all}
    assert all(span.parent.span_id in told for span in watching.all if span.parent)
    requests = [span for span in watching.all if span.instrumentation_scope.name not in ("selfpager", "theirs", "web")]
    assert len([span for span in requests if span.parent.span_id == outer.context.span_id]) == len(requests) - 2


def test_a_helper_has_the_model_that_answers_it(stage: Stage, watching: Watching) -> None:
    file = helper(stage, "reader", "tools: [{use: 'tests.support.helping:look'}]")
    file.write_text(file.read_text().replace("id: m", "id: small"))
    stage.follows(plays(x=[ask("reader", "count the hats"), "Two."], reader=[call("look"), DONE]))
    with stage.load(lead("- agent: reader.yaml")) as agent:
        agent.turn("how many hats?")
    assert [span.attributes["gen_ai.request.model"] for span in watching.spans if span.name == "chat small"] == [
        "small"
    ] * 2
    counted = {point.attributes["gen_ai.request.model"] for point in watching.points["gen_ai.client.token.usage"]}
    assert counted == {"m", "small"}


def test_a_sleep_is_a_span_with_its_requests_and_proposal(stage: Stage, watching: Watching) -> None:
    agent = stage.agent()
    for text in (SECRET, SECRET.upper(), "lives in Porto since May", "lives in Lisbon since May"):
        agent.memory.archive(text)
    stage.follows(lambda _: Reply("nothing"))
    proposal = agent.sleep()
    assert proposal
    root = watching.one("sleep agent")
    assert root.attributes["selfpager.sleep.edits"] == len(proposal.edits) > 0
    assert [event.name for event in root.events].count("selfpager.sleep.edit") == len(proposal.edits)
    chats = [span for span in watching.spans if span.name == "chat m"]
    assert len(chats) == proposal.detail["requests"]
    assert all(span.parent.span_id == root.context.span_id for span in chats)
    assert sum(span.attributes["gen_ai.usage.input_tokens"] for span in chats) <= proposal.detail["tokens"]
    watching.exporter.clear()
    agent.memory.sleeps.apply(proposal.number)
    agent.memory.sleeps.undo(proposal.number)
    agent.turn("good morning")
    told = [event for event in watching.one("invoke_agent agent").events if event.name == "selfpager.sleep"]
    count = len(proposal.edits)
    reasons = [f"{count} of {count} edits are applied", f"{count} edits were undone, 0 stay"]
    assert [event.attributes["selfpager.reason"] for event in told] == reasons
    assert "xyzzy" not in "".join(span.to_json() for span in watching.spans)
    watching.exporter.clear()
    agent.turn("and now?")
    assert "selfpager.sleep" not in [event.name for event in watching.one("invoke_agent agent").events]


def test_what_a_sleep_applies_by_itself_stands_below_it(stage: Stage, watching: Watching) -> None:
    with stage.load("sleep: {apply: auto, model: none}") as agent:
        agent.memory.archive(SECRET)
        agent.memory.archive(SECRET.upper())
        assert agent.sleep()
    root = watching.one("sleep x")
    below = {span.name for span in watching.spans if span.parent and span.parent.span_id == root.context.span_id}
    assert "update_memory x" in below or "delete_memory x" in below
    assert "xyzzy" not in "".join(span.to_json() for span in watching.spans)


def test_a_task_is_one_tree_also_when_it_is_asked_several_times(stage: Stage, watching: Watching) -> None:
    stage.says("I think.", Reply(call("task_done", {"summary": "done"})))
    agent = stage.agent(task=True)
    agent.run("count")
    assert len([span for span in watching.spans if span.name == "chat m"]) == 2
    assert watching.one("invoke_agent agent").attributes["selfpager.stopped"] == "done"


def test_the_request_of_the_sdk_stands_below_our_reply(stage: Stage, watching: Watching) -> None:
    stage.says("Yes.")
    stage.agent().turn("hello")
    chat = watching.one("chat m")
    inner = [span for span in watching.all if span.instrumentation_scope.name not in ("selfpager", "theirs")]
    assert all(span.parent.span_id == chat.context.span_id for span in inner)


def test_nothing_is_loaded_where_nobody_watches(stage: Stage) -> None:
    code = (
        "import sys, opentelemetry.trace; from agents import Agent\n"
        "from agents.models.scripted import Reply, ScriptedModel\n"
        f"with Agent(name='a', home={str(stage.directory.with_name('home'))!r}, embedder=None, window=60_000,"
        " model=ScriptedModel('m', lambda request: Reply('Yes.'))) as agent: print(agent.turn('hello').text)\n"
        "print('agents.telemetry' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout.split()) == (0, ["Yes.", "False"]), done.stderr
