# One command for each thing a person does. Every target sets up what it needs in .venv.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
comma := ,
DEVICE ?= cpu
MODEL ?= cnn
TESTS ?= tests
SECONDS ?= 300

# DRIVER=pocl|intel|rusticl is the one OpenCL driver of a run, whatever others there are: `make test DEVICE=opencl
# DRIVER=intel`. The loader gets a folder that names this library alone.
LIBRARY_pocl := libpocl.so.2
LIBRARY_intel = $(abspath $(VENV))/lib/libintelocl.so
LIBRARY_rusticl := libRusticlOpenCL.so.1
ifneq (,$(DRIVER))
$(if $(LIBRARY_$(DRIVER)),,$(error DRIVER is pocl, intel or rusticl, not $(DRIVER)))
export OCL_ICD_VENDORS := $(CURDIR)/build/opencl/$(DRIVER)
endif
ifeq (rusticl,$(DRIVER))
export RUSTICL_ENABLE := llvmpipe
export TENSORPY_OPENCL_DEVICE := llvmpipe
endif

.PHONY: help setup native driver test test-all ctest faults fuzz lint format support accuracy torch-names coverage bench bench-distributed demo wheel wheels sdist aarch64 sanitize tsan oclgrind bc abi c-api docs pictures clean

help:
	@echo "make test      set up, build, run the whole suite (C and Python)"
	@echo "               DEVICE=opencl DRIVER=pocl, intel or rusticl: on that OpenCL driver alone"
	@echo "make test-all  the suite on every device and under every checker, all operators: an hour"
	@echo "make demo      set up, build, train the digit classifier (MODEL=mlp, DEVICE=...)"
	@echo "make native    rebuild the C half in place"
	@echo "make lint      clang-format, ruff, mypy, pyright (the stubs too)"
	@echo "make bench     compare with NumPy (and torch, if installed)"
	@echo "make bench-distributed  messages between processes beside gloo's, if torch is installed"
	@echo "make pictures  draw the pictures of docs/ anew"
	@echo "make docs      build the site of docs/ and a reference of everything: build/docs/html/index.html"
	@echo "make wheel     build a wheel for glibc 2.28 and later, and check it in an empty environment"
	@echo "make wheels    the same for every CPython from 3.10 on that is on this machine"
	@echo "make sdist     pack the sources, from which pip builds"
	@echo "make aarch64   cross-compile the wheel for AArch64, and run tests of it under qemu"
	@echo "make sanitize  run the suite under AddressSanitizer and UBSan"
	@echo "make tsan      run the C tests of locks, dispatch, autograd and the allocator under ThreadSanitizer"
	@echo "make fuzz      compare random calls with an installed torch, and random programs compiled and not, with a new seed (SECONDS=..., DEVICE=...)"
	@echo "make faults    kill and stop processes of worlds that train, 200 times (SEED=..., COUNT=...)"
	@echo "make oclgrind  run the OpenCL kernels of a reduced table in a simulator that sees races and bad accesses"
	@echo "make bc        schemas that changed since the release, and who is hurt"
	@echo "make abi       the C interface as the compiler lays it out, against the saved one (ARGS=--save)"
	@echo "make c-api     write docs/extending/c_api.md from the headers"
	@echo "make support   write docs/support.md, the table of operators, dtypes and devices"
	@echo "make accuracy  write docs/accuracy_16bit.md, the errors of 16-bit floats beside an installed torch's"
	@echo "make torch-names  write docs/torch.md, the table of PyTorch's names"
	@echo "make coverage  write docs/coverage.md: which of PyTorch's operators are here, and why the others are not"

# Says what comes next, of how many steps, and how long it took from the first on: $(1) is the step, $(2) what it does.
step = @test -e $(VENV)/began || date +%s >$(VENV)/began; \
    printf '\n== step %s, at %d s: %s\n' '$(1)' $$(($$(date +%s) - $$(cat $(VENV)/began))) '$(2)'
# pip, with what it fetches and installs, without what is there already. Python compiles what is imported then: of the
# demo's packages a tenth, and pip would take 15 seconds on one core for the rest.
pip = $(BIN)/python -W ignore -m pip install --disable-pip-version-check --no-warn-script-location --no-compile

$(BIN)/python:
	@printf '\n== step 1 of 3: an environment of its own in $(VENV)\n'
	$(PYTHON) -m venv $(VENV)
	@date +%s >$(VENV)/began
	@$(pip) -q "pip>=23"

