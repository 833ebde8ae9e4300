# What the benchmark's figures share: tables, capture by the extension and by
# its peers, timing and statistics.  Sourced by run.sh for each figure.
#
# A figure makes its tables, calls rounds() to run its sides in turn, and says
# with ratio() or value() what becomes a line of the result.

bench_dir=$CDC_WORK/bench
bench_samples=$bench_dir/samples
warming_up=
mkdir -p "$bench_samples"

# ----------
# SQL
# ----------

# Runs SQL, from the arguments or standard input, and prints what it returns.
sql()
{
	if [ $# -gt 0 ]
	then
		printf '%s\n' "$@" | sql
	else
		psql -XqAt -v ON_ERROR_STOP=1
	fi
}

# Runs SQL, from the arguments or standard input, and sets "value" to the
# milliseconds that the client has waited for it.  Lines between "\timing off"
# and "\timing on" do not count.
time_sql()
{
	local times

	if [ $# -gt 0 ]
	then
		time_sql < <(printf '%s\n' "$@")
		return
	fi
	times=$({ echo '\timing on'; cat; } | psql -XqAt -v ON_ERROR_STOP=1 -o /dev/null) ||
		cdc_die "a measured statement failed"
	value=$(awk '$1 == "Time:" { sum += $2 } END { printf "%.3f", sum }' <<< "$times")
}

# The number of rows at the chosen scale.  Argument: the number at full scale.
scaled()
{
	local n=$(($1 / BENCH_SCALE))

	echo $((n > 10 ? n : 10))
}

# Rows as a result shows them: 1,000,000
with_commas()
{
	sed -E ':a; s/^([0-9]+)([0-9]{3})/\1,\2/; ta' <<< "$1"
}

# ----------
# Tables
# ----------

# Sees to it that there is the table "template" with the rows that tables are
# loaded from.
need_template()
{
	sql "SET client_min_messages = warning;
		CREATE TABLE IF NOT EXISTS template (
			id bigint PRIMARY KEY, status text, amount numeric(10,2),
			note text, updated_at timestamptz)"
	if [ "$(sql 'SELECT count(*) FROM template')" = 0 ]
	then
		sql "INSERT INTO template
			SELECT i, (ARRAY['new', 'paid', 'packed', 'shipped'])[1 + i % 4],
				(i::bigint * 7919 % 1000000) / 100.0,
				rpad(md5(i::text), 40, 'note of the order'),
				timestamptz '2026-01-01' + i * interval '1 second'
			FROM generate_series(1, $(scaled 1000000)) i;
			VACUUM ANALYZE template"
	fi
}

# Makes a table like the template.  Arguments: its name, the side that captures
# its changes (see capture()), and optionally which rows of the template it
# starts with; by default all.
make_table()
{
	need_template
	sql "SET client_min_messages = warning; DROP TABLE IF EXISTS $1 CASCADE;
		CREATE TABLE $1 (LIKE template INCLUDING ALL);
		INSERT INTO $1 SELECT * FROM template WHERE ${3:-true}"
	capture "$1" "$2"
	sql "VACUUM ANALYZE $1"
}

# Drops tables that make_table() has made.
drop_tables()
{
	local name

	for name in "$@"
	do
		if [ -n "$(have periods && sql "SELECT 1 FROM pg_extension e, periods.system_versioning s
			WHERE e.extname = 'periods' AND s.table_name = '$name'::regclass" 2> /dev/null || true)" ]
		then
			sql "SET client_min_messages = warning;
				SELECT periods.drop_system_versioning('$name', drop_behavior => 'CASCADE', purge => true);
				SELECT periods.drop_system_time_period('$name', drop_behavior => 'CASCADE', purge => true)" > /dev/null
		fi
		sql "SET client_min_messages = warning;
			DROP TABLE IF EXISTS $name, ${name}_audit, ${name}_log CASCADE;
			DROP SEQUENCE IF EXISTS ${name}_log_seq"
	done
}

# Is this peer there?  Argument: an extension's name.
have()
{
	[ -n "$(sql "SELECT 1 FROM pg_available_extensions WHERE name = '$1'")" ]
}

# The peers that can be measured; says which cannot.
peers()
{
	local peer

	echo row_trigger
	echo statement_trigger
	for peer in table_log periods
	do
		if [ -n "${BENCH_NO_PEERS:-}" ]
		then
			continue
		elif have "$peer"
		then
			echo "$peer"
		else
			note "$peer was not measured: there is no such extension on this machine"
		fi
	done
}

# Has the changes of a table captured.  Arguments: the table and the side.
#	untracked, append	not at all
#	tracked				by cdc_changelog
#	row_trigger			by a PL/pgSQL trigger for each row
#	statement_trigger	by PL/pgSQL triggers with transition tables
#	table_log, periods	by the extension of that name
# The hand-written triggers write to a table without an index, both images of
# an update, and no more of each change than its time and transaction.
capture()
{
	local t=$1
	local audit="CREATE TABLE ${t}_audit (op \"char\", at timestamptz, tx xid8, LIKE $t)"

	case $2 in
		untracked | append) ;;
		tracked)
			sql "SELECT cdc.track('$t')" > /dev/null
			;;
		row_trigger)
			sql "$audit;
				CREATE OR REPLACE FUNCTION ${t}_audit() RETURNS trigger LANGUAGE plpgsql AS \$\$
				BEGIN
					IF TG_OP <> 'INSERT' THEN
						INSERT INTO ${t}_audit VALUES ('-', now(), pg_current_xact_id(), OLD.*);
					END IF;
					IF TG_OP <> 'DELETE' THEN
						INSERT INTO ${t}_audit VALUES ('+', now(), pg_current_xact_id(), NEW.*);
					END IF;
					RETURN NULL;
				END \$\$;
				CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON $t
					FOR EACH ROW EXECUTE FUNCTION ${t}_audit()"
			;;
		statement_trigger)
			sql "$audit;
				CREATE OR REPLACE FUNCTION ${t}_audit() RETURNS trigger LANGUAGE plpgsql AS \$\$
				BEGIN
					IF TG_OP <> 'INSERT' THEN
						INSERT INTO ${t}_audit
						SELECT '-', now(), pg_current_xact_id(), o.* FROM o;
					END IF;
					IF TG_OP <> 'DELETE' THEN
						INSERT INTO ${t}_audit
						SELECT '+', now(), pg_current_xact_id(), n.* FROM n;
					END IF;
					RETURN NULL;
				END \$\$;
				CREATE TRIGGER audit_i AFTER INSERT ON $t REFERENCING NEW TABLE AS n
					FOR EACH STATEMENT EXECUTE FUNCTION ${t}_audit();
				CREATE TRIGGER audit_u AFTER UPDATE ON $t REFERENCING OLD TABLE AS o NEW TABLE AS n
					FOR EACH STATEMENT EXECUTE FUNCTION ${t}_audit();
				CREATE TRIGGER audit_d AFTER DELETE ON $t REFERENCING OLD TABLE AS o
					FOR EACH STATEMENT EXECUTE FUNCTION ${t}_audit()"
			;;
		table_log)
			sql "SET client_min_messages = warning;
				CREATE EXTENSION IF NOT EXISTS table_log;
				SELECT table_log_init(5, 'public', '$t', 'public', '${t}_log')" > /dev/null
			;;
		periods)
			sql "SET client_min_messages = warning;
				CREATE EXTENSION IF NOT EXISTS periods CASCADE;
				SELECT periods.add_system_time_period('$t');
				SELECT periods.add_system_versioning('$t')" > /dev/null
			;;
		*)
			cdc_die "unknown side \"$2\""
			;;
	esac
}

