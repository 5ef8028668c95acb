# Every target sets up what it needs. The two that matter first: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help setup demo test check format browser docs package tutorials stress bench bench-corruptions clean

help: ## Show the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY) ## Create .venv with everything, unless nothing changed

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Surefoot needs Python 3.11 or later: make PYTHON=python3.12 setup" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@command -v uv > /dev/null || test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@echo "Installing into $(VENV) ..."
	@$$(command -v uv || echo $(BIN)/uv) pip install --quiet --compile-bytecode --python $(BIN)/python --constraint constraints.txt --editable '.[dev,docs]'
	@$$(command -v uv || echo $(BIN)/uv) pip install --quiet --python $(BIN)/python --constraint constraints.txt --target $(VENV)/trackers --no-deps wandb
	@touch $@

demo: $(READY) ## Train two models on digits, audit both, compare them, write the page
	$(BIN)/surefoot demo --output surefoot-demo --overwrite

test: $(READY) ## The whole suite
	OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal --durations 40

check: $(READY) ## Lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY) ## Put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

browser: ## Install Chromium where that is possible; the page's tests use it
	@sh scripts/browser.sh

docs: $(READY) ## The documentation site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

package: $(READY) ## Wheel and sdist, checked and used as a newcomer would
	@sh scripts/newcomer.sh $(BIN)/python

stress: $(READY) ## Repeated kills, launches, large sizes, and the rest of many cases
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m stress --numprocesses auto --maxprocesses 4 --dist worksteal --durations 40

bench: $(READY) ## Every benchmark, as ratios
	@for file in benchmarks/[a-z]*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

bench-corruptions: $(READY) ## The corruptions beside a per-image loop, and all 95 copies of 10,000 images
	$(BIN)/python benchmarks/corruptions.py
	$(BIN)/python benchmarks/corruptions.py --copies 10000

tutorials: $(READY) ## Run the tutorials and write their outputs into them
	$(BIN)/python scripts/tutorials.py

clean: ## Remove what was made
	rm -rf $(VENV) site dist surefoot-demo runs audits .pytest_cache .mypy_cache .ruff_cache .hypothesis
