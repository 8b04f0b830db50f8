"""What all tests share: how hard Hypothesis tries.

    default  a short look at random examples; keeps its failures in .hypothesis/ and tries them first
    ci       more examples, the same ones every time: what fails in CI fails in `make test` at home
    hunt     many random examples, for a machine with an evening to spare

Choose with `pytest --hypothesis-profile=hunt`. `make test` takes ci, plain `pytest` takes default.
"""

import signal

from hypothesis import HealthCheck, settings

# Examples write files and sync them: their duration tells about the disk, not about the code.
_no_clock = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("default", _no_clock, max_examples=40)
settings.register_profile("ci", _no_clock, max_examples=200, derandomize=True, database=None, print_blob=True)
settings.register_profile("hunt", _no_clock, max_examples=5_000, print_blob=True)
settings.load_profile("default")


def pytest_configure() -> None:
    """Whoever starts the tests in the background (CI, `make test &`) makes them ignore Ctrl-C, and their children too:
    tests that interrupt a child would wait for ever."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
