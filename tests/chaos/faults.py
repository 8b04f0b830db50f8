"""The table of faults. Those of workers run side by side, each with a worker of its own; those of Postgres one after
the other."""

from __future__ import annotations

import signal
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log
from random import Random
from threading import Lock, Thread

from tests.chaos.fleet import LEASE_SECONDS, Fleet, Worker, wait_until

MOMENT_SECONDS = 15.0  # to wait for a restore or a fold


@dataclass(frozen=True, slots=True)
class Durations:
    """How long faults last, in seconds."""

    cut: tuple[float, float]
    down: tuple[float, float]
    leases: tuple[float, float] = (1.2, 2.5)  # of a worker that stands still

    def of_cut(self, random: Random) -> float:
        """Short ones are more frequent than long ones."""
        least, most = self.cut
        return exp(random.uniform(log(least), log(most)))


FULL = Durations(cut=(1.0, 30.0), down=(0.0, 1.5))
SMALL = Durations(cut=(0.5, 3.0), down=(0.0, 0.3))
Note = Callable[[str], None]


# of a worker


def kill_worker(worker: Worker, random: Random, durations: Durations, note: Note) -> None:
    worker.kill()
    worker.start()


def stop_worker(worker: Worker, random: Random, durations: Durations, note: Note) -> None:
    seconds = LEASE_SECONDS * random.uniform(*durations.leases)
    note(f"for {seconds:.1f} s")
    worker.signal(signal.SIGSTOP)
    time.sleep(seconds)
    worker.signal(signal.SIGCONT)


def partition(worker: Worker, random: Random, durations: Durations, note: Note) -> None:
    _cut(worker.proxy.cut, worker, durations.of_cut(random), note)


def black_hole(worker: Worker, random: Random, durations: Durations, note: Note) -> None:
    proxy = worker.proxy
    lost, what = random.choice([(proxy.lose_answers, "answers"), (proxy.lose_everything, "everything")])
    note(f"of {what}")
    _cut(lost, worker, durations.of_cut(random), note)


def _cut(lose: Callable[[], None], worker: Worker, seconds: float, note: Note) -> None:
    note(f"for {seconds:.1f} s")
    lose()
    time.sleep(seconds)
    worker.proxy.heal()


def torn_restore(worker: Worker, random: Random, durations: Durations, note: Note) -> None:
    _kill_in("restore", worker, random, note)


def torn_fold(worker: Worker, random: Random, durations: Durations, note: Note) -> None:
    _kill_in("fold", worker, random, note)


def _kill_in(kind: str, worker: Worker, random: Random, note: Note) -> None:
    begins, ends = f"{kind} begins {worker.pid}\n".encode(), f"{kind} ends {worker.pid}\n".encode()
    seen = worker.moments.stat().st_size
    with worker.moments.open("rb") as moments:

        def begun() -> bool:
            moments.seek(seen)
            return begins in moments.read()

        has_begun = wait_until(begun, MOMENT_SECONDS)
        time.sleep(random.uniform(0, 0.003))
        worker.kill()
        moments.seek(seen)
        said = moments.read()
    note("hit" if said.count(begins) > said.count(ends) else "missed" if has_begun else "none came")
    worker.start()


def newer_format(worker: Worker, random: Random, durations: Durations, note: Note) -> None:
    """Upgrade one worker, as operators do: with SIGTERM. The others are upgraded when they are started again."""
    worker._fleet.formats += 1
    worker.end(signal.SIGTERM)
    worker.start()


# of Postgres


def kill_postgres(fleet: Fleet, random: Random, durations: Durations, note: Note) -> None:
    fleet.postgres.kill()
    time.sleep(random.uniform(*durations.down))
    fleet.postgres.start()


def promotion(fleet: Fleet, random: Random, durations: Durations, note: Note) -> None:
    """The primary is gone for good. The workers are led to the standby, which gets a standby of its own."""
    fleet.postgres.promote()
    for worker in fleet.workers:
        worker.proxy.turn_to(fleet.postgres.socket)
    time.sleep(random.uniform(*durations.down))
    fleet.postgres.add_standby()


