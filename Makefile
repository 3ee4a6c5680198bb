# `make demo` and `make test` are the two commands a newcomer needs. Everything is installed in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# More than two cores would take: tests of the service, the page and crashes mostly wait.
WORKERS ?= 3

.PHONY: demo serve test test-long check lint format topics packages sanitize bench pictures stubs clean

# One environment for all extras, installed again when its sources change (a new package counts).
SOURCES := pyproject.toml CMakeLists.txt $(wildcard cpp/*/*.?pp cpp/*/*/*.?pp) \
  $(wildcard src/linkstream/__init__.py src/linkstream/*/__init__.py)

$(VENV)/installed-%: $(SOURCES)
	PYTHON="$(PYTHON)" .ci/packages python
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	touch $@

demo: $(VENV)/installed-cli
	$(BIN)/linkstream demo

serve: $(VENV)/installed-cli,service
	$(BIN)/linkstream serve --demo

test: packages lint topics
	$(BIN)/python -m pytest -n $(WORKERS) -m "not long"

test-long: packages $(VENV)/installed-test topics
	$(BIN)/python -m pytest -n $(WORKERS)

# The page is tested in Chromium (or the program that CHROMIUM names), Spark runs on Java.
packages:
	PYTHON="$(PYTHON)" .ci/packages python compiler browser java

# BERTopic without its dependencies: they include torch, which the tests do not need.
topics: $(VENV)/installed-test
	$(BIN)/python -c "import bertopic" 2>/dev/null \
	  || $(BIN)/python -m pip install --quiet --no-deps "bertopic==0.17.4"

# Lint and tests of the core, for use while you work: no browser, no Java, no extras, about a minute
# on two cores. The ignored files take longest.
CORE := paper engine identity clusterer store
CORE_TESTS := tests/paper tests/engine \
  $(addprefix tests/agreement/test_,engines.py naive.py) \
  $(addprefix tests/identity/test_,misuse.py precedence.py reasons.py redo.py verbs.py views.py) \
  $(addprefix tests/store/test_,answers.py keys.py opening.py steps.py) \
  $(addprefix --ignore=tests/,paper/test_predictive.py engine/test_fuzz.py engine/test_hostile.py)

check: $(VENV)/installed-check
	$(STYLE)
	$(BIN)/mypy $(CORE:%=-p linkstream.%)
	$(BIN)/python -m pytest -n 2 -q -m "not long" $(CORE_TESTS)

lint: $(VENV)/installed-test
	$(STYLE)
	$(BIN)/mypy

CPP := $(wildcard cpp/*/*.?pp cpp/*/*/*.?pp)
PAGE := $(wildcard src/linkstream/service/dashboard/*.js)
DENO := DENO_DIR=$(CURDIR)/$(VENV)/deno DENO_NO_UPDATE_CHECK=1 $(BIN)/deno

define STYLE
$(BIN)/ruff check .
$(BIN)/ruff format --check .
$(BIN)/lint-imports
$(BIN)/clang-format --dry-run --Werror $(CPP)
$(DENO) fmt --quiet --check
$(DENO) check --quiet $(PAGE)
endef

format: $(VENV)/installed-check
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)
	$(DENO) fmt --quiet

sanitize: $(VENV)/installed-test
	$(BIN)/python -m pytest tests/agreement/test_sanitizers.py

bench: $(VENV)/installed-bench
	$(BIN)/python -m benchmarks

pictures: $(VENV)/installed-test
	set -e; for script in docs/pictures/*.py; do $(BIN)/python $$script; done

stubs: $(VENV)/installed-test
	$(BIN)/python -m nanobind.stubgen -m linkstream._core -o src/linkstream/_core.pyi

clean:
	rm -rf $(VENV) build dist
