-- Every way to write rows: INSERT, UPDATE, DELETE, MERGE, COPY, ON CONFLICT,
-- writable CTEs, cursors
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA capture_dml;
SET search_path = capture_dml, public;

-- content(0) + net changes = the table, as bags: the number of rows that differ
CREATE FUNCTION off(tab regclass, copy regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  cols text := (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
                 WHERE attrelid = tab AND attnum > 0 AND NOT attisdropped);
  fn text := format('%I.%I', (SELECT nspname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid = tab),
                    (SELECT relname FROM pg_class WHERE oid = tab) || '_changelog');
  n bigint;
BEGIN
  EXECUTE format($q$
    SELECT coalesce(sum(abs(n)), 0) FROM (
      SELECT sum(n) AS n FROM (
        SELECT x::text AS img, 1 AS n FROM (SELECT %1$s FROM %2$s) x
        UNION ALL
        SELECT ROW(%1$s)::text, CASE _change_type WHEN 'INSERT' THEN 1 WHEN 'DELETE' THEN -1 END FROM %3$s(0)
        UNION ALL
        SELECT x::text, -1 FROM (SELECT %1$s FROM %4$s) x) y
      GROUP BY img) z $q$, cols, copy, fn, tab) INTO n;
  RETURN n;
END $$;

CREATE TABLE t (id int PRIMARY KEY, v text, n numeric DEFAULT 0);
INSERT INTO t VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3), (4, 'four', 4);
CREATE TABLE t0 AS TABLE t;
SELECT cdc.track('t');

-- 1: multi-row INSERT with defaults
INSERT INTO t (id, v) VALUES (5, 'five'), (6, 'six');
-- 2: INSERT ... SELECT from the same table
INSERT INTO t SELECT id + 10, v || '+10', n FROM t WHERE id <= 3;
-- 3: UPDATE of some rows
UPDATE t SET n = n + 0.5 WHERE id IN (1, 11);
-- 4: UPDATE ... FROM
UPDATE t SET v = s.v FROM (VALUES (2, 'zwei'), (99, 'none')) s(id, v) WHERE t.id = s.id;
-- 5: DELETE ... USING
DELETE FROM t USING (VALUES (12), (13)) s(id) WHERE t.id = s.id;
-- 6: MERGE with all its actions
MERGE INTO t USING (VALUES (3, 'drei'), (4, NULL), (7, 'sieben'), (5, 'five')) s(id, v) ON t.id = s.id
  WHEN MATCHED AND s.v IS NULL THEN DELETE
  WHEN MATCHED AND s.v = t.v THEN DO NOTHING
  WHEN MATCHED THEN UPDATE SET v = s.v
  WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v);
-- 7: COPY
COPY t FROM stdin;
20	copied	1
21	copied	2
\.
-- 8: COPY with columns, and a null
COPY t (v, id) FROM stdin WITH (FORMAT csv);
,22
"a,b",23
\.
-- 9: ON CONFLICT DO UPDATE, both paths
INSERT INTO t VALUES (20, 'conflict', 9), (24, 'no conflict', 9) ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v;
-- nothing happens: no snapshot
INSERT INTO t VALUES (20, 'x', 9) ON CONFLICT DO NOTHING;
INSERT INTO t VALUES (20, 'x', 9) ON CONFLICT (id) DO UPDATE SET v = 'never' WHERE false;
UPDATE t SET v = v;
UPDATE t SET v = 'x' WHERE false;
DELETE FROM t WHERE false;
INSERT INTO t SELECT * FROM t WHERE false;
COPY t FROM stdin;
\.
SELECT cdc.current_snapshot('t');
-- 10: writable CTEs, several of one table in one statement
WITH gone AS (DELETE FROM t WHERE id IN (22, 23) RETURNING *),
     changed AS (UPDATE t SET v = 'cte' WHERE id = 21 RETURNING *),
     back AS (INSERT INTO t SELECT id + 10, v, n FROM gone RETURNING *)
SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM changed), (SELECT count(*) FROM back);
-- 11: WHERE CURRENT OF
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM t WHERE id IN (32, 33) ORDER BY id FOR UPDATE;
FETCH 1 FROM c;
UPDATE t SET v = 'current' WHERE CURRENT OF c;
FETCH 1 FROM c;
DELETE FROM t WHERE CURRENT OF c;
COMMIT;
-- 12: prepared statements, twice in one transaction
PREPARE ins AS INSERT INTO t VALUES ($1, $2);
BEGIN;
EXECUTE ins(40, 'p1');
EXECUTE ins(41, 'p2');
COMMIT;
-- 13: a key moves
UPDATE t SET id = 42 WHERE id = 41;
SELECT cdc.current_snapshot('t');
SELECT id, v, n, _change_type, _change_ordinal FROM t_changelog(0, NULL, mode => 'all') ORDER BY 5, 1, 4, 2;
SELECT id, v, n, _change_type, _change_ordinal FROM t_changelog(0, NULL, ARRAY['id'], 'all') ORDER BY 5, 1, 4 DESC, 2;
SELECT snapshot_id, inserted, deleted, kind FROM cdc.snapshots('t') WHERE snapshot_id > 0 ORDER BY 1;
SELECT off('t', 't0');

-- the same statement in a function, a procedure and a DO block
CREATE FUNCTION f() RETURNS void LANGUAGE sql AS 'INSERT INTO t VALUES (50, ''f''); UPDATE t SET v = ''F'' WHERE id = 50';
CREATE PROCEDURE p() LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 51..54 LOOP
    INSERT INTO t VALUES (i, 'p');
    IF i % 2 = 0 THEN COMMIT; END IF;
  END LOOP;
  DELETE FROM t WHERE id = 54;
  ROLLBACK;
END $$;
SELECT f();
CALL p();
DO $$ BEGIN DELETE FROM t WHERE id = 51; END $$;
SELECT id, v, _change_type, _change_ordinal FROM t_changelog(13, NULL, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;
SELECT off('t', 't0');

-- through a view that can be updated, and a rule
CREATE VIEW tv AS SELECT * FROM t WHERE id >= 60 WITH CHECK OPTION;
INSERT INTO tv VALUES (60, 'view', 1);
UPDATE tv SET v = 'VIEW';
CREATE TABLE proxy (id int, v text);
CREATE RULE proxy_ins AS ON INSERT TO proxy DO INSTEAD INSERT INTO t VALUES (NEW.id, NEW.v);
CREATE RULE also AS ON DELETE TO t DO ALSO INSERT INTO proxy VALUES (OLD.id + 1000, 'after ' || OLD.v);
INSERT INTO proxy VALUES (61, 'rule');
DELETE FROM t WHERE id = 60;
DROP RULE also ON t;
SELECT id, v, _change_type, _change_ordinal FROM t_changelog(17, NULL, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;
SELECT off('t', 't0');

-- statements that fail leave nothing
INSERT INTO t VALUES (70, 'x'), (1, 'duplicate');
UPDATE t SET id = 1 WHERE id = 2;
COPY t FROM stdin;
71	ok	1
72	bad	not a number
\.
INSERT INTO t VALUES (80, 'x', 1), (80, 'y', 2) ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v;
\echo :SQLSTATE
SELECT cdc.current_snapshot('t');
SELECT off('t', 't0');

-- many rows in one statement: more than fit a buffer of rows
CREATE TABLE many (id int, v text);
SELECT cdc.track('many');
INSERT INTO many SELECT i, repeat('x', i % 300) FROM generate_series(1, 20000) i;
UPDATE many SET v = v || '.' WHERE id % 2 = 0;
DELETE FROM many WHERE id % 4 = 0;
CREATE TABLE many0 AS SELECT * FROM many WHERE false;
SELECT snapshot_id, inserted, deleted FROM cdc.snapshots('many') ORDER BY 1;
SELECT _change_type, _change_ordinal, count(*) FROM many_changelog(0, 3, mode => 'all') GROUP BY 1, 2 ORDER BY 2, 1;
SELECT _change_type, _change_ordinal, count(*) FROM many_changelog(0, 3) GROUP BY 1, 2 ORDER BY 2, 1;
SELECT _change_type, _change_ordinal, count(*) FROM many_changelog(0, 3, ARRAY['id'], 'net') GROUP BY 1, 2 ORDER BY 2, 1;
SELECT _change_type, _change_ordinal, count(*) FROM many_changelog(1, 3, ARRAY['id'], 'latest_pair') GROUP BY 1, 2 ORDER BY 2, 1;
SELECT off('many', 'many0');
