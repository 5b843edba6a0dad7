# Needs Rust, and Python 3 for everything but `demo`. Whatever else is used is installed into .tools/.
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

# What installs a Debian package.
APT_GET := $(if $(filter 0,$(shell id -u)),,sudo )apt-get

.PHONY: help demo test check lint-rust lint-templates tools chromium local build deploy clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## replay a three-hour outage over 24 virtual hours (needs only Rust)
	cargo run --release -p comeback -- replay

test: tools chromium lint-templates ## every test, those against the real stack included
	cargo test --workspace

check: lint-rust test ## what CI runs: formatting, lints, docs, then `make test`

local: tools ## the stack on this machine: deploy, send an event, watch it succeed
	cargo run -p comeback-tests --bin local

build: tools ## the two functions' bootstraps, for ARCH (arm64 or x86_64)
	cargo lambda build --release --$(subst _,-,$(ARCH)) -p retry-handler -p flaky-target

deploy: tools ## build and deploy STACK to the AWS account your credentials name
	sam build --parameter-overrides Architecture=$(ARCH)
	sam deploy --stack-name $(STACK) --parameter-overrides Architecture=$(ARCH) $(PARAMETERS)

clean: ## remove what was built, and the installed tools
	cargo clean
	rm -rf .aws-sam .tools

lint-rust:
	@cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
	@cargo clippy --version >/dev/null 2>&1 || rustup component add clippy
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --workspace

lint-templates: $(TOOLS)/sam/.installed
	sam validate --lint
	cfn-lint template.yaml

tools: $(TOOLS)/ministack/.installed $(TOOLS)/sam/.installed $(TOOLS)/aws/.installed

chromium: # the browser that the tests look at reports with, and a font for it
	@command -v chromium >/dev/null \
		|| { $(APT_GET) update && $(APT_GET) install --yes --no-install-recommends chromium fonts-dejavu-core; }

$(TOOLS)/%/.installed: tests/tools/%.txt
	@echo "installing $$(tr '\n' ' ' < $<)into .tools/$*"
	@python3 -m venv $(TOOLS)/$*
	@$(TOOLS)/$*/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@
