"""The demo's agents, what is said to them, and their processes. `selfpager demo` (agents.cli.demo) tells the story.

Only the model is played, by the scripts beside the agents' files. The rest are processes of `selfpager chat` and `run`.

- `stage`: starts the processes, kills them and reads what they print.
- `railway`: the tool of one agent, `errand`.
"""
