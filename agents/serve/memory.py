"""The memory over HTTP: core, facts, steps, ledger, the life of a text, searches, and edits."""

from starlette.responses import Response

from agents.agent import Agent
from agents.explain import AnyMemory
from agents.explain import trace as explain
from agents.explain.json_form import to_json
from agents.serve import given, records
from agents.serve.asked import BlockEdit, FactAsked, Searched
from agents.serve.calls import KEYED, Call, endpoint
from agents.serve.errors import ApiError
from pager.memory import Memory
from pager.types import Fact, Hit

PAGE = 50
MOST = 200
SPAN = {"offset": "how many of the newest to leave out", "limit": f"at most {MOST}; {PAGE} if left out"}
AT = {"at": "a step, such as s45: as it was then"}


@endpoint("GET", "/v1/agents/{id}/core", "read", given.Core, query=AT)
async def core(call: Call) -> Response:
    """Return the core blocks: what is in every prompt."""
    blocks = await call.read(lambda memory: memory.core(call.text("at") or None))
    return call.json(given.Core(blocks=[given.Block.model_validate(block) for block in blocks]))


@endpoint("PATCH", "/v1/agents/{id}/core/{block}", "write", given.Core, body=BlockEdit, takes=KEYED)
async def edit_core(call: Call) -> Response:
    """Append to a core block, or replace a text in it."""
    edit, block = await call.body(BlockEdit), call.request.path_params["block"]
    source, body = f"api:{call.caller.name}", records.digest("core", block, edit.model_dump())

    def change(memory: Memory) -> str:
        if edit.append is not None and edit.old_text is None and edit.new_text is None:
            memory.core_append(block, edit.append, source=source)
        elif edit.append is None and edit.old_text is not None and edit.new_text is not None:
            memory.core_replace(block, edit.old_text, edit.new_text, source=source)
        else:
            advice = "Give either, and not both."
            raise ApiError(400, "invalid_body", "an edit is `append`, or `old_text` with `new_text`.", advice)
        return block

    def blocks(agent: Agent) -> list[given.Block]:
        records.edit_once(agent.memory, call.key, body, lambda: change(agent.memory))
        return [given.Block.model_validate(each) for each in agent.memory.core()]

    return call.json(given.Core(blocks=await call.with_agent(blocks)))


@endpoint(
    "GET", "/v1/agents/{id}/facts", "read", given.Facts,
    query={"kind": "all, current (if left out), ended, used or unused", "text": "a piece of the text",
           "source": "such as web:example.org", "prefix": "how the key begins", **SPAN, **AT},
)  # fmt: skip
async def facts(call: Call) -> Response:
    """List facts, newest first."""

    def find(memory: AnyMemory) -> given.Facts:
        found = memory.inspect.facts(
            call.text("kind") or "current", text=call.text("text"), source=call.text("source"),
            prefix=call.text("prefix"), offset=call.number("offset", 0), limit=call.number("limit", PAGE, MOST),
            at=call.text("at") or None,
        )  # fmt: skip
        return given.Facts(total=found.total, facts=[_fact(row.fact) for row in found.rows])

    return call.json(await call.read(find))


@endpoint("POST", "/v1/agents/{id}/facts", "write", given.Fact, body=FactAsked, status=201, takes=KEYED)
async def store_fact(call: Call) -> Response:
    """Store a fact. Its source is `api:` and the name of your key."""
    asked, source = await call.body(FactAsked), f"api:{call.caller.name}"
    fields, key = asked.model_dump(), call.key

    def store(memory: Memory) -> Fact:
        def archive() -> str:
            return memory.archive(**fields, source=source, actor="person").id

        return memory.fact(records.edit_once(memory, key, records.digest("fact", fields), archive))

    return call.json(_fact(await call.with_agent(lambda agent: store(agent.memory))), 201)


@endpoint("DELETE", "/v1/agents/{id}/facts/{fact}", "write", given.Fact, query={"reason": "why it ends"})
async def forget_fact(call: Call) -> Response:
    """End a fact. It stays in the history; `selfpager purge` destroys."""
    page, reason = call.request.path_params["fact"], call.text("reason") or "ended over the API"
    return call.json(_fact(await call.with_agent(lambda agent: agent.memory.forget(page, reason))))


@endpoint("GET", "/v1/agents/{id}/steps", "read", given.Steps, query={"text": "a piece of the text", **SPAN, **AT})
async def steps(call: Call) -> Response:
    """List the steps of the conversation, newest first."""

    def find(memory: AnyMemory) -> given.Steps:
        span = call.number("offset", 0), call.number("limit", PAGE, MOST)
        found = memory.inspect.steps(*span, text=call.text("text"), at=call.text("at") or None)
        rows = [given.Step.model_validate({**to_json(row), "id": row.page_id}) for row in found.rows]
        return given.Steps(total=found.total, steps=rows)

    return call.json(await call.read(find))


