# Reading 200,000 updated rows, 400,000 of the log, net without identifiers.
# Compared with two queries on the same log:
#
#	sql			the sum of the signs of each row, without ordinals and checks
#	sql_stack	the same answer as ours: each row that is left with the ordinal
#				of its own snapshot, as the stack leaves it, and the check that
#				the log holds as many rows as were recorded
#
# Of the rows of one image, a change from balance b - n to b leaves those copies
# that no later balance takes away again: the copies between max(b - n, 0) and
# the smallest balance from here on; likewise below zero.

make_table net tracked
sql "UPDATE net SET status = 'returned', amount = amount + 1, updated_at = now() WHERE id % 5 = 0"
log=$(log_of net)
id=$(id_of net)
vacuum_all net
sql "ANALYZE cdc.snapshot; CHECKPOINT;
	CREATE OR REPLACE FUNCTION bench_fail() RETURNS text LANGUAGE plpgsql AS
	\$\$ BEGIN RAISE 'check failed'; END \$\$"

ours="SELECT * FROM net_changelog(0, 1)"

sql="SELECT c1, c2, c3, c4, c5,
		CASE WHEN sum(sign(l._cdc_tx)) > 0 THEN 'INSERT' ELSE 'DELETE' END AS change_type,
		abs(sum(sign(l._cdc_tx))) AS n
	FROM $log l JOIN cdc.snapshot s ON s.tx = abs(l._cdc_tx)
	WHERE s.table_id = $id AND s.snapshot_id > 0 AND s.snapshot_id <= 1
	GROUP BY c1, c2, c3, c4, c5
	HAVING sum(sign(l._cdc_tx)) <> 0"

sql_stack="WITH events AS MATERIALIZED (
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
		SELECT c1, c2, c3, c4, c5, snapshot_id, committed_at, sum(sign(_cdc_tx))::bigint AS n
		FROM events
		GROUP BY c1, c2, c3, c4, c5, snapshot_id, committed_at
		HAVING sum(sign(_cdc_tx)) <> 0),
	balances AS (
		SELECT *, sum(n) OVER (PARTITION BY c1, c2, c3, c4, c5 ORDER BY snapshot_id)::bigint AS b
		FROM deltas),
	bounds AS (
		SELECT *, min(b) OVER later AS low, max(b) OVER later AS high
		FROM balances
		WINDOW later AS (PARTITION BY c1, c2, c3, c4, c5 ORDER BY snapshot_id
			ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)),
	rest AS (
		SELECT *, CASE WHEN n > 0 THEN greatest(low - greatest(b - n, 0), 0)
			ELSE greatest(least(b - n, 0) - high, 0) END AS copies
		FROM bounds)
	SELECT c1, c2, c3, c4, c5,
		CASE WHEN damaged > 0 THEN bench_fail()
			WHEN n > 0 THEN 'INSERT' ELSE 'DELETE' END AS change_type,
		snapshot_id, snapshot_id AS commit_id, committed_at
	FROM rest, complete, generate_series(1, copies)"

must_equal 'GROUP BY' "SELECT id, status, amount, note, updated_at, _change_type, count(*)
	FROM ($ours) c GROUP BY 1, 2, 3, 4, 5, 6" "$sql"
must_equal 'the query with the stack' "$ours" "$sql_stack"

run()
{
	local -A queries=([ours]=$ours [sql]=$sql [sql_stack]=$sql_stack)

	time_sql '\timing off' "SET work_mem = '$memory';" '\timing on' \
		"${queries[$1]} OFFSET 1000000000;"
}

what="reading $(with_commas "$(scaled 200000)") updated rows, net without identifiers"
for memory in 64MB 4MB
do
	[ $memory = 64MB ] && section=goals || section=more
	rounds "net_$memory" run ours sql sql_stack
	ratio $section "net_$memory" "$what, work_mem $memory" ms sql ours \
		'GROUP BY without ordinals and checks' ours '>= 1.5'
	ratio $section "net_$memory" "$what, work_mem $memory" ms sql_stack ours \
		'SQL with the same answer' ours '>= 4'
done
drop_tables net
