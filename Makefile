# `make` lists the targets. A machine needs Python 3.11 or newer and its venv module; the rest comes with the locks.
#
#     make test PYTHON=python3.12             another Python, for a new .venv
#     make test PYTEST_FLAGS='-k spill -x'    more for pytest

# `true`, because make throws away what a command says that ends with "not found".
PYTHON ?= $(firstword $(shell for each in python3.11 python3; do \
	"$$each" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$each"; done; true))
PYTEST_FLAGS ?=
LOCK_FLAGS ?=
UV_VERSION := 0.13.8

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
BROWSER := $(BIN)/python -m tests.browser.programs
# The debug view is tested in a real browser. Where there is none those tests are left out, and that is said.
WITHOUT_BROWSER = $$($(BROWSER) >/dev/null 2>&1 || echo --ignore=tests/browser)
LOCKS := requirements.lock requirements-dev.lock

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo test test-browser test-fast test-local lint ruff pyright layers format bench bench-quick bench-memory bench-retrieval bench-agent bench-view screenshot lock clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# Everything from the locks, and nothing else: a change of a lock makes the environment anew.
$(VENV)/locked: $(LOCKS)
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed, and neither python3.11 nor python3 is one." \
		"Name it: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "$(PYTHON) is not Python 3.11 or newer. Name another: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments. On Debian and Ubuntu: apt-get install python3-venv" >&2; \
		exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP) install --quiet --require-hashes --no-deps $(LOCKS:%=-r %)
	@touch $@

# The project itself, as a link to this directory. Its build backend is in the lock, so this needs no network.
$(VENV)/installed: $(VENV)/locked pyproject.toml
	$(PIP) install --quiet --no-index --no-deps --no-build-isolation --editable .
	$(PIP) check
	@touch $@

install: $(VENV)/installed  ## make .venv from the locks (the other targets do it when needed)

demo: install  ## the whole story in half a minute: no key, no network
	$(BIN)/selfpager demo

test: install  ## all tests: what must hold before a change lands
	$(BIN)/python -m pytest --hypothesis-profile=ci $(WITHOUT_BROWSER) $(PYTEST_FLAGS)
	@$(BROWSER) >/dev/null || echo "make test: tests/browser was left out; everything else passed." >&2

test-browser: install  ## the debug view in a real browser, which must be there
	$(BIN)/python -m pytest tests/browser $(PYTEST_FLAGS)

test-fast: install  ## the tests that are not marked slow, in under ten seconds
	$(BIN)/python -m pytest -q -m "not slow" $(PYTEST_FLAGS)

test-local: install  ## what must hold with a model of your own: make test-local URL=http://127.0.0.1:8080
	@test -n "$(URL)" || { echo "Name the server: make test-local URL=http://127.0.0.1:8080 [MODEL=...] [WINDOW=8192]" >&2; exit 2; }
	LOCAL_BASE_URL="$(URL)" LOCAL_MODEL="$(MODEL)" LOCAL_WINDOW="$(WINDOW)" $(BIN)/python -m pytest -q tests/local/live_model.py

lint: ruff pyright layers  ## ruff, pyright and the layers of the code (with -k: all of them, even if one fails)

ruff: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

pyright: install  # the setting: or it asks the network whether there is a newer one
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright

layers: install
	$(BIN)/lint-imports

format: install  ## put the code into the form that lint wants, as far as that goes by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: install  ## side by side with others, twenty minutes: cost, overhead, scale, survival, injected tokens (BENCH=...)
	$(BIN)/python -m tests.bench.bench_proof $(BENCH) $(DATA:%=--data %)

bench-quick: install  ## the same, small, in two minutes: shows that it runs
	$(BIN)/python -m tests.bench.bench_proof --quick $(BENCH) $(DATA:%=--data %)

bench-memory: install  ## how fast the memory is
	$(BIN)/python -m tests.bench.bench_memory

bench-retrieval: install  ## how well turns and facts are found, on the shared data (DATA=DIR for another place)
	$(BIN)/python -m tests.bench.bench_retrieval $(DATA:%=--data %)

bench-view: install  ## how soon the debug view is there, and what it costs the agent; needs a browser
	$(BIN)/python -m tests.bench.bench_view

screenshot: install  ## the pictures of README, from the demo's agent; needs a browser
	$(BIN)/python -m tests.browser.screenshot

bench-agent: install  ## what the agent adds to a call, a prompt and a start
	$(BIN)/python -m tests.bench.bench_agent

# Hashes of every platform's files, no index address. Pins stay where they are unless pyproject.toml moves them;
# `make lock LOCK_FLAGS=--upgrade` moves all. The second lock holds only what the first does not.
lock:  ## renew the locks from pyproject.toml
	@set -eu; tools=$$(mktemp -d); trap 'rm -rf "$$tools"' EXIT; \
	$(PYTHON) -m venv "$$tools"; "$$tools/bin/pip" install --quiet uv==$(UV_VERSION); \
	compile() { "$$tools/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" $(LOCK_FLAGS) "$$@"; }; \
	compile pyproject.toml -o requirements.lock; \
	runtime=$$(sed -n 's/^\([a-z0-9._-]*\)==.*/--no-emit-package \1/p' requirements.lock); \
	compile pyproject.toml --group dev --all-extras -c requirements.lock $$runtime -o requirements-dev.lock

clean:  ## remove what the targets here have made
	rm -rf $(VENV) dist build .hypothesis .import_linter_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
