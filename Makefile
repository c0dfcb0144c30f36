# Every target works in a fresh clone: the virtual environment is made when it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SOURCES := nmt scripts benchmarks tests
# A process on each core, with one thread each; the tests of a file stay together, and the files in their order: by
# default those of few tests come last, which are the long ones.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup demo format lint types test slow check torture fuzz mutants soak bench table data clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Make the virtual environment .venv with the versions of constraints.txt
	@echo "$(VENV) is ready: nmt-train, nmt-translate, nmt-eval, nmt-score and nmt-shortlist are in $(BIN)"

$(READY): pyproject.toml constraints.txt
	@echo "Making $(VENV) with $$($(PYTHON) --version); the first time this takes a few minutes"
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' \
		|| { echo "Python 3.10 to 3.13 is needed; choose one with: make PYTHON=/path/to/python $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(READY) ## Train a small model on a synthetic corpus, translate with it and score it, in a few minutes
	@$(BIN)/python scripts/demo.py

format: $(READY) ## Format the code and mend what ruff can mend
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

lint: $(READY) ## Check style and format with ruff
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)

types: $(READY) ## Check types with mypy
	$(BIN)/mypy

test: $(READY) ## Run the fast tests
	$(PYTEST) -m 'not slow'

slow: $(READY) ## Run the slow proofs only: they train models for minutes
	$(PYTEST) -m slow

check: lint types ## Run everything that has to hold: lint, types, the fast tests and the slow proofs; prints coverage
	$(PYTEST) --cov

torture: $(READY) ## Break it: kills, full disks, flipped bits at all moments, in about half an hour; it resumes
	$(BIN)/python -m tests.torture

fuzz: $(READY) ## Give every reader broken and hostile input, 10 minutes each; what is found becomes a case of `make test`
	@$(BIN)/python -c 'import atheris' 2>/dev/null \
		|| $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[fuzz]'
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --minutes 10 --target all

bench: $(READY) ## Measure training speed and peak memory of the reference task; docs/performance.md has the other benchmarks
	$(BIN)/python benchmarks/train_speed.py
	$(BIN)/python benchmarks/memory.py

mutants: $(READY) ## Make small mistakes in the heart of the program, for an hour: do the tests notice, by file
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.mutation

soak: $(READY) ## Train and translate for half an hour, a pipe and a file: memory and speed must not drift
	$(BIN)/python benchmarks/soak.py --minutes 30

table: $(READY) ## Train every row of the attention table, for hours, and write docs/attention_table.md; it resumes
	$(BIN)/python -m benchmarks.attention_table

data: $(READY) ## Fetch Multi30k English-German, raw and tokenised, into data/multi30k
	$(BIN)/python scripts/get_multi30k.py --languages en de

clean: ## Remove caches and build artefacts; .venv, data and runs stay
	rm -rf build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .coverage .coverage.*
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +
