# Applying 200,000 changes (160,000 updates, 20,000 deletes, 20,000 inserts) to
# 1,000,000 rows by key with all checks, compared with the MERGE statement that
# documentation of lakehouses recommends, with its ROW_NUMBER so that a key does
# not come twice.  Each time on a freshly loaded table.

need_template
rows=$(scaled 1000000)
changes=$(scaled 200000)
sql "CREATE TABLE app_changes AS
	SELECT CASE WHEN i % 10 = 1 THEN i + $rows ELSE i * 5 END AS id,
		'returned'::text AS status, 12.50::numeric(10,2) AS amount,
		rpad(md5(i::text), 40, 'changed') AS note, now() AS updated_at,
		CASE i % 10 WHEN 0 THEN 'DELETE' WHEN 1 THEN 'INSERT' ELSE 'UPDATE_AFTER' END AS _change_type,
		1::bigint AS _change_ordinal, 1::bigint AS _commit_snapshot_id, now() AS _commit_timestamp
	FROM generate_series(1::bigint, $changes) i;
	VACUUM ANALYZE app_changes"

apply="SELECT * FROM cdc.apply_changelog('app', 'app_changes', '{id}');"
merge="MERGE INTO app t
	USING (SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY id
				ORDER BY _change_ordinal DESC) AS rn
			FROM app_changes WHERE _change_type <> 'UPDATE_BEFORE') d WHERE rn = 1) s
	ON t.id = s.id
	WHEN MATCHED AND s._change_type = 'DELETE' THEN DELETE
	WHEN MATCHED THEN UPDATE SET status = s.status, amount = s.amount, note = s.note,
		updated_at = s.updated_at
	WHEN NOT MATCHED AND s._change_type <> 'DELETE' THEN
		INSERT VALUES (s.id, s.status, s.amount, s.note, s.updated_at);"

run()
{
	make_table app untracked
	sql CHECKPOINT
	case $1 in
		apply) time_sql "$apply" ;;
		merge) time_sql "$merge" ;;
	esac
	if [ ! -f "$bench_dir/app_$1" ]
	then
		sql "CREATE TABLE app_$1 AS TABLE app"
		touch "$bench_dir/app_$1"
	fi
}

rounds apply run apply merge
must_equal 'apply_changelog and MERGE' 'TABLE app_apply' 'TABLE app_merge'
ratio goals apply "apply of $(with_commas "$changes") changes to $(with_commas "$rows") rows" ms \
	apply merge apply_changelog 'MERGE with ROW_NUMBER' '<= 0.9'
drop_tables app app_apply app_merge app_changes
rm "$bench_dir/app_apply" "$bench_dir/app_merge"
