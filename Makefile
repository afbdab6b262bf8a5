# Each target first creates .venv, a virtual environment with the package and its tools.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
READY   = $(VENV)/.ready

# Two test processes with one BLAS thread each are faster than one process with two threads.
PYTEST  = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 -q

.PHONY: demo reproduce test test-all lint docs golden transcripts benchmark clean

demo: $(READY)
	$(BIN)/unflip demo

reproduce: $(READY)
	$(BIN)/unflip reproduce all --out results

test: lint
	$(PYTEST) -m "not slow"

test-all: lint
	$(PYTEST)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Build the site with the gallery: build/site/index.html. Warnings are errors.
docs: $(READY)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/sphinx-build -b html -n -W --keep-going -q -j 2 docs build/site

golden: $(READY)
	$(BIN)/python tests/golden/remake.py

# Run the shell sessions on the pages, and update their output.
transcripts: $(READY)
	$(BIN)/python tests/support/transcripts.py

benchmark: $(READY)
	$(BIN)/python benchmarks/loo_path.py --quick
	$(BIN)/python benchmarks/speed.py --quick
	$(BIN)/python benchmarks/streaming.py --quick
	$(BIN)/python benchmarks/out_of_core.py --quick
	$(BIN)/python benchmarks/dask_scaling.py --quick
	$(BIN)/python benchmarks/sparse.py --quick
	$(BIN)/python benchmarks/import_time.py
	$(BIN)/python benchmarks/theory.py
	$(BIN)/python benchmarks/logistic.py
	$(BIN)/python benchmarks/reproduce.py
	$(BIN)/python benchmarks/noise_rates.py --quick
	$(BIN)/python benchmarks/accuracy.py --quick
	$(BIN)/python benchmarks/several_classes.py --quick
	$(BIN)/python benchmarks/any_model.py --quick --jobs 2
	$(BIN)/python benchmarks/audit.py --quick
	$(BIN)/python benchmarks/image_features.py --draws 1
	$(BIN)/python benchmarks/refinement.py --quick
	$(BIN)/python benchmarks/audit_page.py
	$(BIN)/python benchmarks/audit_file.py --quick

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist docs/gallery docs/api/generated results unflip-demo.html unflip-demo.png unflip-demo-theory.png .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