def full_disk(fleet: Fleet, random: Random, durations: Durations, note: Note) -> None:
    fleet.postgres.fill_disk()
    time.sleep(random.uniform(1.0, 3.0))
    note("postgres is up" if fleet.postgres.primary.is_running else "postgres has ended")
    fleet.postgres.free_disk()


OfWorker = Callable[[Worker, Random, Durations, Note], None]
OfPostgres = Callable[[Fleet, Random, Durations, Note], None]
OF_WORKERS: list[OfWorker] = [
    kill_worker, stop_worker, partition, black_hole, torn_restore, torn_fold, newer_format,
]  # fmt: skip
OF_POSTGRES: list[OfPostgres] = [kill_postgres, promotion, full_disk]


class Faults:
    """All faults of a run, in an order that the seed decides."""

    def __init__(
        self, fleet: Fleet, *, each: int, kinds: list[str], lanes: int, seed: int, durations: Durations
    ) -> None:
        self._fleet, self._durations, self._lock = fleet, durations, Lock()
        self._random = Random(seed)
        of_workers = [fault for fault in OF_WORKERS if not kinds or fault.__name__ in kinds] * each
        of_postgres = [fault for fault in OF_POSTGRES if not kinds or fault.__name__ in kinds] * each
        self.total, self.done = len(of_workers) + len(of_postgres), 0
        self.counts = Counter[str]()
        self.broken: list[str] = []
        self.is_ending = False  # nothing more is begun
        self._random.shuffle(of_workers)
        self._random.shuffle(of_postgres)
        self._begun = 0
        self.may_go: Callable[[float], bool] = lambda _: True
        self._of_workers, self._of_postgres = deque(of_workers), deque(of_postgres)
        self._threads = [
            *(Thread(target=self._lane, args=(self._of_workers, Random(f"{seed} {n}"))) for n in range(lanes)),
            Thread(target=self._lane, args=(self._of_postgres, Random(f"{seed} postgres"))),
        ]
        for thread in self._threads:
            thread.daemon = True

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    @property
    def progress(self) -> float:
        return self.done / self.total if self.total else 1.0

    def _lane(self, line: deque[OfWorker] | deque[OfPostgres], random: Random) -> None:
        all_of_it = len(line)
        while not (self._fleet.is_over.is_set() or self.is_ending):
            with self._lock:
                if not line:
                    return
                fault = line.popleft() if self.may_go(1 - len(line) / all_of_it) else None
            if fault is None:
                time.sleep(0.02)
                continue
            try:
                self._run(fault, random)
            except Exception as error:  # noqa: BLE001 - the run goes on, and fails in the end
                self.broken.append(f"{fault.__name__}: {error!r}")
                self._fleet.story.tell(f"BROKEN {fault.__name__}: {error!r}")
            with self._lock:
                self.done += 1

    def _run(self, fault: OfWorker | OfPostgres, random: Random) -> None:
        said = list[str]()
        if fault in OF_WORKERS:
            with self._fleet.borrow(random) as worker:
                self._fleet.story.tell(f"{fault.__name__} of worker {worker.slot} begins")
                fault(worker, random, self._durations, said.append)  # type: ignore[arg-type]
                self._fleet.story.tell(f"{fault.__name__} of worker {worker.slot} ends: {' '.join(said)}")
        else:
            self._fleet.story.tell(f"{fault.__name__} begins")
            fault(self._fleet, random, self._durations, said.append)  # type: ignore[arg-type]
            self._fleet.story.tell(f"{fault.__name__} ends: {' '.join(said)}")
        outcome = f" ({said[0]})" if fault in (torn_restore, torn_fold, full_disk) else ""
        with self._lock:
            self.counts[f"{fault.__name__}{outcome}"] += 1
