"""The demo's story without its printing: the agents, what is said to them, the processes, what is measured.

`selfpager demo` (agents/cli/demo.py) tells it. Nothing here is played but the model (`provider: rehearsal`) and the
slow railway that the errand's tool asks: the agents are processes of `selfpager chat` and `selfpager run`.
"""
