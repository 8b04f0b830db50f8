"""Built-in tools: what an agent can do without Python of its own. `agents.assembly` makes them, the loop runs them.

- `web`: a page as Markdown, over connections to checked addresses (`http`, `addresses`), converted in a process of its
  own (`markdown`).

What a tool refuses is an error result that says why, and what would be allowed.
"""