# The packages that an extra of tensorpy's names; $(1): which. tensorpy itself is installed by then, and stays as it is.
extra = $$($(BIN)/python -c 'from importlib.metadata import requires; \
    print(*(r.split(";")[0].strip() for r in requires("tensorpy") if r.endswith("extra == \"$(1)\"")))')

# The packages of the extra that a stamp is called by, unless they came with tensorpy; $(1): what they are for.
beside = @{ [ -e $@ ] && ! [ $< -nt $@ ]; } || \
    { printf '\n== what %s beside it\n' '$(1)'; $(pip) $(call extra,$(@F)) && touch $@; }

# The editable install and the packages beside it are fetched while the C half is compiled, which leaves pip room enough;
# EXTRA is the extra of the goal. The stamps are renewed when the project's own description changes.
$(VENV)/installed: pyproject.toml setup.py | $(BIN)/python
	$(call step,2 of 3,what building needs)
	@$(pip) "setuptools>=77" "ninja>=1.11" "PyYAML>=6.0"
	$(call step,3 of 3,the C half$(comma) and beside it tensorpy itself$(comma) in place)
	@TENSORPY_NATIVE=beside $(pip) --no-build-isolation -e ".$(EXTRA:%=[%])" >$(VENV)/pip.log 2>&1 & pip=$$!; \
	$(BIN)/python setup.py native || { kill $$pip; exit 1; }; \
	wait $$pip || { cat $(VENV)/pip.log; exit 1; }; grep ^Successfully $(VENV)/pip.log
	@printf 'set up in %d s\n' $$(($$(date +%s) - $$(cat $(VENV)/began)))
	@rm -f $(VENV)/began
	@touch $@ $(EXTRA:%=$(VENV)/%)
	$(eval BUILT := yes)

test setup: EXTRA := test
demo: EXTRA := demo

$(VENV)/test: $(VENV)/installed
	$(call beside,the tests need)

setup: $(VENV)/test

native: $(VENV)/installed
	@$(if $(BUILT),,$(BIN)/python setup.py native)

ctest: native
	$(BIN)/python setup.py native ctests
	@status=0; for t in build/$${TENSORPY_BUILD:-release}/ctest/test_*; do \
	    case $$t in *.d) continue ;; esac; echo "$$t"; $$t || status=1; done; exit $$status

# A finding names its call: `python tests/operators/differential.py --repeat=SEED:CALL` does it again.
fuzz: driver $(VENV)/test
	PYTHONPATH=. $(BIN)/python tests/operators/differential.py --seconds=$(SECONDS) --device=$(DEVICE) $(ARGS)
	PYTHONPATH=. $(BIN)/python tests/operators/differential_sparse.py --seconds=$(SECONDS)
	PYTHONPATH=. $(BIN)/python tests/tracing/test_compile_random.py --seconds=$(SECONDS) --device=$(DEVICE)

faults: SEED ?= 1
faults: COUNT ?= 200
faults: $(VENV)/test
	PYTHONPATH=tests/distributed $(BIN)/python tests/distributed/test_random_faults.py $(SEED) $(COUNT)

# Says that packages are missing ($(1): what for, $(2): which), and installs them where that is allowed.
install = { echo "no $(1): missing $(2)"; \
    if [ "$$(id -u)" = 0 ]; then as=; elif sudo -n true 2>/dev/null; then as=sudo; else as=none; fi; \
    if [ "$$as" = none ] || ! command -v apt-get >/dev/null; then echo "install it, or what needs it is skipped"; \
    else $$as apt-get update -q && $$as apt-get install -y -q $(2); fi; }

HAS_DEVICE = $(BIN)/python -c 'import sys, tensorpy; sys.exit(not tensorpy.opencl.is_available())'
install_pocl = $(call install,OpenCL driver,pocl-opencl-icd ocl-icd-libopencl1)
install_rusticl = $(call install,OpenCL driver,mesa-opencl-icd ocl-icd-libopencl1)
install_intel = { $(BIN)/python -m pip install -q "intel-opencl-rt==2026.2.0" "intel-cmplr-lib-rt==2026.2.0" && \
    { ldconfig -p | grep -q libOpenCL.so.1 || $(call install,OpenCL loader,ocl-icd-libopencl1); }; }

# OpenCL tests and demos need a driver: DRIVER, else PoCL, is installed where that is allowed, and else named.
driver: native
ifneq (,$(filter opencl%,$(DEVICE)))
ifneq (,$(DRIVER))
	@mkdir -p build/opencl/$(DRIVER) && echo $(LIBRARY_$(DRIVER)) > build/opencl/$(DRIVER)/$(DRIVER).icd
endif
	@$(HAS_DEVICE) || $(install_$(or $(DRIVER),pocl))
