#!/bin/bash
#
# Runs the dbt package with real dbt on a private server.  The last line is
# "N passed, N failed".  dbt comes from PyPI, into a virtual environment in the
# private directory; where PyPI is not reachable, nothing is tested.
#
# usage: test/dbt/run.sh [scenario...]
#
# Besides the settings in setup.sh:
#	CDC_DBT_VENVS	a directory of virtual environments to use as they are, by
#					the names below, instead of new ones
#	CDC_DBT_OLDEST	if set to "all", all scenarios run with the oldest dbt too

. "$(dirname "$0")/../setup.sh"

# The newest and the oldest supported minor.  (dbt-core 1.12 cannot be had from
# PyPI alone: it needs a program that is downloaded from elsewhere.)
newest=('dbt-core==1.11.*' 'dbt-postgres==1.11.*')
oldest=('dbt-core==1.8.*' 'dbt-postgres==1.8.*')

cdc_needs=(python3 python3-venv)
cdc_private test/dbt/run.sh "$@"

# Debian's Python, which the unprivileged user can run in any case
python=/usr/bin/python3
[ -x "$python" ] || python=$(command -v python3)
venvs=${CDC_DBT_VENVS:-$CDC_WORK/venv}

# Makes a virtual environment.  Arguments: its name, requirements for pip.
make_venv()
{
	local name=$1
	shift

	[ ! -x "$venvs/$name/bin/dbt" ] || return 0
	"$python" -m venv "$venvs/$name" &&
		"$venvs/$name/bin/pip" install -q --disable-pip-version-check "$@"
}

# Downloads go on while the extension is compiled.
make_venv newest "${newest[@]}" > "$CDC_WORK/pip-newest.log" 2>&1 &
venv_newest=$!
make_venv oldest "${oldest[@]}" > "$CDC_WORK/pip-oldest.log" 2>&1 &
venv_oldest=$!

cdc_build
cdc_server 'max_connections = 50' "client_connection_check_interval = '500ms'"

if ! wait "$venv_newest"
then
	tail -n 5 "$CDC_WORK/pip-newest.log"
	kill "$venv_oldest" 2> /dev/null || true
	wait "$venv_oldest" || true
	if ! "$python" -m venv "$CDC_WORK/probe" > /dev/null 2>&1
	then
		cdc_die "could not make a virtual environment"
	fi
	if "$CDC_WORK/probe/bin/pip" download -q --no-deps -d "$CDC_WORK/probe" "${newest[0]}" > /dev/null 2>&1
	then
		cdc_die "could not install ${newest[*]}"
	fi
	echo "The dbt suite is left out: dbt cannot be had from PyPI here"
	cdc_server_stop
	echo "0 passed, 0 failed"
	exit 0
fi

passed=0
failed=0

# Runs the scenarios with one dbt.  Arguments: name of the virtual environment,
# scenarios.
scenarios()
{
	local name=$1
	shift

	echo "== $name dbt: $("$venvs/$name/bin/python" -c 'from importlib.metadata import version as v
print("dbt-core", v("dbt-core") + ", dbt-postgres", v("dbt-postgres"))')"
	mkdir "$CDC_WORK/tree-$name" "$CDC_WORK/tree-$name/test"
	cp -r dbt "$CDC_WORK/tree-$name"
	cp -r test/dbt "$CDC_WORK/tree-$name/test"
	CDC_DBT_PROJECT=$CDC_WORK/tree-$name/dbt/integration_tests SHOP_DATABASE=shop_$name \
		"$venvs/$name/bin/python" test/dbt/scenarios.py "$@" 2>&1
}

# Counts what they said.  Arguments: name, exit status.
count()
{
	local bad

	bad=$(grep -c '^not ok ' "$CDC_WORK/scenarios-$1.log" || true)
	if [ "$2" != 0 ] && [ "$bad" = 0 ]
	then
		bad=1
		echo "FAILED: scenarios with the $1 dbt (exit status $2)"
	fi
	passed=$((passed + $(grep -c '^ok ' "$CDC_WORK/scenarios-$1.log" || true)))
	failed=$((failed + bad))
}

oldest_status=0
wait "$venv_oldest" || oldest_status=$?

# the owner of the sources, as whom dbt connects, and one for grants
psql -Xq -c 'CREATE ROLE shop LOGIN' -c 'CREATE ROLE reporting'

# Both at once, with a database for each.
all=("$@")
main=("$@")
if [ $# = 0 ] && [ "${CDC_DBT_OLDEST-}" != all ]
then
	main=(--main)
fi
(
	if [ "$oldest_status" != 0 ]
	then
		tail -n 20 "$CDC_WORK/pip-oldest.log"
		echo "not ok - ${oldest[*]} cannot be installed"
		exit 1
	fi
	scenarios oldest "${main[@]}"
) > "$CDC_WORK/scenarios-oldest.log" 2>&1 &
scenarios_oldest=$!
status=0
scenarios newest "${all[@]}" | tee "$CDC_WORK/scenarios-newest.log" || status=$?
count newest "$status"
status=0
wait "$scenarios_oldest" || status=$?
cat "$CDC_WORK/scenarios-oldest.log"
count oldest "$status"

if grep -E 'TRAP: |PANIC: |was terminated by signal|WARNING: .*( leak|not closed|problem in alloc set|lock of type)' "$CDC_WORK/server.log"
then
	echo "FAILED: the server's log"
	failed=$((failed + 1))
fi

cdc_server_stop
[ "$failed" = 0 ] && status=0 || status=1
echo "$passed passed, $failed failed"
exit "$status"
