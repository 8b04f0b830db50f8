"""Models: one streamed request to whoever answers. `agents.loop` calls them and decides what an error means.

- `model`: the protocol `Model`, the finished reply, and what can go wrong with a request.
- `anthropic`: the Messages API through the provider's SDK, which is loaded at the first request.
- `scripted`: answers from a script; `replies` is how a script writes them, `simulated` what a provider adds to them.
- `summaries`: a model that writes the digest of evicted steps.

A model retries nothing and keeps nothing: what is not a finished reply is an exception.
"""
