# make demo    profile a slow script and explain it (installs tracediag and torch into .venv)
# make test    the tests                           (installs both frameworks and the development tools as well)
# make check   everything that CI runs: lint, types, layers, tests, documentation
# make docs    write the generated pages anew
# make truth   verdicts on every fixture, precision, recall, predictions: docs/truth.md
# make light   the same reports in an environment without torch and TensorFlow
# make fuzz    20,000 spoilt files for every reader: no traceback, no hang, no file written
# make node    what some tests run in node: npm packages into tests/node (needs npm)
# make bench   what the tool itself costs, with numbers
# make compare-cases   profile pairs of scripts and compare them (CASES=folder)

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
TORCH := torch==2.13.0
TENSORFLOW := tensorflow-cpu==2.21.0 tensorboard tensorboard-plugin-profile xprof
SCRIPT ?= examples/slow_embedding.py

.PHONY: compare-cases demo test check lint types layers docs docs-check truth light fuzz node bench clean

demo: $(VENV)/.demo
	$(BIN)/tracediag profile --python $(BIN)/python $(SCRIPT)

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal

check: lint types layers test docs-check

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.dev
	$(BIN)/lint-imports

docs: $(VENV)/.dev
	$(BIN)/python tools/docs.py
	$(BIN)/python tools/formats.py

docs-check: $(VENV)/.dev
	$(BIN)/python tools/docs.py --check

truth: $(VENV)/.dev
	$(BIN)/python tools/truth.py

light: $(VENV)/.dev
	TRACEDIAG_LIGHT=1 $(BIN)/python -m pytest tests/test_without_frameworks.py

fuzz: $(VENV)/.dev
	$(BIN)/python tools/fuzz.py

node: tests/node/node_modules/.done

bench: $(VENV)/.dev
	for script in benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

compare-cases: $(VENV)/.dev
	$(BIN)/python benchmarks/compare_cases.py $(if $(CASES),--root $(CASES))

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

tests/node/node_modules/.done: tests/node/package.json
	npm install --prefix tests/node --no-package-lock --no-audit --no-fund --loglevel=error
	touch $@

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e . $(TORCH)
	touch $@

# tf_keras asks for the package `tensorflow`, a second copy beside tensorflow-cpu: it goes in without its requirements.
$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[dev]' $(TORCH) $(TENSORFLOW)
	$(PIP) --no-deps tf_keras==2.21.0
	touch $@ $(VENV)/.demo
