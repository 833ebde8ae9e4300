-- A table of four versions, and every way to read what happened in between.
-- The expected results are in the regression test "primer".

\set ECHO queries

\echo
\echo 'A table, tracked from its first version on.  Every transaction that changes it'
\echo 'makes a snapshot; snapshot 0 is the table as track() found it.'
\echo

CREATE EXTENSION cdc_changelog;
CREATE TABLE example (id text, value text);
INSERT INTO example VALUES ('id1', 'val1');
SELECT cdc.track('example');
UPDATE example SET value = 'val2' WHERE id = 'id1';
BEGIN;
UPDATE example SET value = 'val3' WHERE id = 'id1';
INSERT INTO example VALUES ('id2', 'val2');
COMMIT;
UPDATE example SET id = 'id1', value = 'val3' WHERE id = 'id2';

SELECT snapshot_id, inserted, deleted, kind FROM cdc.snapshots('example') ORDER BY snapshot_id;

\pset footer off
\echo
\echo 'Mode "net", without identifiers: what is gone and what is new, whole rows only.'
\echo

SELECT id, value, _change_type, _change_ordinal FROM example_changelog(0, 2) ORDER BY 4, 1, 3;

\echo
\echo 'Mode "all", without identifiers: the same, snapshot by snapshot.'
\echo

SELECT id, value, _change_type, _change_ordinal FROM example_changelog(0, 2, mode => 'all') ORDER BY 4, 1, 3;

\echo
\echo 'With identifiers a row is followed by its key.  Mode "all": every change, updates'
\echo 'as what was before and after.'
\echo

SELECT id, value, _change_type, _change_ordinal FROM example_changelog(0, 2, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;

\echo
\echo 'Mode "latest", the default with identifiers: the last change of each key, ready'
\echo 'to be applied to another table.'
\echo

SELECT id, value, _change_type, _change_ordinal FROM example_changelog(0, 2, ARRAY['id']) ORDER BY 4, 1;

\echo
\echo 'Mode "latest_pair": with what was before that last change.'
\echo

SELECT id, value, _change_type, _change_ordinal FROM example_changelog(0, 2, ARRAY['id'], 'latest_pair') ORDER BY 4, 1, 3 DESC;

\echo
\echo 'Mode "net" with identifiers: from the first image to the last.'
\echo

SELECT id, value, _change_type, _change_ordinal FROM example_changelog(0, 2, ARRAY['id'], 'net') ORDER BY 4, 1, 3 DESC;

\echo
\echo 'Snapshot 3 made a duplicate of "id1".  Without identifiers that is a change like'
\echo 'any other; by key it has no meaning, and is refused.'
\echo

SELECT id, value, _change_type, _change_ordinal FROM example_changelog(0, 3) ORDER BY 4, 1, 3;

\set ON_ERROR_STOP off
SELECT id, value, _change_type, _change_ordinal FROM example_changelog(0, 3, ARRAY['id']) ORDER BY 4, 1, 3;
\set ON_ERROR_STOP on

\echo
\echo 'A copy as of snapshot 0 becomes a copy as of snapshot 2.'
\echo

CREATE TABLE example_copy (id text PRIMARY KEY, value text);
INSERT INTO example_copy VALUES ('id1', 'val1');
SELECT * FROM cdc.apply_changelog('example_copy', $$SELECT * FROM example_changelog(0, 2, ARRAY['id'])$$, ARRAY['id']);
SELECT * FROM example_copy ORDER BY id;
