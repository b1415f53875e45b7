# Two commands: `make` sets everything up, builds the site and grades the sample class; `make test` runs every test.
# Each step leaves a stamp, so that a second run does no work that is already done.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
BUILD := _build
SAMPLE := tests/sample_class
GRADED := $(BUILD)/class
SITE := $(BUILD)/site/index.html

SOURCES := $(shell find autograder solutions exercises $(SAMPLE) -type f -not -path '*/__pycache__/*' -not -path '*/.ipynb_checkpoints/*')

# Tests that only compute or look at pages are shared among the cores one by one. The others go file by file, because they
# start graders, servers and sandboxes of their own. The attacks are timed, so they have the machine to themselves.
ONE_BY_ONE := tests/test_right_answers.py tests/reference tests/website
PAGES := _config.yml _toc.yml $(shell find book exercises -type f -not -path '*/__pycache__/*' -not -path '*/.ipynb_checkpoints/*')

.PHONY: all site serve test browser postgres audit bench lab clean
.DELETE_ON_ERROR:

all: $(SITE) $(GRADED)/class.html
	@echo
	@echo "The site is $(SITE) (make serve shows it) · 网站在 $(SITE)（用 make serve 查看）"
	@echo "The class report is $(GRADED)/class.html · 班级报告在 $(GRADED)/class.html"

$(VENV)/.installed: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' \
	  || { echo "Python's venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --disable-pip-version-check -r requirements.txt
	$(RUN) -m pip install --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

site: $(SITE)

$(SITE): $(VENV)/.installed $(PAGES) autograder/catalogue.toml
	$(RUN) book/build.py
	@touch $@

serve: $(SITE)
	$(RUN) book/serve.py

$(GRADED)/class.html: $(VENV)/.installed $(SOURCES) $(shell find $(SAMPLE) -type f)
	@mkdir -p $(BUILD)
	cd $(BUILD) && ../$(RUN) -m autograder grade ../$(SAMPLE) --out class --fresh
	@touch $@

test: $(VENV)/.installed browser postgres $(SITE)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(RUN) -m pytest --numprocesses auto --dist worksteal $(ONE_BY_ONE)
	$(RUN) -m pytest --numprocesses auto --dist loadfile $(addprefix --ignore=,$(ONE_BY_ONE) tests/attacks)
	$(RUN) -m pytest tests/attacks

# The site is tested in Debian's Chromium, with a font that has Chinese.
browser:
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; \
	[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq chromium fonts-noto-cjk \
	  || { echo "The site's tests need Chromium and a Chinese font; on Debian: sudo apt-get install chromium fonts-noto-cjk"; exit 1; }

# The gradebook is also tested in a real PostgreSQL server.
postgres:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || \
	{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq postgresql; } \
	  || echo "The gradebook's tests skip PostgreSQL, which is not here; on Debian: sudo apt-get install postgresql"

audit: $(VENV)/.installed
	$(RUN) -m autograder audit

bench: $(VENV)/.installed
	$(RUN) -m autograder bench

lab: $(VENV)/.installed
	$(VENV)/bin/jupyter lab --notebook-dir exercises $(if $(filter 0,$(shell id -u)),--allow-root)

clean:
	rm -rf $(BUILD) $(VENV) build *.egg-info .pytest_cache .ruff_cache .mypy_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
