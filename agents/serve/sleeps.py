"""Sleeps over HTTP: what was proposed, and what becomes of it."""

from starlette.responses import Response

from agents.agent import Agent
from agents.explain.json_form import to_json
from agents.serve.asked import Decision, Nothing
from agents.serve.calls import Call, endpoint
from agents.serve.errors import ApiError
from agents.serve.given import Sleep, Sleeps, Slept, Undone
from pager.sleep import Proposal

MOST = 100


@endpoint("GET", "/v1/agents/{id}/sleeps", "read", Sleeps, query={"limit": f"at most {MOST}; 20 if left out"})
async def sleeps(call: Call) -> Response:
    """List the newest proposals."""
    found = await call.read(lambda memory: memory.sleeps.proposals(call.number("limit", 20, MOST)))
    return call.json(Sleeps(sleeps=[_shown(each) for each in found]))


@endpoint("POST", "/v1/agents/{id}/sleeps", "write", Slept, body=Nothing)
async def sleep(call: Call) -> Response:
    """Let the agent sleep now, as its YAML says. By default a sleep proposes, and changes nothing.

    A message that comes meanwhile is answered first; then the sleep goes on where it was.
    """
    await call.body(Nothing)
    visits, workers = call.server.visits, call.server.workers

    def work(agent: Agent) -> tuple[Proposal | None, bool]:
        def is_wanted() -> bool:
            return workers.is_wanted(call.agent) or agent.memory.has_message

        proposal = agent.sleep(stop=is_wanted)
        gave_way = proposal is None and is_wanted()
        if gave_way and agent.memory.has_message:
            visits.answer_first(call.agent)
        return proposal, gave_way

    proposal, gave_way = await call.in_line(work, waits=True)
    while gave_way:
        proposal, gave_way = await call.in_line(work, waits=True)
    return call.json(Slept(sleep=_shown(proposal) if proposal else None))


@endpoint("GET", "/v1/agents/{id}/sleeps/{number}", "read", Sleep)
async def show_sleep(call: Call) -> Response:
    """Show a proposal, edit by edit."""
    number = _number(call)
    return call.json(_shown(await call.read(lambda memory: memory.sleeps.proposal(number))))


@endpoint("POST", "/v1/agents/{id}/sleeps/{number}/apply", "write", Sleep, body=Decision)
async def apply(call: Call) -> Response:
    """Apply the open edits of a proposal, or those that are named."""
    decision, number = await call.body(Decision), _number(call)
    chosen = decision.edits or ()
    return call.json(_shown(await call.with_agent(lambda agent: agent.memory.sleeps.apply(number, chosen))))


@endpoint("POST", "/v1/agents/{id}/sleeps/{number}/refuse", "write", Sleep, body=Decision)
async def refuse(call: Call) -> Response:
    """Refuse the open edits of a proposal, or those that are named. They are not proposed again."""
    decision, number = await call.body(Decision), _number(call)
    chosen = decision.edits or ()
    return call.json(_shown(await call.with_agent(lambda agent: agent.memory.sleeps.refuse(number, chosen))))


@endpoint("POST", "/v1/agents/{id}/sleeps/{number}/undo", "write", Undone, body=Nothing)
async def undo(call: Call) -> Response:
    """Take back what a sleep has changed. The answer names what has changed since, and stays."""
    await call.body(Nothing)
    number = _number(call)
    return call.json(Undone.model_validate(await call.with_agent(lambda agent: agent.memory.sleeps.undo(number))))


def _number(call: Call) -> int:
    given = call.request.path_params["number"]
    if not (given.isascii() and given.isdigit() and len(given) < 10):
        raise ApiError(404, "not_found", "a sleep has a number.", "GET .../sleeps lists them.")
    return int(given)


def _shown(proposal: Proposal) -> Sleep:
    return Sleep.model_validate(to_json(proposal))


SLEEPS = [sleeps, sleep, show_sleep, apply, refuse, undo]
