# make demo        the whole path on the demo set, then the app
# make test-fast   pure functions and the store on SQLite, within a minute on 2 cores
# make test        all tests but the long ones
# make test-long   the long ones: many kills, several processes or nodes, real models, journeys
# make test-all    every test, as .ci/run does
# make conformance  releases, checkpoints, scores and agreement in other people's software
# make results     the tables of docs/results.md: base against trained, and more or fewer groups
# make moving-picture, make contact-sheet   pictures of the app for README and docs, from a demo's
#                  store (DEMO_HOME=.inf, or without it a demo of their own)
# make gpu-check   checks and measures training on this machine (FLAGS="--minutes 20 --model DIR")
# make docs        the site, in site/, with warnings as errors
VENV := .venv
PYTHON ?= python3
INF := $(VENV)/bin/inf
PORT ?= 8501
# Files start in the order of tests/conftest.py, the longest first: a long one that starts last runs
# alone.
PYTEST ?= -n 2 --dist loadscope --no-loadscope-reorder
# Bytecode is kept, whatever the caller's environment says: every command of a test imports us again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo install test test-fast test-long test-all conformance lint wheel wheel-test docs results \
  results-all gpu-check moving-picture contact-sheet clean

RUN_TESTS = OMP_WAIT_POLICY=PASSIVE $(VENV)/bin/python -m pytest $(PYTEST)

demo: $(VENV)/.installed
	$(INF) demo --port $(PORT)

test-fast: $(VENV)/.installed-dev
	$(RUN_TESTS) -m fast

install: $(VENV)/.installed-dev

test: $(VENV)/.installed-dev
	$(RUN_TESTS) -m "not long"

test-long: $(VENV)/.installed-dev
	$(RUN_TESTS) -m long

# Two runs: the workers of one would hold gigabytes at its end.
test-all: $(VENV)/.installed-dev
	$(RUN_TESTS) -m "not long" && others=0 || others=$$?; $(RUN_TESTS) -m long && exit $$others

conformance: $(VENV)/.installed-dev
	.ci/conformance

results: $(VENV)/.installed-dev
	$(VENV)/bin/python bench/frontier.py query both
	$(VENV)/bin/python bench/results.py recipe dose

results-all: $(VENV)/.installed-dev
	$(VENV)/bin/python bench/results.py all

gpu-check: $(VENV)/.installed
	$(INF) gpu-check $(FLAGS)

moving-picture contact-sheet: $(VENV)/.installed-dev
	$(VENV)/bin/python bench/$(subst -,_,$@).py $(if $(DEMO_HOME),--home $(DEMO_HOME))

docs: $(VENV)/.installed-dev
	# not --quiet: it drops warnings before --strict counts them
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/python -P -m mkdocs build --strict --site-dir site

lint: $(VENV)/.installed-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

wheel: $(VENV)/.installed-dev
	rm -rf dist
	$(VENV)/bin/python -m build --wheel --no-isolation --outdir dist .
	$(VENV)/bin/python -m build --wheel --no-isolation --outdir dist client

wheel-test: wheel
	.ci/wheel dist/inf_studio-*.whl dist/inf_studio_client-*.whl

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "InF Studio needs Python 3.11 or newer, %s is %s; say: make PYTHON=python3.12" % (sys.executable, sys.version.split()[0]))'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(VENV)/bin/python -m pip install --disable-pip-version-check -q -c constraints.txt -e '.[offline]'
	@touch $@

$(VENV)/.installed-dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(VENV)/bin/python -m pip install --disable-pip-version-check -q -c constraints.txt -e '.[offline,dev]'
	@touch $(VENV)/.installed $@

clean:
	rm -rf $(VENV) dist build site