# The segments of the log of a tracked table, one a line.
segments_of()
{
	sql "SELECT s.log_table FROM cdc.log_segment s JOIN cdc.tracked_table t USING (table_id)
		WHERE t.relation = '$1'::regclass ORDER BY s.segment"
}

# The log of a tracked table as something that can be queried: the only segment,
# or all together.
log_of()
{
	segments_of "$1" | awk '
		{ all = all (NR > 1 ? " UNION ALL " : "") "SELECT * FROM " $0; one = $0 }
		END { print NR == 1 ? one : "(" all ")" }'
}

# The size of the log of a tracked table, in bytes.
log_bytes()
{
	sql "SELECT log_bytes FROM cdc.tracked_tables WHERE relation = '$1'::regclass"
}

# Vacuums a tracked table and its log.
vacuum_all()
{
	local name

	for name in "$1" $(segments_of "$1")
	do
		sql "VACUUM ANALYZE $name"
	done
}

# The number by which a tracked table is known.
id_of()
{
	sql "SELECT table_id FROM cdc.tracked_table WHERE relation = '$1'::regclass"
}

# Fails unless two queries return the same rows.  Arguments: what is compared,
# and the queries.
must_equal()
{
	local differences

	differences=$(sql "WITH a AS MATERIALIZED ($2), b AS MATERIALIZED ($3)
		SELECT count(*) FROM ((TABLE a EXCEPT ALL TABLE b)
			UNION ALL (TABLE b EXCEPT ALL TABLE a)) d")
	[ "$differences" = 0 ] || cdc_die "$1: $differences rows differ"
}

# Sees to it that there is the tracked table "big" and its log of 20,000,000
# rows (at full scale): all of its 10,000,000 rows are updated, and in between,
# in snapshot 2, 1,000 of them once more.  Likewise the tracked table "small",
# with 10,000 rows and a log of 20,000.
need_big()
{
	local name rows half

	for name in small big
	do
		[ -z "$(sql "SELECT to_regclass('$name')")" ] || continue
		[ $name = small ] && rows=10000 || rows=$(scaled "$BENCH_BIG_ROWS")
		half=$((rows / 2))
		sql "CREATE TABLE $name (LIKE template INCLUDING ALL);
			INSERT INTO $name
			SELECT i, 'new', i % 100000 / 100.0, rpad(md5(i::text), 40, 'note of the order'),
				timestamptz '2026-01-01' + i * interval '1 second'
			FROM generate_series(1, $rows) i;
			SELECT cdc.track('$name');
			UPDATE $name SET status = 'paid', amount = amount + 1 WHERE id <= $half;
			UPDATE $name SET status = 'packed', amount = amount + 1 WHERE id % ($rows / $(big_range)) = 0;
			UPDATE $name SET status = 'paid', amount = amount + 1 WHERE id > $half" > /dev/null
		vacuum_all $name
		sql CHECKPOINT
	done
}

# How many rows of "big" and "small" are updated in snapshot 2.
big_range()
{
	local n=$(($(scaled "$BENCH_BIG_ROWS") / 10))

	echo $((n < 1000 ? n : 1000))
}

# ----------
# Measuring
# ----------

# Runs the sides in turn.  Arguments: the figure, a function, and the sides.
# The function gets a side as its argument and sets "value".  A first round of
# the first two sides is for the caches and does not count.
rounds()
{
	local figure=$1 run=$2
	local rep side
	shift 2

	warming_up=1
	for side in "$1" ${2:+"$2"}
	do
		"$run" "$side"
	done
	warming_up=
	for rep in $(seq "$BENCH_REPS")
	do
		for side in "$@"
		do
			value=
			"$run" "$side"
			sample "$figure" "$side" "$value"
		done
	done
}

# Keeps a measured value, unless this is the first round of rounds().
# Arguments: figure, side, value.
sample()
{
	[ -z "$warming_up" ] || return 0
	[ -n "$3" ] || cdc_die "$1, $2: nothing was measured"
	echo "$3" >> "$bench_samples/$1.$2"
	[ -z "${BENCH_VERBOSE:-}" ] || echo "    $1 $2 $3"
}

# Prints median, minimum and maximum of the numbers on standard input.
statistics()
{
	sort -g | awk '
		{ v[NR] = $1 }
		END {
			m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
			print m, v[1], v[NR]
		}'
}

# Writes a number with three digits that matter, or all before the point.
short()
{
	awk -v x="$1" 'BEGIN {
		a = x < 0 ? -x : x
		printf(a >= 100 ? "%.0f" : a >= 10 ? "%.1f" : "%.2f", x)
	}'
}

