# Twelve writers and a poller that applies range after range of the changelog to
# a copy of the table, compared with twelve writers of an untracked table: a
# poller that comes once a second, one that hardly ever rests, and none at all.
# A transaction of the writers updates one row, or, as in the soak test, changes
# nine with three statements.  At the end the copy must be equal to the table.

make_table wri_untracked untracked
make_table wri_tracked tracked
make_table wri_copy untracked
rows=$(scaled 1000000)
sql "CREATE SEQUENCE wri_id START $((rows + 1));
	CREATE TABLE wri_state (stop boolean, snapshot bigint, pause float);
	INSERT INTO wri_state VALUES (false, 0, 0);
	CREATE OR REPLACE PROCEDURE wri_poll() LANGUAGE plpgsql AS \$\$
	DECLARE
		last bigint := (SELECT snapshot FROM wri_state);
		current bigint;
		finished boolean;
	BEGIN
		LOOP
			finished := (SELECT stop FROM wri_state);
			COMMIT;
			current := cdc.current_snapshot('wri_tracked');
			IF current > last THEN
				PERFORM cdc.apply_changelog('wri_copy', format(
					'SELECT * FROM wri_tracked_changelog(%s, %s, ''{id}'')', last, current), '{id}');
				last := current;
			END IF;
			UPDATE wri_state SET snapshot = last;
			COMMIT;
			EXIT WHEN finished;
			PERFORM pg_sleep((SELECT pause FROM wri_state));
			COMMIT;
		END LOOP;
	END \$\$"

# The transaction of a writer.  Arguments: the table, and "one" row or "many".
transaction()
{
	if [ "$2" = one ]
	then
		echo "\\set id random(1, $rows)
UPDATE wri_$1 SET status = 'paid', amount = amount + 1, updated_at = now() WHERE id = :id;"
	else
		echo "\\set a random(1, $rows - 5)
\\set b random(1, $rows)
BEGIN;
UPDATE wri_$1 SET status = 'paid', amount = amount + 1, updated_at = now()
  WHERE id BETWEEN :a AND :a + 4;
INSERT INTO wri_$1 SELECT nextval('wri_id'), 'new', i, 'note of the order', now()
  FROM generate_series(1, 3) i;
UPDATE wri_$1 SET status = 'packed' WHERE id = :b;
COMMIT;"
	fi
}

# Sides: a table, the rows of a transaction, and how many seconds the poller
# rests, if there is one
run()
{
	local table writes pause poller=

	read -r table writes pause <<< "$1"
	sql "VACUUM wri_untracked; VACUUM wri_tracked; VACUUM wri_copy;
		UPDATE wri_state SET stop = false, pause = '${pause:-0}'; VACUUM wri_state; CHECKPOINT"
	if [ -n "$pause" ]
	then
		# what the side without a poller has left
		sql "UPDATE wri_state SET stop = true; CALL wri_poll(); UPDATE wri_state SET stop = false"
		sql 'CALL wri_poll()' &
		poller=$!
	fi
	PGOPTIONS="-c synchronous_commit=$commit" run_pgbench "$(transaction "$table" "$writes")" \
		-c 12 -j 2 -T "$BENCH_SECONDS" --max-tries=100
	value=$tps
	if [ -n "$poller" ]
	then
		sql 'UPDATE wri_state SET stop = true'
		wait "$poller"
	fi
}

for commit in on off
do
	rounds "writers_$commit" run 'tracked one 1' 'tracked one 0.02' 'tracked one' 'untracked one' \
		'tracked many 1' 'untracked many'
	what="12 writers, synchronous_commit = $commit"
	ratio goals "writers_$commit" "$what, one row a transaction, with a poller that applies once a second" \
		tps 'tracked one 1' 'untracked one' tracked untracked '>= 0.8'
	ratio goals "writers_$commit" "$what, nine rows a transaction, with a poller that applies once a second" \
		tps 'tracked many 1' 'untracked many' tracked untracked '>= 0.8'
	ratio more "writers_$commit" "$what, one row a transaction, with a poller that applies every 20 ms" \
		tps 'tracked one 0.02' 'untracked one' tracked untracked
	ratio more "writers_$commit" "$what, one row a transaction, without a poller" \
		tps 'tracked one' 'untracked one' tracked untracked
	sql "UPDATE wri_state SET stop = true; CALL wri_poll()"
	must_equal "the poller's copy" 'TABLE wri_tracked' 'TABLE wri_copy'
done
drop_tables wri_untracked wri_tracked wri_copy
sql 'DROP TABLE wri_state; DROP PROCEDURE wri_poll; DROP SEQUENCE wri_id'
