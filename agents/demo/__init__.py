"""The demo's agents, what is said to them, and their processes. `selfpager demo` (agents.cli.demo) tells the story.

Only the model is played: `provider: scripted`, by the scripts beside the agents' files. The processes are real ones of
`selfpager chat` and `selfpager run`.
"""
