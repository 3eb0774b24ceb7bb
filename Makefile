# All a newcomer types. Each target is a line or two over CMake and scripts/, which can be used
# alone. Packages that are missing are installed first, unless TENON_NO_SETUP=1.
.POSIX:
PREFIX = /usr/local
SECONDS = 60
GLIBC = 2.28
ARCH =
PRESET = release
PACKAGE = package
.PHONY: help doctor test test-full attack build bench gpu-test hw-test cross-test libraries-test peers-test fuzz lint format wheel install clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.* ## /\1	/p' Makefile | while IFS='	' read -r t h; do \
		printf '  make %-14s %s\n' "$$t" "$$h"; done

doctor: build ## build, then report what this machine has and whether it works; the page is build/doctor.html
	@build/tenon doctor --html build/doctor.html

test: ## the tests, in about 15 minutes on 2 cores after `make doctor`: every suite, sanitizers, fuzzers, lint; one summary at the end
	@scripts/setup test
	@scripts/test

test-full: ## the tests without reductions, in about an hour: every case, every suite under the sanitizer
	@scripts/setup test
	@scripts/test --full

attack: ## a random campaign against everything for SECONDS=60, from a new seed
	@scripts/setup test
	@ATTACK_SECONDS=$(SECONDS) scripts/test attack

build: ## library, modules and command, into build/
	@scripts/setup build
	@! command -v ninja >/dev/null || export CMAKE_GENERATOR="$${CMAKE_GENERATOR:-Ninja}"; \
		cmake --preset $(PRESET) --log-level=WARNING && \
		cmake --build build --target product --parallel "$$(nproc 2>/dev/null || echo 2)"

bench: ## measure the speeds that are promised, beside their rivals
	@scripts/setup bench
	@scripts/bench

gpu-test: ## the tests that need a GPU
	@scripts/setup build
	@scripts/test gpu

hw-test: ## the tests that need AMX or Arm
	@scripts/setup build
	@scripts/test hw

cross-test: ## the core and its unit tests for Windows (wine) and aarch64 (qemu)
	@scripts/setup cross
	@scripts/cross

libraries-test: ## the kernels that go through MKL, oneDNN, BLIS and OpenBLAS, with builds of each fetched for it
	@scripts/setup build
	@scripts/libraries

peers-test: ## tests of opt_einsum, NumPy's einsum and fft, scipy.fft, and FastVideo with Tenon in their place; fetched for it
	@scripts/setup build
	@scripts/peers

fuzz: ## every fuzzer for SECONDS=60
	@scripts/setup test
	@FUZZ_SECONDS=$(SECONDS) scripts/test fuzz

lint: ## formatting, clang-tidy, shellcheck, the order of the floors
	@scripts/setup test
	@scripts/lint --all

format: ## write the sources as .clang-format wants them
	@scripts/setup test
	@scripts/lint --format

wheel: ## a Python wheel with library and command, into dist/, for glibc GLIBC=2.28 and later; ARCH=aarch64: for that processor
	@scripts/setup build
	@! command -v ninja >/dev/null || export CMAKE_GENERATOR="$${CMAKE_GENERATOR:-Ninja}"; \
		arch=$(ARCH); folder=build-wheel$${arch:+-$$arch}; \
		[ -z "$$arch" ] || export CC="$$arch-linux-gnu-gcc" \
			CMAKE_TOOLCHAIN_FILE="$$PWD/cmake/toolchains/$$arch-linux-gnu.cmake"; \
		cmake --preset $(PACKAGE) -B "$$folder" --log-level=WARNING -DTENON_GLIBC=$(GLIBC) -DTENON_TESTS=OFF \
			-DTENON_BENCH=OFF && \
		cmake --build "$$folder" --target product --parallel "$$(nproc 2>/dev/null || echo 2)" && \
		mkdir -p dist && TENON_BUILD="$$folder" python3 bindings/python/build_backend.py dist

install: ## build with GPU kernels compiled ahead, and install into PREFIX=/usr/local, below DESTDIR if that is set
	@$(MAKE) -s build PRESET=$(PACKAGE)
	@DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(PREFIX)" >build/install.log
	@echo "installed into $(DESTDIR)$(PREFIX); build/install_manifest.txt lists the files; next: $(DESTDIR)$(PREFIX)/bin/tenon doctor"

clean: ## remove the build folders
	rm -rf build build-*