# Writes the statistics of a file of values as "median (minimum-maximum) unit".
summary()
{
	local m

	read -r -a m < <(statistics < "$1")
	echo "$(short "${m[0]}") ($(short "${m[1]}")-$(short "${m[2]}")) $2"
}

# Adds a line to the result that compares two sides.  Arguments: section
# (goals, peers, more), figure, what is measured, unit, the two sides, their
# names for the reader, and optionally the goal for first / second, such as
# "<= 1.25".
ratio()
{
	local section=$1 what=$3 unit=$4 first=$bench_samples/$2.$5 second=$bench_samples/$2.$6
	local names=("$7" "$8")
	local goal=${9:-}
	local r of_medians verdict=

	read -r -a r < <(paste "$first" "$second" | awk '{ print $1 / $2 }' | statistics)
	of_medians=$(paste <(statistics < "$first") <(statistics < "$second") | awk '{ print $1 / $4 }')
	if [ -n "$goal" ]
	then
		verdict=$(awk -v r="${r[0]}" -v goal="$goal" 'BEGIN {
			split(goal, g, " ")
			print (g[1] == "<=" ? r <= g[2] : r >= g[2]) ? "met" : "missed" }')
	fi
	result "$section" "$what" "${names[0]}: $(summary "$first" "$unit")" \
		"${names[1]}: $(summary "$second" "$unit")" \
		"$(short "${r[0]}") ($(short "${r[1]}")-$(short "${r[2]}"))" \
		"$(short "$of_medians")" "$goal" "$verdict"
}

