-- Range arguments: what each bound means and which are refused
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA ranges;
SET search_path = ranges, public;

CREATE TABLE rg (id int PRIMARY KEY, v text);
INSERT INTO rg VALUES (0, 'before tracking');

-- not tracked yet
SELECT count(*) FROM cdc.changelog('rg', 0, 0) AS t(id int, v text, _change_type text, _change_ordinal bigint, _commit_snapshot_id bigint, _commit_timestamp timestamptz);
\echo :SQLSTATE
SELECT cdc.current_snapshot('rg');
\echo :SQLSTATE
SELECT cdc.snapshot_at('rg', now());
\echo :SQLSTATE
SELECT * FROM cdc.snapshots('rg');
\echo :SQLSTATE
SELECT cdc.untrack('rg');
\echo :SQLSTATE

SELECT clock_timestamp() AS before_tracking \gset
SELECT cdc.track('rg');
INSERT INTO rg VALUES (1, 'a');
UPDATE rg SET v = 'A' WHERE id = 1;
INSERT INTO rg VALUES (2, 'b');
DELETE FROM rg WHERE id = 0;
SELECT cdc.current_snapshot('rg');

-- the empty range
SELECT count(*) FROM rg_changelog(1, 1);
SELECT count(*) FROM rg_changelog(0, 0);
SELECT count(*) FROM rg_changelog(4, 4, ARRAY['id']);
SELECT count(*) FROM rg_changelog(4, NULL, ARRAY['id']);
-- one snapshot
SELECT id, v, _change_type, _change_ordinal FROM rg_changelog(1, 2, ARRAY['id'], 'all') ORDER BY 4, 1, 2;

-- end NULL: the newest snapshot
SELECT id, v, _change_type, _change_ordinal FROM rg_changelog(2) ORDER BY 4, 1, 2;
SELECT id, v, _change_type, _change_ordinal FROM rg_changelog(2, NULL, ARRAY['id'], 'all') ORDER BY 4, 1, 2;

-- start NULL: the baseline as INSERT rows, then the changes
SELECT id, v, _change_type, _change_ordinal FROM rg_changelog(NULL, 0) ORDER BY 4, 1, 2;
SELECT id, v, _change_type, _change_ordinal FROM rg_changelog(NULL, 1) ORDER BY 4, 1, 2;
SELECT id, v, _change_type, _change_ordinal FROM rg_changelog() ORDER BY 4, 1, 2;
SELECT id, v, _change_type, _change_ordinal FROM rg_changelog(mode => 'all') ORDER BY 4, 1, 2, 3 DESC;
SELECT id, v, _change_type, _change_ordinal FROM rg_changelog(identifiers => ARRAY['id']) ORDER BY 4, 1, 2;
SELECT id, v, _change_type, _change_ordinal FROM rg_changelog(identifiers => ARRAY['id'], mode => 'latest_pair') ORDER BY 4, 1, 2;
SELECT id, v, _change_type, _change_ordinal FROM rg_changelog(identifiers => ARRAY['id'], mode => 'all') ORDER BY 4, 1, 2, 3 DESC;
SELECT id, v, _change_type, _change_ordinal FROM rg_changelog(identifiers => ARRAY['id'], mode => 'net') ORDER BY 4, 1, 2;
-- applied to an empty target this rebuilds the table
CREATE TABLE rebuilt (LIKE rg);
SELECT inserted, updated, deleted, unchanged, missing, stale
  FROM cdc.apply_changelog('rebuilt', 'SELECT * FROM ranges.rg_changelog(identifiers => ARRAY[''id''])', ARRAY['id']);
SELECT * FROM rebuilt ORDER BY id;

-- ranges joined end to end give each change once, in every mode that keeps all
SELECT id, v, _change_type, _change_ordinal FROM rg_changelog(0, 4, mode => 'all')
EXCEPT ALL
SELECT id, v, _change_type, _change_ordinal
  FROM generate_series(0, 3) s, rg_changelog(s, s + 1, mode => 'all');
SELECT count(*) FROM generate_series(0, 3) s, rg_changelog(s, s + 1, mode => 'all');

-- reversed
SELECT * FROM rg_changelog(2, 1);
\echo :SQLSTATE
SELECT * FROM rg_changelog(2, 1, ARRAY['id']);
\echo :SQLSTATE
-- negative
SELECT * FROM rg_changelog(-1, 1);
\echo :SQLSTATE
SELECT * FROM rg_changelog(-2, -1);
\echo :SQLSTATE
SELECT * FROM rg_changelog(NULL, -1);
\echo :SQLSTATE
-- newer than the newest
SELECT * FROM rg_changelog(5);
\echo :SQLSTATE
SELECT * FROM rg_changelog(5, 5);
\echo :SQLSTATE
SELECT * FROM rg_changelog(0, 5);
\echo :SQLSTATE
SELECT * FROM rg_changelog(NULL, 9223372036854775807);
\echo :SQLSTATE
SELECT * FROM rg_changelog(9223372036854775807, -9223372036854775808);
\echo :SQLSTATE

-- modes
SELECT * FROM rg_changelog(0, 1, mode => 'latest');
\echo :SQLSTATE
SELECT * FROM rg_changelog(0, 1, mode => 'latest_pair');
\echo :SQLSTATE
SELECT * FROM rg_changelog(0, 1, mode => 'newest');
\echo :SQLSTATE
SELECT * FROM rg_changelog(0, 1, ARRAY['id'], 'NET');
\echo :SQLSTATE
SELECT * FROM rg_changelog(0, 1, ARRAY['id'], '');
\echo :SQLSTATE

