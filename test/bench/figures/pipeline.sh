# From the log to the target: reading the changelog of 200,000 updated rows and
# applying it to a copy of 1,000,000 rows, compared with the two steps of SQL
# that documentation of lakehouses recommends: the newest change of each key
# into a table, and MERGE from that.

make_table pip tracked
sql "UPDATE pip SET status = 'returned', amount = amount + 1, updated_at = now() WHERE id % 5 = 0"
log=$(log_of pip)
id=$(id_of pip)
vacuum_all pip
sql "ANALYZE cdc.snapshot"

ours="SELECT * FROM cdc.apply_changelog('pip_copy', 'SELECT * FROM pip_changelog(0, 1, ''{id}'')', '{id}');"
steps="CREATE TEMPORARY TABLE pip_changes AS
	SELECT c1 AS id, c2 AS status, c3 AS amount, c4 AS note, c5 AS updated_at,
		change_type AS _change_type, snapshot_id AS _change_ordinal
	FROM (SELECT l.*, s.snapshot_id,
			CASE WHEN l._cdc_tx > 0 THEN 'UPDATE_AFTER' ELSE 'DELETE' END AS change_type,
			row_number() OVER (PARTITION BY l.c1
				ORDER BY s.snapshot_id DESC, l._cdc_tx DESC) AS rn
		FROM $log l JOIN cdc.snapshot s ON s.tx = abs(l._cdc_tx)
		WHERE s.table_id = $id AND s.snapshot_id > 0 AND s.snapshot_id <= 1) newest
	WHERE rn = 1;
	MERGE INTO pip_copy t
	USING (SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY id
				ORDER BY _change_ordinal DESC) AS rn
			FROM pip_changes) d WHERE rn = 1) s
	ON t.id = s.id
	WHEN MATCHED AND s._change_type = 'DELETE' THEN DELETE
	WHEN MATCHED THEN UPDATE SET status = s.status, amount = s.amount, note = s.note,
		updated_at = s.updated_at
	WHEN NOT MATCHED AND s._change_type <> 'DELETE' THEN
		INSERT VALUES (s.id, s.status, s.amount, s.note, s.updated_at);"

run()
{
	make_table pip_copy untracked
	sql CHECKPOINT
	case $1 in
		ours) time_sql "$ours" ;;
		steps) time_sql "$steps" ;;
	esac
	must_equal "the copy made by $1" 'TABLE pip' 'TABLE pip_copy'
}

rounds pipeline run ours steps
ratio goals pipeline "changelog and apply of $(with_commas "$(scaled 200000)") updated rows" ms \
	ours steps 'apply_changelog of the changelog' 'ROW_NUMBER into a table, and MERGE' '<= 0.6'
drop_tables pip_copy pip