@endpoint("GET", "/v1/agents/{id}/pages/{page}", "read", given.Page, query={"offset": "the character to read on at"})
async def page(call: Call) -> Response:
    """Read a page: a fact, a step, a part that was too large, a skill."""
    name, offset = call.request.path_params["page"], call.number("offset", 0)
    return call.json(given.Page.model_validate(await call.read(lambda memory: memory.read_page(name, offset))))


@endpoint(
    "GET", "/v1/agents/{id}/pages/{memory}/{page}", "read", given.Page, query={"offset": "the character to read on at"}
)  # fmt: skip
async def shared_page(call: Call) -> Response:
    """Read a page of a memory that the agent shares, as a search names it: sales/f12."""
    named, offset = call.request.path_params, call.number("offset", 0)
    name = f"{named['memory']}/{named['page']}"
    found = await call.read(lambda memory: memory.read_page(name, offset), searches=True)  # which knows what is shared
    return call.json(given.Page.model_validate(found))


@endpoint("DELETE", "/v1/agents/{id}/pages/{page}", "admin", given.Purged)
async def purge(call: Call) -> Response:
    """Destroy a page and every copy of its text, as `selfpager purge` does, between two turns. It cannot be undone."""
    name = call.request.path_params["page"]
    places = await call.in_line(lambda agent: agent.memory.purge(name, actor=f"api:{call.caller.name}"))
    call.server.runs.forget(call.agent)  # the events of its turns, which a client could ask for once more
    return call.json(given.Purged(places=places))


@endpoint("GET", "/v1/agents/{id}/check", "read", given.Checked)
async def check(call: Call) -> Response:
    """Check the laws and the files, as `selfpager check` does, between two turns. Nothing is repaired."""
    found = await call.in_line(lambda agent: agent.memory.check())
    return call.json(given.Checked(problems=[given.Problem.model_validate(to_json(each)) for each in found]))


@endpoint(
    "GET", "/v1/agents/{id}/ledger", "read", given.Ledger,
    query={"events": "such as evict,recall; all if left out", **SPAN, **AT},
)  # fmt: skip
async def ledger(call: Call) -> Response:
    """List the movements between the tiers, newest first."""
    events = [event for event in call.text("events").split(",") if event]

    def find(memory: AnyMemory) -> given.Ledger:
        span = call.number("offset", 0), call.number("limit", PAGE, MOST)
        found = memory.inspect.movements(events, offset=span[0], limit=span[1], at=call.text("at") or None)
        rows = [given.Movement.model_validate(to_json(row)) for row in found.rows]
        return given.Ledger(total=found.total, movements=rows)

    return call.json(await call.read(find))


@endpoint("GET", "/v1/agents/{id}/trace", "read", given.Trace, query={"text": "a text, or the id of a page", **AT})
async def trace(call: Call) -> Response:
    """Return the life of a text: written, moved, evicted, searched for, and why it is or is not in the prompt."""
    text, at = call.text("text"), call.text("at") or None
    found = await call.read(lambda memory: to_json(explain.trace(memory, text, at)), searches=True)
    return call.json(given.Trace.model_validate(found))


@endpoint("POST", "/v1/agents/{id}/search", "read", given.Hits, body=Searched)
async def search(call: Call) -> Response:
    """Search what was stored and said, as the agent would. The ledger does not note it unless the agent is open."""
    asked = await call.body(Searched)
    hits = await call.read(lambda memory: _search(memory, asked), searches=True)
    return call.json(given.Hits(hits=[given.Hit.model_validate(hit) for hit in hits]))


def _search(memory: AnyMemory, asked: Searched) -> list[Hit]:
    if asked.tier == "archive":
        return memory.search_archive(
            asked.query, limit=asked.limit, tags=asked.tags, source=asked.source, as_of=asked.as_of,
            after=asked.after, before=asked.before,
        )  # fmt: skip
    if asked.tier == "recall":
        return memory.search_recall(asked.query, limit=asked.limit, after=asked.after, before=asked.before)
    return memory.search(asked.query, limit=asked.limit)


def _fact(fact: Fact) -> given.Fact:
    return given.Fact.model_validate(fact)


MEMORY = [
    core, edit_core, facts, store_fact, forget_fact, steps, page, shared_page, purge, check, ledger, trace, search,
]  # fmt: skip
