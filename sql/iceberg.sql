-- create_changelog_view: argument for argument what Apache Iceberg's procedure
-- of that name does
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA iceberg;
SET search_path = iceberg, public;

-- History A: S0 (1,a); S1 + (2,b); S2 - (2,b) + (-2,b)
CREATE TABLE a (id int, data text);
INSERT INTO a VALUES (1, 'a');
SELECT cdc.track('a');
INSERT INTO a VALUES (2, 'b');
BEGIN;
DELETE FROM a WHERE id = 2;
INSERT INTO a VALUES (-2, 'b');
COMMIT;
SELECT cdc.current_snapshot('a');

-- no bounds: the baseline is a snapshot like any other, at position 0
CALL cdc.create_changelog_view('a');
SELECT id, data, _change_type, _change_ordinal, _commit_snapshot_id FROM a_changes ORDER BY 4, 1;
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
 WHERE attrelid = 'a_changes'::regclass AND attnum > 0 ORDER BY attnum;
SELECT count(*), bool_and(_commit_timestamp = committed_at) AS same_time
  FROM a_changes JOIN cdc.snapshots('a') ON snapshot_id = _commit_snapshot_id;
-- the view lives in the session
SELECT relpersistence FROM pg_class WHERE oid = 'a_changes'::regclass;
DROP VIEW a_changes;

-- start S0
CALL cdc.create_changelog_view('a', options => '{"start-snapshot-id": 0}');
SELECT id, data, _change_type, _change_ordinal, _commit_snapshot_id FROM a_changes ORDER BY 4, 1;
DROP VIEW a_changes;
-- numbers may be written as strings, as Iceberg's options are
CALL cdc.create_changelog_view('a', options => '{"start-snapshot-id": "0", "end-snapshot-id": "2"}');
SELECT id, data, _change_type, _change_ordinal, _commit_snapshot_id FROM a_changes ORDER BY 4, 1;
DROP VIEW a_changes;

-- end S1
CALL cdc.create_changelog_view('a', options => '{"end-snapshot-id": 1}');
SELECT id, data, _change_type, _change_ordinal, _commit_snapshot_id FROM a_changes ORDER BY 4, 1;
DROP VIEW a_changes;

-- (S1,S2]
CALL cdc.create_changelog_view('a', options => '{"start-snapshot-id": 1, "end-snapshot-id": 2}');
SELECT id, data, _change_type, _change_ordinal, _commit_snapshot_id FROM a_changes ORDER BY 4, 1;
DROP VIEW a_changes;

-- start S0, end time just after S1
SELECT max(committed_at) FILTER (WHERE snapshot_id = 0) AS t0,
       max(committed_at) FILTER (WHERE snapshot_id = 1) AS t1,
       max(committed_at) FILTER (WHERE snapshot_id = 2) AS t2,
       (max(committed_at) FILTER (WHERE snapshot_id = 1) + interval '1 microsecond') AS t1_after,
       (max(committed_at) FILTER (WHERE snapshot_id = 1) - interval '1 microsecond') AS t1_before,
       (max(committed_at) FILTER (WHERE snapshot_id = 0) - interval '1 day') AS before_all,
       (max(committed_at) FILTER (WHERE snapshot_id = 2) + interval '1 day') AS after_all
  FROM cdc.snapshots('a') \gset
