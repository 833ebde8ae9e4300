# UPDATE of 200,000 of 1,000,000 rows in one statement, of three columns without
# an index, each time on a freshly loaded table.  "append" also inserts both
# images of the rows into a table without an index.

need_template
sql 'CREATE TABLE appended (tx bigint, LIKE template)'

run()
{
	make_table upd "$1"
	sql 'TRUNCATE appended; CHECKPOINT'
	time_sql "BEGIN; UPDATE upd SET status = 'returned', amount = amount + 1, updated_at = now()
			WHERE id % 5 = 0;
		$([ "$1" != append ] || echo 'INSERT INTO appended SELECT 1, t.* FROM template t, generate_series(1, 2) WHERE id % 5 = 0;')
		COMMIT;"
	drop_tables upd
}

readarray -t others < <(peers)
rounds update run tracked untracked append "${others[@]}"
what="UPDATE of $(with_commas "$(scaled 200000)") rows, one statement"
ratio goals update "$what" ms tracked untracked tracked untracked '<= 1.3'
ratio more update "$what, and an append of the same rows by SQL" ms append untracked append untracked
for peer in "${others[@]}"
do
	ratio peers update "$what" ms "$peer" untracked "$peer" untracked
done
sql 'DROP TABLE appended'
