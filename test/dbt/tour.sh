#!/bin/bash
#
# Runs the tour of dbt/README.md as it is written, in a copy of the package, and
# looks for the status lines that it promises.  Ends with an error if they are
# not there.
#
# usage: test/dbt/tour.sh DIRECTORY     DIRECTORY: where to put the copy
#
# dbt has to be in the PATH; the PG* variables lead to an empty database.

set -euo pipefail

package=$(cd "$(dirname "$0")/../../dbt" && pwd)
mkdir -p "$1"
tar -C "$package" -cf - --exclude=dbt_packages --exclude=target --exclude=logs --exclude=package-lock.yml . | tar -C "$1" -xf -
cd "$1"

awk '/^<!-- tour -->$/ { wanted = 1; next }
	/^```sh$/ && wanted { inside = 1; wanted = 0; next }
	/^```$/ { inside = 0 }
	inside' README.md > tour.sh
[ -s tour.sh ] || { echo "the README has no tour" >&2; exit 1; }

export DBT_USE_COLORS=false DBT_SEND_ANONYMOUS_USAGE_STATS=false
status=0
bash -e tour.sh > tour.log 2>&1 || status=$?
for line in '\[APPLY 2 ins 0 upd 0 del' '\[APPLY 2 ins 1 upd 1 del' \
	'\[APPLY 1 ins 2 upd 1 del' 'active_orders@dw'
do
	grep -q "$line" tour.log || { echo "missing: $line" >&2; status=1; }
done
[ "$status" = 0 ] || cat tour.log >&2
exit "$status"
