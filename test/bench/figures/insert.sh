# INSERT ... SELECT of 1,000,000 rows into an empty table with a primary key.
# "append" is the untracked table and one more INSERT ... SELECT of the
# same rows into a table without an index.

need_template
sql 'CREATE TABLE appended (tx bigint, LIKE template)'

run()
{
	make_table ins "$1" false
	sql 'TRUNCATE appended; CHECKPOINT'
	time_sql "BEGIN; INSERT INTO ins SELECT * FROM template;
		$([ "$1" != append ] || echo 'INSERT INTO appended SELECT 1, * FROM template;') COMMIT;"
	drop_tables ins
}

readarray -t others < <(peers)
rounds insert run tracked untracked append "${others[@]}"
what="INSERT ... SELECT of $(with_commas "$(scaled 1000000)") rows"
ratio goals insert "$what" ms tracked untracked tracked untracked '<= 1.25'
ratio more insert "$what, and an append of the same rows by SQL" ms append untracked append untracked
for peer in "${others[@]}"
do
	ratio peers insert "$what" ms "$peer" untracked "$peer" untracked
done
sql 'DROP TABLE appended'
