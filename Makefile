# Two commands matter: `make demo` and `make test`. Everything else is a part of them.
# The oldest Python that is there; another one by PYTHON=python3.13, in a checkout without .venv.
PYTHON ?= $(firstword $(foreach minor,11 12 13 14,$(shell command -v python3.$(minor))) python3)
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
STORE ?= .assay/store
SERVE ?= 1
PORT ?= 7860

.DEFAULT_GOAL := help
.PHONY: help demo test test-all more nightly lint types unit slow covered processors dispatch known audit lock docs coverage sbom space release images clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

demo: $(VENV)/.installed ## evaluate the bundled scorers on the demo split and serve the app (SERVE=0: do not serve)
	PORT=$(PORT) $(BIN)/python -m evaluator demo --store $(STORE) $(if $(filter 0,$(SERVE)),--no-serve,--serve)

# Runs every part, whatever fails first, and ends with one line. A part is a target of its own.
define every
+@failed=""; for part in $(1); do \
  $(MAKE) --no-print-directory $$part || failed="$$failed $$part"; \
done; \
if [ -z "$$failed" ]; then echo "make $@: all parts passed: $(1)."; else \
  echo "make $@: FAILED:$$failed. Run one again with 'make PART', failed tests with '$(BIN)/python -m pytest --last-failed -n 0 -m \"\"'."; \
  exit 1; \
fi
endef

test: $(VENV)/.installed-dev ## lint, types, known defects of packages, and the quick tests
	$(call every,$(TEST))

test-all: $(VENV)/.installed-dev ## the same and all other tests: untrusted code, crashes, documents, browsers, published figures
	$(call every,$(TEST) $(MORE))

more: $(VENV)/.installed-dev # what CI runs after `make test`
	$(call every,$(MORE) dispatch)

TEST := lint types known unit
MORE := slow covered

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/hadolint Dockerfile
	$(BIN)/shellcheck .ci/run
	$(BIN)/yamllint --strict .github compose.yaml deploy/compose.hub.yaml

# On a busy machine mypy gives up a process that takes three seconds to start, with code 2.
types: $(VENV)/.installed-dev
	@code=0; set -x; $(BIN)/mypy --num-workers auto || code=$$?; \
	if [ $$code = 2 ]; then code=0; $(BIN)/mypy || code=$$?; fi; exit $$code

# Tests of the statistics and protocols write down which lines they reach; `covered` judges it.
MEASURED := tests/benchmarks tests/leaderboard/ranking
OTHERS := $(MEASURED:%=--ignore=%)
COVER := --cov --cov-report= --cov-fail-under=0

unit slow: export PYTHONDONTWRITEBYTECODE = # empty: processes that tests start need not compile anew

# Both halves run, whatever fails in the first.
unit: $(VENV)/.installed-dev
	@code=0; set -x; $(BIN)/python -m pytest $(COVER) $(MEASURED) || code=1; \
	$(BIN)/python -m pytest $(OTHERS) || code=1; exit $$code

slow: $(VENV)/.installed-dev
	@code=0; set -x; $(BIN)/python -m pytest -m slow $(COVER) --cov-append $(MEASURED) || code=1; \
	$(BIN)/python -m pytest -m slow $(OTHERS) || code=1; exit $$code

processors: $(VENV)/.installed-dev ## the numeric tests under other kernels, threads and instruction sets
	$(BIN)/python -m tools.processors

# The one setting that everybody runs: it changes no kernel.
dispatch: $(VENV)/.installed-dev
	$(BIN)/python -m tools.processors --only threads-and-dispatch

nightly: export ASSAY_NIGHTLY = 1
nightly: $(VENV)/.installed-dev ## all tests with every kill point and engine, and the numeric tests under all settings
	$(call every,$(TEST) $(MORE) processors)

# Without the benchmarks' data the tests that need them are skipped, and nothing can be said.
covered:
	test ! -d "$${ASSAY_DATA:-../shared/data}" || $(BIN)/coverage report

coverage: $(VENV)/.installed-dev ## run all tests with coverage of everything, and print the table
	$(BIN)/python -m pytest -m "" --cov --cov-config=tests/everything.coveragerc --cov-report=term-missing:skip-covered

# The environment is made once and again only when a requirements file changes. Compiling it costs
# half a minute once and saves several seconds at every start. Every file that is installed has a
# hash in the lock, and is a wheel: nothing is built here, so no build script of others runs.
INSTALL = $(UV) pip install --quiet --python $(BIN)/python --require-hashes --no-build

$(UV): requirements-uv.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements-uv.txt
	touch $@

$(VENV)/.installed: requirements.txt | $(UV)
	$(INSTALL) --compile-bytecode -r requirements.txt
	touch $@

$(VENV)/.installed-dev: requirements-dev.txt $(VENV)/.installed
	$(INSTALL) -r requirements-dev.txt
	touch $@

# What is locked stays as it is, unless LOCK says otherwise: make lock LOCK="--upgrade-package pillow"
LOCK ?=
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "make lock" $(LOCK)

lock: | $(UV) ## resolve requirements*.in into requirements*.txt, pinned and with hashes
	$(COMPILE) requirements.in -o requirements.txt
	$(COMPILE) -c requirements.txt requirements-app.in -o requirements-app.txt
	$(COMPILE) requirements-dev.in -o requirements-dev.txt
	$(COMPILE) requirements-uv.in -o requirements-uv.txt
	$(COMPILE) -c requirements.txt -c requirements-dev.txt requirements-watch.in -o requirements-watch.txt

known: $(VENV)/.installed-dev
	$(BIN)/python -m supply.audit --offline

audit: $(VENV)/.installed-dev ## ask the advisory service about every locked package, and look at our own list
	$(BIN)/python -m supply.audit

sbom: $(VENV)/.installed-dev ## write what the images hold, as CycloneDX, into sbom/
	$(BIN)/python -m supply.sbom sbom

docs: $(VENV)/.installed ## write the reference documents anew from the code
	$(BIN)/python -m tools.reference

SPACE ?= build/space
space: $(VENV)/.installed ## write the folder that is pushed to a Space (SPACE=folder)
	$(BIN)/python -m evaluator space $(SPACE)

TAG ?=
release: $(VENV)/.installed-dev ## check that everything agrees on the version (TAG=v1.2.3) and is fit to be released
	$(BIN)/python -m supply.release_check $${TAG:+"$$TAG"}

include deploy/base.env
images: ## build both images (needs Docker with BuildKit)
	docker build --target app --build-arg BASE_DIGEST=$(BASE_DIGEST) --tag assay-app .
	docker build --target worker --build-arg BASE_DIGEST=$(BASE_DIGEST) --tag assay-worker .

clean: ## remove the environment and caches; a store is never touched
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis screenshots build sbom
