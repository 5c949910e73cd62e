# make demo: set up what the demo needs and run it      make test: set up and run the tests
# make fast: the everyday tests                         make lint: ruff and mypy
# make bench: the project's own benchmarks              make clean: forget the environment
# make sanitize: the catalogue of ops as C under the address and undefined-behaviour sanitizers of gcc
#                (13 minutes)
# make conformance: the Array API standard's checks     (docs/conformance.md has the long runs)
#
# Needs Python 3.11 or newer with venv and pip, and a C compiler. PYTHON=/path/to/python chooses
# the interpreter, VENV=/path the folder of the environment.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
INSTALL = $(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt

.PHONY: demo test fast lint bench conformance sanitize clean
.DELETE_ON_ERROR:

demo: $(VENV)/ready-demo
	$(BIN)/python examples/radon.py

test: $(VENV)/ready-test
	$(BIN)/python -m pytest -n auto --dist worksteal

fast: $(VENV)/ready-test
	$(BIN)/python -m pytest -m fast -k "not numba and not jax and not torch" -n auto

lint: $(VENV)/ready-test
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

bench: $(VENV)/ready-demo
	$(BIN)/python -m benchmarks.imports
	$(BIN)/python -m benchmarks.record
	$(BIN)/python -m benchmarks.named
	$(BIN)/python -m benchmarks.compile
	$(BIN)/python -m benchmarks.compile_graphs
	$(BIN)/python -m benchmarks.models
	$(BIN)/python -m benchmarks.by_hand
	$(BIN)/python -m benchmarks.cost
	$(BIN)/python -m benchmarks.rows
	$(BIN)/python -m benchmarks.implicit
	$(BIN)/python -m benchmarks.deep

conformance: $(VENV)/ready-test
	$(BIN)/python -m conformance own lazyarr:interpret lazyarr:c --examples 3
	@mkdir -p build
	$(BIN)/python -m conformance report numpy array_api_strict lazyarr --html build/conformance.html

sanitize: $(VENV)/ready-test
	CC="gcc -fsanitize=address,undefined -fno-sanitize-recover=undefined" ASAN_OPTIONS=detect_leaks=0 \
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so):$$(gcc -print-file-name=libubsan.so)" \
	LAZYARR_LAUNCHER=ctypes LAZYARR_CACHE_DIR="$$(mktemp -d)" \
	$(BIN)/python -m pytest -q -p no:xdist $(CATALOGUE) -k "not numba and not jax and not torch \
	and not sanitizers and not instructions and not compiler and not launcher and not ten_million"

CATALOGUE = $(addprefix tests/backends/, test_ops.py test_sizes_of_ops.py test_special_values.py test_routines.py \
	test_complex_ops.py test_complex_elements.py test_order_of_dtypes.py test_checks.py loop c)

clean:
	rm -rf $(VENV) build lazyarr.egg-info

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("lazyarr needs Python 3.11 or newer, this is " + sys.version) if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)

# The stamps are redone when the requirements change, not at every run.
$(VENV)/ready-demo: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e '.[all]'
	@touch $@

$(VENV)/ready-test: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e '.[all,test]'
	@touch $@ $(VENV)/ready-demo
