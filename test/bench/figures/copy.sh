# COPY of 1,000,000 rows from a file of the server into an empty table with a
# primary key.

need_template
sql "COPY template TO '$bench_dir/copy.dat'"

run()
{
	make_table cop "$1" false
	sql CHECKPOINT
	time_sql "COPY cop (id, status, amount, note, updated_at) FROM '$bench_dir/copy.dat';"
	drop_tables cop
}

readarray -t others < <(peers)
rounds copy run tracked untracked "${others[@]}"
what="COPY of $(with_commas "$(scaled 1000000)") rows"
ratio goals copy "$what" ms tracked untracked tracked untracked '<= 1.4'
for peer in "${others[@]}"
do
	ratio peers copy "$what" ms "$peer" untracked "$peer" untracked
done
rm "$bench_dir/copy.dat"
