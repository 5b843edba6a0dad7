# Needs Rust with a C compiler, and Python 3 and Node for everything but `demo`; `dist` and `check-dist` need Python 3.11 or
# later. All other tools are installed into .tools/ and the node_modules/ of infra/, clients/node/,
# clients/node-sqs/ and tests/console/.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

# The functions' architecture: arm64 is cheaper on Lambda. Any machine cross-compiles for either.
ARCH ?= arm64
STACK ?= comeback
# Further parameters for `make deploy`, such as PARAMETERS="MaxAge=3600 Envelope=inline".
PARAMETERS ?=
# The architectures that `make dist` builds for.
ARCHS ?= arm64 x86_64
# Further options for `make verify-aws`, such as VERIFY=--yes.
VERIFY ?=
# How long `make fuzz` runs each of its targets.
FUZZ_SECONDS ?= 600
# The packages and features of every cargo command here. With others, cargo would unify features differently and build most
# dependencies again.
ALL := --workspace --all-features
# Faster where nothing was built before. For every command: with another value, cargo builds our crates again.
export CARGO_INCREMENTAL := 0
# The tests that need servers, a browser, Node or what `make tools` installs. tests/Cargo.toml says `test = false` for them,
# so that `cargo test` runs the others.
SERVERS := $(addprefix --test ,delivery envelope_targets operate report_page template)
# Half of the time of the tests with servers.
STACK_TESTS := --test stack
# Stages call plain `make`: `make --dry-run` would run a line with make's own variable.
STAGE := python3 tests/tools/stage.py
# The packages for Node, and their tools.
CLIENTS_NODE := $(patsubst %,clients/%/node_modules/.installed,node node-sqs)
# What the console's test loads into its pages.
CONSOLE := tests/console/node_modules/.installed

TOOLS := $(CURDIR)/.tools
# The SAM CLI and MiniStack pin different botocores, hence one environment each.
export PATH := $(TOOLS)/semver/bin:$(TOOLS)/fuzz/bin:$(TOOLS)/deny/bin:$(TOOLS)/about/bin:$(TOOLS)/cyclonedx/bin:$(TOOLS)/sam/bin:$(TOOLS)/aws/bin:$(TOOLS)/ministack/bin:$(TOOLS)/packaging/bin:$(PATH)
UV := $(TOOLS)/uv/bin/uv
export SAM_CLI_TELEMETRY := 0
# Without its bytecode, the SAM CLI takes a second longer to start, and MiniStack ten.
unexport PYTHONDONTWRITEBYTECODE

# Installs Debian packages.
APT_GET := $(if $(filter 0,$(shell id -u)),,sudo )apt-get

.PHONY: help demo policy-table scale bench-handler chaos mutants fuzz test test-fast test-clients conformance check lint-rust lint-infra lint-clients \
	lint-licences advisories lint-templates lint-workflows build-tests test-servers test-stack test-infra with-stack with-servers without-cargo without-servers tools lock-tools chromium faketime tomllib local build deploy dist check-dist semver verify-aws clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## simulate a three-hour outage over 24 virtual hours (needs only Rust and a C compiler)
	cargo run --profile demo -p comeback --no-default-features -- simulate

policy-table: ## print the tables of docs/plan.md that compare the default policy with others (five minutes)
	cargo run --release -p comeback-timelapse --example policy_table

scale: $(TOOLS)/ministack/.installed $(TOOLS)/aws/.installed ## measure the cost of up to a million events, 100,000 dead-letters and 100,000 log lines (twenty minutes)
	cargo build --release -p comeback
	python3 tests/scale/measure.py "$${CARGO_TARGET_DIR:-target}/release/comeback"
	python3 tests/scale/dead_letters.py "$${CARGO_TARGET_DIR:-target}/release/comeback"
	python3 tests/scale/waiting.py "$${CARGO_TARGET_DIR:-target}/release/comeback"

# Built as it ships, for this machine. You may put ARTICLE there, and name a commit to compare with, such as BEFORE=v0.1.0.
ARTICLE := $(wildcard tests/handler_speed/article/article.py)
BEFORE ?=
bench-handler: $(TOOLS)/sam/.installed $(if $(ARTICLE),$(TOOLS)/clients/.installed) ## measure the handler's start, batches and size beside an empty function
	cargo lambda build --release --$(subst aarch64,arm64,$(subst x86_64,x86-64,$(shell uname -m))) -p retry-handler -p comeback-handler-speed
	$(if $(BEFORE),rm -rf target/before && git worktree prune && git worktree add --detach target/before $(BEFORE))
	$(if $(BEFORE),cd target/before && CARGO_TARGET_DIR=$(CURDIR)/target/before-built cargo lambda build --release \
		--$(subst aarch64,arm64,$(subst x86_64,x86-64,$(shell uname -m))) -p retry-handler)
	built="$${CARGO_TARGET_DIR:-target}/lambda" && \
		"$$built/bench-handler/bootstrap" "$$built/retry-handler/bootstrap" "$$built/bare-bootstrap/bootstrap" \
		$(if $(BEFORE),before=target/before-built/lambda/retry-handler/bootstrap) $(if $(ARTICLE),tests/handler_speed/article/bootstrap)

