-- The history of the primer, every range in every mode.
-- V0 {(id1,val1)}; V1 {(id1,val2)}; V2 {(id1,val3),(id2,val2)}; V3 {(id1,val3),(id1,val3)}
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA primer;
SET search_path = primer, public;

CREATE TABLE v (id text, val text);
INSERT INTO v VALUES ('id1', 'val1');
SELECT cdc.track('v');
UPDATE v SET val = 'val2';
BEGIN;
UPDATE v SET val = 'val3';
INSERT INTO v VALUES ('id2', 'val2');
COMMIT;
UPDATE v SET id = 'id1', val = 'val3' WHERE id = 'id2';
SELECT cdc.current_snapshot('v');
SELECT snapshot_id, inserted, deleted, kind, reason FROM cdc.snapshots('v') ORDER BY 1;

-- V0 -> V1
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(0, 1) ORDER BY 4, 1, 2, 3;
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(0, 1, mode => 'net') ORDER BY 4, 1, 2, 3;
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(0, 1, mode => 'all') ORDER BY 4, 1, 2, 3;
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(0, 1, ARRAY['id'], 'all') ORDER BY 4, 1, 2, 3;
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(0, 1, ARRAY['id']) ORDER BY 4, 1, 2, 3;
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(0, 1, ARRAY['id'], 'latest') ORDER BY 4, 1, 2, 3;
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(0, 1, ARRAY['id'], 'latest_pair') ORDER BY 4, 1, 2, 3;
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(0, 1, ARRAY['id'], 'net') ORDER BY 4, 1, 2, 3;

-- V1 -> V2
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(1, 2) ORDER BY 4, 1, 2, 3;
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(1, 2, mode => 'all') ORDER BY 4, 1, 2, 3;
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(1, 2, ARRAY['id'], 'all') ORDER BY 4, 1, 2, 3;
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(1, 2, ARRAY['id']) ORDER BY 4, 1, 2, 3;
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(1, 2, ARRAY['id'], 'latest_pair') ORDER BY 4, 1, 2, 3;
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(1, 2, ARRAY['id'], 'net') ORDER BY 4, 1, 2, 3;

-- V0 -> V2
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(0, 2) ORDER BY 4, 1, 2, 3;
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(0, 2, mode => 'all') ORDER BY 4, 1, 2, 3;
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(0, 2, ARRAY['id'], 'all') ORDER BY 4, 1, 2, 3;
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(0, 2, ARRAY['id']) ORDER BY 4, 1, 2, 3;
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(0, 2, ARRAY['id'], 'latest_pair') ORDER BY 4, 1, 2, 3;
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(0, 2, ARRAY['id'], 'net') ORDER BY 4, 1, 2, 3;

-- V0 -> V3: by key refused, id1 is there twice in V3
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(0, 3) ORDER BY 4, 1, 2, 3;
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(0, 3, mode => 'all') ORDER BY 4, 1, 2, 3;
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(0, 3, ARRAY['id'], 'all') ORDER BY 4, 1, 2, 3;
\echo :SQLSTATE
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(0, 3, ARRAY['id']) ORDER BY 4, 1, 2, 3;
\echo :SQLSTATE
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(0, 3, ARRAY['id'], 'latest_pair') ORDER BY 4, 1, 2, 3;
\echo :SQLSTATE
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(0, 3, ARRAY['id'], 'net') ORDER BY 4, 1, 2, 3;
\echo :SQLSTATE

-- V2 -> V3
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(2, 3) ORDER BY 4, 1, 2, 3;
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(2, 3, mode => 'all') ORDER BY 4, 1, 2, 3;
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(2, 3, ARRAY['id'], 'all') ORDER BY 4, 1, 2, 3;
\echo :SQLSTATE
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(2, 3, ARRAY['id']) ORDER BY 4, 1, 2, 3;
\echo :SQLSTATE
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(2, 3, ARRAY['id'], 'latest_pair') ORDER BY 4, 1, 2, 3;
\echo :SQLSTATE
SELECT id, val, _change_type, _change_ordinal FROM v_changelog(2, 3, ARRAY['id'], 'net') ORDER BY 4, 1, 2, 3;
\echo :SQLSTATE

-- all output columns: the table's own, then four more; the snapshot id is the
-- ordinal, the time is the one of cdc.snapshots
CREATE TEMP TABLE out AS SELECT * FROM v_changelog(0, 2, mode => 'all');
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
 WHERE attrelid = 'out'::regclass AND attnum > 0 ORDER BY attnum;
SELECT count(*), bool_and(_commit_snapshot_id = _change_ordinal) AS same_number,
       bool_and(_commit_timestamp = committed_at) AS same_time
  FROM out JOIN cdc.snapshots('v') ON snapshot_id = _commit_snapshot_id;

-- the generic function gives the same rows as the typed one, cell by cell
CREATE FUNCTION differences(a bigint, b bigint, ids text[], m text) RETURNS bigint
LANGUAGE sql AS $$
  WITH typed AS (SELECT v::text FROM v_changelog(a, b, ids, m) v),
       generic AS (SELECT g::text
                     FROM cdc.changelog('v', a, b, ids, m)
                       AS g(id text, val text, _change_type text, _change_ordinal bigint,
                            _commit_snapshot_id bigint, _commit_timestamp timestamptz))
  SELECT (SELECT count(*) FROM (TABLE typed EXCEPT ALL TABLE generic) x)
       + (SELECT count(*) FROM (TABLE generic EXCEPT ALL TABLE typed) x)
$$;
SELECT a, b, ids, m, differences(a, b, ids, m)
  FROM (VALUES (0, 1), (1, 2), (0, 2)) r(a, b),
       (VALUES (NULL::text[], NULL), (NULL, 'net'), (NULL, 'all'), ('{id}', NULL),
               ('{id}', 'latest'), ('{id}', 'latest_pair'), ('{id}', 'all'), ('{id}', 'net')) c(ids, m)
 ORDER BY 1, 2, 3 NULLS FIRST, 4 NULLS FIRST;
