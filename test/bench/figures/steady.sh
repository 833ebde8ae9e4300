# A steady pipeline: runs over batches of 1,000 changes of a table of 5,000,000
# rows (at full scale), compared with one of 50,000.  And what 1,000 runs of it
# add to the system catalogs.

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

# Changes 1,000 rows and measures the run that follows.
run()
{
	sql "UPDATE $1 SET amount = amount + 1
		WHERE id IN (SELECT 1 + (i * 7919 + (random() * 1000)::int) % (SELECT max(id) FROM $1)
			FROM generate_series(1, 1000) i)"
	time_sql "SELECT cdc.run('$1')"
}

rounds steady run large little
must_equal 'the large copy' 'TABLE large' 'TABLE large_copy'
ratio goals steady "run of a pipeline over 1,000 changed rows" ms large little \
	"table of $(with_commas "$(scaled 5000000)") rows" "of $(with_commas "$(scaled 50000)") rows" '<= 1.2'

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
drop_tables large large_copy little little_copy
