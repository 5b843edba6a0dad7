# Every target needs Rust and a C compiler. Every target except `console` and `demo` also needs Python 3 and Node.js.
# `dist` and `check-dist` need Python 3.11 or later. tests/tools/with.sh installs all other tools into .tools/ and into
# node_modules/ folders.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
WITH := tests/tools/with.sh
CARGO := $(WITH) -- cargo
CARGO_TEST := $(WITH) clippy -- cargo test --workspace --all-features

# Architecture of the functions: arm64, which is cheaper on Lambda, or x86_64. Any machine can build for both.
ARCH ?= arm64
STACK ?= comeback
# `make deploy` also takes parameters, such as PARAMETERS="MaxAge=3600 Envelope=inline". Other variables, such as
# SEEDS=100 for `make chaos`, are passed to the script that the target runs.

.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' Makefile)

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

console: ## open the console on a simulated account (needs only Rust and C)
	cargo run --profile demo -p comeback --no-default-features --features console -- ui --demo

demo: ## simulate an outage over 24 virtual hours (needs only Rust and C)
	cargo run --profile demo -p comeback --no-default-features -- simulate

test: ## run every test, including those against the local stack
	@python3 tests/tools/stages.py

test-fast: ## run the tests without browser, server and Node (three minutes)
	$(CARGO_TEST) --no-fail-fast

# Runs two lints at a time, because cargo leaves a core idle while it builds our crates one after another.
check: ## run what CI runs: formatting and lints, then `make test`
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint
	@$(MAKE) --no-print-directory test

# Cargo builds a package's programs along with its tests. `cargo run` would build most dependencies again, because it
# builds one package only, without the features that dev-dependencies add.
local: tools ## deploy to this machine, send an event and watch it succeed
	$(CARGO_TEST) --no-run --test repository
	@$(WITH) clippy -- "$${CARGO_TARGET_DIR:-target}/debug/local"

build: tools ## build the two functions for ARCH (arm64 or x86_64)
	$(CARGO) lambda build --release --$(subst _,-,$(ARCH)) -p retry-handler -p flaky-target

deploy: tools ## build and deploy STACK to the AWS account of your credentials
	$(WITH) -- sam build --parameter-overrides Architecture=$(ARCH)
	$(WITH) -- sam deploy --stack-name $(STACK) --parameter-overrides Architecture=$(ARCH) $(PARAMETERS)

conformance: ## check the requests that `make test` recorded against AWS's models
	@cd tests/conformance && ../../$(WITH) conformance ministack infra -- python -m unittest --quiet
	@$(WITH) conformance -- python tests/conformance

chaos: ## simulate every fault with SEEDS seeds (2000), then plant bugs
	tests/chaos.sh
	$(MAKE) mutants

mutants: ## plant bugs, and check that the tests catch each (forty minutes)
	$(WITH) -- python3 tests/mutation/check.py

fuzz: ## fuzz each parser for FUZZ_SECONDS (600; installs a nightly Rust)
	$(WITH) fuzz -- fuzz/run.sh

scale: ## measure the cost of up to a million events (twenty minutes)
	$(WITH) ministack aws -- tests/scale/run.sh

bench-handler: ## measure the handler beside an empty function, and BEFORE=COMMIT
	$(WITH) sam -- tests/handler_speed/bench.sh

bench-delivery: ## print the figures of crates/delivery/README.md
	$(CARGO) bench -p comeback-delivery --bench figures

policy-table: ## print the policies' table of docs/plan.md (five minutes)
	$(CARGO) run --release -p comeback-timelapse --example policy_table

semver: ## check that the libraries stay compatible with the last release
	@packaging/check/semver.sh

verify-aws: ## check on AWS what no emulator can show (ten minutes; asks first)
	@$(WITH) clients sam -- python packaging/verify_aws $(VERIFY)

dist: ## build a release for ARCHS (arm64 x86_64) into dist/
	packaging/release.sh build

check-dist: ## check the release in dist/, and that it can be reproduced
	packaging/release.sh check

advisories: ## look for known weaknesses of dependencies
	$(WITH) deny audit -- tests/tools/advisories.sh

lock-tools: ## lock the tools of tests/tools/*.in by hash
	$(WITH) uv -- tests/tools/lock.sh

clean: ## remove built files and installed tools
	cargo clean
	rm -rf .aws-sam .tools dist infra/node_modules infra/cdk.out clients/node*/node_modules tests/console/node_modules

tools:
	@$(WITH) ministack sam aws clients conformance --

chromium faketime:
	@$(WITH) $@ --

lint: lint-rust lint-infra lint-clients lint-licences lint-workflows lint-mutants

lint-rust:
	$(WITH) clippy -- tests/tools/lint_rust.sh

lint-infra:
	$(WITH) infra -- npm --prefix infra run check

lint-clients:
	$(WITH) clients clients/node clients/node-sqs -- tests/tools/clients.sh check

lint-licences:
	$(WITH) deny -- cargo deny check licenses bans sources

lint-workflows:
	$(WITH) workflows -- tests/tools/lint_workflows.sh

lint-mutants:
	python3 tests/mutation/check.py --planted

lint-templates:
	$(WITH) sam -- tests/tools/lint_templates.sh

test-infra:
	$(WITH) infra sam -- npm --prefix infra test

test-clients:
	$(WITH) clients clients/node clients/node-sqs uv -- tests/tools/clients.sh test