# Each policy runs with every seed. Some hide every message, some none, and some a few. Two reach SQS's longest waits, and the
# last its oldest messages too.
CHAOS_POLICIES := "" "--base-backoff 1s --max-backoff 43170s" "--jitter none --max-age 2h --hide-up-to 0" \
	"--jitter equal --envelope inline --max-retries 6 --hide-up-to 20 --maximum-concurrency 2" \
	"--jitter decorrelated --max-backoff 10m --failure-rate 0.5 --hide-up-to always" "--hide-up-to 5" \
	"--base-backoff 6h --max-backoff 43170s --max-age 14d --for 15d --outage 13d"
SEEDS ?= 2000

chaos: ## simulate every fault with SEEDS seeds (2000) under several policies, then run `make mutants`
	for policy in $(CHAOS_POLICIES); do \
		cargo run --release --quiet -p comeback -- simulate --chaos --events 50 --seeds $(SEEDS) $$policy; \
		cargo run --release --quiet -p comeback -- simulate --chaos=storm --events 10 --seeds $(SEEDS) $$policy; \
	done
	$(MAKE) mutants

mutants: ## plant bugs in a copy, one at a time, and check that the tests catch each (twelve minutes)
	python3 tests/mutation/check.py

# Cargo builds while tools are downloaded. Then the tests with servers mostly wait, and the others run in the time that these leave.
test: ## run every test, including those against the local stack
	@$(STAGE) begin
	@$(STAGE) run "install tools and build the tests" make --no-print-directory --jobs 6 \
		build-tests chromium faketime tools infra/node_modules/.installed $(CLIENTS_NODE) $(CONSOLE)
	@rm -rf target/recorded
	@make --no-print-directory --jobs 3 --output-sync=target with-stack with-servers without-servers \
		&& $(STAGE) run "check what was recorded" make --no-print-directory conformance; \
		status=$$?; $(STAGE) table; exit $$status

# The construct's tests have time limits, so they do not run beside the servers.
without-cargo:
	@$(STAGE) run "lint templates, test construct and clients" make --no-print-directory --jobs 2 --output-sync=target \
		lint-templates test-infra test-clients

with-stack: without-cargo
	@$(STAGE) run "then: test the stack" make --no-print-directory test-stack

with-servers: without-cargo
	@$(STAGE) run "beside it: test with other servers" make --no-print-directory test-servers

without-servers:
	@nice -n 19 $(STAGE) run "beside all: test without servers" make --no-print-directory test-fast

# Without make's flags, in which cargo would look for make's job server.
build-tests:
	MAKEFLAGS= cargo test $(ALL) --no-run
	MAKEFLAGS= cargo test $(ALL) $(SERVERS) $(STACK_TESTS) --no-run

test-servers:
	MAKEFLAGS= cargo test $(ALL) $(SERVERS) --no-fail-fast

test-stack:
	MAKEFLAGS= cargo test $(ALL) $(STACK_TESTS)

test-infra: infra/node_modules/.installed
	npm --prefix infra test

# Pre-1.0, so a new minor version may break; cargo-semver-checks knows.
semver: ## check that the libraries stay compatible with the previous release
	@release=$$(git describe --tags --match 'v*' --abbrev=0 HEAD^ 2>/dev/null) \
		|| { echo "no release before this one, so nothing to keep"; exit 0; }; \
		make --no-print-directory $(TOOLS)/semver/bin/cargo-semver-checks; \
		cargo semver-checks --baseline-rev "$$release" -p comeback-backoff -p comeback-delivery -p comeback-envelope

# Never in CI. It takes boto3 from the environment of the clients' tests.
verify-aws: $(TOOLS)/clients/.installed $(TOOLS)/sam/.installed ## check on your AWS account what no emulator can show (ten minutes; asks first)
	@$(TOOLS)/clients/bin/python packaging/verify_aws $(VERIFY)

test-fast: ## run the tests that need no browser, server or Node (three minutes once built)
	MAKEFLAGS= cargo test $(ALL) --no-fail-fast

