# TRUNCATE of 1,000,000 rows: the tracked table logs them.  Compared with one
# append of the same rows to a table without an index.

need_template
run()
{
	if [ "$1" = append ]
	then
		sql 'SET client_min_messages = warning; DROP TABLE IF EXISTS appended;
			CREATE TABLE appended (tx bigint, LIKE template); CHECKPOINT'
		time_sql 'INSERT INTO appended SELECT 1, * FROM template;'
	else
		make_table tru "$1"
		sql CHECKPOINT
		time_sql 'TRUNCATE tru;'
		drop_tables tru
	fi
}

rounds truncate run tracked append untracked
what="TRUNCATE of $(with_commas "$(scaled 1000000)") rows"
ratio more truncate "$what" ms tracked append tracked 'append of as many rows'
value more truncate "$what, untracked" ms untracked
sql 'DROP TABLE appended'