ifneq (,$(DRIVER))
	@$(HAS_DEVICE) || { echo "no device of $(DRIVER), which DRIVER names"; exit 1; }
endif
endif

test: ctest driver $(VENV)/test
	$(BIN)/python -m pytest -q $(TESTS) --device=$(DEVICE) $(ARGS)

# What .ci/run takes a part of, whole.
test-all: test sanitize tsan
	$(MAKE) test DEVICE=opencl
	$(MAKE) oclgrind ARGS=--all

$(VENV)/lint: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q "ruff==0.17.5" "mypy==2.4.1" "clang-format==23.1.5" "pyright==1.1.414" \
	    types-PyYAML
	touch $@

lint: $(VENV)/lint $(VENV)/test native
	$(BIN)/ruff check .
	$(BIN)/mypy codegen
	$(BIN)/mypy --explicit-package-bases tensorpy tests/typing docs/site
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/python -m pytest -q tests/package/test_editors.py
	git ls-files 'csrc/*.c' 'csrc/*.h' 'tests/c/*.c' 'tests/c/*.h' | xargs $(BIN)/clang-format --dry-run -Werror

format: $(VENV)/lint
	git ls-files 'csrc/*.c' 'csrc/*.h' 'tests/c/*.c' 'tests/c/*.h' | xargs $(BIN)/clang-format -i

support: native $(VENV)/test
	$(BIN)/python -m tensorpy.testing.support docs/support.md

accuracy: native $(VENV)/test
	$(BIN)/python -m tensorpy.testing.accuracy docs/accuracy_16bit.md

torch-names: native $(VENV)/test
	$(BIN)/python -m tensorpy._as_torch.page docs/torch.md

# PyTorch's entries are those of an installed torch; without one it says what to install.
coverage: $(VENV)/test
	$(BIN)/python -m codegen.coverage $(ARGS)

bc: $(VENV)/installed
	$(BIN)/python -m codegen.compatibility $(ARGS)

abi: $(VENV)/installed
	$(BIN)/python -m codegen.abi $(ARGS)

c-api: $(VENV)/installed
	$(BIN)/python -m codegen.c_api

bench: native $(VENV)/test
	$(BIN)/python -m pip install -q matplotlib threadpoolctl
	$(BIN)/python -m benchmarks --device=$(DEVICE)

bench-distributed: native
	$(BIN)/python -m pip install -q "mpich>=5,<6"
	$(BIN)/python -m benchmarks.bench_distributed $(ARGS)

$(VENV)/docs: $(VENV)/installed
	@$(pip) -q $(call extra,docs)
	touch $@

pictures: native $(VENV)/test
	$(BIN)/python -m docs.site.pictures docs/pictures

# A warning is an error: a page outside the tree of contents, a link or name that leads nowhere.
docs: $(VENV)/docs $(VENV)/test native
	$(BIN)/python -m docs.site build/docs/source
	$(BIN)/python -m sphinx -W --keep-going -q -j auto -c docs -b html build/docs/source build/docs/html
	$(BIN)/python -m docs.site.links build/docs/html
	@echo "build/docs/html/index.html"

$(VENV)/demo: $(VENV)/installed
	$(call beside,the demo needs)

demo: $(VENV)/demo driver
	@printf '\n== the demo\n'
	$(BIN)/python examples/digits.py --model $(MODEL) --device $(DEVICE) $(ARGS)

# For glibc 2.28 and later, of the Python in .venv; wheels: of every CPython that is found (ARGS="--pythons ...").
wheel: $(VENV)/installed
	$(BIN)/python -m codegen.wheels $(ARGS)

wheels: $(VENV)/installed
	$(BIN)/python -m codegen.wheels --all --check=--quick $(ARGS)

sdist: $(VENV)/installed
	$(BIN)/python setup.py -q sdist

# Debian's cross compiler, its Python for that machine, and qemu to run it.
aarch64: $(VENV)/installed
	@command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64-static >/dev/null && command -v debootstrap >/dev/null || \
	    $(call install,cross compiler,gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static debootstrap)
	$(BIN)/python tests/run_aarch64.py $(ARGS)

sanitize: $(VENV)/test
	$(BIN)/python tests/run_sanitized.py $(ARGS)

tsan: $(VENV)/installed
	$(BIN)/python tests/run_tsan.py

oclgrind: native $(VENV)/test
	@command -v oclgrind >/dev/null || $(call install,oclgrind,oclgrind)
	$(BIN)/python tests/run_oclgrind.py $(ARGS)

clean:
	rm -rf build dist tensorpy/_C*.so *.egg-info
