-- cdc.expire_snapshots: what goes, what stays, and what it gives back
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA retention;
SET search_path = retention, public;
-- the estimates of what follows are large, the numbers are not
SET jit = off;
CREATE ROLE regress_cdc_retention;
GRANT ALL ON SCHEMA retention TO regress_cdc_retention;

CREATE TABLE t (id int PRIMARY KEY, v text);
INSERT INTO t SELECT i, 'base' FROM generate_series(1, 100) i;
SELECT cdc.track('t');

-- segments with the numbers they have, and whether their tables exist
CREATE VIEW segments AS
SELECT s.segment, s.segment = t.segment AS newest, s.last_snapshot,
       EXISTS (SELECT FROM pg_class c WHERE c.oid = s.log_table) AS "exists"
  FROM cdc.tracked_table t JOIN cdc.log_segment s USING (table_id)
 WHERE t.relation = 'retention.t'::regclass;
CREATE VIEW segment_of AS
SELECT s.snapshot_id, s.segment FROM cdc.tracked_table t JOIN cdc.snapshot s USING (table_id)
 WHERE t.relation = 'retention.t'::regclass;

-- A segment that autovacuum is just looking at would be left to the next call,
-- and have new forks; so it is kept from those that are there, and is waited for.
CREATE PROCEDURE no_autovacuum() LANGUAGE plpgsql AS $$
DECLARE
  log regclass;
BEGIN
  FOR log IN SELECT s.log_table FROM cdc.log_segment s JOIN cdc.tracked_table t USING (table_id)
              WHERE t.relation = 'retention.t'::regclass LOOP
    EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = off)', log);
  END LOOP;
END $$;

-- arguments
SELECT * FROM cdc.expire_snapshots('t');
\echo :SQLSTATE
SELECT * FROM cdc.expire_snapshots('t', retain_last => 0);
\echo :SQLSTATE
SELECT * FROM cdc.expire_snapshots(NULL, retain_last => 1);
\echo :SQLSTATE
SELECT * FROM cdc.expire_snapshots('segments', retain_last => 1);
\echo :SQLSTATE
SET ROLE regress_cdc_retention;
SELECT * FROM cdc.expire_snapshots('t', retain_last => 1);
\echo :SQLSTATE
RESET ROLE;
BEGIN READ ONLY;
SELECT * FROM cdc.expire_snapshots('t', retain_last => 1);
\echo :SQLSTATE
ROLLBACK;
BEGIN READ ONLY;
SELECT * FROM cdc.expire_snapshots('t', retain_last => 1, dry_run => true);
ROLLBACK;
-- the newest one always stays
SELECT * FROM cdc.expire_snapshots('t', older_than => 'infinity');

-- A log of several segments.  Who is over the size leaves it to the next one.
SHOW cdc_changelog.segment_size;
SET cdc_changelog.segment_size = '32kB';
INSERT INTO t SELECT i, 'one' FROM generate_series(101, 1000) i;
UPDATE t SET v = 'two' WHERE id <= 50;
UPDATE t SET v = 'three';
DELETE FROM t WHERE id % 10 = 0;
SELECT clock_timestamp() AS after_four \gset
UPDATE t SET v = 'five' WHERE id % 3 = 0;
INSERT INTO t VALUES (5000, 'six');
UPDATE t SET v = 'seven' WHERE id = 5000;
DELETE FROM t WHERE id = 1;
RESET cdc_changelog.segment_size;
CALL no_autovacuum();
SELECT * FROM segments ORDER BY segment;
SELECT * FROM segment_of ORDER BY snapshot_id;
SELECT * FROM cdc.verify('t');

