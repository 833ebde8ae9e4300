# Applying 100 changes to a table of 10,000,000 rows and to one of 10,000.  Ten
# applications of other rows make one value, after one that fills caches.

need_template
for name in few many
do
	[ $name = few ] && rows=10000 || rows=$(scaled "$BENCH_BIG_ROWS")
	sql "CREATE TABLE apply_$name (LIKE template INCLUDING ALL);
		INSERT INTO apply_$name
		SELECT i, 'new', i % 100000 / 100.0, rpad(md5(i::text), 40, 'note of the order'),
			timestamptz '2026-01-01' + i * interval '1 second'
		FROM generate_series(1, $rows) i;
		VACUUM ANALYZE apply_$name"
done
sql "CREATE SEQUENCE batch;
	CREATE TABLE apply_changes (id bigint, status text, amount numeric(10,2), note text,
		updated_at timestamptz, _change_type text)"

# Lines of psql that make the next batch: 80 updates, 10 deletes and 10 inserts
batch()
{
	cat <<-EOF
		\\timing off
		TRUNCATE apply_changes;
		SELECT nextval('batch') AS batch \\gset
		INSERT INTO apply_changes
		SELECT CASE WHEN i % 10 = 1 THEN 100000000 + :batch * 100 + i
				ELSE 1 + (:batch * 10007 + i * 97) % 10000 END,
			'returned', 12.50, 'changed', now(),
			CASE i % 10 WHEN 0 THEN 'DELETE' WHEN 1 THEN 'INSERT' ELSE 'UPDATE_AFTER' END
		FROM generate_series(1, 100) i;
		ANALYZE apply_changes;
		$2
		SELECT * FROM cdc.apply_changelog('apply_$1', 'apply_changes', '{id}');
	EOF
}

run()
{
	local i

	sql "VACUUM apply_$1; CHECKPOINT"
	time_sql < <(
		batch "$1" '\timing off'
		for i in 1 2 3 4 5 6 7 8 9 10
		do
			batch "$1" '\timing on'
		done)
	value=$(awk -v v="$value" 'BEGIN { print v / 10 }')
}

rounds apply_small run many few
ratio goals apply_small "apply of 100 changes to a large table and to a small one" ms many few \
	"$(with_commas "$(scaled "$BENCH_BIG_ROWS")") rows" '10,000 rows' '<= 1.2'
sql 'DROP TABLE apply_few, apply_many, apply_changes; DROP SEQUENCE batch'
