--
-- Consumers: positions, the view, what they hold back, clean-up
--
CREATE SCHEMA consumers;
SET search_path = consumers;
\set SHOW_CONTEXT never
\set VERBOSITY default

CREATE TABLE a (id int PRIMARY KEY, v int);
CREATE TABLE b (id int PRIMARY KEY, v int);
INSERT INTO a VALUES (1, 10), (2, 20);
INSERT INTO b VALUES (1, 1);
SELECT cdc.track('a'), cdc.track('b');
CREATE TABLE t (id int PRIMARY KEY, v int);
CREATE TABLE tb (id int PRIMARY KEY, v int);
\set qa '$$ SELECT * FROM a_changelog(identifiers => ARRAY[''id''], consumer => ''c'') $$'
\set qb '$$ SELECT * FROM b_changelog(identifiers => ARRAY[''id''], consumer => ''c'') $$'
\set qab '$$ SELECT * FROM a_changelog(identifiers => ARRAY[''id''], consumer => ''c'') UNION ALL SELECT id + 100, v, _change_type, _change_ordinal, _commit_snapshot_id, _commit_timestamp FROM b_changelog(identifiers => ARRAY[''id''], consumer => ''c'') $$'

-- reading makes a consumer and moves nothing
SELECT id, v, _change_type, _change_ordinal FROM a_changelog(consumer => 'c') ORDER BY id;
SELECT consumer, relation, position FROM cdc.consumers;
SELECT cdc.is_incremental('c', 'a'), cdc.is_incremental('nobody', 'a');
SELECT * FROM a_changelog(0, consumer => 'c');
SELECT * FROM a_changelog(consumer => '');

-- a run
SELECT * FROM cdc.apply_changelog('t', :qa, ARRAY['id'], consumer => 'c');
SELECT cdc.is_incremental('c', 'a'), cdc.is_incremental('c', 'b');
UPDATE a SET v = 11 WHERE id = 1;
DELETE FROM a WHERE id = 2;
SELECT consumer, relation, position, newest_snapshot, lag_snapshots, lag_rows,
       lag_seconds > 0 AS behind, last_mode, last_result, holds_history FROM cdc.consumers;
SELECT * FROM cdc.apply_changelog('t', :qa, ARRAY['id'], consumer => 'c');
SELECT consumer, relation, position, newest_snapshot, lag_snapshots, lag_rows,
       lag_seconds, last_mode, last_result, holds_history FROM cdc.consumers;
TABLE t ORDER BY id;

-- one more source: everything is read again
INSERT INTO a VALUES (3, 30);
SELECT * FROM cdc.apply_changelog('t', :qab, ARRAY['id'], consumer => 'c');
TABLE t ORDER BY id;
SELECT relation, position, last_mode FROM cdc.consumers ORDER BY 1;

-- rewind, reset
SELECT cdc.rewind('c', 'a', 0);
SELECT cdc.rewind('c', 'a', 1);
SELECT cdc.rewind('c', 'a', 77);
SELECT cdc.rewind('nobody', 'a', 0);
SELECT id, v, _change_type, _change_ordinal FROM a_changelog(mode => 'all', consumer => 'c') ORDER BY _change_ordinal, id, _change_type;
SELECT * FROM cdc.apply_changelog('t', :qab, ARRAY['id'], consumer => 'c');
SELECT cdc.reset('c'), cdc.reset('c');
SELECT cdc.is_incremental('c', 'a');
SELECT * FROM cdc.apply_changelog('t', :qab, ARRAY['id'], consumer => 'c');

-- append_only
INSERT INTO a VALUES (4, 40), (5, 50);
SELECT id, v, _change_type, _change_ordinal FROM a_changelog(3, mode => 'append_only') ORDER BY id;
SELECT * FROM a_changelog(0, mode => 'append_only');
SELECT * FROM a_changelog(3, mode => 'append_only', identifiers => ARRAY['id']);
CREATE TABLE ao (id int PRIMARY KEY, v int);
\set qo '$$ SELECT * FROM a_changelog(mode => ''append_only'', consumer => ''ao'') $$'
SELECT * FROM cdc.apply_changelog('ao', :qo, ARRAY['id'], consumer => 'ao');
INSERT INTO a VALUES (6, 60);
SELECT * FROM cdc.apply_changelog('ao', :qo, ARRAY['id'], consumer => 'ao');
DELETE FROM a WHERE id = 6;
INSERT INTO a VALUES (7, 70);
SELECT * FROM a_changelog(mode => 'append_only', consumer => 'ao');
SELECT * FROM cdc.apply_changelog('ao', :qo, ARRAY['id'], consumer => 'ao');
SELECT consumer, relation, position, last_mode FROM cdc.consumers ORDER BY 1, 2;
(TABLE ao EXCEPT TABLE a) UNION ALL (TABLE a EXCEPT TABLE ao);

