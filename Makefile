# The few commands of the README. On a fresh machine each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: diagnostics test lint lock clean

# The main job: the reference agents under every diagnostic setting, on embedded defaults.
diagnostics: $(STAMP)
	$(BIN)/python -m platform.launch +grid=diagnostics

# Everything that must hold: style, types, imports, behaviour, coverage of the core.
test: $(STAMP) lint
	$(BIN)/python -m pytest -n auto --cov --cov-report=term

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/interrogate -q platform/adaexplore

# The environment, from the lock: exact versions, checked by hash.
$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

# New locks from pyproject.toml: the development environment, and all extras together.
lock:
	uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header --no-annotate --all-extras pyproject.toml -o requirements-all.lock
	uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header --no-annotate --extra dev -c requirements-all.lock pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
