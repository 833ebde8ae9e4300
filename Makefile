# cdc_changelog: changelogs of tables.
#
# make, make install, make installcheck    as for every PGXS extension
# make demo, make test                     do all the set-up by themselves and
#                                          need no PostgreSQL installed
# make help                                the other targets

EXTENSION = cdc_changelog
EXTVERSION = $(shell sed -n "s/^default_version *= *'\(.*\)'.*/\1/p" $(EXTENSION).control)

MODULE_big = $(EXTENSION)
OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c)))
DATA = $(sort $(wildcard $(EXTENSION)--*.sql))
PGFILEDESC = "cdc_changelog - changelogs of tables"
PG_CPPFLAGS = -DCDC_CHANGELOG_VERSION='"$(EXTVERSION)"'

# Every file in sql/ and test/specs/ is a test.
REGRESS = $(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql)))
REGRESS_OPTS = --load-extension=$(EXTENSION)
ISOLATION = $(patsubst test/specs/%.spec,%,$(sort $(wildcard test/specs/*.spec)))
ISOLATION_OPTS = --load-extension=$(EXTENSION) --inputdir=test --outputdir=output_iso
TAP_TESTS = 1
PROVE_TESTS ?= test/t/*.pl

EXTRA_CLEAN = output_iso .test

PG_CONFIG ?= pg_config
PGXS := $(wildcard $(shell $(PG_CONFIG) --pgxs 2>/dev/null))

ifneq ($(PGXS),)
include $(PGXS)

# PGXS knows no header dependencies.
$(OBJS): $(wildcard src/*.h)
else
# The targets below work without PostgreSQL; those of PGXS do not.
all install uninstall installcheck clean:
	@echo "No PGXS found by '$(PG_CONFIG)': install the server's development files (Debian: postgresql-server-dev-NN)" >&2
	@echo "or set PG_CONFIG. 'make test' and 'make demo' install what is missing by themselves." >&2
	@false
endif

.DEFAULT_GOAL := all

# The scripts start from a clean slate and make their own copy of the tree, so
# all they take over is a PG_CONFIG that was set on purpose.
ifneq ($(filter command% environment%,$(origin PG_CONFIG)),)
script_env = PG_CONFIG='$(PG_CONFIG)'
endif
run_script = @$(script_env) bash

help:
	@echo 'make, make install        build and install (PG_CONFIG=... chooses the server)'
	@echo 'make installcheck         test against a running server'
	@echo 'make demo                 show it, on a private server; installs Debian packages that are missing'
	@echo 'make test                 all test suites, on a private server; likewise'
	@echo 'make test-dbt             the suite of the dbt package, with dbt from PyPI; likewise'
	@echo 'make test-full            the same with the long runs at full length'
	@echo 'make soak-full            the soak test alone, ten minutes'
	@echo 'make bench                the benchmarks'
	@echo 'make pgindent             format the C files (PGINDENT_DIR=folder of pgindent, pg_bsd_indent, typedefs.list)'
	@echo 'make pgindent-check       only tell whether they are formatted'
	@echo 'make typedefs             renew typedefs.list, the type names that pgindent has to know'
	@echo 'make dist                 a release archive'

demo:
	$(run_script) test/demo/run.sh

test:
	$(run_script) test/run.sh

test-dbt:
	$(run_script) test/dbt/run.sh

test-full:
	@$(script_env) CDC_FULL=1 bash test/run.sh

soak-full:
	@$(script_env) CDC_FULL=1 bash test/run.sh test/t/001_soak.pl

bench:
	$(run_script) test/bench/run.sh

# pgindent wants one list of type names: the server's and our own.
PGINDENT_DIR ?= /opt/pgindent
pgindent_run = mkdir -p .test && \
	sort -u $(PGINDENT_DIR)/typedefs.list typedefs.list > .test/typedefs.list && \
	PATH="$(PGINDENT_DIR):$$PATH" perl $(PGINDENT_DIR)/pgindent --typedefs=.test/typedefs.list

# Renews our list from the sources.
typedefs:
	cat src/*.[ch] | sed -nE 's/^\} *([A-Za-z_]+);$$/\1/p; s/^typedef (struct|enum|union) [A-Za-z_]+ \*?([A-Za-z_]+);$$/\2/p; s/^typedef [^(]*\(\*([A-Za-z_]+)\).*$$/\1/p' | LC_ALL=C sort -u > typedefs.list

pgindent:
	$(pgindent_run) src

pgindent-check:
	$(pgindent_run) --check --diff src

dist:
	git archive --format zip --prefix=$(EXTENSION)-$(EXTVERSION)/ --output $(EXTENSION)-$(EXTVERSION).zip HEAD

.PHONY: help demo test test-dbt test-full soak-full bench typedefs pgindent pgindent-check dist
