# Set-up happens by itself, once, before what needs it: a virtual environment and the packages in .venv/; for tests by
# Spark, the Delta jars in the user's cache, with which Spark reads warehouses beside the program.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
SPARK := .venv/.spark

CAPTURE := data/cases/kafka-4.2/capture-1
CODE := txn_analysis jobs tests benchmarks

.DEFAULT_GOAL := help
.PHONY: help demo demo-spark test cluster reach test-spark e2e captures proof bench check format golden docs site release setup clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(READY) ## Audit a real capture in data/ and print the report (seconds)
	@$(BIN)/txn-analysis audit $(CAPTURE)/segments $(CAPTURE)/transaction-state \
		--transaction-state-partitions 4 --max-clock-skew-ms 0 --warehouse build/demo-warehouse --exit-zero \
		--now 2026-11-21T03:00:00Z
	@echo 'The commands above work here after:  . $(BIN)/activate' >&2
	@echo 'The capture is of 2026-11-21, and a plan holds for a day: abort-plan needs --expired here.' >&2

demo-spark: $(READY) ## The same, judged by Spark's tasks: the report is equal but for the line that says so
	@$(BIN)/txn-analysis audit $(CAPTURE)/segments $(CAPTURE)/transaction-state \
		--transaction-state-partitions 4 --max-clock-skew-ms 0 --warehouse build/demo-warehouse --exit-zero \
		--now 2026-11-21T03:00:00Z --engine spark

# Tests start many processes; without its bytecode each would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

# Two processes; the tests of one file, or those that share what takes long to make, stay together.
IN_TWO = --numprocesses 2 --dist loadgroup --no-loadscope-reorder

# Without a JDK there is no Spark, and the tests say so in their last lines.
test: $(READY) ## Run the tests: every rule and reader, and the pipeline in Spark's tasks (5 min)
	@! $(BIN)/python -m txn_analysis.spark.jdk > /dev/null 2>&1 || $(MAKE) --no-print-directory $(SPARK)
	@$(BIN)/python -m pytest -m '(quick or not cluster) and not e2e' $(IN_TWO)

cluster: $(SPARK) ## Run the other tests by Spark, in a browser, or that cost much: engines, clusters, the command, a notebook
	@$(BIN)/python -m pytest -m cluster $(IN_TWO)

reach: $(SPARK) ## Audit from HDFS into HDFS by YARN (fetches Hadoop into .reach/ on first use)
	@$(BIN)/python -m tests.systems.reach

VERSION ?= 4.0

test-spark: $(READY) ## Audit every real capture on another Spark, in .sparks/ (3 min; VERSION=4.0, 4.1, 4.2 or connect)
	@$(BIN)/python -m tests.systems.spark.other_sparks $(VERSION)

# E2E=--brief: the oldest and the newest of the brokers, and nothing twenty times.
E2E ?=

e2e: $(SPARK) ## Repair real brokers of five versions, end to end (20 min; fetches Kafka into .kafka/ on first use)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt confluent-kafka kafka-python \
		|| echo 'Without confluent-kafka and kafka-python: the tests with librdkafka and of txn-capture are skipped' >&2
	@$(BIN)/python -m tests.tools.kafka_jars
	@$(BIN)/python -m pytest -m e2e $(E2E) tests/systems/e2e tests/proof/kafka/log tests/proof/kafka/requests

# Their producer ids, offsets and times are new. CASES='kafka-4.3-busy tools-4.4' makes some.
captures: $(READY) ## Make again the captures in data/cases that programs made, on brokers of their own (15 min)
	@$(BIN)/python -m tests.systems.e2e.scenarios $(CASES)

# The whole is kept in docs/proofs.md; PROOF=--sample takes minutes, PROOF='--minutes 20' about so many.
PROOF ?= --write

proof: $(SPARK) ## Random and small histories, damaged inputs, kills: a table of figures (hours; PROOF=--sample: minutes)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[proof]'
	@$(BIN)/python -m tests.proof $(PROOF)

