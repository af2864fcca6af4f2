# make run, make test: all else follows. Everything is made inside $(VENV); nothing is installed
# outside it, but for a browser for the tests where the machine has none.

VENV ?= .venv
# Arguments for the server, say: make run ARGS="--port 9000 --model openai:gpt-5.4"
ARGS ?=
# Arguments for pytest, say: make test TESTS="tests/chats -k order"
TESTS ?=
# Half as many again as there are cores: tests wait a good deal for servers and browsers.
WORKERS ?= $(shell echo $$(( ($$(getconf _NPROCESSORS_ONLN || echo 2) * 3 + 1) / 2 )))

BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Without its byte code each server that a test starts would compile the whole package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run test test-full lint format clean

help:
	@echo "make run        start the server and print its address"
	@echo "make test       run the tests (brings Chromium if there is none, and a suite for MCP)"
	@echo "make test-full  run the long forms of the tests too"
	@echo "make lint       check format, style, types and layers"
	@echo "make format     put the code into its format"
	@echo "make clean      remove $(VENV) and what tools left behind"

run: $(VENV)/run.stamp
	@exec $(BIN)/harness-web serve $(ARGS)

test: $(VENV)/dev.stamp $(VENV)/chromium.stamp $(VENV)/conformance.stamp
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(TESTS)

test-full: $(VENV)/dev.stamp $(VENV)/chromium.stamp $(VENV)/conformance.stamp
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "" $(TESTS)

lint: $(VENV)/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache

format: $(VENV)/dev.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis test-results

# The first Python that is new enough makes the environment. A name on the PATH may be a launcher
# whose version is not installed, so each one is asked.
$(BIN)/python:
	@for name in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	  if $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    echo "Making $(VENV) with $$($$name --version)"; \
	    $$name -m venv $(VENV) || { rm -rf $(VENV); exit 1; }; \
	    exit 0; \
	  fi; \
	done; \
	echo "harness-web needs Python 3.11 or newer; none is on the PATH." >&2; exit 1

$(VENV)/run.stamp: pyproject.toml | $(BIN)/python
	@echo "Installing harness-web (once)"
	@$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/dev.stamp: pyproject.toml | $(BIN)/python
	@echo "Installing harness-web and what its tests need (once)"
	@$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/run.stamp

$(VENV)/chromium.stamp: tests/support/bring_chromium.py tests/support/chromium.py | $(VENV)/dev.stamp
	@$(BIN)/python -m tests.support.bring_chromium
	@touch $@

# The public conformance suite of MCP, with Node as a wheel: see tests/conformance.
$(VENV)/conformance.stamp: tests/conformance/package-lock.json tests/support/bring_conformance.py | $(VENV)/dev.stamp
	@$(BIN)/python -m tests.support.bring_conformance
	@touch $@
