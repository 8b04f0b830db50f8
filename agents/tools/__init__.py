"""Tools: Python functions that a model can call. `agents.assembly`, `tasks` and `mcp.client` make them, `agents.loop`
runs them, and `mcp.server` offers those of the memory to others.

- `functions`: `Tool`, made from any function with type hints and a docstring; loading it by `package.module:function`.
- `memory_tools`: the tools with which an agent moves its own memory, or the provider's memory tool instead.

A tool's error is a result for the model and never ends a turn.
"""