# SCALE=0.1 takes minutes. ONLY='dumps findings' takes some rows; BEFORE=COMMIT measures an earlier version in turns.
SCALE ?= 1

bench: $(SPARK) ## Measure what audits cost, into docs/sizing.md; fails beyond a limit (an hour; ONLY=, SCALE=, BEFORE=)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	@$(BIN)/python -m benchmarks --scale $(SCALE) $(if $(ONLY),--only $(ONLY)) $(if $(BEFORE),--before $(BEFORE))

check: $(READY) ## Check format, lint and types, and that the documents say things plainly
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy $(CODE)
	@$(BIN)/python -m tests.tools.docs.plain_words

format: $(READY) ## Format the code, and mend what lint can mend
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

golden: $(READY) ## Write what the commands answer of every case into tests/golden anew; then read `git diff`
	@$(BIN)/python -m pytest -q -m golden --update-golden $(IN_TWO) tests/golden tests/unit/judge tests/unit/plan

docs: $(SPARK) ## Write what is made in README.md and docs/: tables, rules, outputs of commands (about 30 s)
	@$(BIN)/python -m tests.tools.docs

# The pages with their folders as they are here, so that their links hold; the sample is a run of the audit.
SITE_PAGES := docs conf deploy data/README.md README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE constraints.txt

site: $(READY) ## Build the documents as a site into build/site, with tables of every field and column; it opens offline
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[site]'
	@rm -rf build/site build/site-pages build/site-warehouse
	@mkdir -p build/site-pages
	@cp -RL --parents $(SITE_PAGES) build/site-pages
	@$(BIN)/python -m tests.tools.docs.site build/site-pages
	@$(BIN)/txn-analysis audit $(CAPTURE)/segments $(CAPTURE)/transaction-state --quiet --exit-zero \
		--transaction-state-partitions 4 --max-clock-skew-ms 0 --warehouse build/site-warehouse \
		--now 2026-11-21T03:00:00Z -o build/site-pages/docs/sample.html
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --config-file docs/mkdocs.yml
	@echo 'build/site/index.html' >&2

# Nothing is uploaded. The SBOM is of an environment that holds what `pip install` of the wheel brings along, and no more.
release: $(READY) ## Build wheel, sdist, man page, SBOM and checksums into dist/ (3 min), and upload nothing
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[release]'
	@rm -rf dist build/release
	@$(BIN)/python -m hatchling build -t sdist -t wheel > /dev/null
	@$(PYTHON) -m venv --without-pip build/release
	@$(BIN)/python -m pip --python build/release install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	@sed "s/^dynamic = .*/version = \"$$($(BIN)/hatchling version)\"/" pyproject.toml > build/release/pyproject.toml
	@$(BIN)/cyclonedx-py environment build/release --pyproject build/release/pyproject.toml --output-reproducible --of JSON \
		--output-file dist/txn_analysis-$$($(BIN)/hatchling version).cdx.json
	@$(BIN)/python -m tests.tools.docs.man_page > dist/txn-analysis.1
	@cd dist && sha256sum * > ../build/SHA256SUMS && mv ../build/SHA256SUMS . && ls -l

setup: $(READY) $(SPARK) ## Only the set-up: .venv/, and for tests by Spark the jars of Delta (~/.cache/txn-analysis/)

clean: ## Remove what runs, tests and checks left; keeps what setup made
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "error: Python 3.11 or newer is needed; set PYTHON=")'
	@echo 'Setting up .venv, once; this takes a minute or two' >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,browser,lint]'
	@touch $@

$(SPARK): $(READY) tests/tools/delta_jars.py
	@$(BIN)/python -m txn_analysis.spark.jdk
	@mkdir -p build
	@$(BIN)/python -m tests.tools.delta_jars > build/delta-jars.log 2>&1 || { cat build/delta-jars.log >&2; exit 2; }
	@touch $@
