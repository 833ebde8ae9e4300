# Rows with a value of 100 kB that does not change: bytes that an UPDATE of
# another column writes for each row, to the write-ahead log and to the log of
# the table.

rows=$(scaled 500)
sql "CREATE TABLE toast_template (id int PRIMARY KEY, n int, big text);
	ALTER TABLE toast_template ALTER big SET STORAGE EXTERNAL;
	INSERT INTO toast_template
	SELECT i, 0, (SELECT string_agg(md5((i * 10000 + j)::text), '') FROM generate_series(1, 3200) j)
	FROM generate_series(1, $rows) i"

run()
{
	local before

	sql "SET client_min_messages = warning; DROP TABLE IF EXISTS toasted CASCADE;
		CREATE TABLE toasted (LIKE toast_template INCLUDING ALL);
		INSERT INTO toasted TABLE toast_template"
	capture toasted "$1"
	sql 'VACUUM ANALYZE toasted; CHECKPOINT'
	before=$(sql 'SELECT pg_current_wal_insert_lsn()')
	time_sql 'UPDATE toasted SET n = n + 1;'
	sample toast_ms "$1" "$value"
	if [ "$1" = tracked ]
	then
		sample toast_log tracked "$(sql "SELECT $(log_bytes toasted) / $rows.0")"
	fi
	value=$(sql "SELECT (pg_current_wal_insert_lsn() - '$before') / $rows.0")
}

rounds toast run tracked untracked
what='UPDATE of a row whose 100 kB do not change'
ratio more toast "$what: bytes of write-ahead log" bytes tracked untracked tracked untracked
value more toast_log "$what: bytes of the log" bytes tracked
ratio more toast_ms "$what: $rows rows" ms tracked untracked tracked untracked
sql 'DROP TABLE toasted, toast_template'
