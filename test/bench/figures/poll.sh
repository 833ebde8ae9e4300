# What 50 calls of current_snapshot a second do to the latency of twelve writers
# of a tracked table: the 99th percentile.

make_table pol tracked
echo "SELECT cdc.current_snapshot('pol');" > "$bench_dir/poll.sql"

run()
{
	local poller=

	sql 'VACUUM pol; CHECKPOINT'
	rm -f "$bench_dir"/latency.*
	if [ "$1" = polled ]
	then
		pgbench -n -f "$bench_dir/poll.sql" -c 1 -R 50 -T $((BENCH_SECONDS + 1)) > /dev/null 2>&1 &
		poller=$!
	fi
	PGOPTIONS="-c synchronous_commit=$commit" run_pgbench "\\set id random(1, $(scaled 1000000))
UPDATE pol SET status = 'paid', amount = amount + 1, updated_at = now() WHERE id = :id;" \
		-c 12 -j 2 -T "$BENCH_SECONDS" -l --log-prefix="$bench_dir/latency"
	sample "poll_tps_$commit" "$1" "$tps"
	[ -z "$poller" ] || wait "$poller"
	value=$(cat "$bench_dir"/latency.* | awk '{ print $3 }' | sort -n |
		awk '{ v[NR] = $1 } END { print v[int(NR * 0.99)] / 1000 }')
}

for commit in on off
do
	rounds "poll_$commit" run polled quiet
	ratio more "poll_$commit" "99th percentile of commit latency, 12 writers, synchronous_commit = $commit" ms \
		polled quiet '50 polls a second' 'no polls'
	ratio more "poll_tps_$commit" "throughput, 12 writers, synchronous_commit = $commit" tps \
		polled quiet '50 polls a second' 'no polls'
done
drop_tables pol
