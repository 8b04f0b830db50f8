"""The demo's agents, what is said to them, and their processes. `selfpager demo` (agents.cli.demo) tells the story.

Only the model is played, by the scripts beside the agents' files. The rest are processes of `selfpager chat` and `run`.

- `stage`: starts the processes, kills them and reads what they print.
- `railway`: the tools of the agents `errand` and `desk`.
- `postgres`, `workers`: of `selfpager demo --fleet` (agents.cli.demo_fleet), whose agent is `desk`.
"""
