"""Models: one streamed request to whoever answers. `agents.loop` calls them and decides what an error means;
so does a `Summarizer`. `agents.assembly` makes them.

- `model`: the protocol `Model`, the finished reply, and what can go wrong with a request.
- `anthropic`: the Messages API through the provider's SDK, which is loaded at the first request.
- `openai`: Chat Completions through its SDK, loaded likewise; `chat_completions` is the wire form of both directions.
- `http`: what both have in common: the client for a server on this machine, and what a status means.
- `scripted`: answers from a script; `replies` is how a script writes them, `simulated` what a provider adds to them.
- `summaries`: a model that writes the digest of evicted steps.

A model retries nothing: what is not a finished reply is an exception. It stores nothing of a conversation. Only a
scripted one has a state: the entries that it has not used yet, and the prompt cache that it simulates.
"""