-- identifiers
SELECT * FROM rg_changelog(0, 1, ARRAY['ID']);
\echo :SQLSTATE
SELECT * FROM rg_changelog(0, 1, ARRAY['id', 'nope']);
\echo :SQLSTATE
SELECT * FROM rg_changelog(0, 1, ARRAY['ctid']);
\echo :SQLSTATE
SELECT * FROM rg_changelog(0, 1, ARRAY['_change_type']);
\echo :SQLSTATE
SELECT * FROM rg_changelog(0, 1, ARRAY[NULL]::text[]);
\echo :SQLSTATE
SELECT * FROM rg_changelog(0, 1, '{}');
\echo :SQLSTATE
-- the same column twice is the same as once
SELECT id, v, _change_type, _change_ordinal FROM rg_changelog(0, 1, ARRAY['id', 'id']);
\echo :SQLSTATE

-- the generic function: definition lists that do not fit
SELECT * FROM cdc.changelog('rg', 0, 1);
\echo :SQLSTATE
SELECT * FROM cdc.changelog('rg', 0, 1) AS t(id int, v text);
\echo :SQLSTATE
SELECT * FROM cdc.changelog('rg', 0, 1) AS t(id bigint, v text, _change_type text, _change_ordinal bigint, _commit_snapshot_id bigint, _commit_timestamp timestamptz);
\echo :SQLSTATE
SELECT * FROM cdc.changelog(NULL, 0, 1) AS t(id int, v text, _change_type text, _change_ordinal bigint, _commit_snapshot_id bigint, _commit_timestamp timestamptz);
\echo :SQLSTATE
SELECT * FROM cdc.changelog('no_such_table', 0, 1) AS t(id int, v text, _change_type text, _change_ordinal bigint, _commit_snapshot_id bigint, _commit_timestamp timestamptz);
\echo :SQLSTATE
-- one that does, under other names
SELECT a, b, c, d FROM cdc.changelog('rg', 0, 1) AS t(a int, b text, c text, d bigint, e bigint, f timestamptz);

-- snapshots by time: the newest committed at or before
SELECT cdc.snapshot_at('rg', :'before_tracking');
SELECT snapshot_id, cdc.snapshot_at('rg', committed_at) AS at,
       cdc.snapshot_at('rg', committed_at - interval '1 microsecond') AS just_before,
       cdc.snapshot_at('rg', committed_at + interval '1 microsecond') AS just_after
  FROM cdc.snapshots('rg') ORDER BY 1;
SELECT cdc.snapshot_at('rg', 'infinity'), cdc.snapshot_at('rg', '-infinity');
SELECT cdc.snapshot_at('rg', NULL);
-- times ascend with the numbers
SELECT count(*) FROM (SELECT committed_at < lag(committed_at) OVER (ORDER BY snapshot_id) AS back
                        FROM cdc.snapshots('rg')) x WHERE back;
SELECT snapshot_id, inserted, deleted, kind, reason FROM cdc.snapshots('rg') WHERE snapshot_id > 0 ORDER BY 1;

-- a transaction's own changes are not readable before it commits
BEGIN;
INSERT INTO rg VALUES (3, 'mine');
SELECT cdc.current_snapshot('rg');
SELECT count(*) FROM rg_changelog(4);
SELECT count(*) FROM rg_changelog(0);
COMMIT;
SELECT cdc.current_snapshot('rg');
SELECT id, v, _change_type, _change_ordinal FROM rg_changelog(4) ORDER BY 4, 1, 2;

-- a tracked table that is empty and never changed
CREATE TABLE nothing (id int);
SELECT cdc.track('nothing');
SELECT cdc.current_snapshot('nothing');
SELECT count(*) FROM nothing_changelog();
SELECT count(*) FROM nothing_changelog(0, 0);
SELECT * FROM nothing_changelog(1, 1);
\echo :SQLSTATE

-- a changelog is an ordinary row source
SELECT v, count(*) FROM rg_changelog(0, 4, mode => 'all') GROUP BY v HAVING count(*) > 1 ORDER BY v;
SELECT l.id, l._change_type FROM rg_changelog(0, 4, ARRAY['id']) l JOIN rg_changelog(0, 4) n USING (id, v) ORDER BY 1, 2;
SELECT _change_ordinal FROM rg_changelog(0, 4, mode => 'all') ORDER BY 1 LIMIT 1;
SELECT s, (SELECT count(*) FROM rg_changelog(s, 4, mode => 'all')) FROM generate_series(0, 4) s;
SELECT (rg_changelog(0, 1)).id;
PREPARE p(bigint, bigint) AS SELECT id, v, _change_type, _change_ordinal FROM rg_changelog($1, $2) ORDER BY 4, 1, 2;
EXECUTE p(0, 1);
EXECUTE p(1, 2);
EXECUTE p(NULL, NULL);
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, v, _change_type FROM rg_changelog(0, 4, mode => 'all') ORDER BY _change_ordinal, id, v;
FETCH 2 FROM c;
MOVE ABSOLUTE 0 FROM c;
FETCH 1 FROM c;
COMMIT;
