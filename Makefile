# Two commands matter: `make demo` and `make test`. Everything else is a part of them.
PYTHON ?= python3.11
UV_VERSION := 0.13.8
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
STORE ?= .assay/store
SERVE ?= 1
PORT ?= 7860

.DEFAULT_GOAL := help
.PHONY: help demo test lint types unit lock clean

help: ## list the commands
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

demo: $(VENV)/.installed ## evaluate the bundled scorers on the demo split and serve the app (SERVE=0: do not serve)
	PORT=$(PORT) $(BIN)/python -m evaluator demo --store $(STORE) $(if $(filter 0,$(SERVE)),--no-serve,--serve)

test: $(VENV)/.installed-dev lint types unit ## lint, types and every test this machine can run

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

# Thousands of tests start processes, time them and cut their connections, several at once. Where a
# few of them fail, those are run once more, one after the other; what fails then has failed.
unit: $(VENV)/.installed-dev
	$(BIN)/python -m pytest || { [ $$? = 1 ] && $(BIN)/python -m tests.second_look; }

# The environment is made once and again only when a requirements file changes. Compiling it costs
# half a minute once and saves several seconds at every start.
$(UV):
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

$(VENV)/.installed: requirements.txt | $(UV)
	$(UV) pip install --quiet --python $(BIN)/python --compile-bytecode -r requirements.txt
	touch $@

$(VENV)/.installed-dev: requirements-dev.txt $(VENV)/.installed
	$(UV) pip install --quiet --python $(BIN)/python -r requirements-dev.txt
	touch $@

lock: | $(UV) ## resolve requirements*.in into pinned requirements*.txt
	$(UV) pip compile --quiet --python-version 3.11 --no-emit-index-url requirements.in -o requirements.txt
	$(UV) pip compile --quiet --python-version 3.11 --no-emit-index-url requirements-dev.in -o requirements-dev.txt

clean: ## remove the environment and caches; a store is never touched
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis screenshots
