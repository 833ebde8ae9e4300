# A steady pipeline: runs over batches of 1,000 changes of a table of 5,000,000
# rows (at full scale), compared with one of 50,000.  And what 1,000 runs of it
# add to the system catalogs.
#
# The changed rows are neighbours, as new orders are.  Rows from all over a
# large table are in more pages than a small one has, and any statement that
# changes them takes longer; that is shown by a plain UPDATE of such rows.

need_template
for name in large little
do
	[ $name = large ] && rows=$(scaled 5000000) || rows=$(scaled 50000)
	sql "SET client_min_messages = warning; DROP TABLE IF EXISTS $name, ${name}_copy;
		CREATE TABLE $name (LIKE template INCLUDING ALL);
		INSERT INTO $name
		SELECT i, 'new', i % 100000 / 100.0, rpad(md5(i::text), 40, 'note of the order'),
			timestamptz '2026-01-01' + i * interval '1 second'
		FROM generate_series(1, $rows) i;
		CREATE TABLE ${name}_copy (LIKE template INCLUDING ALL);
		SELECT cdc.track('$name');
		SELECT cdc.create_pipeline('$name', '${name}_copy', '{id}',
			'SELECT * FROM ${name}_changelog(identifiers => ''{id}'', consumer => ''$name'')', replace => true);
		SELECT cdc.run('$name')" > /dev/null
	sql "VACUUM ANALYZE $name; VACUUM ANALYZE ${name}_copy"
done
sql CHECKPOINT

# SQL for 1,000 rows of a table: neighbours, or rows from all over it
neighbours()
{
	echo "id BETWEEN (SELECT f FROM batch) AND (SELECT f + 999 FROM batch)"
}

scattered()
{
	echo "id IN (SELECT 1 + (i * 7919 + (SELECT f FROM batch)) % (SELECT max(id) FROM $1)
		FROM generate_series(1, 1000) i)"
}

# Changes 1,000 rows and measures the run that follows, or as "plain" the change.
run()
{
	local table=${1%% *} rows=${1#* }
	local change

	sql "UPDATE batch SET f = 1 + (random() * (SELECT max(id) - 1000 FROM $table))::bigint"
	change="UPDATE $table SET amount = amount + 1 WHERE "
	case $rows in
		neighbours) sql "$change $(neighbours)" ;;
		scattered) sql "$change $(scattered "$table")" ;;
		plain)
			time_sql "UPDATE plain_$table SET amount = amount + 1 WHERE $(scattered "$table")"
			return ;;
	esac
	time_sql "SELECT cdc.run('$table')"
}

sql "CREATE TABLE batch (f bigint); INSERT INTO batch VALUES (1)"
for name in large little
do
	sql "CREATE TABLE plain_$name (LIKE template INCLUDING ALL);
		INSERT INTO plain_$name SELECT * FROM ${name}_copy; VACUUM ANALYZE plain_$name"
done
rounds steady run 'large neighbours' 'little neighbours' 'large scattered' 'little scattered' \
	'large plain' 'little plain'
must_equal 'the large copy' 'TABLE large' 'TABLE large_copy'
names=("table of $(with_commas "$(scaled 5000000)") rows" "of $(with_commas "$(scaled 50000)") rows")
ratio goals steady "run of a pipeline over 1,000 changed rows" ms \
	'large neighbours' 'little neighbours' "${names[@]}" '<= 1.2'
ratio more steady "run of a pipeline over 1,000 changed rows from all over the table" ms \
	'large scattered' 'little scattered' "${names[@]}"
ratio more steady "plain UPDATE of 1,000 rows from all over a table" ms \
	'large plain' 'little plain' "${names[@]}"

catalog_bytes()
{
	sql "SELECT sum(pg_total_relation_size(oid)) FROM pg_class
		WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r'
			AND oid NOT IN ('pg_statistic'::regclass, 'pg_statistic_ext_data'::regclass)"
}

runs=$(scaled 1000)
before=$(catalog_bytes)
for i in $(seq "$runs")
do
	echo "UPDATE little SET amount = amount + 1 WHERE id = $((i % 10 + 1)); SELECT cdc.run('little');"
done | sql > /dev/null
sample steady catalogs $((($(catalog_bytes) - before) / 1024))
value goals steady "growth of the system catalogs over $(with_commas "$runs") runs of a pipeline" kB catalogs '<= 0'
sql "SELECT cdc.drop_pipeline('large'), cdc.drop_pipeline('little')" > /dev/null
drop_tables large large_copy little little_copy plain_large plain_little
sql 'DROP TABLE batch'
