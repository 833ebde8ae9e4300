# As pgbench_fsync, but commits do not wait for the disk.

readarray -t others < <(peers)
sides=(tracked untracked "${others[@]}")
for side in "${sides[@]}"
do
	make_table "pga_$side" "$side"
done

run()
{
	sql "VACUUM pga_$1; CHECKPOINT"
	PGOPTIONS='-c synchronous_commit=off' run_pgbench "\\set id random(1, $(scaled 1000000))
UPDATE pga_$1 SET status = 'paid', amount = amount + 1, updated_at = now() WHERE id = :id;" \
		-c "$clients" -j 2 -T "$BENCH_SECONDS"
	value=$tps
}

for clients in 2 12
do
	rounds "async_$clients" run "${sides[@]}"
	what="single-row UPDATE, $clients clients, synchronous_commit = off"
	ratio goals "async_$clients" "$what" tps tracked untracked tracked untracked '>= 0.88'
	for peer in "${others[@]}"
	do
		ratio peers "async_$clients" "$what" tps "$peer" untracked "$peer" untracked
	done
done
for side in "${sides[@]}"
do
	drop_tables "pga_$side"
done