conformance: $(addprefix $(TOOLS)/,conformance/.installed ministack/.installed) infra/node_modules/.installed ## check the requests that `make test` recorded against AWS's own models and the permissions
	@cd tests/conformance && $(TOOLS)/conformance/bin/python -m unittest --quiet
	@$(TOOLS)/conformance/bin/python tests/conformance

test-clients: $(TOOLS)/clients/.installed $(CLIENTS_NODE)
	for client in clients/python clients/python-sqs; do (cd $$client && $(TOOLS)/clients/bin/python -m pytest --quiet); done
	for client in clients/node clients/node-sqs; do npm --prefix $$client test; done

check: lint-rust lint-infra lint-clients lint-licences lint-workflows ## run what CI runs: formatting, lints, docs, then `make test`
	python3 tests/mutation/check.py --planted
	$(MAKE) --no-print-directory test

# Without LTO, which loses libFuzzer's counters; without sanitizers, which safe Rust does not need.
fuzz: $(TOOLS)/fuzz/bin/cargo-fuzz ## fuzz all parsers, each for FUZZ_SECONDS (installs a nightly Rust)
	@cargo +nightly --version >/dev/null 2>&1 || rustup toolchain install nightly --profile minimal
	cargo run --package comeback-fuzz --bin seeds
	for target in batch_event invocation_record envelope decide retry_after; do \
		CARGO_PROFILE_RELEASE_LTO=false cargo +nightly fuzz run --sanitizer none $$target \
			-- -max_total_time=$(FUZZ_SECONDS) -timeout=10; \
	done

# A package's tests build its programs too. `cargo run` would build most dependencies again: it takes a single package, and
# leaves out the features that tests add.
local: tools ## deploy the stack on this machine, send an event and watch it succeed
	cargo test $(ALL) --no-run --test repository
	@"$${CARGO_TARGET_DIR:-target}/debug/local"

build: tools ## build the two functions for ARCH (arm64 or x86_64)
	cargo lambda build --release --$(subst _,-,$(ARCH)) -p retry-handler -p flaky-target

deploy: tools ## build and deploy STACK to the AWS account your credentials name
	sam build --parameter-overrides Architecture=$(ARCH)
	sam deploy --stack-name $(STACK) --parameter-overrides Architecture=$(ARCH) $(PARAMETERS)

dist: tomllib $(addprefix $(TOOLS)/,sam/.installed packaging/.installed about/bin/cargo-about cyclonedx/bin/cargo-cyclonedx clients/.installed) infra/node_modules/.installed ## build a release for ARCHS into dist/
	ARCHS="$(ARCHS)" $(TOOLS)/packaging/bin/python packaging/dist.py
	python3 packaging/packages.py dist $(addprefix --architecture ,$(ARCHS))
	$(TOOLS)/packaging/bin/python packaging/manifest.py

# The ignored trials update from the release before this one, which they build, and run `verify-aws` on MiniStack.
check-dist: tomllib tools faketime $(TOOLS)/packaging/.installed ## check the release in dist/, and that another folder builds the same bytes
	$(MAKE) --no-print-directory semver
	cd packaging/tests && $(TOOLS)/packaging/bin/python -m unittest
	cd packaging/verify_aws/tests && $(TOOLS)/clients/bin/python -m unittest
	for template in dist/comeback*.yaml; do AWS_DEFAULT_REGION=us-east-1 sam validate --lint --template-file $$template; cfn-lint $$template; done
	cfn-lint dist/comeback.cfn.json
	cargo test $(ALL) --test release
	cargo test $(ALL) --test stack -- --ignored
	$(TOOLS)/packaging/bin/python packaging/check/crates.py
	ARCHS="$(ARCHS)" $(TOOLS)/packaging/bin/python packaging/check/again.py

clean: ## remove built files and installed tools
	cargo clean
	rm -rf .aws-sam .tools dist infra/node_modules infra/cdk.out clients/node*/node_modules tests/console/node_modules

lint-rust:
	@cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
	@cargo clippy --version >/dev/null 2>&1 || rustup component add clippy
	cargo fmt --all --check
	cargo clippy $(ALL) --lib --bins --examples --test '*' --benches -- -D warnings
	@# The handler brings its own HTTP client. A second one adds half to its size.
	! cargo tree --package retry-handler --edges normal --prefix none | grep aws-lc
	@# With the examples, whose dependencies keep the features as clippy has them.
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps $(ALL) --lib --bin retry-handler --bin flaky-target --examples

lint-infra: infra/node_modules/.installed
	npm --prefix infra run check

lint-clients: $(TOOLS)/clients/.installed $(CLIENTS_NODE)
	for client in clients/python clients/python-sqs; do (cd $$client && $(TOOLS)/clients/bin/python -m mypy); done
	for client in clients/node clients/node-sqs; do npm --prefix $$client run check; done