-- what the ranges say before, to compare with afterwards
CREATE FUNCTION ranges(oldest int) RETURNS TABLE (a int, b int, by_id boolean, rows bigint, hash numeric)
LANGUAGE sql AS $$
SELECT a, b, ids IS NOT NULL, count(*), sum(hashtextextended(c::text, 0))
  FROM generate_series(oldest, 8) a, generate_series(oldest, 8) b, (VALUES (NULL::text[]), (ARRAY['id'])) i(ids),
       LATERAL (SELECT * FROM retention.t_changelog(a, b, ids, 'all')) c
 WHERE a <= b GROUP BY 1, 2, 3
UNION ALL
SELECT s, NULL, NULL, count(*), sum(hashtextextended(c::text, 0))
  FROM generate_series(oldest, 8) s, LATERAL (SELECT * FROM cdc.as_of(NULL::retention.t, s)) c GROUP BY 1
$$;
CREATE TABLE before AS SELECT * FROM ranges(0);
CREATE FUNCTION same_as_before(oldest int) RETURNS boolean LANGUAGE sql AS $$
SELECT NOT EXISTS (SELECT * FROM retention.ranges(oldest) EXCEPT SELECT * FROM retention.before)
   AND NOT EXISTS (SELECT * FROM retention.before WHERE a >= oldest EXCEPT SELECT * FROM retention.ranges(oldest))
$$;
SELECT same_as_before(0);

-- a dry run says the same as the real one, and changes nothing
CREATE VIEW sizes AS
SELECT sum(pg_total_relation_size(s.log_table))::bigint AS bytes FROM cdc.tracked_table t JOIN cdc.log_segment s USING (table_id)
 WHERE t.relation = 'retention.t'::regclass;
SELECT bytes AS bytes_before FROM sizes \gset
CREATE TABLE dry AS SELECT * FROM cdc.expire_snapshots('t', retain_last => 6, dry_run => true);
SELECT oldest_snapshot, snapshots_removed, segments_dropped, bytes_freed > 0 AS freed FROM dry;
SELECT count(*) FROM cdc.snapshots('t');
SELECT count(*) FROM segments;
CREATE TABLE done AS SELECT * FROM cdc.expire_snapshots('t', retain_last => 6);
SELECT * FROM done EXCEPT SELECT * FROM dry;
SELECT bytes + bytes_freed = :bytes_before AS given_back FROM sizes, done;
SELECT * FROM segments ORDER BY segment;
SELECT snapshot_id, kind FROM cdc.snapshots('t');
SELECT same_as_before(3);
SELECT * FROM cdc.verify('t');
SELECT oldest_snapshot, newest_snapshot, snapshots FROM cdc.tracked_tables WHERE relation = 't'::regclass;

-- what is expired
SELECT * FROM t_changelog(2, 4);
\echo :SQLSTATE
SELECT * FROM t_changelog(NULL, 2);
\echo :SQLSTATE
SELECT * FROM cdc.as_of(NULL::t, 2);
\echo :SQLSTATE
SELECT cdc.snapshot_at('t', '-infinity');
-- start NULL begins at the oldest content that is left
SELECT count(*) FROM (
  SELECT id, v FROM t_changelog(NULL, 3) EXCEPT ALL SELECT * FROM cdc.as_of(NULL::t, 3)) d;
CREATE TABLE rebuilt (LIKE t);
SELECT inserted, updated, deleted FROM cdc.apply_changelog('rebuilt', 'SELECT * FROM retention.t_changelog(identifiers => ARRAY[''id''])', ARRAY['id']);
SELECT count(*) FROM (TABLE t EXCEPT ALL TABLE rebuilt) d;
SELECT count(*) FROM (TABLE rebuilt EXCEPT ALL TABLE t) d;
-- a view whose range is gone
\set VERBOSITY terse
CALL cdc.create_changelog_view('t', options => '{"start-snapshot-id": "3"}');
SELECT count(*) > 0 FROM t_changes;
SELECT oldest_snapshot, snapshots_removed FROM cdc.expire_snapshots('t', retain_last => 5);
SELECT count(*) FROM t_changes;
\echo :SQLSTATE
\set VERBOSITY default

