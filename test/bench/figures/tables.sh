# What each additional tracked table costs in a transaction: the latency of one
# that updates a row in each of eleven tables minus that of one table, divided
# by ten.  One client, no waiting for the disk.

for side in untracked tracked
do
	for i in 1 2 3 4 5 6 7 8 9 10 11
	do
		make_table "tab_${side}_$i" "$side" 'id <= 10000'
	done
done

run()
{
	local script one i

	# the same rows of all, so that both are as warm
	script="\\set id random(1, $(sql 'SELECT count(*) FROM tab_tracked_1'))
BEGIN;"
	for i in 1 2 3 4 5 6 7 8 9 10 11
	do
		sql "VACUUM tab_${1}_$i"
		script="$script
UPDATE tab_${1}_$i SET status = 'paid', amount = amount + 1 WHERE id = :id;"
		if [ $i = 1 ]
		then
			PGOPTIONS='-c synchronous_commit=off' run_pgbench "$script
COMMIT;" -c 1 -T "$BENCH_SECONDS"
			one=$tps
		fi
	done
	PGOPTIONS='-c synchronous_commit=off' run_pgbench "$script
COMMIT;" -c 1 -T "$BENCH_SECONDS"
	value=$(awk -v one="$one" -v all="$tps" 'BEGIN { print (1e6 / all - 1e6 / one) / 10 }')
}

rounds tables run tracked untracked
ratio more tables 'each additional table in a transaction, one UPDATE included' us \
	tracked untracked tracked untracked
for side in untracked tracked
do
	for i in 1 2 3 4 5 6 7 8 9 10 11
	do
		drop_tables "tab_${side}_$i"
	done
done
