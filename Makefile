# `make` lists the targets. They need Python 3.11 or newer with its venv module; the locks bring everything else.
#
#     make test PYTHON=python3.12 VENV=.venv-312    use another Python, in an environment of its own
#     make test PYTEST_FLAGS='-k spill -x'          pass more options to pytest
#     make test JOBS=0                              run the tests in one process, as a debugger wants it

# `true` at the end, because make discards the output of a command that ends with "not found".
PYTHON ?= $(firstword $(shell for each in python3.11 python3; do \
	"$$each" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$each"; done; true))
PYTEST_FLAGS ?=
LOCK_FLAGS ?=
JOBS ?= 4
# pytest compiles its rewritten tests into __pycache__. Without that every run spends five seconds on it.
unexport PYTHONDONTWRITEBYTECODE
UV_VERSION := 0.13.8

VENV := .venv
BIN := $(VENV)/bin
DOCS := $(VENV)-docs
PIP := $(BIN)/python -m pip --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal
BROWSER := $(BIN)/python -m tests.browser.programs
# The debug view is tested in a real browser. Without one, those tests are left out and the target says so.
WITHOUT_BROWSER = $$($(BROWSER) >/dev/null 2>&1 || echo --ignore=tests/browser --ignore=tests/hostile/test_page.py)
LOCKS := requirements.lock requirements-dev.lock

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install wheel judges demo test test-all chaos test-browser test-fast test-local lint ruff pyright layers docs format bench bench-quick bench-reading bench-memory bench-retrieval bench-agent bench-start bench-story bench-tasks bench-sleep bench-fleet bench-serve bench-view screenshot lock clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# The environment has what the locks name and nothing else. A change of a lock rebuilds it.
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

# Both distributions are installed as links to this directory. Their build backend is in the lock: no network.
$(VENV)/installed: $(VENV)/locked pyproject.toml memory/pyproject.toml
	$(PIP) install --quiet --no-index --no-deps --no-build-isolation --editable memory --editable .
	@# What a wheel takes from other folders is copied by an editable install as well, and would go out of date.
	@set -e; libs=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
		rm -rf "$$libs/pager" "$$libs/agents" "$$libs/selfpager.py"
	$(PIP) check
	@touch $@

install: $(VENV)/installed  ## make .venv from the locks (the other targets do it when needed)

demo: install  ## run the whole story in fifteen seconds, without a key or a network
	$(BIN)/selfpager demo

# Two markers sort the tests. `slow` tests need more than a moment, a process, a server or Chroma. `long` tests repeat
# something for every case of a long life. test-fast leaves both out, test leaves out `long`, test-all runs everything.
test: install  ## run all tests but the long ones: what to run before each commit (four minutes)
	$(PYTEST) -m "not long" --hypothesis-profile=ci $(WITHOUT_BROWSER) $(PYTEST_FLAGS)
	@$(BROWSER) >/dev/null || echo "make test: tests/browser was left out; everything else passed." >&2

test-all: install  ## run all tests, with the long ones: every commit killed, random kills, 1,000 turns (twelve to eighteen minutes)
	$(PYTEST) --hypothesis-profile=ci $(WITHOUT_BROWSER) $(PYTEST_FLAGS)
	@$(BROWSER) >/dev/null || echo "make test-all: tests/browser was left out; everything else passed." >&2

test-fast: install  ## run the tests that need no more than a moment (fifteen seconds)
	$(PYTEST) -q -m "not slow and not long" --hypothesis-profile=fast $(PYTEST_FLAGS)

chaos: install  ## kill, stop, cut off and upgrade a fleet at work for an hour, then judge it (CHAOS="--agents 50 --turns 300 --faults 3")
	$(BIN)/python -m tests.chaos $(CHAOS)

test-browser: install  ## test the debug view in a real browser, which must be there
	$(BIN)/python -m pytest tests/browser $(PYTEST_FLAGS)

test-local: install  ## test with a model of your own: make test-local URL=http://127.0.0.1:8080
	@test -n "$(URL)" || { echo "Name the server: make test-local URL=http://127.0.0.1:8080 [PROVIDER=openai] [MODEL=...] [KEY=...] [WINDOW=8192]" >&2; exit 2; }
	LOCAL_BASE_URL="$(URL)" LOCAL_PROVIDER="$(PROVIDER)" LOCAL_MODEL="$(MODEL)" LOCAL_KEY="$(KEY)" \
		LOCAL_WINDOW="$(WINDOW)" $(BIN)/python -m pytest -q tests/local/live_model.py

wheel: install  ## build both distributions into dist/: selfpager-memory (pager) and selfpager (agents)
	rm -rf dist
	cd memory && ../$(BIN)/hatchling build -t wheel -d ../dist
	$(BIN)/hatchling build -d dist

judges: wheel  ## run other projects' own tests against our adapters, and the MCP conformance suite; needs a network
	$(BIN)/python -m tests.judges

lint: ruff pyright layers docs  ## run ruff, pyright, import-linter and build the docs (with -k: all, even if one fails)

ruff: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

pyright: install  # without the setting it asks the network for a newer version
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright

layers: install
	$(BIN)/lint-imports

# The tools that build the docs have an environment of their own, so that no pin of theirs moves one of ours.
$(DOCS)/locked: requirements-docs.lock | $(VENV)/locked
	$(PYTHON) -m venv --clear $(DOCS)
	$(DOCS)/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes --no-deps -r requirements-docs.lock
	@touch $@

# A warning is an error: a link or an anchor that leads nowhere, a page that no page leads to.
docs: $(DOCS)/locked  ## build the docs into build/docs and check their links (with its tools: ten seconds)
	@rm -rf build/docs
	$(DOCS)/bin/sphinx-build --quiet --fail-on-warning --fresh-env docs build/docs
	@echo "build/docs/index.html"

format: install  ## format the code and apply the fixes that ruff can make
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: install  ## compare with other systems in twenty minutes: cost, overhead, scale, survival, injected (BENCH=...)
	$(BIN)/python -m tests.bench.bench_proof $(BENCH) $(DATA:%=--data %)

bench-quick: install  ## run the same benches, bench-tasks and bench-start, on small data in four minutes: do they work?
	$(BIN)/python -m tests.bench.bench_proof --quick $(BENCH) $(DATA:%=--data %)
	$(BIN)/python -m tests.bench.bench_tasks --quick
	$(BIN)/python -m tests.bench.bench_start --quick

bench-reading: install  ## count the files, calls and SQL statements of one turn
	$(BIN)/python -m tests.bench.reading_cost

bench-memory: install  ## measure the speed of the memory
	$(BIN)/python -m tests.bench.bench_memory

bench-retrieval: install  ## measure how well messages and facts are found, on the shared data (or DATA=DIR)
	$(BIN)/python -m tests.bench.bench_retrieval $(DATA:%=--data %)

bench-story: install  ## tell a model of your own a story and ask about it: make bench-story URL=http://127.0.0.1:8080
	@test -n "$(URL)" || { echo "Name the server: make bench-story URL=http://127.0.0.1:8080 [PROVIDER=openai] [MODEL=...] [KEY=...] [ONLY=few] [QUICK=--quick]" >&2; exit 2; }
	$(BIN)/python -m tests.bench.bench_story --url "$(URL)" $(MODEL:%=--model %) $(PROVIDER:%=--provider %) \
		$(KEY:%=--key %) $(ONLY:%=--only %) $(QUICK)

bench-tasks: install  ## let a perfect worker do 40 tasks over 5,000 files, kill it 50 times, and ask it (ONLY=ours, peers)
	$(BIN)/python -m tests.bench.bench_tasks $(QUICK) $(ONLY:%=--only %) $(URL:%=--url %) $(MODEL:%=--model %) \
		$(PROVIDER:%=--provider %) $(KEY:%=--key %)

bench-sleep: install  ## measure what a sleep finds, gets wrong and costs, on the shared data (PART=answers, DATA=DIR, URL=http://...)
	$(BIN)/python -m tests.bench.bench_sleep $(PART) $(DATA:%=--data %) $(URL:%=--url %) $(MODEL:%=--model %) $(KEY:%=--key %)

bench-serve: install  ## measure what `selfpager serve` adds to a turn
	$(BIN)/python -m tests.bench.bench_serve

bench-view: install  ## measure how soon the debug view paints and what it costs the agent; needs a browser
	$(BIN)/python -m tests.bench.bench_view

screenshot: install  ## make the pictures of README and docs/ from the agent of the demo; needs a browser
	$(BIN)/python -m tests.browser.screenshot

bench-fleet: install  ## measure what a home in Postgres costs: a turn, a restore, a failover, bytes, a claim, a worker
	$(BIN)/python -m tests.bench.bench_fleet $(FLEET)

bench-agent: install  ## measure what the agent adds to a call, a prompt and a start
	$(BIN)/python -m tests.bench.bench_agent

bench-start: install  ## measure what a newcomer waits for: installing, the prompt, the first word of an answer
	$(BIN)/python -m tests.bench.bench_start

# The locks have the hashes of the files of every platform and no index address. A pin only moves when pyproject.toml
# requires it; `make lock LOCK_FLAGS=--upgrade` moves all. The second lock has only what the first has not.
lock:  ## renew the locks from pyproject.toml; needs a network
	@set -eu; tools=$$(mktemp -d); trap 'rm -rf "$$tools"' EXIT; \
	$(PYTHON) -m venv "$$tools"; "$$tools/bin/pip" install --quiet uv==$(UV_VERSION); \
	compile() { "$$tools/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" $(LOCK_FLAGS) "$$@"; }; \
	compile memory/pyproject.toml pyproject.toml --no-emit-package selfpager-memory -o requirements.lock; \
	runtime=$$(sed -n 's/^\([a-z0-9._-]*\)==.*/--no-emit-package \1/p' requirements.lock); \
	compile pyproject.toml --group dev --all-extras --no-emit-package selfpager-memory -c requirements.lock $$runtime -o requirements-dev.lock; \
	compile --group docs -o requirements-docs.lock

clean:  ## remove everything that these targets made
	rm -rf $(VENV) $(DOCS) dist build .hypothesis .import_linter_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
