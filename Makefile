# Needs Rust, and Python 3 and Node for everything but `demo` and `chaos`. Whatever else is used is
# installed into .tools/ and infra/node_modules/.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

# The functions' architecture: arm64 is cheaper on Lambda. Cross-compiled, so any machine builds either.
ARCH ?= arm64
STACK ?= comeback
# More for `make deploy`, such as PARAMETERS="MaxAge=3600 Envelope=inline".
PARAMETERS ?=

TOOLS := $(CURDIR)/.tools
# The SAM CLI and MiniStack pin different botocores, hence one environment each.
export PATH := $(TOOLS)/sam/bin:$(TOOLS)/aws/bin:$(TOOLS)/ministack/bin:$(PATH)
export SAM_CLI_TELEMETRY := 0

.PHONY: help demo chaos test check lint-rust lint-infra lint-templates tools local build deploy clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## replay a three-hour outage over 24 virtual hours (needs only Rust)
	cargo run --release -p comeback -- replay

# Each policy meets every seed; the last reaches SQS's longest waits and its oldest messages.
CHAOS_POLICIES := "" "--jitter none --max-age 2h" "--jitter equal --envelope inline --max-retries 6" \
	"--jitter decorrelated --max-backoff 10m --failure-rate 0.5" \
	"--base-backoff 6h --max-age 14d --for 15d --outage 13d"
SEEDS ?= 2000

chaos: ## replay with every fault, SEEDS seeds (2000) under each of several policies
	for policy in $(CHAOS_POLICIES); do \
		cargo run --release --quiet -p comeback -- replay --chaos --events 50 --seeds $(SEEDS) $$policy; \
	done

test: tools lint-templates infra/node_modules/.installed ## every test, those against the real stack included
	npm --prefix infra test
	cargo test --workspace --all-features

check: lint-rust lint-infra test ## what CI runs: formatting, lints, docs, then `make test`

local: tools ## the stack on this machine: deploy, send an event, watch it succeed
	cargo run -p comeback-tests --bin local

build: tools ## the two functions' bootstraps, for ARCH (arm64 or x86_64)
	cargo lambda build --release --$(subst _,-,$(ARCH)) -p retry-handler -p flaky-target

deploy: tools ## build and deploy STACK to the AWS account your credentials name
	sam build --parameter-overrides Architecture=$(ARCH)
	sam deploy --stack-name $(STACK) --parameter-overrides Architecture=$(ARCH) $(PARAMETERS)

clean: ## remove what was built, and the installed tools
	cargo clean
	rm -rf .aws-sam .tools infra/node_modules infra/dist infra/cdk.out

lint-rust:
	@cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
	@cargo clippy --version >/dev/null 2>&1 || rustup component add clippy
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --workspace --all-features

lint-infra: infra/node_modules/.installed
	npm --prefix infra run check

lint-templates: $(TOOLS)/sam/.installed
	sam validate --lint
	cfn-lint template.yaml

tools: $(TOOLS)/ministack/.installed $(TOOLS)/sam/.installed $(TOOLS)/aws/.installed

$(TOOLS)/%/.installed: tests/tools/%.txt
	@echo "installing $$(tr '\n' ' ' < $<)into .tools/$*"
	@python3 -m venv $(TOOLS)/$*
	@$(TOOLS)/$*/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

infra/node_modules/.installed: infra/package.json infra/package-lock.json
	@npm --prefix infra ci --ignore-scripts --no-audit --no-fund
	@touch $@
