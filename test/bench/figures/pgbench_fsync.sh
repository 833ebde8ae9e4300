# pgbench, single-row UPDATEs by primary key of random rows, each a transaction
# of its own that waits for the disk.

make_table pgb_untracked untracked
make_table pgb_tracked tracked

run()
{
	sql "VACUUM pgb_$1; CHECKPOINT"
	run_pgbench "\\set id random(1, $(scaled 1000000))
UPDATE pgb_$1 SET status = 'paid', amount = amount + 1, updated_at = now() WHERE id = :id;" \
		-c "$clients" -j 2 -T "$BENCH_SECONDS"
	value=$tps
}

for clients in 2 12
do
	rounds "fsync_$clients" run tracked untracked
	ratio goals "fsync_$clients" "single-row UPDATE, $clients clients, commits with fsync" \
		tps tracked untracked tracked untracked '>= 0.95'
done
drop_tables pgb_untracked pgb_tracked
