# `make meter` and `make test` need nothing but Python >= 3.11, make and git; ARGS= goes to the command that runs.
PYTHON ?= python3
ARGS ?=

.PHONY: meter test check soak bench cuda frozen conformance native station docs release setup lint clean

meter test check soak bench cuda frozen conformance native station docs release setup:
	@$(PYTHON) tools/bootstrap.py $@ $(ARGS)

lint: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache build dist
