"""Turns over HTTP."""

from pydantic import BaseModel
from starlette.responses import Response
from starlette.routing import Route

from agents.serve.calls import Call, endpoint


class TurnAsked(BaseModel):
    """What is said to an agent."""

    text: str
    name: str | None = None


@endpoint("write")
async def turn(call: Call) -> Response:
    """Say something and wait for the answer."""
    asked = await call.body(TurnAsked)
    done = await call.in_line(lambda agent: agent.turn(asked.text, name=asked.name))
    return call.json({"text": done.text, "steps": list(done.steps), "stopped": done.stopped.reason})


TURNS = [Route("/v1/agents/{id}/turns", turn, methods=["POST"])]
