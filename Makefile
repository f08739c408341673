# `make demo` and `make test` do all set-up themselves, in .venv; see CONTRIBUTING.md for the rest.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.set-up
INPUTS := requirements.lock pyproject.toml hatch_build.py $(wildcard plugins/*/pyproject.toml) \
	$(wildcard agent/*.go agent/*/*.go agent/*/*/*.go agent/go.mod) tools/setup.sh

.PHONY: demo test test-all nightly lint types go-check bench lock wheels clean

demo: $(STAMP)
	@$(BIN)/orchard demo

test: $(STAMP)
	@$(BIN)/pytest -m "not slow and not nightly" -n 2 --dist loadgroup

test-all: $(STAMP)
	@$(BIN)/pytest -n 2 --dist loadgroup

nightly: $(STAMP)
	@tools/needs.sh
	@ORCHARD_NIGHTLY=1 ORCHARD_REQUIRE_LOCAL=1 ORCHARD_TESTS_SPAWN=1 $(BIN)/pytest -n 2 --dist loadgroup

lint: $(STAMP)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/python tools/plugin_lines.py

types: $(STAMP)
	@$(BIN)/mypy
	@cd tools/cluster && $(CURDIR)/$(BIN)/mypy --config-file $(CURDIR)/pyproject.toml *.py
	@for plugin in plugins/*/; do (cd $$plugin && $(CURDIR)/$(BIN)/mypy --config-file $(CURDIR)/pyproject.toml .) || exit 1; done

go-check: $(STAMP)
	@tools/go-check.sh

bench: $(STAMP)
	@$(BIN)/python -m bench

wheels: $(STAMP)
	@tools/wheels.sh dist

lock:
	@tools/lock.sh

clean:
	rm -rf $(VENV) dist build

$(STAMP): $(INPUTS)
	@PYTHON="$(PYTHON)" sh tools/setup.sh "$(VENV)"
	@touch $@