# Adds a line with one number of its own to the result.  Arguments: section,
# figure, what is measured, unit, side, and optionally the goal for the
# median, such as "<= 104".
value()
{
	local section=$1 what=$3 unit=$4 file=$bench_samples/$2.$5
	local goal=${6:-}
	local m verdict=

	read -r -a m < <(statistics < "$file")
	if [ -n "$goal" ]
	then
		verdict=$(awk -v r="${m[0]}" -v goal="$goal" 'BEGIN {
			split(goal, g, " ")
			print (g[1] == "<=" ? r <= g[2] : r >= g[2]) ? "met" : "missed" }')
	fi
	result "$section" "$what" "$(summary "$file" "$unit")" "" "" "" "$goal" "$verdict"
}

# Adds a line to the result and prints it.
result()
{
	local section=$1
	local IFS='|'

	shift
	echo "$*" >> "$bench_dir/$section.rows"
	print_result "$*"
}

# Prints a line of the result for people.
print_result()
{
	awk -F'|' '{
		printf "  %s\n      %s", $1, $2
		if ($3 != "") printf "; %s; ratio %s, of medians %s", $3, $4, $5
		if ($6 != "") printf "; goal %s: %s", $6, $7
		printf "\n"
	}' <<< "$1"
}

# Adds a remark to the result, once.
note()
{
	if ! grep -qxF -- "$1" "$bench_dir/notes" 2> /dev/null
	then
		echo "$1" >> "$bench_dir/notes"
		echo "  $1" >&2
	fi
}

# ----------
# Processes
# ----------

# Runs a function or command while the private memory of a backend is watched,
# and sets "value" to the largest that was seen, in MB.  Arguments: a file that
# will hold the backend's process number, and the command.
#
# This is the kernel's RssAnon: what the backend has allocated, without the
# shared buffers that it has touched and the program itself.
watch_memory()
{
	local file=$1 watcher
	shift

	rm -f "$file" "$file.peak"
	(
		peak=0
		trap 'echo "$peak" > "$file.peak"; exit 0' TERM
		while :
		do
			if [ -s "$file" ]
			then
				kb=$(awk '$1 == "RssAnon:" { print $2 }' "/proc/$(cat "$file")/status" 2> /dev/null || true)
				[ "${kb:-0}" -le "$peak" ] || peak=$kb
			fi
			sleep 0.02
		done
	) &
	watcher=$!
	"$@"
	kill "$watcher"
	wait "$watcher" || true
	value=$(awk '{ printf "%.1f", $1 / 1024 }' "$file.peak")
}

# Runs pgbench and sets "tps" and "latency" (the average, in milliseconds).
# Arguments: the script's text and pgbench's arguments.
run_pgbench()
{
	local script=$1
	local output
	shift

	printf '%s\n' "$script" > "$bench_dir/script.sql"
	output=$(pgbench -n -M prepared -f "$bench_dir/script.sql" "$@" 2>&1) ||
		{ echo "$output" >&2; cdc_die "pgbench failed"; }
	if grep -q 'aborted' <<< "$output"
	then
		echo "$output" >&2
		cdc_die "clients of pgbench were aborted"
	fi
	tps=$(sed -n 's/^tps = \([0-9.]*\).*/\1/p' <<< "$output")
	latency=$(sed -n 's/^latency average = \([0-9.]*\) ms.*/\1/p' <<< "$output")
}
