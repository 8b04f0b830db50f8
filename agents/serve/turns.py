"""Turns over HTTP: said, told, resumed, approved, and long tasks.

The same `Idempotency-Key` gives the same answer and never a second turn. Of a turn that was interrupted it gives the
rest: what is on disk goes on.
"""

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

from starlette.responses import Response, StreamingResponse

from agents import tasks
from agents.agent import Agent
from agents.events import Event
from agents.explain import AnyMemory
from agents.explain.json_form import to_json
from agents.serve import records
from agents.serve.asked import Allowed, Nothing, Said, TaskAsked, Told
from agents.serve.begun import Begin, carry_out
from agents.serve.calls import KEYED, Call, endpoint
from agents.serve.errors import ApiError
from agents.serve.given import Answer, MessageLeft, TaskBegun, TaskState
from agents.serve.messages_turn import rest
from agents.serve.records import Kind, Record
from agents.serve.runs import Run
from agents.serve.server import Server
from pager.home import MESSAGE
from pager.types import Json

HOLD_BACK_SECONDS = 10.0  # before a stream begins without a word: until then an error has its own status
RESUMED = {"Last-Event-ID": "With Accept: text/event-stream: the id of the last event that came."}
BEGINS: dict[str, Any] = {"streams": True, "takes": {**KEYED, **RESUMED}}


@endpoint("POST", "/v1/agents/{id}/turns", "write", Answer, body=Said, **BEGINS)
async def turn(call: Call) -> Response:
    """Say something to the agent and wait for its answer.

    With `Accept: text/event-stream` its events come as they happen, then the answer as the event `turn`.
    """
    said = await call.body(Said)
    _refuse_beside_task(call)

    def begin(agent: Agent, note: Callable[[], object]) -> Generator[Event]:
        return agent.stream(said.text, name=said.name, also=note)

    run = _begin(call, "turn", records.digest("turn", said.text, said.name), begin)
    return await _answer(call, run)


@endpoint("GET", "/v1/agents/{id}/turns/{key}", "read", Answer, streams=True, takes=RESUMED)
async def turn_of_key(call: Call) -> Response:
    """Return the answer to an earlier request by its key: 200 when it has ended, 202 while it is at work, or open."""
    key = call.request.path_params["key"]
    run = call.server.runs.find(call.agent, key)
    if run is not None:
        return await _answer(call, run, waits=False)

    def find() -> Run | None:
        with call.reading() as memory:
            return _stored(memory, key, call.server.now())

    run = await call.in_thread(find)
    if run is None:
        text = "there is no request of this key."
        raise ApiError(404, "not_found", text, f"The newest {records.KEPT} of an agent are remembered.")
    return await _answer(call, run, waits=False)


def _stored(memory: AnyMemory, key: str, now: float) -> Run | None:
    """Return what the memory has of a request, as a run. While something is left of it, its stream ends without an
    answer, and who reads it comes back."""
    record = records.load(memory, key)
    if record is None or record.kind == "edit":
        return None
    run = Run(key, record.body)
    run.resume(records.replies(memory, record))
    if records.is_left(memory, record):
        run.leave(now)
    else:
        run.end(records.answer(memory, record), now)
    return run


@endpoint("POST", "/v1/agents/{id}/tell", "write", MessageLeft, body=Told, status=202, takes=KEYED)
async def tell(call: Call) -> Response:
    """Leave a message. The agent reads it at its next step; an idle one answers it by itself."""
    told = await call.body(Told)
    message = {"text": told.text, **({"name": told.name} if told.name else {})}
    home, key, body = call.server.instances.home, call.key, records.digest("tell", told.text, told.name)

    def new_command(agent: Agent) -> str:
        return records.edit_once(agent.memory, key, body, lambda: home.new_command(call.agent))

    command = await call.with_agent(new_command) if key else ""
    sent = await call.in_thread(lambda: home.send(call.agent, MESSAGE, message, command))
    call.server.visits.soon()
    return call.json({"message": sent.command}, 202)


@endpoint("POST", "/v1/agents/{id}/resume", "write", Answer, body=Nothing, **BEGINS)
async def resume(call: Call) -> Response:
    """Go on with an open turn or task: after a limit, an error, or a stop."""
    await call.body(Nothing)
    return await _go_on(call, "resume")


@endpoint("POST", "/v1/agents/{id}/approvals/{call}", "write", Answer, body=Allowed, **BEGINS)
async def approve(call: Call) -> Response:
    """Allow or deny a call that waits for a person, and go on."""
    allowed, call_id = await call.body(Allowed), call.request.path_params["call"]

    def waiting() -> bool:
        with call.reading() as memory:
            return records.load(memory, call.key) is not None or any(
                each.id == call_id and each.awaits_approval for each in memory.open_calls
            )

    if not call.server.runs.find(call.agent, call.key) and not await call.in_thread(waiting):
        raise ApiError(404, "not_found", "no call of this id waits for approval.", "GET .../{id} lists those that do.")
    call.server.workers.approve(call.agent, call_id, allowed=allowed.allow)
    return await _go_on(call, "approval", call_id, allowed.allow)


