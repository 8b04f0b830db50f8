"""The tools that come with us: `builtin: files`, `web` and `shell`. Each is loaded when an agent has it."""
