# A range of 1,000 updated rows, from the middle of a log of 20,000,000 rows and
# of one of 20,000.  Several reads make one value, after one that fills caches.

need_template
need_big

run()
{
	local read="SELECT * FROM ${1}_changelog(1, 2, '{id}', 'latest') OFFSET 1000000000;"

	time_sql '\timing off' "$read" '\timing on' "$read" "$read" "$read" "$read" "$read"
	value=$(awk -v v="$value" 'BEGIN { print v / 5 }')
}

rounds range run big small
ratio goals range "a range of $(with_commas "$(big_range)") rows in a long log and in a short one" ms big small \
	"log of $(with_commas $(($(scaled "$BENCH_BIG_ROWS") * 2))) rows" 'log of 20,000 rows' '<= 1.3'
