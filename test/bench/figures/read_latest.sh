# Reading 200,000 updated rows, 400,000 of the log, by identifiers in mode
# latest with all checks.  Compared with two queries on the same log:
#
#	sql			the window function that documentation of lakehouses recommends:
#				the newest row of each key.  It checks nothing and cannot tell an
#				update from an insert.
#	sql_checked	the same answer as ours with the same checks: that the log holds
#				as many rows as were recorded, and that no key has two rows in any
#				snapshot.
#
# All rows go to the client's end of the executor, and no further.

make_table rea tracked
sql "UPDATE rea SET status = 'returned', amount = amount + 1, updated_at = now() WHERE id % 5 = 0"
log=$(log_of rea)
id=$(id_of rea)
vacuum_all rea
sql "ANALYZE cdc.snapshot; CHECKPOINT;
	CREATE OR REPLACE FUNCTION bench_fail() RETURNS text LANGUAGE plpgsql AS
	\$\$ BEGIN RAISE 'check failed'; END \$\$"

ours="SELECT * FROM rea_changelog(0, 1, '{id}', 'latest')"

sql="SELECT c1, c2, c3, c4, c5, change_type, snapshot_id, snapshot_id AS commit_id, committed_at
	FROM (SELECT l.*, s.snapshot_id, s.committed_at,
			CASE WHEN l._cdc_tx > 0 THEN 'UPDATE_AFTER' ELSE 'DELETE' END AS change_type,
			row_number() OVER (PARTITION BY l.c1
				ORDER BY s.snapshot_id DESC, l._cdc_tx DESC) AS rn
		FROM $log l JOIN cdc.snapshot s ON s.tx = abs(l._cdc_tx)
		WHERE s.table_id = $id AND s.snapshot_id > 0 AND s.snapshot_id <= 1) newest
	WHERE rn = 1"

# amount has two digits behind the point always, so = means the same image
sql_checked="WITH events AS MATERIALIZED (
		SELECT l.*, s.snapshot_id, s.committed_at
		FROM $log l JOIN cdc.snapshot s ON s.tx = abs(l._cdc_tx)
		WHERE s.table_id = $id AND s.snapshot_id > 0 AND s.snapshot_id <= 1),
	complete AS (
		SELECT count(*) AS damaged
		FROM cdc.snapshot s
		LEFT JOIN (SELECT snapshot_id, count(*) FILTER (WHERE _cdc_tx > 0) AS plus,
				count(*) FILTER (WHERE _cdc_tx < 0) AS minus
			FROM events GROUP BY snapshot_id) f USING (snapshot_id)
		WHERE s.table_id = $id AND s.snapshot_id > 0 AND s.snapshot_id <= 1
			AND (s.inserted <> coalesce(f.plus, 0) OR s.deleted <> coalesce(f.minus, 0))),
	deltas AS (
		SELECT c1, c2, c3, c4, c5, snapshot_id, committed_at, sum(sign(_cdc_tx)) AS n
		FROM events
		GROUP BY c1, c2, c3, c4, c5, snapshot_id, committed_at
		HAVING sum(sign(_cdc_tx)) <> 0),
	steps AS (
		SELECT *,
			sum(n) FILTER (WHERE n > 0) OVER step AS plus,
			sum(n) FILTER (WHERE n < 0) OVER step AS minus,
			sum(n) OVER (PARTITION BY c1 ORDER BY snapshot_id RANGE UNBOUNDED PRECEDING) AS balance,
			row_number() OVER (PARTITION BY c1 ORDER BY snapshot_id DESC, n DESC) AS rn
		FROM deltas
		WINDOW step AS (PARTITION BY c1, snapshot_id))
	SELECT c1, c2, c3, c4, c5,
		CASE WHEN plus > 1 OR minus < -1 OR balance NOT BETWEEN -1 AND 1 OR damaged > 0
				THEN bench_fail()
			WHEN n < 0 THEN 'DELETE'
			WHEN minus = -1 THEN 'UPDATE_AFTER'
			ELSE 'INSERT' END AS change_type,
		snapshot_id, snapshot_id AS commit_id, committed_at
	FROM steps, complete
	WHERE rn = 1"

must_equal 'ROW_NUMBER' "$ours" "$sql"
must_equal 'the query with checks' "$ours" "$sql_checked"

run()
{
	local -A queries=([ours]=$ours [sql]=$sql [sql_checked]=$sql_checked)

	time_sql '\timing off' "SET work_mem = '$memory';" '\timing on' \
		"${queries[$1]} OFFSET 1000000000;"
}

what="reading $(with_commas "$(scaled 200000)") updated rows, identifiers, mode latest"
for memory in 64MB 4MB
do
	[ $memory = 64MB ] && section=goals || section=more
	rounds "latest_$memory" run ours sql sql_checked
	ratio $section "latest_$memory" "$what, work_mem $memory" ms sql ours \
		'ROW_NUMBER without checks' ours '>= 1.5'
	ratio $section "latest_$memory" "$what, work_mem $memory" ms sql_checked ours \
		'SQL with the same answer and checks' ours '>= 4'
done
drop_tables rea
