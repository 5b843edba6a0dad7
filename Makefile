# Needs Rust with a C compiler, and Python 3 and Node for everything but `console` and `demo`; `dist` and `check-dist` need Python 3.11 or
# later. tests/tools/with.sh installs all other tools into .tools/ and into node_modules/ folders.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
WITH := tests/tools/with.sh
CARGO := $(WITH) -- cargo
# For every cargo command: with others, cargo would unify features differently and build most dependencies again.
ALL := --workspace --all-features
PYTHON_CLIENTS := clients/python clients/python-sqs
NODE_CLIENTS := clients/node clients/node-sqs

# The functions' architecture: arm64 is cheaper on Lambda. Any machine cross-compiles for either.
ARCH ?= arm64
STACK ?= comeback
# Further parameters for `make deploy`, such as PARAMETERS="MaxAge=3600 Envelope=inline".
PARAMETERS ?=
# The architectures that `make dist` builds for.
ARCHS ?= arm64 x86_64
# Further options for `make verify-aws`, such as VERIFY=--yes.
VERIFY ?=
# How long `make fuzz` runs each of its targets, and how many seeds `make chaos` has.
FUZZ_SECONDS ?= 600
SEEDS ?= 2000
# A commit for `make bench-handler` to compare with, such as BEFORE=v0.1.0.
BEFORE ?=
export ARCHS FUZZ_SECONDS SEEDS BEFORE

.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' Makefile)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

console: ## open the console on a simulated account, 60 times as fast (needs only Rust and a C compiler)
	cargo run --profile demo -p comeback --no-default-features --features console -- ui --demo

demo: ## simulate a three-hour outage over 24 virtual hours (needs only Rust and a C compiler)
	cargo run --profile demo -p comeback --no-default-features -- simulate

test: ## run every test, including those against the local stack
	@python3 tests/tools/stages.py

test-fast: ## run the tests that need no browser, server or Node (three minutes once built)
	$(CARGO) test $(ALL) --no-fail-fast

check: ## run what CI runs: formatting, lints, docs, then `make test`
	@# Two at once: where cargo checks our own crates one after the other, a core is free.
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint-rust lint-infra lint-clients lint-licences lint-workflows
	python3 tests/mutation/check.py --planted
	$(MAKE) --no-print-directory test

local: tools ## deploy the stack on this machine, send an event and watch it succeed
	@# A package's tests build its programs too. `cargo run` would build most dependencies again: it takes a single package,
	@# and leaves out the features that tests add.
	$(CARGO) test $(ALL) --no-run --test repository
	@$(WITH) -- "$${CARGO_TARGET_DIR:-target}/debug/local"

build: tools ## build the two functions for ARCH (arm64 or x86_64)
	$(CARGO) lambda build --release --$(subst _,-,$(ARCH)) -p retry-handler -p flaky-target

deploy: tools ## build and deploy STACK to the AWS account your credentials name
	$(WITH) -- sam build --parameter-overrides Architecture=$(ARCH)
	$(WITH) -- sam deploy --stack-name $(STACK) --parameter-overrides Architecture=$(ARCH) $(PARAMETERS)

conformance: ## check the requests that `make test` recorded against AWS's own models and the permissions
	@cd tests/conformance && ../../$(WITH) conformance ministack infra -- python -m unittest --quiet
	@$(WITH) conformance -- python tests/conformance

chaos: ## simulate every fault with SEEDS seeds (2000) under several policies, then run `make mutants`
	tests/chaos.sh
	$(MAKE) mutants

mutants: ## plant bugs in a copy, one at a time, and check that the tests catch each (twelve minutes)
	$(WITH) -- python3 tests/mutation/check.py

fuzz: ## fuzz all parsers, each for FUZZ_SECONDS (installs a nightly Rust)
	$(WITH) fuzz -- fuzz/run.sh

scale: ## measure the cost of up to a million events, 100,000 dead-letters, log lines and recalls (twenty minutes)
	$(CARGO) build --release -p comeback
	for measure in measure dead_letters waiting recall; do \
		$(WITH) ministack aws -- python3 tests/scale/$$measure.py "$${CARGO_TARGET_DIR:-target}/release/comeback"; done

bench-handler: ## measure the handler's start, batches and size beside an empty function
	$(WITH) sam -- tests/handler_speed/bench.sh

policy-table: ## print the tables of docs/plan.md that compare the default policy with others (five minutes)
	$(CARGO) run --release -p comeback-timelapse --example policy_table

semver: ## check that the libraries stay compatible with the previous release
	@packaging/check/semver.sh

verify-aws: ## check on your AWS account what no emulator can show (ten minutes; asks first)
	@$(WITH) clients sam -- python packaging/verify_aws $(VERIFY)

dist: ## build a release for ARCHS into dist/
	packaging/release.sh build

check-dist: ## check the release in dist/, and that another folder builds the same bytes
	packaging/release.sh check

advisories: ## look for known weaknesses of dependencies
	@# Never in CI's `make check`, which works offline: the databases are on GitHub, npm and PyPI.
	$(WITH) deny -- cargo deny check advisories
	for folder in infra $(NODE_CLIENTS) tests/console; do npm --prefix $$folder audit --package-lock-only; done
	for tools in tests/tools/*.txt; do \
		$(WITH) audit -- pip-audit --require-hashes --disable-pip --requirement $$tools; done

lock-tools: ## lock the tools of tests/tools/*.in and their dependencies by hash
	for tools in tests/tools/*.in; do $(WITH) uv -- uv pip compile --quiet --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header --no-annotate $$tools --output-file $${tools%.in}.txt; done

clean: ## remove built files and installed tools
	cargo clean
	rm -rf .aws-sam .tools dist infra/node_modules infra/cdk.out clients/node*/node_modules tests/console/node_modules

tools:
	@$(WITH) ministack sam aws clients conformance --

chromium faketime:
	@$(WITH) $@ --

lint-rust:
	$(WITH) -- tests/tools/lint_rust.sh

lint-infra:
	$(WITH) infra -- npm --prefix infra run check

lint-clients:
	for client in $(PYTHON_CLIENTS); do (cd $$client && ../../$(WITH) clients -- python -m mypy); done
	for client in $(NODE_CLIENTS); do $(WITH) $$client -- npm --prefix $$client run check; done

lint-licences:
	$(WITH) deny -- cargo deny check licenses bans sources

lint-templates:
	$(WITH) sam -- sam validate --lint
	$(WITH) sam -- cfn-lint template.yaml
	$(WITH) sam -- python packaging/cloudformation.py 1.0.0 | $(WITH) sam -- cfn-lint

lint-workflows:
	@# zizmor looks for security holes, check-jsonschema for errors in the syntax.
	$(WITH) workflows -- zizmor --quiet --offline --persona pedantic --strict-collection .github
	$(WITH) workflows -- tests/tools/lint_workflows.sh

test-infra:
	$(WITH) infra -- npm --prefix infra test

test-clients:
	for client in $(PYTHON_CLIENTS); do (cd $$client && ../../$(WITH) clients -- python -m pytest --quiet); done
	for client in $(NODE_CLIENTS); do $(WITH) $$client -- npm --prefix $$client test; done
