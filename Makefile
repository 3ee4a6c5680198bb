# `make demo` and `make test` are all a newcomer needs. Everything happens inside .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# More than two cores would take: tests of the service, of the page and of kills mostly wait.
WORKERS ?= 3

.PHONY: demo serve test test-long browser java topics sanitize lint bench pictures stubs clean

# One environment, laid again whenever what it is made from changes (a new package counts).
SOURCES := pyproject.toml CMakeLists.txt $(wildcard cpp/*/*.?pp cpp/*/*/*.?pp) \
  $(wildcard src/linkstream/__init__.py src/linkstream/*/__init__.py)

$(VENV)/installed-%: $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	touch $@

demo: $(VENV)/installed-cli
	$(BIN)/linkstream demo

serve: $(VENV)/installed-cli,service
	$(BIN)/linkstream serve --demo

# BERTopic by itself: what it asks for besides would bring torch, which our vectors do not need.
topics: $(VENV)/installed-test
	$(BIN)/python -c "import bertopic" 2>/dev/null \
	  || $(BIN)/python -m pip install --quiet --no-deps "bertopic==0.17.4"

test: lint browser java topics
	$(BIN)/python -m pytest -n $(WORKERS) -m "not long"

test-long: $(VENV)/installed-test browser java topics
	$(BIN)/python -m pytest -n $(WORKERS)

# The page is tested in a real browser: Debian's chromium, or whatever CHROMIUM names.
browser:
	test -n "$(CHROMIUM)" || command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
	  || (ROOT=$$(test "$$(id -u)" = 0 || echo sudo); $$ROOT apt-get update -qq \
	      && $$ROOT env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null)

# Spark runs on Java: what JAVA_HOME or the PATH names, or Debian's.
java:
	test -n "$(JAVA_HOME)" || command -v java >/dev/null \
	  || (ROOT=$$(test "$$(id -u)" = 0 || echo sudo); $$ROOT apt-get update -qq \
	      && $$ROOT env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless >/dev/null)

sanitize: $(VENV)/installed-test
	$(BIN)/python -m pytest tests/agreement/test_sanitizers.py

lint: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/installed-bench
	$(BIN)/python -m benchmarks

pictures: $(VENV)/installed-test
	set -e; for script in docs/pictures/*.py; do $(BIN)/python $$script; done

stubs: $(VENV)/installed-test
	$(BIN)/python -m nanobind.stubgen -m linkstream._core -o src/linkstream/_core.pyi

clean:
	rm -rf $(VENV) build dist
