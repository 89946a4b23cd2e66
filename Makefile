# A newcomer's two commands: `make run` and `make test`. Both install what is missing (Debian 12) and build first.
.DELETE_ON_ERROR:
.PHONY: run test build deps asan-test validate lessons bench format format-check tidy clean help

PACKAGES := g++ cmake ninja-build pkg-config ccache clang-format libsystemc-dev libboost-program-options-dev \
            libprotobuf-dev protobuf-compiler libyaml-cpp-dev libgtest-dev libgmock-dev libbenchmark-dev libfmt-dev \
            nlohmann-json3-dev libzstd-dev zlib1g-dev libhwy-dev
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
SOURCES = $(shell git ls-files '*.h' '*.cpp')

run: build  ## build, then simulate Llama-3-8B on an 8 GB RK3588 board
	build/release/kvsim run scenarios/rk3588_llama8b.yaml

test: build format-check  ## build, then run all tests, also with sanitizers
	ctest --preset release -j $$(nproc)
	$(MAKE) asan-test

build: deps  ## the optimised build, build/release/kvsim
	cmake --preset release
	cmake --build --preset release

deps:  ## install the Debian packages that are missing
	@missing=$$(for p in $(PACKAGES); do dpkg -s $$p >/dev/null 2>&1 || echo $$p; done); \
	if [ -n "$$missing" ]; then \
	  echo "installing:" $$missing; \
	  $(SUDO) apt-get update -q && \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $$missing; \
	fi

asan-test: deps  ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	cmake --preset asan
	cmake --build --preset asan
	ctest --preset asan -j $$(nproc)

validate: build  ## long checks: whole runs in train fidelity, and predictions against measured boards
	build/release/validate

lessons: build  ## the tables of scenarios/lessons, measured anew (half an hour; build/release/lessons c4 for one)
	build/release/lessons

bench: build  ## speed: DRAM requests, trace records, attention, the main scenario
	build/release/kvsim_benchmark

format:  ## format all sources
	clang-format -i $(SOURCES)

format-check:
	@clang-format --dry-run --Werror $(SOURCES)

tidy: build  ## clang-tidy over the sources (slow; needs the package clang-tidy)
	clang-tidy -p build/release --quiet $(filter %.cpp,$(SOURCES))

clean:  ## remove all builds
	rm -rf build

help:
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14