CALL cdc.create_changelog_view('a', options => jsonb_build_object('start-snapshot-id', 0, 'end-timestamp', :'t1_after'));
SELECT id, data, _change_type, _change_ordinal, _commit_snapshot_id FROM a_changes ORDER BY 4, 1;
DROP VIEW a_changes;
-- the end time is included
CALL cdc.create_changelog_view('a', options => jsonb_build_object('start-snapshot-id', 0, 'end-timestamp', :'t1'));
SELECT id, data, _change_type, _change_ordinal, _commit_snapshot_id FROM a_changes ORDER BY 4, 1;
DROP VIEW a_changes;
CALL cdc.create_changelog_view('a', options => jsonb_build_object('start-snapshot-id', 0, 'end-timestamp', :'t1_before'));
SELECT id, data, _change_type, _change_ordinal, _commit_snapshot_id FROM a_changes ORDER BY 4, 1;
DROP VIEW a_changes;
-- the start time is excluded
CALL cdc.create_changelog_view('a', options => jsonb_build_object('start-timestamp', :'t1'));
SELECT id, data, _change_type, _change_ordinal, _commit_snapshot_id FROM a_changes ORDER BY 4, 1;
DROP VIEW a_changes;
CALL cdc.create_changelog_view('a', options => jsonb_build_object('start-timestamp', :'t1_before'));
SELECT id, data, _change_type, _change_ordinal, _commit_snapshot_id FROM a_changes ORDER BY 4, 1;
DROP VIEW a_changes;
-- both as times, and one of each
CALL cdc.create_changelog_view('a', options => jsonb_build_object('start-timestamp', :'t0', 'end-timestamp', :'t1'));
SELECT id, data, _change_type, _change_ordinal, _commit_snapshot_id FROM a_changes ORDER BY 4, 1;
DROP VIEW a_changes;
CALL cdc.create_changelog_view('a', options => jsonb_build_object('start-timestamp', :'t1', 'end-snapshot-id', 2));
SELECT id, data, _change_type, _change_ordinal, _commit_snapshot_id FROM a_changes ORDER BY 4, 1;
DROP VIEW a_changes;
CALL cdc.create_changelog_view('a', options => jsonb_build_object('start-snapshot-id', 0, 'end-timestamp', :'after_all'));
SELECT id, data, _change_type, _change_ordinal, _commit_snapshot_id FROM a_changes ORDER BY 4, 1;
DROP VIEW a_changes;
-- a start time before all commits begins with the baseline
CALL cdc.create_changelog_view('a', options => jsonb_build_object('start-timestamp', :'before_all'));
SELECT id, data, _change_type, _change_ordinal, _commit_snapshot_id FROM a_changes ORDER BY 4, 1;
DROP VIEW a_changes;
-- start = end, and an end time before all commits: no rows
CALL cdc.create_changelog_view('a', options => '{"start-snapshot-id": 1, "end-snapshot-id": 1}');
SELECT count(*) FROM a_changes;
DROP VIEW a_changes;
CALL cdc.create_changelog_view('a', options => jsonb_build_object('end-timestamp', :'before_all'));
SELECT count(*) FROM a_changes;
DROP VIEW a_changes;

-- positional call, all arguments in Iceberg's order
CALL cdc.create_changelog_view('a', 'positional', '{"start-snapshot-id": 0}', true, ARRAY['id'], false);
SELECT id, data, _change_type, _change_ordinal, _commit_snapshot_id FROM positional ORDER BY 4, 1, 3;
-- a changelog view of that name is replaced, as Iceberg does; nothing else is
CALL cdc.create_changelog_view('a', 'positional');
SELECT count(*) FROM positional;
CREATE TEMP TABLE a_table (id int);
CALL cdc.create_changelog_view('a', 'a_table');
\echo :SQLSTATE
-- named arguments, permanent view
CALL cdc.create_changelog_view(source_table => 'a', changelog_view => 'iceberg.kept', net_changes => true, temporary => false);
SELECT id, data, _change_type, _change_ordinal, _commit_snapshot_id FROM kept ORDER BY 4, 1;
SELECT relpersistence, relnamespace::regnamespace FROM pg_class WHERE relname = 'kept';

-- the range is pinned at the call: later commits do not show
INSERT INTO a VALUES (9, 'late');
SELECT count(*) FROM kept;
SELECT count(*) FROM a_changelog(NULL, NULL, mode => 'all');
-- a table's own end is pinned as the newest snapshot
CALL cdc.create_changelog_view('a', 'newest', '{"start-snapshot-id": 2}');
INSERT INTO a VALUES (10, 'later');
SELECT id, data, _change_type, _change_ordinal, _commit_snapshot_id FROM newest ORDER BY 4, 1;