lint-licences: $(TOOLS)/deny/.installed
	cargo deny check licenses bans sources

# Never in CI's `make check`, which works offline: the databases are on GitHub, npm and PyPI.
advisories: $(TOOLS)/deny/.installed $(TOOLS)/audit/.installed ## look for known weaknesses of dependencies
	cargo deny check advisories
	for folder in infra clients/node clients/node-sqs tests/console; do npm --prefix $$folder audit --package-lock-only; done
	for tools in tests/tools/*.txt; do $(TOOLS)/audit/bin/pip-audit --require-hashes --disable-pip --requirement $$tools; done

lint-templates: $(TOOLS)/sam/.installed
	sam validate --lint
	cfn-lint template.yaml
	$(TOOLS)/sam/bin/python packaging/cloudformation.py 1.0.0 | cfn-lint

# zizmor looks for security holes, check-jsonschema for errors in the syntax.
lint-workflows: CHECK := $(TOOLS)/workflows/bin/check-jsonschema --quiet --builtin-schema
lint-workflows: $(TOOLS)/workflows/.installed
	$(TOOLS)/workflows/bin/zizmor --quiet --offline --persona pedantic --strict-collection .github
	$(CHECK) vendor.github-workflows .github/workflows/*.yml
	$(CHECK) vendor.dependabot .github/dependabot.yml
	$(CHECK) vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(CHECK) vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/idea.yml

tools: $(addprefix $(TOOLS)/,ministack/.installed sam/.installed aws/.installed clients/.installed conformance/.installed)

# First, so that nothing is built in vain.
tomllib: # the packaging scripts need it, and Python has it from 3.11 on
	@for python in python3 $(wildcard $(TOOLS)/packaging/bin/python); do \
		$$python -c "import tomllib" 2>/dev/null || { \
			echo "error: the packaging needs Python 3.11 or later, and $$(command -v $$python) is $$($$python --version)" >&2; exit 1; }; \
	done

chromium: # the browser of the tests of reports, and a font for it
	@command -v chromium >/dev/null \
		|| { $(APT_GET) update && $(APT_GET) install --yes --no-install-recommends chromium fonts-dejavu-core; }

faketime: | chromium # the faster clock of some tests; apt-get installs one package at a time
	@command -v faketime >/dev/null || { $(APT_GET) update && $(APT_GET) install --yes --no-install-recommends faketime; }

# Several start at once, and each would compile it.
$(TOOLS)/ministack/.installed: export UV_COMPILE_BYTECODE := 1

$(TOOLS)/%/.installed: tests/tools/%.txt | $(UV)
	@echo "installing $$(tr '\n' ' ' < tests/tools/$*.in)into .tools/$*"
	@$(UV) venv --quiet --clear $(TOOLS)/$*
	@$(UV) pip install --quiet --require-hashes --no-build --python $(TOOLS)/$*/bin/python --requirement $<
	@touch $@

lock-tools: | $(UV) ## lock the tools of tests/tools/*.in and their dependencies by hash
	@for tools in $(wildcard tests/tools/*.in); do \
		$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
			--no-emit-index-url --no-header --no-annotate $$tools --output-file $${tools%.in}.txt; \
	done

# Ten times as fast as pip.
$(UV): tests/tools/uv.txt
	@python3 -m venv $(TOOLS)/uv
	@$(TOOLS)/uv/bin/pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: --requirement $<
	@touch $@

%/node_modules/.installed: %/package.json %/package-lock.json
	@npm --prefix $* ci --ignore-scripts --no-audit --no-fund
	@touch $@

# Optimized: it compares each licence with all known ones.
$(TOOLS)/about/bin/cargo-about:
	CARGO_PROFILE_RELEASE_LTO=off cargo install --quiet --locked --root $(TOOLS)/about --features cli cargo-about@0.9.3

# Optimizing would take longer than it then saves.
$(TOOLS)/cyclonedx/bin/cargo-cyclonedx:
	CARGO_PROFILE_DEV_DEBUG=false cargo install --quiet --locked --debug --root $(TOOLS)/cyclonedx cargo-cyclonedx@0.5.9

$(TOOLS)/semver/bin/cargo-semver-checks:
	CARGO_PROFILE_DEV_DEBUG=false cargo install --quiet --locked --debug --root $(TOOLS)/semver cargo-semver-checks@0.51.0

$(TOOLS)/fuzz/bin/cargo-fuzz:
	cargo install --quiet --locked --root $(TOOLS)/fuzz cargo-fuzz@0.13.2
