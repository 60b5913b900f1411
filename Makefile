# Two commands for a newcomer: `make demo` and `make test`. Each sets up .venv by itself.
PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help demo test check bench soak lock clean

help:  ## what can be made here
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):[^#]*## /  make \1\t/'

.venv/.run: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tercet needs Python 3.11 or newer; set PYTHON=...")'
	@echo "Installing tercet into .venv (about a minute) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[train]'
	@touch $@

.venv/.dev: .venv/.run
	@echo "Installing the tools for tests into .venv ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[train,paper,dev,bench,ray]'
	@touch $@

demo: .venv/.run  ## the seasonal shop: C3 against its rivals, and an HTML report
	@$(BIN)/tercet demo

test: .venv/.dev  ## lint, types and all tests
	@$(BIN)/ruff format --check . && $(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest

check: .venv/.dev  ## the quick subset: lint, types, tests that need no training
	@$(BIN)/ruff format --check . && $(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -m "not slow"

bench: .venv/.dev  ## speed and memory against peers, as ratios
	@$(BIN)/python -m benchmarks

soak: .venv/.dev  ## long random runs of the reference set against brute force
	@$(BIN)/python -m pytest -m soak --soak

lock: .venv/.run  ## resolve every extra again and rewrite constraints.txt
	@$(BIN)/python tools/lock.py

clean:  ## remove .venv and caches
	@rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
