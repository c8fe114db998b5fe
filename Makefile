# make report: everything on a bundled checkpoint, in report/index.html.  make test: the suite.
PYTHON ?= python3
MODEL ?= deep-roberta
BIN = .venv/bin
unexport PYTHONDONTWRITEBYTECODE  # tests start processes: each would compile all that it imports

report: .venv/ready
	$(BIN)/minitx report $(MODEL) --out report

test: .venv/ready  ## ARGS=--release: as before a release, which lacks no translation
	$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

test-fast: .venv/ready  ## the core and the maths, under a minute
	$(BIN)/python -m pytest -n auto --dist worksteal tests/core tests/maths

KERNEL ?= Haswell
test-kernel: .venv/ready  ## what compares bits, or counts at a threshold, under another BLAS kernel; KERNEL=Prescott
	OPENBLAS_CORETYPE=$(KERNEL) $(BIN)/python -m pytest -n auto --dist worksteal tests/core tests/maths tests/experiments/test_rotation_lags.py

test-lowest: .venv-lowest/ready  ## the suite with the lowest versions that setup.cfg allows
	.venv-lowest/bin/python -m pytest

test-page: .venv/browser .venv/docs  ## the pages in real browsers: Chromium or Chrome, and Firefox where it is
	$(BIN)/python -m pytest tests/pages/checks*.py

docs: .venv/docs  ## the documentation: docs/_build/html/index.html; its lessons and examples are executed
	$(BIN)/python -m docs $(ARGS)

lint: .venv/lint  ## layout and likely mistakes of Python and JavaScript, types of the public surface
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/biome check --error-on-warnings
	$(BIN)/mypy

mutants: .venv/ready  ## one deliberate break at a time, the suite must notice each; ARGS="--part 1/3"
	$(BIN)/python tests/tools/mutants.py $(ARGS)

fuzz: .venv/ready  ## ten thousand damaged folders, ten minutes on two cores; ARGS="--cases 1000 --seed 2", ARGS="--case 4711"
	$(BIN)/python tests/tools/fuzz.py $(ARGS)

fuzz-inputs: .venv/ready  ## ten thousand damaged texts, pictures, records, states and requests; ARGS="--only pairs"
	$(BIN)/python tests/tools/fuzz_inputs.py $(ARGS)

endurance: .venv/ready  ## random threads, forks and interrupts, two minutes; ARGS="--minutes 120 --share 0.3"
	$(BIN)/python tests/tools/endurance.py $(ARGS)

killed: .venv/ready  ## runs that are killed, full disks, folders that are gone; ARGS="--kills 5 profiles"
	$(BIN)/python tests/tools/killed.py $(ARGS)

.venv/ready: setup.cfg pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "minitx needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable '.[test]'
	touch $@

.venv-lowest/ready: setup.cfg tests/lowest.txt
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip install --quiet --editable '.[test]' --constraint tests/lowest.txt
	touch $@

.venv/lint: .venv/ready
	$(BIN)/pip install --quiet --editable '.[lint]'
	touch $@

.venv/docs: .venv/ready
	$(BIN)/pip install --quiet --editable '.[docs]'
	touch $@

.venv/browser: .venv/ready
	$(BIN)/pip install --quiet --editable '.[browser]'
	touch $@

.venv/torch: .venv/ready
	$(BIN)/pip install --quiet --editable '.[torch]'
	touch $@

golden: .venv/torch  ## rebuild tests/golden from the reference library
	$(BIN)/python tests/tools/make_config_keys.py
	$(BIN)/python tests/tools/make_golden.py
	$(BIN)/python tests/tools/make_golden_images.py
	$(BIN)/python tests/tools/make_golden_asked.py
	$(BIN)/python tests/tools/make_generated.py
	$(BIN)/python tests/tools/make_japanese.py
	$(BIN)/python tests/tools/make_pieces.py
	$(BIN)/python tests/tools/make_recurrent.py
	$(BIN)/python tests/tools/make_references.py
	$(BIN)/python tests/tools/make_tokenizer_folders.py

parity: .venv/torch  ## layer-by-layer distance from the reference library: make parity MODEL=folder TEXT="…"
	$(BIN)/python tests/tools/parity.py $(MODEL) $(if $(TEXT),--text "$(TEXT)")

bench: .venv-bench/ready  ## twenty minutes beside other systems: benchmarks/results/; make bench ARGS="--resume"
	.venv-bench/bin/python -m benchmarks $(ARGS)

.venv-bench/ready: setup.cfg
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/pip install --quiet --editable '.[bench]'
	touch $@

dist: .venv/ready  ## the wheel and the sdist of a release, the same bytes each time, and their SHA256SUMS: dist/
	$(BIN)/python tests/tools/dist.py

extras: .venv/ready  ## each extra alone, in an environment of its own, and what it is for; ARGS="live dask"
	$(BIN)/python tests/tools/extras.py $(ARGS)

.PHONY: dist extras report docs test test-fast test-kernel test-lowest test-page lint mutants fuzz fuzz-inputs endurance killed golden parity bench
