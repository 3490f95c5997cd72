# Costwatch. `make run` starts everything, `make test` tests everything; nothing is needed before.
# On a machine with only make, Python 3.11+ with venv, and a package index.

PORT    ?= 8000
HOST    ?= 127.0.0.1
DATA    ?= var
PYTHON3 ?= python3

UV_VERSION := 0.13.8
VENV       := .venv
PYTHON     := $(VENV)/bin/python
BIN        := $(VENV)/bin
STAMP      := $(VENV)/.ok
SPARK      := $(VENV)/.spark
COMPILER   := $(VENV)/.cc
# `exec`, so that the launcher is make's own child and ends with it (--with-parent).
# Servers of your own (DATABASE_URL and REDIS_URL) are used instead of the embedded ones.
EMBEDDED   := $(if $(DATABASE_URL),,$(PYTHON) -m costwatch.embedded --with-parent --data "$(DATA)" --)
JOINED     := $(if $(DATABASE_URL),,$(PYTHON) -m costwatch.embedded --data "$(DATA)" --join --)
TEST_BED   := env -u DATABASE_URL -u REDIS_URL $(PYTHON) -m costwatch.embedded --with-parent --test --
LOCAL_ENV  := exec env COSTWATCH_DATA_DIR="$(abspath $(DATA))" COSTWATCH_INSECURE_HTTP=1 COSTWATCH_LOG_FORMAT=text \
              COSTWATCH_BIND="$(HOST):$(PORT)"

.DEFAULT_GOAL := default
.PHONY: default run test test-spark check fix bench demo manage setup setup-spark setup-cc lock
.SILENT:

default: check test

run: setup
	$(PYTHON) -m costwatch.bind "$(HOST):$(PORT)"
	$(LOCAL_ENV) $(EMBEDDED) sh -c '\
	  COSTWATCH_LOG_LEVEL=$${COSTWATCH_LOG_LEVEL:-WARNING} $(PYTHON) manage.py prepare && \
	  exec $(PYTHON) manage.py up'

# Any manage.py command, beside `make run` or without it: make manage ARGS="costs --group-by day"
manage: setup
	$(LOCAL_ENV) $(JOINED) $(PYTHON) manage.py $(ARGS)

demo: setup
	$(LOCAL_ENV) $(JOINED) sh -c '$(PYTHON) manage.py migrate -v 0 && exec $(PYTHON) manage.py demo'

test: setup setup-cc
	COSTWATCH_SECRET_KEY=unused $(PYTHON) manage.py compile_translations
	exec $(TEST_BED) $(PYTHON) -m pytest $(ARGS)

# The same bills on a real Spark cluster on loopback: every row and every total as from DuckDB.
test-spark: setup-spark
	COSTWATCH_SECRET_KEY=unused $(PYTHON) manage.py compile_translations
	exec $(TEST_BED) $(PYTHON) -m pytest tests/spark $(ARGS)

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	COSTWATCH_SECRET_KEY=unused $(BIN)/mypy .
	$(BIN)/lint-imports
	$(BIN)/djlint templates --check --lint --quiet
	exec env -u COSTWATCH_DEBUG -u COSTWATCH_INSECURE_HTTP $(TEST_BED) sh -c '\
	  $(PYTHON) manage.py makemigrations --check --dry-run && \
	  $(PYTHON) manage.py check --deploy --fail-level WARNING'

fix: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/djlint templates --reformat --quiet || $(BIN)/djlint templates --check --quiet

bench: setup setup-cc
	exec $(TEST_BED) $(PYTHON) -m bench $(ARGS)

setup: $(STAMP)

# Only what is locked, and all of it; USE_PIP=1 installs with pip, which obeys pip.conf and PIP_*.
$(STAMP): requirements.lock .uv/.ok
	echo "Installing the locked packages (about 10 s the first time) ..."
	test -x $(PYTHON) && $(PYTHON) -c '' 2>/dev/null || $(PYTHON3) -m venv --clear --without-pip $(VENV)
ifdef USE_PIP
	.uv/bin/python -m pip --python $(PYTHON) install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
else
	test -x .uv/bin/uv || .uv/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	.uv/bin/uv pip sync --quiet --require-hashes --python $(PYTHON) requirements.lock
endif
	touch $@

# What LAKE_ENGINE=spark://... needs, beside the rest in the same environment.
setup-spark: $(SPARK)

$(SPARK): requirements-spark.lock $(STAMP)
	echo "Installing Spark (about 450 MB the first time) ..."
ifdef USE_PIP
	.uv/bin/python -m pip --python $(PYTHON) install --quiet --disable-pip-version-check --require-hashes -r requirements-spark.lock
else
	.uv/bin/uv pip install --quiet --require-hashes --python $(PYTHON) -r requirements-spark.lock
endif
	touch $@

# The agent's tests compile a stand-in for NVIDIA's library: with the machine's compiler, else one from a wheel.
setup-cc: $(COMPILER)

$(COMPILER): requirements-cc.lock $(STAMP)
	command -v cc >/dev/null || command -v gcc >/dev/null || command -v clang >/dev/null || $(MAKE) .install-cc
	touch $@

.PHONY: .install-cc
.install-cc:
	echo "Installing a C compiler (about 100 MB) ..."
ifdef USE_PIP
	.uv/bin/python -m pip --python $(PYTHON) install --quiet --disable-pip-version-check --require-hashes -r requirements-cc.lock
else
	.uv/bin/uv pip install --quiet --require-hashes --python $(PYTHON) -r requirements-cc.lock
endif

.uv/.ok:
	command -v $(PYTHON3) >/dev/null || \
	  { echo "Python is missing: sudo apt-get install python3 python3-venv" >&2; exit 1; }
	$(PYTHON3) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Costwatch needs Python 3.11 or newer, and $(PYTHON3) is $$($(PYTHON3) -V 2>&1): name one, make run PYTHON3=python3.12" >&2; exit 1; }
	$(PYTHON3) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "Python's venv is missing: sudo apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON3) -m venv .uv
	touch $@

lock: .uv/.ok
	test -x .uv/bin/uv || .uv/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	.uv/bin/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
	  --custom-compile-command "make lock" requirements.txt -o requirements.lock
	.uv/bin/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
	  --custom-compile-command "make lock" requirements-spark.txt -o requirements-spark.lock
	.uv/bin/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
	  --custom-compile-command "make lock" requirements-cc.txt -o requirements-cc.lock
