# DELETE of 200,000 of 1,000,000 rows in one statement, each time from a freshly
# loaded table.  "append" also inserts the rows into a table without
# an index.

need_template
sql 'CREATE TABLE appended (tx bigint, LIKE template)'

run()
{
	make_table del "$1"
	sql 'TRUNCATE appended; CHECKPOINT'
	time_sql "BEGIN; DELETE FROM del WHERE id % 5 = 0;
		$([ "$1" != append ] || echo 'INSERT INTO appended SELECT 1, * FROM template WHERE id % 5 = 0;')
		COMMIT;"
	drop_tables del
}

readarray -t others < <(peers)
rounds delete run tracked untracked append "${others[@]}"
what="DELETE of $(with_commas "$(scaled 200000)") rows"
ratio goals delete "$what" ms tracked untracked tracked untracked '<= 2.0'
ratio more delete "$what, and an append of the same rows by SQL" ms append untracked append untracked
for peer in "${others[@]}"
do
	ratio peers delete "$what" ms "$peer" untracked "$peer" untracked
done
sql 'DROP TABLE appended'
