# Single-row UPDATEs by primary key, one after the other in a loop of one
# transaction: the time that the backend was on a processor, for each.  The
# kernel counts it, so that other processes of the machine do not show.

readarray -t others < <(peers)
sides=(tracked untracked "${others[@]}")
for side in "${sides[@]}"
do
	make_table "one_$side" "$side"
done
sql "CREATE OR REPLACE FUNCTION cpu_ns() RETURNS bigint LANGUAGE sql AS
	\$\$ SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::bigint \$\$"

statements=$(($(scaled 50000) > 5000 ? $(scaled 50000) : 5000))
run()
{
	sql "VACUUM one_$1"
	value=$(sql "DO \$\$
		DECLARE
			began bigint;
		BEGIN
			-- plans and caches
			FOR i IN 1 .. 100 LOOP
				UPDATE one_$1 SET status = 'paid', amount = amount + 1 WHERE id = i;
			END LOOP;
			began := cpu_ns();
			FOR i IN 1 .. $statements LOOP
				UPDATE one_$1 SET status = 'paid', amount = amount + 1, updated_at = now()
				WHERE id = 1 + i::bigint * 7919 % $(scaled 1000000);
			END LOOP;
			PERFORM set_config('bench.value',
				((cpu_ns() - began) / 1000.0 / $statements)::text, false);
		END \$\$;
		SELECT current_setting('bench.value')")
}

rounds single run "${sides[@]}"
what='single-row UPDATE in a loop inside one transaction, backend time'
ratio goals single "$what" us tracked untracked tracked untracked '<= 1.35'
for peer in "${others[@]}"
do
	ratio peers single "$what" us "$peer" untracked "$peer" untracked
done
for side in "${sides[@]}"
do
	drop_tables "one_$side"
done
