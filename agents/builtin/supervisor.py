"""The process between an agent and a command: when the agent ends, or says so, all that the command started ends.

Started as a program, alone: `python -I -S supervisor.py MAX_PROCESSES MAX_MB WORD...`. Its standard input is a pipe
that only the agent holds: when that is closed, by the agent or by its death, all descendants are killed. On Linux it is
the parent of every orphan below it (PR_SET_CHILD_SUBREAPER), so a child that has forked twice is found as well. It
counts processes and memory, and ends everything when a bound is passed. Whoever forks faster than it can count is
refused by the system (RLIMIT_NPROC), but for root, whom no such limit binds. It ends with the command's code, or with
128 and the signal; why it ended something is its last line on standard error, behind MARK.

A command outside of a sandbox is one of the user's own processes: it can kill this one and stay. So can a fork bomb of
root's that is quicker than this. Only in the sandbox neither is possible.
"""

import os
import resource
import select
import signal
import sys
from contextlib import suppress

MARK = "selfpager: "
NOT_STARTED = 127
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_PAUSE_SECONDS = 0.05
_ROUNDS = 500
_THREADS = 16  # that a process may have in the mean, before the system refuses to start more
_MOST_PROCESSES = 1 << 22  # of a Linux system
_PAGES_IN_MB = (1 << 20) // os.sysconf("SC_PAGE_SIZE")


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:  # noqa: PTH123 - pathlib costs more than all else
            return file.read()
    except OSError:  # it has ended, or this system has no /proc
        return ""


def descendants(root: int, most: int) -> list[int]:
    """Return the processes below `root`, the nearest first; a few more than `most` if there are more."""
    found = [root]
    for each in found:
        if len(found) > most:
            break
        try:
            threads = os.listdir(f"/proc/{each}/task")  # noqa: PTH208 - as above
        except OSError:
            continue
        for thread in threads:
            found += map(int, _read(f"/proc/{each}/task/{thread}/children").split())
    return found[1:]


def memory_mb(processes: list[int]) -> int:
    """Return the memory that processes have filled."""
    pages = (_read(f"/proc/{each}/statm").split()[1:2] for each in processes)
    return sum(int(found[0]) for found in pages if found) // _PAGES_IN_MB


def _send(process: int, number: int, among: set[int]) -> None:
    """Send a signal to a process whose parent is one of these. A number that was free meanwhile may belong to another
    process by now, or to a thread of one: a descriptor of the process cannot change hands."""
    with suppress(OSError):  # it has ended, or is a thread
        descriptor = os.pidfd_open(process)
        try:
            parent = _read(f"/proc/{process}/stat").rpartition(")")[2].split()[1:2]
            if parent and int(parent[0]) in among:
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)


def end_all(group: int | None) -> None:
    """Kill all descendants, first those of a group whose leader was not waited for. They are stopped first: what is
    stopped starts nothing more."""
    if group is not None:
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)
    for _ in range(_ROUNDS):
        below = descendants(os.getpid(), 1 << 20)
        ours = {os.getpid(), *below}
        for each in below:
            _send(each, signal.SIGSTOP, ours)
        for each in reversed(below):
            _send(each, signal.SIGKILL, ours)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        select.select([], [], [], _PAUSE_SECONDS / 5)


def bound(more: int) -> None:
    """Let the system refuse to start more than `more` threads and processes beside those that the user has now.

    Their number is one less than the lowest limit under which a fork succeeds. In a container, /proc does not show all.
    """
    soft, hard = (_MOST_PROCESSES if each < 0 else each for each in resource.getrlimit(resource.RLIMIT_NPROC))
    low, high = 0, soft
    while low < high:
        middle = (low + high) // 2
        resource.setrlimit(resource.RLIMIT_NPROC, (middle, hard))
        low, high = (low, middle) if _can_fork() else (middle + 1, high)
    most = min(high - 1 + more, soft)
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def _can_fork() -> bool:
    try:
        child = os.fork()
    except OSError:
        return False
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    return True


def _start(words: list[str], most: int) -> int:
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getuid():
            bound(most * _THREADS)
        with open("/dev/null", "rb") as nothing:  # noqa: PTH123
            os.dup2(nothing.fileno(), 0)
        for number in (signal.SIGPIPE, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(words[0], words)
    except OSError as error:
        os.write(2, f"{MARK}{words[0]} cannot be started: {error.strerror}\n".encode())
    os._exit(NOT_STARTED)


def _exceeded(most: int, most_mb: int) -> str:
    processes = descendants(os.getpid(), most)
    if len(processes) > most:
        return f"it had more than {most} processes"
    return f"it took more than {most_mb} MB of memory" if memory_mb(processes) > most_mb else ""


def _nothing(_number: int, _frame: object) -> None:
    """Handle a signal that only has to end a pause."""


def main(most: int, most_mb: int, words: list[str]) -> int:
    """Run a command to its end, or to that of the agent."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    child = _start(words, most)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, _nothing)
    signal.set_wakeup_fd(wake)  # a child that has ended is noticed at once; one that ended before is at the next pause
    code = None
    while code is None:
        ready = select.select([0, woken], [], [], _PAUSE_SECONDS)[0]
        if 0 in ready:
            break
        if ready:
            os.read(woken, 1 << 10)
        done = True
        while code is None and done:
            done, status = os.waitpid(-1, os.WNOHANG)
            if done == child:
                code = os.waitstatus_to_exitcode(status)
        if code is None and (why := _exceeded(most, most_mb)):
            end_all(child)
            os.write(2, f"{MARK}{why}, and was ended\n".encode())
            return 128 + signal.SIGKILL
    end_all(child if code is None else None)
    return 128 + signal.SIGKILL if code is None else code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
