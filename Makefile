# make run    builds Onrush and measures it on this machine: about a minute after the build, report in out/
# make test   what is checked before each commit: format, tidy, lints, and all tests but the slow ones
# make test-all  what make test leaves out: slow tests, the other seeds of simulated networks, documentation
# make package  a .deb, a tarball and what an image is built from, in out/package/; make package-test installs and purges it
# make bench  the comparison with nginx, HAProxy and wrk, report in out/first-light/
# make browser  the status page of a server in chromium, with pictures in out/status-page/
# make prometheus  what Prometheus makes of /metrics, of the rules and of the dashboard in examples/
# make slurm  a load from four nodes of Slurm and an experiment with its roles on them, as namespaces of this machine
# make fuzz   each fuzz target for a moment (FUZZ_SECONDS=30)
# make sanitize  the engine's tests under AddressSanitizer, and those that ask no kernel under Miri
#
# Each target does the set-up it needs on a fresh Debian with a Rust toolchain, or stops and says what to run.

SHELL := /bin/sh
.SHELLFLAGS := -eu -c
.DEFAULT_GOAL := help
.PHONY: help run test test-all bench browser prometheus slurm package package-test fuzz sanitize format tidy lint unit slow docs release linker components peers

TARGET_DIRECTORY := $(or $(CARGO_TARGET_DIR),target)
ONRUSH := $(TARGET_DIRECTORY)/release/onrush
FUZZ_SECONDS ?= 30

# A connection is a file. Many systems start programs with 1,024 and let them have far more; 65,536 is plenty for
# ten thousand connections from both ends.
RAISE_FILES := files=$$(ulimit -Hn); \
	if [ "$$files" = unlimited ] || [ "$$files" -gt 65536 ]; then files=65536; fi; \
	ulimit -Sn "$$files"

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

run: release
	@echo "== measuring"
	@$(RAISE_FILES); $(ONRUSH) bench --out out

bench: release
	@scripts/packages nginx-light haproxy wrk
	@cargo build --release --locked --package onrush-engine --example bare_epoll
	@echo "== comparing"
	@$(RAISE_FILES); $(ONRUSH) bench experiments/first-light.toml --out out/first-light

browser: linker
	@cargo build --locked --bin onrush
	@scripts/status-page --onrush $(TARGET_DIRECTORY)/debug/onrush

prometheus: linker
	@scripts/packages prometheus curl
	@ONRUSH_NEEDS_PROMETHEUS=1 cargo test --locked --package onrush-cli --test end_to_end scraping

slurm: linker
	@scripts/packages slurm-wlm munge iproute2
	@ONRUSH_NEEDS_SLURM=1 cargo test --locked --package onrush-cli --test end_to_end allocating -- --test-threads 1

package: linker
	@scripts/package

package-test: package
	@scripts/package-test

release: linker
	@echo "== building"
	@ONRUSH_COMMIT=$$(git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown) \
		cargo build --release --locked --bin onrush

# One after the other, whatever -j says: they would only wait for the same build directory.
test:
	@$(MAKE) --no-print-directory -j1 format unit
	@echo "== all is well"

test-all:
	@$(MAKE) --no-print-directory -j1 slow docs
	@echo "== the rest is well"

format: components
	@echo "== format"
	@cargo fmt --all --check

tidy: linker
	@echo "== tidy"
	@cargo run --quiet --locked --bin xtask -- tidy

lint: linker components
	@echo "== lints"
	@cargo clippy --workspace --all-targets --locked -- -D warnings

# The features of dependencies are those of the whole workspace with --bin, so that nothing is built twice.
unit: linker components
	@scripts/packages curl openssl python3 hwloc iproute2 nftables ethtool
	@echo "== lints and tests"
	@$(RAISE_FILES); cargo run --quiet --locked --bin xtask -- test

slow: linker peers
	@echo "== slow tests"
	@$(RAISE_FILES); cargo run --quiet --locked --bin xtask -- test --rest

docs: linker
	@echo "== documentation"
	@RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

fuzz:
	@if ! cargo +nightly fuzz --version >/dev/null 2>&1; then \
		echo "make fuzz needs a nightly compiler and cargo-fuzz; please run this and try again:" >&2; \
		echo "    rustup toolchain install nightly && cargo install cargo-fuzz --locked" >&2; \
		exit 1; \
	fi
	@for target in $$(cargo +nightly fuzz list); do \
		echo "== fuzzing $$target for $(FUZZ_SECONDS) s"; \
		cargo +nightly fuzz run "$$target" -- -max_total_time=$(FUZZ_SECONDS); \
	done

# What needs no kernel and has pointers of its own: Miri follows each of them.
MIRI_TESTS := block:: buffer:: input:: outgoing:: task::

# `unsafe` stands in the engine alone. The host's target is named so that build scripts and macros are not sanitized.
sanitize: linker
	@if ! cargo +nightly miri --version >/dev/null 2>&1; then \
		echo "make sanitize needs a nightly compiler with Miri; please run this and try again:" >&2; \
		echo "    rustup toolchain install nightly --component miri,rust-src" >&2; \
		exit 1; \
	fi
	@echo "== AddressSanitizer"
	@$(RAISE_FILES); RUSTFLAGS="-Zsanitizer=address --cfg address_sanitizer" \
		cargo +nightly test --package onrush-engine --locked --lib --tests \
		--target "$$(rustc +nightly --print host-tuple)"
	@echo "== Miri"
	@cargo +nightly miri test --package onrush-engine --locked --lib -- $(MIRI_TESTS)
	@echo "== no memory error"

# rustc links with the system's C compiler, which a fresh Debian does not have.
linker:
	@command -v cargo >/dev/null || { echo "there is no Rust toolchain here: see https://rustup.rs" >&2; exit 1; }
	@command -v cc >/dev/null || scripts/packages gcc libc6-dev

# Programs of others that slow tests run the whole binary with; prlimit comes with util-linux, which every Debian has.
peers:
	@scripts/packages curl apache2-utils openssl wrk nginx-light haproxy memcached nghttp2-client python3 python3-hpack python3-h2 python3-wsproto python3-websockets python3-grpcio python3-protobuf hwloc iproute2 nftables ethtool

components:
	@command -v cargo >/dev/null || { echo "there is no Rust toolchain here: see https://rustup.rs" >&2; exit 1; }
	@{ cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1 || rustup component add rustfmt clippy