-- refused at the call
CALL cdc.create_changelog_view('a', 'refused', net_changes => true, identifier_columns => ARRAY['id']);
\echo :SQLSTATE
CALL cdc.create_changelog_view('a', 'refused', net_changes => true, compute_updates => true);
\echo :SQLSTATE
CALL cdc.create_changelog_view('a', 'refused', net_changes => true, compute_updates => true, identifier_columns => ARRAY['id']);
\echo :SQLSTATE
CALL cdc.create_changelog_view('a', 'refused', compute_updates => true);
\echo :SQLSTATE
CALL cdc.create_changelog_view('a', 'refused', compute_updates => true, identifier_columns => '{}');
\echo :SQLSTATE
CALL cdc.create_changelog_view('a', 'refused', identifier_columns => ARRAY['nope']);
\echo :SQLSTATE
CALL cdc.create_changelog_view('a', 'refused', identifier_columns => ARRAY['ID']);
\echo :SQLSTATE
CALL cdc.create_changelog_view('a', 'refused', jsonb_build_object('start-snapshot-id', 0, 'start-timestamp', now()));
\echo :SQLSTATE
CALL cdc.create_changelog_view('a', 'refused', jsonb_build_object('end-snapshot-id', 0, 'end-timestamp', now()));
\echo :SQLSTATE
CALL cdc.create_changelog_view('a', 'refused', '{"start-timestamp": "2001-01-02 00:00:00+00", "end-timestamp": "2001-01-01 00:00:00+00"}');
\echo :SQLSTATE
CALL cdc.create_changelog_view('a', 'refused', '{"start-timestamp": "2001-01-01 00:00:00+00", "end-timestamp": "2001-01-01 00:00:00+00"}');
\echo :SQLSTATE
CALL cdc.create_changelog_view('a', 'refused', '{"start-timestamp": "yesterday noon-ish"}');
\echo :SQLSTATE
CALL cdc.create_changelog_view('a', 'refused', '{"start-snapshot-id": "first"}');
\echo :SQLSTATE
CALL cdc.create_changelog_view('a', 'refused', '{"start-snapshot-id": 1.5}');
\echo :SQLSTATE
CALL cdc.create_changelog_view('a', 'refused', '{"start-snapshot-id": 2, "end-snapshot-id": 1}');
\echo :SQLSTATE
CALL cdc.create_changelog_view('a', 'refused', '{"start-snapshot-id": -1}');
\echo :SQLSTATE
CALL cdc.create_changelog_view('a', 'refused', '{"end-snapshot-id": 99}');
\echo :SQLSTATE
CALL cdc.create_changelog_view('a', 'refused', '{"start-snapshot": 1}');
\echo :SQLSTATE
CALL cdc.create_changelog_view('a', 'refused', '[1]');
\echo :SQLSTATE
CREATE TABLE untracked (id int);
CALL cdc.create_changelog_view('untracked', 'refused');
\echo :SQLSTATE
SELECT count(*) FROM pg_class WHERE relname = 'refused';

-- columns with a space and a dot are shown unchanged
CREATE TABLE odd ("the id" int, "the.data" text);
INSERT INTO odd VALUES (1, 'a');
SELECT cdc.track('odd');
INSERT INTO odd VALUES (2, 'b');
BEGIN;
DELETE FROM odd WHERE "the id" = 2;
INSERT INTO odd VALUES (-2, 'b');
COMMIT;
CALL cdc.create_changelog_view('odd', options => '{"start-snapshot-id": 0}');
SELECT "the id", "the.data", _change_type, _change_ordinal FROM odd_changes ORDER BY 4, 1;
CALL cdc.create_changelog_view('odd', 'odd_by_key', '{}', identifier_columns => ARRAY['the id']);
SELECT "the id", "the.data", _change_type, _change_ordinal FROM odd_by_key ORDER BY 4, 1;

-- Keys (id)
CREATE TABLE k (id int, data text);
INSERT INTO k VALUES (1, 'a'), (2, 'b');
SELECT cdc.track('k');
BEGIN;
TRUNCATE k;
INSERT INTO k VALUES (1, 'a'), (2, 'd'), (3, 'c');
COMMIT;
CALL cdc.create_changelog_view('k', identifier_columns => ARRAY['id']);
SELECT id, data, _change_type, _change_ordinal FROM k_changes ORDER BY 4, 1, 2;
-- identifier columns with compute_updates switched off: DELETE and INSERT
CALL cdc.create_changelog_view('k', 'k_plain', compute_updates => false, identifier_columns => ARRAY['id']);
SELECT id, data, _change_type, _change_ordinal FROM k_plain ORDER BY 4, 1, 2;

