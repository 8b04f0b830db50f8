"""The judge of the fleet: `make chaos`.

Several workers (`selfpager serve`) on one Postgres work for many agents, whose model is played. Meanwhile they are
killed, stopped, cut off and upgraded, and so is Postgres. In the end a judge restores every agent, and compares what it
remembers with what its client was told, and with what its tools have done.

script.py    what is said to an agent, and what its model makes of it
tools.py     tools of the agents, whose effects have a witness outside
model.py     the played model, in a process of its own
worker.py    a worker that tells when it restores or folds, and may be of a newer format, or a mutant
fleet.py     Postgres and the workers, each behind a proxy of its own
clients.py   clients, one for each agent: what they were told
faults.py    the table of faults
judge.py     what became of it all
chaos.py     a whole run
"""