-- by time; and both limits: what one of them keeps is kept
SELECT oldest_snapshot, snapshots_removed FROM cdc.expire_snapshots('t', older_than => :'after_four', dry_run => true);
SELECT oldest_snapshot, snapshots_removed FROM cdc.expire_snapshots('t', older_than => :'after_four', retain_last => 5, dry_run => true);
SELECT oldest_snapshot, snapshots_removed FROM cdc.expire_snapshots('t', older_than => '-infinity', retain_last => 1, dry_run => true);
SELECT oldest_snapshot, snapshots_removed FROM cdc.expire_snapshots('t', older_than => 'infinity', retain_last => 2, dry_run => true);
SELECT oldest_snapshot, snapshots_removed FROM cdc.expire_snapshots('t', older_than => :'after_four');
SELECT same_as_before(5);
-- nothing to do
SELECT * FROM cdc.expire_snapshots('t', older_than => :'after_four');
SELECT * FROM cdc.expire_snapshots('t', retain_last => 1000000);

-- rolled back, it has not happened
BEGIN;
SELECT oldest_snapshot, snapshots_removed FROM cdc.expire_snapshots('t', retain_last => 1);
SELECT count(*) FROM t_changelog(5);
ROLLBACK;
SELECT same_as_before(5);
SELECT * FROM segments ORDER BY segment;
-- not together with changes of the table
BEGIN;
INSERT INTO t VALUES (6000, 'own');
SELECT * FROM cdc.expire_snapshots('t', retain_last => 1);
\echo :SQLSTATE
ROLLBACK;

-- The segment that is written to cannot be dropped; it is ended, and goes the
-- next time.
SET cdc_changelog.segment_size = '32kB';
UPDATE t SET v = 'nine';
RESET cdc_changelog.segment_size;
CALL no_autovacuum();
SELECT oldest_snapshot, snapshots_removed, segments_dropped > 0 AS dropped FROM cdc.expire_snapshots('t', retain_last => 1);
INSERT INTO t SELECT i, repeat('ten', 400) FROM generate_series(10001, 11000) i;
CALL no_autovacuum();
SELECT max(segment) AS segment FROM segments \gset
SELECT oldest_snapshot, snapshots_removed, segments_dropped FROM cdc.expire_snapshots('t', retain_last => 1);
SELECT segment - :segment AS segment, newest, "exists" FROM segments ORDER BY segment;
SELECT oldest_snapshot, snapshots_removed, segments_dropped, bytes_freed > 1000000 AS freed FROM cdc.expire_snapshots('t', retain_last => 1);
SELECT segment - :segment AS segment, newest, "exists" FROM segments ORDER BY segment;
SELECT * FROM cdc.verify('t');

-- a transaction stays in the segment it began to write to
BEGIN;
SET LOCAL cdc_changelog.segment_size = '32kB';
UPDATE t SET v = 'eleven' WHERE id < 900;
SAVEPOINT a;
UPDATE t SET v = 'twelve' WHERE id < 900;
ROLLBACK TO a;
UPDATE t SET v = 'thirteen' WHERE id < 900;
COMMIT;
INSERT INTO t VALUES (7000, 'next');
SELECT count(*) FROM t_changelog(cdc.current_snapshot('t') - 2) WHERE v IN ('thirteen', 'next');
SELECT count(DISTINCT segment) FROM segment_of WHERE snapshot_id > cdc.current_snapshot('t') - 2;

-- new segments have the columns of the table, of old and new
ALTER TABLE t OWNER TO regress_cdc_retention;
SET cdc_changelog.segment_size = '32kB';
UPDATE t SET v = 'fourteen';
RESET cdc_changelog.segment_size;
CALL no_autovacuum();
SET ROLE regress_cdc_retention;
INSERT INTO t VALUES (8000, 'owner');
SELECT oldest_snapshot - cdc.current_snapshot('t') AS oldest, snapshots_removed FROM cdc.expire_snapshots('t', retain_last => 2);
SELECT id, v, _change_type FROM t_changelog(cdc.current_snapshot('t') - 1);
RESET ROLE;
SELECT DISTINCT c.relowner::regrole FROM cdc.log_segment s JOIN cdc.tracked_table t USING (table_id) JOIN pg_class c ON c.oid = s.log_table
 WHERE t.relation = 't'::regclass;

