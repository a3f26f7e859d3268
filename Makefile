# make prove: set up, run the main job, end in a report.   make test: set up, run all checks and tests.
# make stacks: environments of the real stacks on a CPU.   make test-stacks: the tests that need them.
PYTHON ?= python3
VENV   ?= .venv
STACKS ?= $(basename $(notdir $(wildcard src/proveout/stacks/locks/*.toml)))
BIN    := $(VENV)/bin
export HF_HUB_OFFLINE := 1
export TRANSFORMERS_OFFLINE := 1

.PHONY: prove test lint docs faults clean bridge stacks test-stacks

prove: $(VENV)/.bench-ready
	$(BIN)/proveout run

# What is tested is this checkout, whatever PYTHONPATH of the shell stands in front of it.
test: lint
	env -u PYTHONPATH PROVEOUT_TEST_RAY_PYTHON=$(abspath $(BIN))/python $(BIN)/python -m pytest -n 2 --dist loadfile -rfEs

# The environment of backend megatron: 1.3 GB, a minute or two; what was done is not done again.
bridge: $(VENV)/.bench-ready
	$(BIN)/proveout stack install bridge-cpu

# Every known fault, and sound runs with many seeds.
faults: $(VENV)/.bench-ready
	$(BIN)/proveout faults run
	$(BIN)/proveout faults clean --seeds 100

lint: $(VENV)/.ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# Kept in the user's cache (PROVEOUT_STACKS is another place); what is there already costs seconds.
stacks: $(VENV)/.ready
	printf '%s\n' $(STACKS) | xargs -P 2 -n 1 $(BIN)/proveout stack install

test-stacks: stacks
	env -u PYTHONPATH PROVEOUT_TEST_STACKS=1 $(BIN)/python -m pytest -m stack

docs: $(VENV)/.docs-ready
	$(BIN)/python docs/generate.py --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(VENV)/.docs-ready: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

# torch comes first and by pip alone: other packages would draw another build of it.
$(VENV)/.bench-ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("proveout needs Python 3.11 or newer; give one with PYTHON=..." if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet 'torch==2.13.0'
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/proveout triage --prepare
	touch $@

$(VENV)/.ready: $(VENV)/.bench-ready
	$(BIN)/python -m pip install --quiet --editable '.[bench,impact,data,test,dev]'
	touch $@

clean:
	rm -rf $(VENV) site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
