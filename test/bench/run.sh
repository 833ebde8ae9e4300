#!/bin/bash
#
# Measures the figures of this directory on a private server, prints them, and
# writes them to RESULTS.md.  README.md tells how they are taken.
#
# usage: test/bench/run.sh [figure...]		names of files in figures/
#
# With arguments, or where the scale is not the full one, the figures are only
# printed.
#
# Besides the settings in setup.sh:
#	BENCH_REPS		how often each side is measured, 5 by default
#	BENCH_SCALE		divides the numbers of rows, 1 by default
#	BENCH_BIG_ROWS	rows of the big table, 10000000 by default
#	BENCH_SECONDS	how long a run of pgbench takes, 10 by default
#	BENCH_NO_PEERS	if set, other extensions are not measured; RESULTS.md keeps
#					what it says of them
#	BENCH_VERBOSE	if set, each measured value is printed
#	BENCH_WRITE		if set, RESULTS.md is written in any case

. "$(dirname "$0")/../setup.sh"

cdc_needs=()
cdc_wants=(tablelog periods)
cdc_result=test/bench/RESULTS.md
cdc_private test/bench/run.sh "$@"

: "${BENCH_REPS:=5}" "${BENCH_SCALE:=1}" "${BENCH_BIG_ROWS:=10000000}" "${BENCH_SECONDS:=10}"

# Every figure, in the order of the result
all_figures=(insert insert_memory update delete copy single pgbench_fsync
	pgbench_async writers read_latest read_net range memory apply apply_small
	pipeline steady log_size poll tables truncate wide toast many)

figures=("$@")
[ $# -gt 0 ] || figures=("${all_figures[@]}")
for figure in "${figures[@]}"
do
	[ -f "test/bench/figures/$figure.sh" ] ||
		cdc_die "there is no figure \"$figure\"; there are: ${all_figures[*]}"
done

# A quarter of the memory, 2 GB at most
buffers=$(awk '$1 == "MemTotal:" { mb = int($2 / 4096); print (mb > 2048 ? 2048 : mb) }' /proc/meminfo)
settings=("shared_buffers = ${buffers}MB" 'work_mem = 64MB' 'maintenance_work_mem = 256MB'
	'fsync = on' 'wal_level = replica' 'max_wal_size = 16GB' 'min_wal_size = 4GB'
	'checkpoint_timeout = 1h' 'autovacuum = off' 'jit = off' 'max_connections = 60')

cdc_build COPT=
cdc_server "${settings[@]}"

. test/bench/lib.sh
sql 'CREATE EXTENSION cdc_changelog'

failed=()
for figure in "${figures[@]}"
do
	echo "== $figure"
	status=0
	set +e
	(
		set -e
		. "test/bench/figures/$figure.sh"
	)
	status=$?
	set -e
	if [ "$status" != 0 ]
	then
		failed+=("$figure")
		note "$figure could not be measured"
		pg_ctl status > /dev/null || cdc_server_start
	fi
done

# Writes one section of the result as a table.  Arguments: section and title.
table()
{
	[ -s "$bench_dir/$1.rows" ] || return 0
	printf '\n## %s\n\n' "$2"
	echo '| what | measured | compared with | ratio (min-max) | ratio of medians | goal | |'
	echo '|---|---|---|---|---|---|---|'
	awk -F'|' '{
		gsub(/<=/, "\\&le;"); gsub(/>=/, "\\&ge;")
		printf "| %s | %s | %s | %s | %s | %s | %s |\n", $1, $2, $3, $4, $5, $6, $7
	}' "$bench_dir/$1.rows"
}

# What RESULTS.md says of other extensions, where they are not measured now.
earlier_peers()
{
	[ -n "${BENCH_NO_PEERS:-}" ] && [ -f test/bench/RESULTS.md ] || return 0
	awk '
		/^- Date: / { date = $3 }
		/^## / { own = $0 ~ /^## Other extensions/; peers = own || $0 ~ /^## Peers/ }
		own && /^From a run of / { date = $5; sub(/[:,.]$/, "", date) }
		peers && /\| (table_log|periods): / { lines = lines $0 "\n" }
		END {
			if (lines == "")
				exit
			printf "\n## Other extensions, compared with the untracked table\n\n"
			printf "From a run of %s.\n\n", date
			print "| what | measured | compared with | ratio (min-max) | ratio of medians | goal | |"
			print "|---|---|---|---|---|---|---|"
			printf "%s", lines
		}' test/bench/RESULTS.md
}

{
	echo '# Benchmark results'
	echo
	echo 'Written by `make bench`; [README.md](README.md) tells how the figures are taken.'
	echo
	echo "- Date: $(date -u +%Y-%m-%d)"
	echo "- Machine: $(nproc) cores ($(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)), $(awk '$1 == "MemTotal:" { printf "%.0f GB memory", $2 / 1048576 }' /proc/meminfo), Linux $(uname -r)"
	echo "- Server: PostgreSQL $(sql 'SHOW server_version'), cdc_changelog $(sql "SELECT extversion FROM pg_extension WHERE extname = 'cdc_changelog'")"
	for peer in table_log periods
	do
		version=$(sql "SELECT default_version FROM pg_available_extensions WHERE name = '$peer'")
		[ -z "$version" ] || echo "- Peer: $peer $version"
	done
	echo "- Settings: $(printf '`%s`, ' "${settings[@]}" | sed 's/, $//')"
	echo "- Each side $BENCH_REPS times, in turn$([ "$BENCH_SCALE" = 1 ] || echo "; rows divided by $BENCH_SCALE")"
	echo
	echo 'Values are medians, with minimum and maximum. The ratio is the median of those'
	echo 'of neighbouring runs.'
	table goals 'Goals'
	table peers 'Peers, compared with the untracked table'
	earlier_peers
	table more 'Also measured'
	if [ -s "$bench_dir/notes" ]
	then
		printf '\n## Notes\n\n'
		sed 's/^/- /' "$bench_dir/notes"
	fi
} > "$bench_dir/RESULTS.md"

cdc_server_stop

echo
cat "$bench_dir/RESULTS.md"
if [ $# = 0 ] && [ "$BENCH_SCALE" = 1 ] && [ ${#failed[@]} = 0 ] || [ -n "${BENCH_WRITE:-}" ]
then
	cp "$bench_dir/RESULTS.md" "$CDC_WORK/result"
fi
if [ ${#failed[@]} -gt 0 ]
then
	cdc_die "could not be measured: ${failed[*]}"
fi
