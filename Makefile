# Two commands on a fresh machine: `make train` and `make test`. Everything lives in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SUDO := $(if $(filter 0,$(shell id -u)),,sudo -n)

.PHONY: train test browser check format learn bench clean

train: $(READY)
	$(BIN)/surefoot train

test: $(READY) browser
	$(BIN)/python -m pytest -n 2 --dist loadgroup

# Tests look at reports in a real browser. Where there is none and it cannot be installed, they are skipped and say so.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
	|| { $(SUDO) apt-get -o Acquire::Retries=3 update && $(SUDO) apt-get -o Acquire::Retries=3 install --yes \
	--no-install-recommends chromium fonts-dejavu-core; } \
	|| echo "Chromium is missing and could not be installed: tests that look at pages will be skipped"

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Minutes to hours: learning over several seeds, written to benchmarks/results.
learn: $(READY)
	$(BIN)/python -m benchmarks.learning

# Side by side with others in one run, written to benchmarks/results; about 20 minutes on two idle cores.
bench: $(READY)
	$(BIN)/surefoot bench peers --output benchmarks/results/speed

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
