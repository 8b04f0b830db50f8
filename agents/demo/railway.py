"""The tools of the demo's agents: a railway that answers as soon as there is no file `slow` beside this one."""

import time
from pathlib import Path


def timetable(route: str) -> str:
    """Departures on a route, from the railway's slow server."""
    _note("asked.log", route)
    return "8:13 Porto Campanha, 11:33 Vigo Guixar, every day"


def book(train: str) -> str:
    """Book a train. Every call is a booking."""
    _note("booked.log", train)
    return "booked"


def bookings() -> str:
    """List the bookings."""
    return ", ".join(_file("booked.log").read_text(encoding="utf-8").splitlines())


def _note(log: str, line: str) -> None:
    """Write a line, and then be slow to answer."""
    with _file(log).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    while _file("slow").exists():
        time.sleep(0.05)


def _file(name: str) -> Path:
    return Path(__file__).with_name(name)
