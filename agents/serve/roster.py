"""Agents over HTTP: made, listed, shown, removed. A caller sees those of its own tenant."""

from starlette.responses import Response

from agents.fleet import overview_of
from agents.serve.asked import Made, Nothing
from agents.serve.calls import Call, endpoint
from agents.serve.errors import ApiError
from agents.serve.given import Agents, AgentState, Empty, Rekeyed, WaitingCall
from pager.types import OF_TENANT

PAGE = 100
MOST = 1000


@endpoint("POST", "/v1/agents", "admin", AgentState, body=Made, status=201)
async def make(call: Call) -> Response:
    """Make an agent of a configuration. 200 if it was made so before."""
    made = await call.body(Made)
    try:
        name = call.caller.name_of(made.id)
    except ApiError:
        text = f"{made.id!r} cannot be an agent's id."
        advice = "Use letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 64, without '..'."
        raise ApiError(400, "rejected", text, advice) from None
    is_new = await call.in_thread(lambda: call.server.instances.make(name, made.config))
    call.agent = name
    return call.json(await call.in_thread(lambda: _state(call, made.id)), 201 if is_new else 200)


@endpoint(
    "GET", "/v1/agents", "read", Agents,
    query={"after": "the id behind which the page begins", "limit": f"at most {MOST}; {PAGE} if left out"},
)  # fmt: skip
async def list_all(call: Call) -> Response:
    """List your agents by id."""
    after, limit = call.text("after").partition("\0")[0], call.number("limit", PAGE, MOST, least=1)
    caller, home = call.caller, call.server.instances.home
    begin = f"{caller.tenant}{OF_TENANT}{after}" if caller.tenant else after
    names = await call.in_thread(lambda: home.names(begin=begin, limit=limit + 2, tenant=caller.tenant))
    own = [own for name in names if name != begin and (own := caller.own(name)) is not None]
    return call.json(Agents(agents=own[:limit], next=own[limit - 1] if len(own) > limit else None))


@endpoint("GET", "/v1/agents/{id}", "read", AgentState)
async def show(call: Call) -> Response:
    """Show an agent: what it does, knows and has cost, and the calls that wait for a person."""
    agent = call.request.path_params["id"]
    return call.json(await call.in_thread(lambda: _state(call, agent)))


@endpoint("DELETE", "/v1/agents/{id}", "admin", Empty)
async def remove(call: Call) -> Response:
    """Remove an agent with all that it remembers. There is no way back. 429 while it is at work."""

    def delete() -> None:
        with call.server.workers.put_away(call.agent):
            call.server.instances.home.remove(call.agent)
            call.server.runs.forget(call.agent)

    await call.in_thread(delete)
    return call.json({})


@endpoint("POST", "/v1/agents/{id}/rekey", "admin", Rekeyed, body=Nothing)
async def rekey(call: Call) -> Response:
    """Encrypt an agent and its helpers with a new key, as `selfpager rekey` does. 429 while it is at work."""
    await call.body(Nothing)

    def change() -> int:
        with call.server.workers.closed(call.agent):
            return call.server.instances.home.change_key(call.agent)

    return call.json(Rekeyed(memories=await call.in_thread(change)))


def _state(call: Call, agent: str) -> AgentState:
    running = call.server.workers.is_working(call.agent)
    with call.reading() as memory:
        found = overview_of(call.server.instances.home, call.agent, memory, running=running)
        waiting = [WaitingCall.model_validate(each) for each in memory.open_calls if each.awaits_approval]
        config = call.server.instances.config_in(memory, call.agent)
    return AgentState(
        id=agent, config=config, state=found.state, steps=found.steps, facts=found.facts, last_at=found.last_at,
        window_share=found.window_share, tokens=found.tokens, usd=found.usd, task=found.task, error=found.error,
        approvals=waiting,
    )  # fmt: skip


AGENTS = [make, list_all, show, remove, rekey]
