"""`selfpager serve`: agents over HTTP, and work that goes on without a request. Only `agents.cli` imports this room.

A request reads from top to bottom: `app` (what stands around every request), `calls` (who asks, for which agent, with
what body), an endpoint, `workers` (the agent, open, one turn at a time), and `errors` for what goes wrong.

- `messages`: the Messages API over an agent. `messages_request` reads what a client asks, `messages_history` finds what
  of its history is new, `messages_turn` does it, `messages_stream` sends the answer, `messages_records` is what stays.
- `app`: makes the ASGI application. `server`: what belongs together while it runs.
- `keys`: keys, tenants, scopes. `calls`: one request, as an endpoint gets it. `errors`: every error as JSON.
- `instances`: agents by their names, and the configurations that they were made from.
- `workers`: open agents, the line before each, and the threads that answer. `runs`: the events of turns, for an hour.
"""
