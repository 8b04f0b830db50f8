"""Sleep with a model: it reads what was said, judges near facts and shortens full blocks of core.

`requests` writes what a model is asked and reads its answers, `sleeper` runs a sleep within its bounds, `idle` starts
one when nobody talks. What a model claims is checked by `memory.sleeps`, which knows no model. `Agent` and the command
line may call this room.
"""
