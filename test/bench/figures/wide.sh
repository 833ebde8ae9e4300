# A table of 200 columns (100 integers, 50 numbers, 50 texts): UPDATE of one
# column of 50,000 rows, and reading that by identifiers.

rows=$(scaled 50000)
columns=$(sql "SELECT string_agg(format('c%s %s', i, CASE WHEN i <= 100 THEN 'int'
		WHEN i <= 150 THEN 'numeric(10,2)' ELSE 'text' END), ', ' ORDER BY i)
	FROM generate_series(2, 200) i")
values=$(sql "SELECT string_agg(CASE WHEN i <= 150 THEN format('i %% %s', i) ELSE format('''text of %s''', i) END,
		', ' ORDER BY i)
	FROM generate_series(2, 200) i")

run()
{
	sql "SET client_min_messages = warning; DROP TABLE IF EXISTS wide CASCADE;
		CREATE TABLE wide (id int PRIMARY KEY, $columns);
		INSERT INTO wide SELECT i, $values FROM generate_series(1, $rows) i"
	capture wide "$1"
	sql 'VACUUM ANALYZE wide; CHECKPOINT'
	time_sql 'UPDATE wide SET c2 = c2 + 1;'
	if [ "$1" = tracked ]
	then
		local update=$value

		vacuum_all wide
		time_sql "SELECT * FROM wide_changelog(0, 1, '{id}', 'latest') OFFSET 1000000000;"
		sample wide_read tracked "$value"
		value=$update
	fi
}

rounds wide run tracked untracked
ratio more wide "200 columns: UPDATE of $(with_commas "$rows") rows" ms tracked untracked tracked untracked
value more wide_read "200 columns: reading them, identifiers, mode latest" ms tracked
sql 'DROP TABLE wide'
