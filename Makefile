# What one can do with a checkout. Each target installs what it lacks first (scripts/setup).
#
#   make run                          the demonstration, on an embedded default
#   make run ARGS="serve my.toml"     weir with these arguments
#   make test                         everything that must hold, as CI runs it
#   make fuzz                         what outside data can do, tried by machine: 10 minutes for each target;
#                                     ARGS="--only nbd-server --seconds 60" chooses
#   make bench, make bench-qos        speed and quality, measured; results in bench/results/
#   make bench-postgres               PostgreSQL beside a hog, in a virtual machine
#   make bench-guarantee              how much of a promise each law gives back, in simulated time

export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)

# Other random scenarios with every commit, the same ones with the same.
SWARM_SEED := $(or $(shell git rev-parse --verify --quiet HEAD 2>/dev/null),1)

# Where tests note what they could not do on this machine.
SKIPPED := $(or $(CARGO_TARGET_DIR),target)/tmp/skipped

.PHONY: run test fuzz bench bench-qos bench-ports bench-postgres bench-guarantee setup fmt lint doc clean

# A newcomer waits for the compiler. The demonstration is a program of its own, because weir takes four times
# as long to compile. With arguments, cargo builds the release of weir.
run:
	@scripts/setup build
	cargo run --quiet $(if $(ARGS),--release --package weir -- $(ARGS),--profile demo --package weir-demo)

test:
	@scripts/setup test
	@rm -f $(SKIPPED)
	$(MAKE) --no-print-directory lint doc
	WEIR_FUZZ_SEED=$(SWARM_SEED) cargo test --workspace
	cargo run --quiet --package weir -- sim swarm --seed $(SWARM_SEED) --runs 200
	cargo run --release --quiet --package weir -- lab sweep '*' --short --out target/lab-results
	cargo run --release --quiet --package weir -- lab run '*' --seeds 1..3 --out target/lab-results
	@scripts/skipped $(SKIPPED)

fuzz:
	@scripts/setup fuzz
	scripts/fuzz $(ARGS)

bench:
	@scripts/setup bench
	cargo run --quiet --package weir-bench -- speed $(ARGS)

bench-qos:
	@scripts/setup qos
	cargo run --quiet --package weir-bench -- qos $(ARGS)

bench-guarantee:
	@scripts/setup build
	cargo run --quiet --release --package weir -- lab guarantee --oracle bench/oracle.jsonl $(ARGS)

bench-postgres:
	@scripts/setup postgres
	cargo run --quiet --package weir-bench -- postgres $(ARGS)

bench-ports:
	@scripts/setup ports
	cargo run --quiet --package weir-bench -- ports $(ARGS)

setup:
	@scripts/setup test

fmt:
	cargo fmt --all

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- --deny warnings
	cargo xtask tidy
	cargo deny --locked --log-level error check --hide-inclusion-graph bans licenses sources

doc: export RUSTDOCFLAGS = --deny warnings
doc:
	cargo doc --workspace --no-deps --document-private-items --quiet

clean:
	cargo clean
