-- cdc.as_of: the table as it was at any snapshot
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA as_of;
SET search_path = as_of, public;

-- Saved copies of the table against what as_of() says, for every snapshot
CREATE TABLE saved (copy text, snapshot bigint);
CREATE FUNCTION save(rel regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  s bigint := cdc.current_snapshot(rel);
BEGIN
  EXECUTE format('CREATE TABLE %I AS TABLE %s', 'copy_' || s, rel);
  INSERT INTO saved VALUES ('copy_' || s, s);
  RETURN s;
END $$;
CREATE FUNCTION differences(rel regclass) RETURNS TABLE (snapshot bigint, n bigint, missing bigint, extra bigint)
LANGUAGE plpgsql AS $$
DECLARE
  c record;
BEGIN
  FOR c IN SELECT * FROM saved ORDER BY saved.snapshot LOOP
    RETURN QUERY EXECUTE format(
      'WITH a AS MATERIALIZED (SELECT t::text FROM cdc.as_of(NULL::%1$s, %2$s) t), c AS MATERIALIZED (SELECT t::text FROM %3$I t)
       SELECT %2$s::bigint, (SELECT count(*) FROM a),
              (SELECT count(*) FROM (TABLE c EXCEPT ALL TABLE a) d), (SELECT count(*) FROM (TABLE a EXCEPT ALL TABLE c) d)',
      rel, c.snapshot, c.copy);
  END LOOP;
END $$;

-- duplicates, NULLs, types without equality, a dropped column, large values
CREATE TABLE t (id int, gone text, j json, x point[], p point, big text, n numeric);
INSERT INTO t SELECT i, 'gone', '{"a": 1}', '{}', point(i, i), repeat('base ' || i, i * 400), i / 3.0 FROM generate_series(1, 20) i;
INSERT INTO t SELECT * FROM t WHERE id < 5;
INSERT INTO t DEFAULT VALUES;
ALTER TABLE t DROP COLUMN gone;
SELECT cdc.track('t');
SELECT save('t');
INSERT INTO t SELECT i, '{"a":1}', ARRAY[point(1, 2)], point(-0.0, i), repeat('new ' || i, i * 400), i FROM generate_series(15, 30) i;
INSERT INTO t VALUES (NULL), (NULL), (1);
SELECT save('t');
UPDATE t SET n = n + 0.0 WHERE id % 2 = 0;
SELECT save('t');
DELETE FROM t WHERE id < 3 OR id IS NULL;
SELECT save('t');
UPDATE t SET big = big || '!', id = id + 1;
SELECT save('t');
TRUNCATE t;
SELECT save('t');
INSERT INTO t VALUES (1, '[]'), (1, '[]');
SELECT save('t');
SELECT * FROM differences('t');

-- own changes are not in it, whatever they are
BEGIN;
DELETE FROM t WHERE ctid = (SELECT min(ctid) FROM t);
INSERT INTO t (id) VALUES (77);
SELECT id, j FROM cdc.as_of(NULL::t, cdc.current_snapshot('t'));
SELECT * FROM differences('t') WHERE missing > 0 OR extra > 0;
TRUNCATE t;
INSERT INTO t (id) VALUES (78);
SELECT * FROM differences('t') WHERE missing > 0 OR extra > 0;
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM t;
SELECT * FROM differences('t') WHERE missing > 0 OR extra > 0;
COMMIT;

-- as a table in a query, in the target list, in a view, as a row
SELECT count(*), max(a.id) FROM cdc.as_of(NULL::t, 0) a JOIN cdc.as_of(NULL::as_of.t, 4) b ON b.id = a.id + 1;
SELECT (cdc.as_of(NULL::t, 7)).id;
SELECT pg_typeof(a) FROM cdc.as_of(NULL::t, 7) a;
CREATE VIEW at_start AS SELECT id, n FROM cdc.as_of(NULL::t, 0);
SELECT count(*), sum(n) FROM at_start;
-- a row of the table says the same as NULL
SELECT count(*) FROM (SELECT t FROM t LIMIT 1) r, cdc.as_of(r.t, 0);
-- invariant 1: content(a) and the net changes give content(b)
SELECT count(*) FROM (
  (SELECT a::text FROM cdc.as_of(NULL::t, 2) a
   UNION ALL SELECT (ROW(id, j, x, p, big, n)::t)::text FROM t_changelog(2, 4) WHERE _change_type = 'INSERT')
  EXCEPT ALL
  (SELECT b::text FROM cdc.as_of(NULL::t, 4) b
   UNION ALL SELECT (ROW(id, j, x, p, big, n)::t)::text FROM t_changelog(2, 4) WHERE _change_type = 'DELETE')) d;

-- the present columns, also for what was written before they were there
ALTER TABLE t RENAME COLUMN j TO json;
SELECT id, json FROM cdc.as_of(NULL::t, 7);

-- bounds
SELECT * FROM cdc.as_of(NULL::t, 8);
\echo :SQLSTATE
SELECT * FROM cdc.as_of(NULL::t, -1);
\echo :SQLSTATE
SELECT * FROM cdc.as_of(NULL::t, NULL);
\echo :SQLSTATE
SELECT * FROM cdc.as_of(NULL::t, cdc.snapshot_at('t', '-infinity'));
\echo :SQLSTATE
-- not a row type, or not of a tracked table
SELECT cdc.as_of(1, 1);
\echo :SQLSTATE
SELECT cdc.as_of(NULL::saved, 1);
\echo :SQLSTATE
CREATE TYPE pair AS (a int, b int);
SELECT cdc.as_of(NULL::pair, 1);
\echo :SQLSTATE

-- a gap: nothing before it can be told, all after it can
UPDATE cdc.snapshot SET kind = 'g', reason = 'of this test'
 WHERE snapshot_id = 4 AND table_id = (SELECT table_id FROM cdc.tracked_table WHERE relation = 't'::regclass);
SELECT * FROM cdc.as_of(NULL::t, 3);
\echo :SQLSTATE
DELETE FROM saved WHERE snapshot < 4;
ALTER TABLE t RENAME COLUMN json TO j;
SELECT * FROM differences('t');

-- privileges: those of reading the changelog
CREATE ROLE regress_cdc_as_of;
GRANT USAGE ON SCHEMA as_of TO regress_cdc_as_of;
GRANT SELECT (id, j) ON t TO regress_cdc_as_of;
SET ROLE regress_cdc_as_of;
SELECT count(*) FROM cdc.as_of(NULL::t, 7);
\echo :SQLSTATE
RESET ROLE;
GRANT SELECT ON t TO regress_cdc_as_of;
SET ROLE regress_cdc_as_of;
SELECT count(*) FROM cdc.as_of(NULL::t, 7);
RESET ROLE;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
SET ROLE regress_cdc_as_of;
SELECT count(*) FROM cdc.as_of(NULL::t, 7);
\echo :SQLSTATE
RESET ROLE;

SELECT cdc.untrack('t');
SELECT cdc.as_of(NULL::t, 0);
\echo :SQLSTATE
SET client_min_messages = warning;
DROP SCHEMA as_of CASCADE;
DROP ROLE regress_cdc_as_of;

-- in a subtransaction, of a table that the transaction has replaced and changed
-- outside of it
CREATE TABLE replaced (id int, v text);
INSERT INTO replaced VALUES (1, 'a'), (2, 'b');
SELECT cdc.track('replaced');
BEGIN;
TRUNCATE replaced;
INSERT INTO replaced VALUES (3, 'c');
SAVEPOINT one;
SELECT * FROM cdc.as_of(NULL::replaced, 0) ORDER BY id;
INSERT INTO replaced VALUES (4, 'd');
SAVEPOINT two;
SELECT * FROM cdc.as_of(NULL::replaced, 0) ORDER BY id;
ROLLBACK TO one;
SELECT * FROM cdc.as_of(NULL::replaced, 0) ORDER BY id;
RELEASE one;
INSERT INTO replaced VALUES (5, 'e');
COMMIT;
SELECT id, v, _change_type, _change_ordinal FROM replaced_changelog(0) ORDER BY id;
SELECT * FROM cdc.verify('replaced');
DROP TABLE replaced;
