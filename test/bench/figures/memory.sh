# A range of 10,000,000 changes: 10,000,000 updated rows, 20,000,000 rows of the
# log, at work_mem 64MB.

need_template
need_big

read_big()
{
	time_sql '\timing off' "SET work_mem = '64MB'; SELECT pg_backend_pid() \\g $bench_dir/pid" '\timing on' \
		"SELECT * FROM big_changelog(0, 3$arguments) OFFSET 1000000000;"
	sample "memory_ms" "$mode" "$value"
}

run()
{
	mode=$1
	case $1 in
		latest) arguments=", '{id}', 'latest'" ;;
		net) arguments= ;;
	esac
	watch_memory "$bench_dir/pid" read_big
}

rounds memory run latest net
for mode in latest net
do
	what="a range of $(with_commas "$(scaled "$BENCH_BIG_ROWS")") changes, mode $mode"
	value goals memory "$what, peak memory of the backend at work_mem 64MB" MB $mode '<= 104'
	value more memory_ms "$what" ms $mode
done