-- Keys (id, age)
CREATE TABLE ka (id int, data text, age int);
SELECT cdc.track('ka');
INSERT INTO ka VALUES (1, 'a', 12), (2, 'b', 11), (2, 'e', 12);
BEGIN;
DELETE FROM ka WHERE id IN (2, 3);
INSERT INTO ka VALUES (3, 'c', 13), (2, 'd', 11), (2, 'e', 12);
COMMIT;
CALL cdc.create_changelog_view('ka', options => '{"start-snapshot-id": 0}', identifier_columns => ARRAY['id', 'age']);
SELECT id, data, age, _change_type, _change_ordinal FROM ka_changes ORDER BY 5, 1, 3, 2;
DROP VIEW ka_changes;
CALL cdc.create_changelog_view('ka', options => '{"start-snapshot-id": 0}');
SELECT id, data, age, _change_type, _change_ordinal FROM ka_changes ORDER BY 5, 1, 3, 2;
DROP VIEW ka_changes;
-- Net, after a third snapshot that rewrites ids 2 and 3 once more
BEGIN;
DELETE FROM ka WHERE id IN (2, 3);
INSERT INTO ka VALUES (3, 'c', 15), (2, 'e', 12);
COMMIT;
CALL cdc.create_changelog_view('ka', options => '{"start-snapshot-id": 0}', net_changes => true);
SELECT id, data, age, _change_type, _change_ordinal FROM ka_changes ORDER BY 5, 1, 3, 2;
DROP VIEW ka_changes;
CALL cdc.create_changelog_view('ka', options => '{"start-snapshot-id": 1}', net_changes => true);
SELECT id, data, age, _change_type, _change_ordinal FROM ka_changes ORDER BY 5, 1, 3, 2;
DROP VIEW ka_changes;

-- NULL keys pair like any value
CREATE TABLE nk (id int, name text, data text);
INSERT INTO nk VALUES (5, NULL, NULL);
SELECT cdc.track('nk');
UPDATE nk SET data = 'x';
CALL cdc.create_changelog_view('nk', options => '{"start-snapshot-id": 0}', identifier_columns => ARRAY['id', 'name']);
\pset null N
SELECT id, name, data, _change_type, _change_ordinal FROM nk_changes ORDER BY 4 DESC;
\pset null ''

-- bag counts in one snapshot: the difference is what counts
CREATE TABLE bag (what text);
INSERT INTO bag VALUES ('DDI'), ('DDI'), ('DII'), ('DDDIIII'), ('DDDIIII'), ('DDDIIII');
SELECT cdc.track('bag');
BEGIN;
DELETE FROM bag;
INSERT INTO bag VALUES ('DDI'), ('DII'), ('DII'), ('DDDIIII'), ('DDDIIII'), ('DDDIIII'), ('DDDIIII');
COMMIT;
SELECT what, _change_type, _change_ordinal FROM bag_changelog(0, 1, mode => 'all') ORDER BY 1, 2;
SELECT what, _change_type, _change_ordinal FROM bag_changelog(0, 1) ORDER BY 1, 2;

-- identical surviving rows carry their own ordinals
CREATE TABLE twins (id int, data text);
SELECT cdc.track('twins');
INSERT INTO twins VALUES (1, 'x'), (1, 'x');
INSERT INTO twins VALUES (1, 'x');
INSERT INTO twins VALUES (1, 'x');
DELETE FROM twins WHERE ctid = (SELECT min(ctid) FROM twins);
CALL cdc.create_changelog_view('twins', options => '{"start-snapshot-id": 0}', net_changes => true);
SELECT id, data, _change_type, _change_ordinal FROM twins_changes ORDER BY 4;
-- from the middle: the one deleted is cancelled against the newest
CALL cdc.create_changelog_view('twins', 'twins_later', '{"start-snapshot-id": 1}', net_changes => true);
SELECT id, data, _change_type, _change_ordinal, _commit_snapshot_id FROM twins_later ORDER BY 4;
