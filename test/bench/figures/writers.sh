# Twelve writers and a poller that applies range after range of the changelog to
# a copy of the table, compared with twelve writers of an untracked table: a
# poller that comes once a second, one that hardly ever rests, and none at all.
# At the end the copy must be equal to the table.

make_table wri_untracked untracked
make_table wri_tracked tracked
make_table wri_copy untracked
sql "CREATE TABLE wri_state (stop boolean, snapshot bigint, pause float);
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

# Sides: untracked; tracked; tracked, with a poller that rests so many seconds
run()
{
	local table=${1%% *} pause=${1##* }
	local poller=

	[ "$pause" != "$table" ] || pause=
	sql "VACUUM wri_untracked; VACUUM wri_tracked; VACUUM wri_copy;
		UPDATE wri_state SET stop = false, pause = '${pause:-0}'; VACUUM wri_state; CHECKPOINT"
	if [ -n "$pause" ]
	then
		# what the side without a poller has left
		sql "UPDATE wri_state SET stop = true; CALL wri_poll(); UPDATE wri_state SET stop = false"
		sql 'CALL wri_poll()' &
		poller=$!
	fi
	PGOPTIONS="-c synchronous_commit=$commit" run_pgbench "\\set id random(1, $(scaled 1000000))
UPDATE wri_$table SET status = 'paid', amount = amount + 1, updated_at = now() WHERE id = :id;" \
		-c 12 -j 2 -T "$BENCH_SECONDS"
	value=$tps
	if [ -n "$poller" ]
	then
		sql 'UPDATE wri_state SET stop = true'
		wait "$poller"
	fi
}

for commit in on off
do
	rounds "writers_$commit" run 'tracked 1' 'tracked 0.02' tracked untracked
	what="12 writers, synchronous_commit = $commit"
	ratio goals "writers_$commit" "$what, with a poller that applies once a second" \
		tps 'tracked 1' untracked tracked untracked '>= 0.8'
	ratio more "writers_$commit" "$what, with a poller that applies every 20 ms" \
		tps 'tracked 0.02' untracked tracked untracked
	ratio more "writers_$commit" "$what, without a poller" \
		tps tracked untracked tracked untracked
	sql "UPDATE wri_state SET stop = true; CALL wri_poll()"
	must_equal "the poller's copy" 'TABLE wri_tracked' 'TABLE wri_copy'
done
drop_tables wri_untracked wri_tracked wri_copy
sql 'DROP TABLE wri_state; DROP PROCEDURE wri_poll'