-- a source that the target has never got, though the consumer has a position
SELECT * FROM cdc.apply_changelog('t', :qab, ARRAY['id'], consumer => 'c');
BEGIN;
SELECT * FROM cdc.apply_changelog('t', :qab, ARRAY['id'], consumer => 'c');
SELECT * FROM cdc.apply_changelog('tb', :qb, ARRAY['id'], consumer => 'c');
COMMIT;
UPDATE b SET v = v + 1;
BEGIN;
SELECT * FROM cdc.apply_changelog('t', :qab, ARRAY['id'], consumer => 'c');
SELECT * FROM cdc.apply_changelog('tb', :qb, ARRAY['id'], consumer => 'c');
COMMIT;
SELECT relation, snapshot FROM cdc.position('c') ORDER BY 1;
SELECT * FROM cdc.apply_changelog('tb', :qab, ARRAY['id'], consumer => 'c');
(TABLE tb EXCEPT TABLE t) UNION ALL (TABLE t EXCEPT TABLE tb);
-- the same target twice in a transaction, the second time with another source
SELECT cdc.drop_consumer('c');
BEGIN;
SELECT * FROM cdc.apply_changelog('tb', :qb, ARRAY['id'], consumer => 'c');
SELECT * FROM cdc.apply_changelog('tb', :qab, ARRAY['id'], consumer => 'c');
COMMIT;
SELECT * FROM cdc.apply_changelog('tb', :qab, ARRAY['id'], consumer => 'c');
(TABLE tb EXCEPT TABLE t) UNION ALL (TABLE t EXCEPT TABLE tb);

-- what was read in a subtransaction that failed was not read
CREATE FUNCTION try_a() RETURNS SETOF t LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    PERFORM FROM consumers.b_changelog(consumer => 'c');
    RAISE division_by_zero;
  EXCEPTION WHEN division_by_zero THEN
    NULL;
  END;
END $$;
UPDATE b SET v = v + 1;
SELECT snapshot AS before FROM cdc.position('c') WHERE relation = 'b'::regclass \gset
SELECT * FROM cdc.apply_changelog('tb', $$ SELECT id, v, _change_type, _change_ordinal FROM a_changelog(identifiers => ARRAY['id'], consumer => 'c') UNION ALL SELECT id, v, 'INSERT', 0 FROM try_a() $$, ARRAY['id'], consumer => 'c');
SELECT snapshot - :before AS moved FROM cdc.position('c') WHERE relation = 'b'::regclass;
SELECT * FROM cdc.apply_changelog('tb', :qab, ARRAY['id'], consumer => 'c');

-- targets that were truncated, also in place
TRUNCATE tb;
SELECT * FROM cdc.apply_changelog('tb', :qab, ARRAY['id'], consumer => 'c');
BEGIN;
TRUNCATE tb;
SELECT * FROM cdc.apply_changelog('tb', :qab, ARRAY['id'], consumer => 'c');
TRUNCATE tb;
COMMIT;
SELECT * FROM cdc.apply_changelog('tb', :qab, ARRAY['id'], consumer => 'c');
-- ... and filled by somebody else
CREATE TABLE filled (LIKE tb INCLUDING ALL);
BEGIN;
TRUNCATE filled;
SELECT FROM cdc.apply_changelog('filled', $$ SELECT * FROM b_changelog(identifiers => ARRAY['id'], consumer => 'filled') $$, ARRAY['id'], consumer => 'filled');
TRUNCATE filled;
INSERT INTO filled (id, v) SELECT i, 0 FROM generate_series(1001, 1500) i;
COMMIT;
BEGIN;
SELECT deleted FROM cdc.apply_changelog('filled', $$ SELECT * FROM b_changelog(identifiers => ARRAY['id'], consumer => 'filled') $$, ARRAY['id'], consumer => 'filled');
ROLLBACK;
BEGIN;
TRUNCATE filled;
SELECT FROM cdc.apply_changelog('filled', $$ SELECT * FROM b_changelog(identifiers => ARRAY['id'], consumer => 'filled') $$, ARRAY['id'], consumer => 'filled');
UPDATE filled SET v = v;
COMMIT;
SELECT last_mode FROM cdc.consumers WHERE consumer = 'filled';
SELECT FROM cdc.apply_changelog('filled', $$ SELECT * FROM b_changelog(identifiers => ARRAY['id'], consumer => 'filled') $$, ARRAY['id'], consumer => 'filled');
SELECT last_mode FROM cdc.consumers WHERE consumer = 'filled';
SELECT cdc.drop_consumer('filled');
CREATE TEMP TABLE tmp (id int PRIMARY KEY, v int) ON COMMIT DELETE ROWS;
SELECT * FROM cdc.apply_changelog('tmp', $$ SELECT * FROM b_changelog(identifiers => ARRAY['id'], consumer => 'temp') $$, ARRAY['id'], consumer => 'temp');
SELECT * FROM cdc.apply_changelog('tmp', $$ SELECT * FROM b_changelog(identifiers => ARRAY['id'], consumer => 'temp') $$, ARRAY['id'], consumer => 'temp');