@endpoint("POST", "/v1/agents/{id}/tasks", "write", TaskBegun, body=TaskAsked, status=202, **BEGINS)
async def task(call: Call) -> Response:
    """Begin a long task. The answer comes when the task is on disk (202); the task goes on by itself.

    With `Accept: text/event-stream` its events come as they happen.
    """
    asked = await call.body(TaskAsked)
    _refuse_beside_task(call)

    def begin(agent: Agent, note: Callable[[], object]) -> Generator[Event]:
        return agent.tasks().start(asked.text, also=note)

    run = _begin(call, "task", records.digest("task", asked.text), begin)
    if _wants_events(call):
        return await _stream(call, run)
    await _wait(call, run, until_begun=True)
    return call.json({"key": run.key, "task": await call.in_thread(partial(_task, call))}, 202, idempotency_key=run.key)


@endpoint("GET", "/v1/agents/{id}/tasks", "read", TaskState)
async def task_now(call: Call) -> Response:
    """Return the newest task: its state, what it has spent, and its result when it is done."""
    found = await call.in_thread(partial(_task, call))
    if found is None:
        raise ApiError(404, "not_found", "this agent has no task.", "POST .../tasks begins one.")
    return call.json(found)


def _task(call: Call) -> Json | None:
    with call.reading() as memory:
        found = tasks.current(memory)
    left_out = ("sources", "schema", "misfits", "item")
    return {name: value for name, value in to_json(found).items() if name not in left_out} if found else None


def _refuse_beside_task(call: Call) -> None:
    if call.server.workers.is_working(call.agent, at_task=True):
        advice = "POST .../tell leaves it a message, which it reads at its next step."
        raise ApiError(409, "conflict", "this agent works on a task.", advice)


async def _go_on(call: Call, *what: object) -> Response:
    def open_task() -> bool:
        with call.reading() as memory:
            found = tasks.current(memory)
            return found is not None and found.state == "open"

    at_task = await call.in_thread(open_task)

    def begin(agent: Agent, note: Callable[[], object]) -> Generator[Event]:
        note()
        return agent.tasks().resume() if at_task else rest(agent)

    return await _answer(call, _begin(call, "resume", records.digest(*what), begin, task=at_task))


# how a request becomes a job of its agent


def _begin(call: Call, kind: Kind, body: str, begin: Begin, *, task: bool = False) -> Run:
    """Return the run of the request's key; if it is a new one, with its job in the agent's line."""
    key, runs = call.key, call.server.runs
    run, is_new = runs.begin(call.agent, key, body)
    if is_new:
        job = partial(_carry_out, call.server, call.agent, run, Record(key, kind, body, ""), begin)
        try:
            done = call.server.workers.submit(call.agent, job, task=task or kind == "task")
        except ApiError:
            runs.drop(call.agent, run)
            raise
        done.add_done_callback(partial(_ended, call.server, call.agent, run))
    return run


def _carry_out(server: Server, name: str, run: Run, asked: Record, begin: Begin, agent: Agent) -> None:
    run.open()
    with server.visits.noted(name, agent):
        found = carry_out(run, asked, begin, agent)
    server.metrics.turn(found["stopped"]["reason"], found["usage"])
    run.end(found, server.runs.now())


def _ended(server: Server, agent: str, run: Run, done: Future[None]) -> None:
    if (error := done.exception()) is not None:
        run.fail(error, server.runs.now())
        if run.error and run.error.status >= 500:
            server.log.trouble("a turn failed", error)
    server.runs.keep(agent, run)


# answers


def _wants_events(call: Call) -> bool:
    return "text/event-stream" in call.request.headers.get("accept", "")


async def _answer(call: Call, run: Run, *, waits: bool = True) -> Response:
    if _wants_events(call):
        return await _stream(call, run)
    if waits:
        await _wait(call, run)
    if run.ended_at is None or run.is_left:
        state = "at work" if call.server.workers.is_working(call.agent) else "open"
        return call.json({"key": run.key, "state": state}, 202, idempotency_key=run.key)
    if run.error:
        raise run.error
    assert run.answer is not None
    return call.json(run.answer, idempotency_key=run.key)


async def _wait(call: Call, run: Run, *, until_begun: bool = False) -> None:
    seconds = call.server.limits.answer_seconds
    try:
        async with asyncio.timeout(seconds):
            await run.wait(until_begun=until_begun)
    except TimeoutError:
        text = f"this takes longer than {seconds:g} s. It goes on."
        advice = f"GET /v1/agents/{{id}}/turns/{run.key} has the answer when it has ended; or ask for events."
        raise ApiError(504, "timeout", text, advice) from None
    if run.error:
        raise run.error


async def _stream(call: Call, run: Run) -> Response:
    with suppress(TimeoutError):
        async with asyncio.timeout(HOLD_BACK_SECONDS):
            await run.wait(until_open=True)
    if run.error and not run.is_open:
        raise run.error
    headers = {"X-Accel-Buffering": "no", "Idempotency-Key": run.key}
    after = call.request.headers.get("last-event-id", "")
    return StreamingResponse(run.events(after), headers=headers, media_type="text/event-stream")


TURNS = [turn, turn_of_key, tell, resume, approve, task, task_now]
