# Size of the log for each row that came or went.  The size of a row is that of
# its tuple, header included.

make_table siz tracked false
sql "INSERT INTO siz SELECT * FROM template; UPDATE siz SET status = 'paid' WHERE id % 5 = 0;
	DELETE FROM siz WHERE id % 5 = 1"
row=$(sql 'SELECT round(avg(pg_column_size(t)), 1) FROM template t')
for i in $(seq "$BENCH_REPS")
do
	sample log_size bytes "$(sql "SELECT $(log_bytes siz).0 / count(*) FROM $(log_of siz) l")"
done
value goals log_size "log bytes for each row that came or went; a row has $row bytes" bytes bytes \
	"<= $(awk -v r="$row" 'BEGIN { print r + 24 }')"
drop_tables siz