-- rows of old and new segments under columns that came later
SELECT cdc.current_snapshot('t') AS start \gset
UPDATE t SET v = 'fifteen' WHERE id BETWEEN 5000 AND 8000;
ALTER TABLE t ADD COLUMN n int DEFAULT 7, ADD COLUMN m int;
SET cdc_changelog.segment_size = '32kB';
UPDATE t SET v = 'sixteen', m = 1 WHERE id < 1000;
RESET cdc_changelog.segment_size;
ALTER TABLE t ADD COLUMN o text DEFAULT 'later';
UPDATE t SET n = n + 1 WHERE id = 7000;
SELECT count(DISTINCT segment) FROM segment_of WHERE snapshot_id > :start;
SELECT id, v, n, m, o, _change_type, _change_ordinal - :start AS snapshot FROM t_changelog(:start, NULL, NULL, 'all') WHERE id >= 5000 ORDER BY 7, 1, 6;
SELECT count(*), min(n), max(n), min(m), max(m), min(o), max(o) FROM t_changelog(:start) WHERE id < 1000 AND _change_type = 'INSERT';
SELECT count(*), min(n), min(o) FROM cdc.as_of(NULL::t, :start);
SELECT * FROM cdc.verify('t');

-- what others have made of a segment is not taken from them
CALL no_autovacuum();
DO $$ BEGIN EXECUTE (
  SELECT format('CREATE VIEW retention.on_log AS SELECT count(*) FROM %s', s.log_table)
    FROM cdc.log_segment s JOIN cdc.tracked_table t USING (table_id) WHERE t.relation = 'retention.t'::regclass ORDER BY s.segment LIMIT 1);
END $$;
\set VERBOSITY sqlstate
SELECT * FROM cdc.expire_snapshots('t', retain_last => 1);
\set VERBOSITY default
DROP VIEW on_log;

-- all tables of a user, with commits in between
CREATE TABLE mine (id int);
ALTER TABLE mine OWNER TO regress_cdc_retention;
CREATE TABLE foreign_one (id int);
SELECT cdc.track('mine');
SELECT cdc.track('foreign_one');
INSERT INTO mine VALUES (1);
INSERT INTO mine VALUES (2);
INSERT INTO foreign_one VALUES (1);
SET ROLE regress_cdc_retention;
CALL cdc.expire_all();
\echo :SQLSTATE
BEGIN;
CALL cdc.expire_all(retain_last => 1);
\echo :SQLSTATE
ROLLBACK;
CALL cdc.expire_all(retain_last => 1);
RESET ROLE;
SELECT relation, oldest_snapshot = newest_snapshot AS expired FROM cdc.tracked_tables
 WHERE relation IN ('t'::regclass, 'mine'::regclass, 'foreign_one'::regclass) ORDER BY relation::text;
SELECT count(*) FROM segments;
SELECT * FROM cdc.verify('t');
SELECT count(*) FROM t_changelog();
SELECT count(*) FROM t;

-- untrack removes all segments
SELECT table_id FROM cdc.tracked_table WHERE relation = 't'::regclass \gset
SELECT cdc.untrack('t');
SELECT count(*) FROM pg_class WHERE relnamespace = 'cdc_log'::regnamespace AND relname LIKE 't' || :table_id || '\_%';
SELECT count(*) FROM cdc.log_segment WHERE table_id = :table_id;
SELECT cdc.untrack('mine');
SELECT cdc.untrack('foreign_one');
SET client_min_messages = warning;
DROP SCHEMA retention CASCADE;
DROP ROLE regress_cdc_retention;