-- is_incremental inside a run says what the run does
TRUNCATE t;
SELECT cdc.drop_consumer('c'), cdc.drop_consumer('temp');
SELECT * FROM cdc.apply_changelog('t', $$ SELECT id, v, _change_type FROM a_changelog(identifiers => ARRAY['id'], consumer => 'c') $$, ARRAY['id'], consumer => 'c');
CREATE TABLE modes (id int PRIMARY KEY, m text);
SELECT * FROM cdc.apply_changelog('modes', $$ SELECT id, 'incremental=' || cdc.is_incremental('c', 'a') AS m, _change_type FROM a_changelog(identifiers => ARRAY['id'], consumer => 'c') $$, ARRAY['id'], consumer => 'c');
SELECT DISTINCT m FROM modes;

-- the own transaction's TRUNCATE of a source between two readings
BEGIN;
SELECT count(*) FROM a_changelog(consumer => 'own');
TRUNCATE a;
INSERT INTO a VALUES (1, 99);
SELECT count(*) FROM a_changelog(consumer => 'own');
ROLLBACK;

-- history that a consumer needs does not expire
UPDATE a SET v = v + 1;
UPDATE a SET v = v + 1;
SELECT oldest_snapshot < cdc.current_snapshot('a') AS kept FROM cdc.expire_snapshots('a', retain_last => 1);
SELECT * FROM cdc.apply_changelog('modes', $$ SELECT id, v::text AS m, _change_type FROM a_changelog(identifiers => ARRAY['id'], consumer => 'c') $$, ARRAY['id'], consumer => 'nobody');
SELECT oldest_snapshot = cdc.current_snapshot('a') AS all_gone FROM cdc.expire_snapshots('a', retain_last => 1, ignore_consumers => true);
SELECT cdc.is_incremental('c', 'a');
SELECT * FROM cdc.apply_changelog('modes', $$ SELECT id, v::text AS m, _change_type FROM a_changelog(identifiers => ARRAY['id'], consumer => 'c') $$, ARRAY['id'], consumer => 'c');
SELECT last_mode FROM cdc.consumers WHERE consumer = 'c';

-- privileges
CREATE ROLE regress_consumer;
GRANT USAGE ON SCHEMA consumers TO regress_consumer;
GRANT SELECT ON a TO regress_consumer;
SET ROLE regress_consumer;
SELECT count(*) FROM a_changelog(consumer => 'c');
SELECT * FROM cdc.position('c');
SELECT cdc.reset('c');
SELECT count(*) FROM b_changelog(consumer => 'mine');
SELECT count(*) FROM cdc.consumers;
SELECT count(*) > 0 FROM a_changelog(consumer => 'mine');
SELECT consumer, owner FROM cdc.consumers;
SELECT * FROM cdc.consumer;
RESET ROLE;
SELECT cdc.drop_consumer('mine');
DROP OWNED BY regress_consumer;
DROP ROLE regress_consumer;

-- clean-up
SELECT cdc.untrack('a');
SELECT consumer, relation, position FROM cdc.consumers ORDER BY 1;
SELECT count(*) FROM cdc.consumer_target WHERE target = 'modes'::regclass;
DROP TABLE modes;
SELECT count(*) FROM cdc.consumer_target x WHERE NOT EXISTS (SELECT FROM pg_class WHERE oid = x.target);
SELECT cdc.track('a');
SELECT cdc.is_incremental('c', 'a');
SELECT cdc.drop_consumer('c'), cdc.drop_consumer('ao'), cdc.drop_consumer('c');
SELECT count(*) FROM cdc.consumer_target;
SET client_min_messages = warning;
DROP SCHEMA consumers CASCADE;
