# Peak memory of the backend during an INSERT of 1,000,000 rows.  The untracked
# table tells what the backend needs in any case.

insert()
{
	sql "SELECT pg_backend_pid() \\g $bench_dir/pid
		INSERT INTO mem SELECT * FROM template;"
}

run()
{
	make_table mem "$1" false
	watch_memory "$bench_dir/pid" insert
	drop_tables mem
}

rounds insert_memory run tracked untracked
what="INSERT of $(with_commas "$(scaled 1000000)") rows, peak memory of the backend at work_mem 64MB"
value goals insert_memory "$what" MB tracked '<= 80'
ratio more insert_memory "$what" MB tracked untracked tracked untracked
