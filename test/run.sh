#!/bin/bash
#
# Runs the test suites on a private server: pg_regress, isolation and TAP, all
# of them even when one fails.  The last line is "N passed, N failed"; every
# regression test, isolation spec and TAP test counts as one.
#
# usage: test/run.sh [TAP file...]      with arguments, only these TAP tests
#
# Besides the settings in setup.sh:
#	CDC_FULL	if set, the long TAP tests run at full length, and there are
#				more random histories
#	CDC_CFLAGS	compiler flags; by default all warnings, as errors

. "$(dirname "$0")/setup.sh"

cdc_needs=(perl libipc-run-perl)
# for tests that are skipped without them
cdc_wants=(partman cron)
cdc_private test/run.sh "$@"

cdc_build COPT="${CDC_CFLAGS--Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers -Werror}"
# Autovacuum would change plans, and with them the order of rows, in the middle
# of a test; the servers of the TAP tests have it.
cdc_server 'wal_level = logical' 'max_prepared_transactions = 20' \
	'track_commit_timestamp = off' 'max_connections = 50' 'autovacuum = off'

# The TAP tests start servers of their own, and wait longer on slow machines.
export PG_TEST_TIMEOUT_DEFAULT="${PG_TEST_TIMEOUT_DEFAULT-600}"
printf '%s\n' "$cdc_settings" > "$CDC_WORK/tap.conf"

# pg_regress gives up where an expected file is missing; an empty one makes
# that test fail and the others run.
for file in sql/*.sql
do
	file=${file##*/}
	[ -f "expected/${file%.sql}.out" ] || : > "expected/${file%.sql}.out"
done

passed=0
failed=0

# Counts what a suite said.  Arguments: the suite's name, its exit status and
# its output.  Servers from 16 on report regression tests as TAP.
count()
{
	local good bad skipped

	# a TAP test that cannot run here at all, and says so above
	if [ "$2" = 0 ] && grep -qx 'Result: NOTESTS' "$3"
	then
		return
	fi
	good=$(grep -cE '^(test .*|  .*)\.\.\. ok |^ok [0-9]+ ' "$3" || true)
	bad=$(grep -E '^(test .*|  .*)\.\.\. FAILED|^not ok [0-9]+ ' "$3" | grep -cvE '# TODO' || true)
	skipped=$(grep -cE '^[^ ]+ \.+ skipped: ' "$3" || true)
	if [ "$bad" = 0 ] && { [ "$2" != 0 ] || [ "$good$skipped" = 00 ]; }
	then
		# it ended without saying which test failed
		bad=1
		echo "FAILED: $1 (exit status $2)"
	fi
	passed=$((passed + good))
	failed=$((failed + bad))
}

# Runs one suite.  Arguments: name, file with the differences, settings for make.
suite()
{
	local name=$1 diffs=$2
	local status=0
	shift 2

	echo "== $name"
	"${cdc_make[@]}" installcheck "$@" > "$CDC_WORK/suite.log" 2>&1 || status=$?
	if [ "$status" = 0 ]
	then
		grep -E '^(test |  |ok |not ok )' "$CDC_WORK/suite.log" || true
	else
		cat "$CDC_WORK/suite.log"
		[ ! -f "$diffs" ] || cat "$diffs"
	fi
	count "$name" "$status" "$CDC_WORK/suite.log"

	# one that crashed the server must not take the next suite with it
	pg_ctl status > /dev/null || cdc_server_start
}

if [ -n "${CDC_FULL-}" ]
then
	export CDC_CONSUMER_HISTORIES="${CDC_CONSUMER_HISTORIES-500}"
	export CDC_PERMUTATIONS="${CDC_PERMUTATIONS-500}"
fi
if [ $# = 0 ]
then
	suite regress regression.diffs ISOLATION= TAP_TESTS=
	suite isolation output_iso/regression.diffs REGRESS= TAP_TESTS=
	set -- test/t/*.pl
fi

for file in "$@"
do
	echo "== $file"
	status=0
	TEMP_CONFIG=$CDC_WORK/tap.conf "${cdc_make[@]}" installcheck REGRESS= ISOLATION= \
		PROVE_TESTS="$file" PROVE_FLAGS=--verbose > "$CDC_WORK/suite.log" 2>&1 || status=$?
	grep -vE '^(\+\+\+|1\.\.|Files=|# (Checking|Running))' "$CDC_WORK/suite.log" || true
	if [ "$status" != 0 ]
	then
		tail -n 100 tmp_check/log/* || true
	fi
	count "$file" "$status" "$CDC_WORK/suite.log"
done

# A test can pass while the server complains of our C code.
if grep -E 'TRAP: |PANIC: |was terminated by signal|WARNING: .*( leak|not closed|problem in alloc set|lock of type)' "$CDC_WORK/server.log"
then
	echo "FAILED: the server's log"
	failed=$((failed + 1))
fi

cdc_server_stop
echo "The dbt suite is left out here: make test-dbt runs it"
[ "$failed" = 0 ] && status=0 || status=1
echo "$passed passed, $failed failed"
exit "$status"
