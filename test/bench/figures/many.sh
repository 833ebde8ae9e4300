# 1,000 tracked tables: starting to track them, single-row transactions spread
# over all of them by two clients, and the memory that a backend needs once it
# has written to all of them.

tables=$(scaled 1000)
for side in untracked tracked
do
	sql <<-EOF
		SELECT format('CREATE TABLE many_${side}_%s (id int PRIMARY KEY, v int)', i),
			format('INSERT INTO many_${side}_%s SELECT g, 0 FROM generate_series(1, 100) g', i)
		FROM generate_series(1, $tables) i \gexec
	EOF
done
time_sql <<-EOF
	SELECT format('SELECT cdc.track(%L)', 'many_tracked_' || i)
	FROM generate_series(1, $tables) i \gexec
EOF
sample many_track tracked "$(awk -v v="$value" -v n="$tables" 'BEGIN { print v / n }')"
sql 'VACUUM ANALYZE'

run()
{
	sql CHECKPOINT
	printf '%s\n' "\\set t random(1, $tables)" "\\set id random(1, 100)" \
		"SELECT bench_many('many_${1}_', :t, :id);" > "$bench_dir/many.sql"
	PGOPTIONS='-c synchronous_commit=off' run_pgbench "$(cat "$bench_dir/many.sql")" \
		-c 2 -j 2 -T "$BENCH_SECONDS"
	value=$tps
}

sql "CREATE FUNCTION bench_many(prefix text, t int, row_id int) RETURNS void LANGUAGE plpgsql AS
	\$\$ BEGIN
		EXECUTE format('UPDATE %I SET v = v + 1 WHERE id = \$1', prefix || t) USING row_id;
	END \$\$"
rounds many run tracked untracked
for side in tracked untracked
do
	kb=$(sql "DO \$\$ BEGIN FOR i IN 1 .. $tables LOOP PERFORM bench_many('many_${side}_', i, 1); COMMIT; END LOOP; END \$\$;
		SELECT substring(pg_read_file('/proc/self/status') FROM 'RssAnon:\s+(\d+)')")
	sample many_memory "$side" "$(awk -v kb="$kb" 'BEGIN { print kb / 1024 }')"
done

what="$(with_commas "$tables") tables"
ratio more many "$what: single-row UPDATE of a random one, 2 clients, synchronous_commit = off" tps \
	tracked untracked tracked untracked
value more many_track "$what: cdc.track, each" ms tracked
ratio more many_memory "$what: memory of a backend that has written to all of them" MB \
	tracked untracked tracked untracked
sql <<-EOF
	SELECT format('DROP TABLE many_untracked_%s, many_tracked_%s CASCADE', i, i)
	FROM generate_series(1, $tables) i \gexec
EOF
sql 'DROP FUNCTION bench_many'
