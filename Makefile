# make          set up, then rebuild the papers on all cores
# make studies  the same for the library's own guarantees
# make quick, make quick-studies  both, made small
# make falsify  deliberate mistakes in the papers' formulas and code, which named entries must notice
# make test     set up, then the linters, the type checker and the tests
# make test-all   the same, and the tests that take minutes, which make test-long runs alone
# make docs     the documentation as a site, build/site
# make cluster  brings what hands jobs to SLURM: docs/cluster.md
# make archive    results and what Snakemake needs to trust them, for another checkout
# make peers    other libraries' private regressions beside ours, in environments of their own:
#               docs/comparison.md and its figure; four minutes of one core, and downloads;
#               `snakemake peers` writes the same to results/peers and leaves the page alone
# make picture  README's picture, docs/picture.png and its dark variant
# make twice    two cold builds of what is committed, compared byte for byte; SCALE=quick is small
VENV := .venv
PYTHON ?= python3
SCALE ?= paper
BIN := $(CURDIR)/$(VENV)/bin
# Without a named shell, macOS's make (3.81) runs simple commands itself and ignores the PATH below.
SHELL := /bin/bash
# The package runs from this checkout, whatever else is installed.
export PATH := $(BIN):$(PATH)
export PYTHONPATH := $(CURDIR)/src
export OPENBLAS_NUM_THREADS := 1
# One thread a process: the workflow and the test runner bring their own parallelism.
export OMP_NUM_THREADS := 1
# A notebook's shell may set what breaks figures and the installation.
unexport MPLBACKEND SOURCE_DATE_EPOCH
# Containers set it, and each start of an interpreter would compile again what was edited since.
unexport PYTHONDONTWRITEBYTECODE

LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
INSTALL := pip install --quiet --disable-pip-version-check

.PHONY: all studies falsify quick quick-studies test test-all test-long docs cluster archive peers picture twice setup lint lock benchmarks clean

all: setup
	snakemake all

studies: setup
	snakemake studies

falsify: setup
	snakemake falsify

quick: setup
	snakemake all --configfile config/quick.yaml

quick-studies: setup
	snakemake studies --configfile config/quick.yaml

test: setup
	@# Linters and type checker use one core: beside the tests, and what they say comes after them.
	mkdir -p build
	$(MAKE_COMMAND) lint >build/lint.log 2>&1 & lint=$$!; trap 'kill $$lint' INT TERM; \
		python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder; tests=$$?; \
		wait $$lint; linted=$$?; cat build/lint.log; exit $$((tests | linted))

test-all: test test-long

test-long: build/cluster
	@# A SLURM has the machine to itself: it hands out all cores. Unit tests are never long.
	python -m pytest -m long $(filter-out tests/unit tests/cluster tests/__pycache__,$(patsubst %/,%,$(wildcard tests/*/))) \
		--numprocesses 2 --dist worksteal --durations 10
	python -m pytest -m long tests/cluster

cluster: setup
	$(INSTALL) --no-deps --require-hashes --requirement cluster.lock

# Apart from the environment, each of whose starts of Snakemake would import it.
build/cluster: cluster.lock | setup
	$(INSTALL) --no-deps --require-hashes --upgrade --target $@ --requirement $<
	touch $@

archive: setup
	snakemake all --dry-run 2>&1 | grep -q "Nothing to be done" || { echo "Build first: make"; exit 1; }
	tar -czf privreg-results.tar.gz results .snakemake/metadata

peers: setup
	python benchmarks/peers/run.py

picture: setup
	snakemake results/figures/brown2024/fig1.png
	cp results/figures/brown2024/fig1.png docs/picture.png
	@# The same hues on the dark page of the repository's host.
	python -c 'from PIL import Image, ImageChops, ImageOps; \
		light = Image.open("docs/picture.png").convert("RGB"); \
		h, s, v = ImageOps.invert(light).convert("HSV").split(); \
		dark = Image.merge("HSV", (h.point(lambda hue: (hue + 128) % 256), s, v)).convert("RGB"); \
		ImageChops.lighter(dark, Image.new("RGB", dark.size, "#0d1117")).save("docs/picture-dark.png", optimize=True)'

twice: setup
	python tests/workflow/twice.py --scale $(SCALE)

setup: $(VENV)/installed

$(VENV)/installed: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 14) else "Python 3.11, 3.12 or 3.13 is needed: make PYTHON=python3.13")'
	$(PYTHON) -m venv --clear $(VENV)
	$(INSTALL) --no-compile --no-deps --require-hashes --requirement requirements.lock
	$(INSTALL) --no-deps --no-build-isolation --editable .
	@# A job without byte-code imports three times as long; pip would compile on one core, and
	@# other packages' tests, a third of all.
	python -m compileall -q -j 0 -x 'site-packages/.*/tests/' $(VENV)/lib src
	touch $@

lint: setup
	ruff check .
	ruff format --check .
	mypy
	codespell
	lint-imports --no-logo
	snakefmt --check --compact-diff workflow Snakefile
	snakemake --lint

docs: build/docs
	PYTHONPATH=$(CURDIR)/build/docs:$(PYTHONPATH) JUPYTER_PATH=$(CURDIR)/build/docs/share/jupyter \
		NO_MKDOCS_2_WARNING=1 python -m mkdocs build --quiet
	@echo "Page to open: build/site/index.html"

# Apart from the environment, which none of it concerns.
build/docs: docs.lock | setup
	$(INSTALL) --no-deps --require-hashes --upgrade --target $@ --requirement $<
	@# The tutorial's kernel talks to this machine alone; it warns of each start.
	sed -i.bak 's/"-f"/"--IPKernelApp.log_level=40", "-f"/' $@/share/jupyter/kernels/python3/kernel.json
	touch $@

lock:
	$(LOCK) pyproject.toml --extra workflow --extra dev --output-file requirements.lock
	printf '%s\n' snakemake-executor-plugin-slurm snakemake-executor-plugin-slurm-jobstep | \
		$(LOCK) - --no-deps --output-file cluster.lock
	printf '%s\n' mkdocs-material mkdocstrings-python mkdocs-jupyter latex2mathml ipykernel | \
		$(LOCK) - --constraint requirements.lock --output-file docs.lock

benchmarks: setup
	for file in benchmarks/*.py; do echo "$$file" && python "$$file" || exit 1; done

clean:
	find results -mindepth 1 ! -path results/README.md -delete
	rm -rf .snakemake
