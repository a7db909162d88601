# Everything a newcomer needs: `make demo` and `make test`. Each makes the virtual environment it runs in.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
USE_STAMP := $(VENV)/.use
DEV_STAMP := $(VENV)/.dev

.DEFAULT_GOAL := demo
.PHONY: docs demo test test-all test-bounds fuzz check compiled bench history lock clean

demo: $(USE_STAMP)  ## train on real data, compare with tuned logistic regression, write a model and predictions
	$(VENV)/bin/tunefree demo --output demo-output

test: $(DEV_STAMP)  ## the tests and doctests, without the slow ones; they build the site quickly, and fuzz for ten seconds
	$(RUN) -m pytest -q -n 2 --dist worksteal -m "not slow"

docs: $(DEV_STAMP)  ## the documentation site in site/: tutorials are executed, warnings are errors; TUNEFREE_SITE=quick executes none
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet

$(VENV)/.browser: | $(VENV)/bin/python  # what tests of pages need; without it they are skipped
	-command -v chromedriver >/dev/null || (apt-get update && apt-get install -y --no-install-recommends chromium chromium-driver)
	-npm install --silent --no-save --prefix $(VENV) axe-core@4.14.1 html-validate@10.17.0
	touch $@

test-all: $(DEV_STAMP) $(VENV)/.browser  ## every test
	$(RUN) -m pytest -q -n 2 --dist worksteal --hypothesis-profile thorough

test-bounds: $(DEV_STAMP)  ## every test, with compiled code that checks bounds
	NUMBA_BOUNDSCHECK=1 $(RUN) -m pytest -q -n 2 --dist worksteal

fuzz: $(DEV_STAMP)  ## damaged files, lying models, extreme numbers, for MINUTES=n; what fails is kept in tests/fuzz/failures
	$(RUN) -W ignore -m tests.fuzz $(or $(MINUTES),10)

check: $(DEV_STAMP)  ## lint, format, types, tests
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(MAKE) test

compiled: $(DEV_STAMP)  ## the bitcode of all compiled functions, by the oldest Numba supported: newer LLVM reads older bitcode
	test -x $(VENV)/oldest/bin/python || $(RUN) -m venv $(VENV)/oldest
	$(VENV)/oldest/bin/python -m pip install --quiet --editable . 'numba==0.67.*'
	$(VENV)/oldest/bin/python -m tunefree.compiled.packaging

bench: $(DEV_STAMP)  ## the figures of the README and of the documents
	$(RUN) -m pip install --quiet --constraint requirements.lock --editable '.[bench]'
	for claim in $(filter-out benchmarks/history.py,$(shell grep -l __main__ benchmarks/*.py)); do echo "== $$claim"; $(RUN) $$claim || exit 1; done

history: $(DEV_STAMP)  ## processor time over that of peers, appended to benchmarks/history.csv; fails if a ratio rose 1.3 times
	$(RUN) -m pip install --quiet --constraint requirements.lock --editable '.[bench,river]'
	$(RUN) benchmarks/history.py --compare

lock: $(DEV_STAMP)  ## pin the present versions of all dependencies
	$(RUN) -m pip install --quiet uv
	$(RUN) -m uv pip compile --universal --python-version 3.11 --extra dev --extra bench --extra river --extra dask --no-header --no-emit-index-url --no-emit-find-links --no-annotate --output-file requirements.lock pyproject.toml

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(USE_STAMP): pyproject.toml requirements.lock | $(VENV)/bin/python
	$(RUN) -m pip install --quiet --constraint requirements.lock --editable '.[plot]'
	touch $@

$(DEV_STAMP): pyproject.toml requirements.lock | $(VENV)/bin/python
	$(RUN) -m pip install --quiet --constraint requirements.lock --editable '.[dev]'
	touch $@ $(USE_STAMP)

clean:
	rm -rf $(VENV) demo-output site build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
