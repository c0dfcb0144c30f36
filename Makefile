# Every target works in a fresh clone: the virtual environment is created if it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Where no driver of a GPU is found, PyTorch's build without CUDA, a gigabyte instead of six; TORCH=cuda for the other,
# where there is no .venv yet.
TORCH ?= $(if $(wildcard /dev/nvidiactl /dev/nvmap /dev/dxg),cuda,cpu)
SOURCES := nmt scripts benchmarks examples tests docs notebooks
# One process per core, with one thread each. The tests of a file stay together and the files keep their order, those
# with slow proofs first (tests/conftest.py); by default, files with few tests would come last, and those are the slow
# ones.
# Without their bytecode, which some containers forbid, every program that a test starts compiles the package anew.
PYTEST := env -u PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup demo docs notebooks format lint types test slow check coverage commands torture fuzz mutants soak bench table data clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Create the virtual environment .venv with the versions of constraints.txt
	@echo "$(VENV) is ready: nmt-train, nmt-translate and the others that \`nmt --help\` lists are in $(BIN)"

$(READY): pyproject.toml constraints.txt
	@echo "Creating $(VENV) with $$($(PYTHON) --version); the first time this takes a few minutes"
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 15))' \
		|| { echo "Python 3.10 to 3.14 is required; choose one with: make PYTHON=/path/to/python $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@# An older pip, such as Python's own, takes half a minute longer to look through all versions of all packages.
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --upgrade pip
	@# Only PyTorch is looked for in its own index, as pip would ask that for every package. What the index does not
	@# give, where it cannot be reached, comes from the usual one.
	@[ $(TORCH) != cpu ] || $(BIN)/python -m pip install --quiet --no-compile --no-deps --retries 0 --timeout 15 \
		--constraint constraints.txt --index-url https://download.pytorch.org/whl/cpu torch 2>/dev/null \
		|| echo "PyTorch without CUDA is not available from download.pytorch.org; taking the usual build"
	@$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable '.[dev]'
	@# Compiled on all cores (pip uses only one), for where PYTHONDONTWRITEBYTECODE is set, no import does it. Packages'
	@# own tests are not, and some packages contain files that this version of Python cannot compile and never imports.
	@$(BIN)/python -m compileall -qq -j 0 -x /tests/ $(VENV)/lib || true
	@$(BIN)/python -m compileall -q nmt
	@touch $@

demo: $(READY) ## Train a small model on a synthetic corpus, translate with it, and score it, in a few minutes
	@$(BIN)/python scripts/demo.py

docs: $(READY) ## Build the documentation as a site in build/site; every warning is an error
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --fresh-env -c docs -d build/doctrees . build/site
	@echo "the front page is build/site/index.html"

notebooks: $(READY) ## Run the notebooks from the first cell to the last, in a few minutes
	$(BIN)/python scripts/run_notebooks.py notebooks/*.ipynb

format: $(READY) ## Format the code and fix what ruff can fix
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

lint: $(READY) ## Check style and formatting with ruff
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)

types: $(READY) ## Check types with mypy
	$(BIN)/mypy --num-workers auto

test: $(READY) ## Run the fast tests
	$(PYTEST) -m 'not slow'

slow: $(READY) ## Run only the slow proofs and whole programs
	$(PYTEST) -m slow

check: lint types ## Run everything that must pass: lint, types, the fast tests, and the slow proofs
	$(PYTEST)

coverage: $(READY) ## Run the fast tests, and print which lines and branches of nmt they reach; a third longer than `make test`
	$(PYTEST) -m 'not slow' --cov

commands: $(READY) ## Run the commands of all documents as they are written, with a demo of its own; half an hour
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.documented

torture: $(READY) ## Try to break it with kills, full disks, and flipped bits at every moment; half an hour
	$(BIN)/python -m tests.torture

fuzz: $(READY) ## Give every reader broken and hostile input, 10 minutes each; findings become cases of `make test`
	@$(BIN)/python -c 'import atheris' 2>/dev/null \
		|| $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[fuzz]'
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --minutes 10 --target all

bench: $(READY) ## Measure training speed and peak memory on the reference task; other benchmarks: docs/performance.md, research/speed.md
	$(BIN)/python benchmarks/train_speed.py
	$(BIN)/python benchmarks/memory.py

mutants: $(READY) ## Make small mistakes in the core of the program, and list those that no test catches; resumes where it stopped
	@$(BIN)/python -c 'import mutmut' 2>/dev/null \
		|| $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[mutants]'
	OMP_NUM_THREADS=1 $(BIN)/mutmut run
	$(BIN)/mutmut results

soak: $(READY) ## Train and translate (a pipe and a file) for half an hour: memory and speed must not drift
	$(BIN)/python benchmarks/soak.py --minutes 30

table: $(READY) ## Train every row of the attention table for hours and write research/attention_table.md; resumes where it stopped
	$(BIN)/python -m benchmarks.attention_table

data: $(READY) ## Download Multi30k English-German, raw and tokenized, into data/multi30k
	$(BIN)/python scripts/get_multi30k.py --languages en de

clean: ## Remove caches and build artifacts, but not .venv, data, and runs
	rm -rf build dist mutants *.egg-info .mypy_cache .pytest_cache .ruff_cache .coverage .coverage.*
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +
