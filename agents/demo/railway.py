"""The errand's tool: a railway that answers as soon as there is no file `slow` beside this one."""

import time
from pathlib import Path


def timetable(route: str) -> str:
    """Departures on a route, from the railway's slow server."""
    with Path(__file__).with_name("asked.log").open("a", encoding="utf-8") as log:
        log.write(f"{route}\n")
    while Path(__file__).with_name("slow").exists():
        time.sleep(0.05)
    return "8:13 Porto Campanha, 11:33 Vigo Guixar, every day"
