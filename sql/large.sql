-- Large statements and ranges: all rows are there, also where they do not fit
-- in work_mem (BB-51, small enough for every run)
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA large;
SET search_path = large, public;

CREATE TABLE big (id int PRIMARY KEY, a int, b text);
INSERT INTO big SELECT i, i, repeat('x', 50) FROM generate_series(1, 5000) i;
SELECT cdc.track('big');
UPDATE big SET a = a + 1;
INSERT INTO big SELECT i, i, repeat('y', 50) FROM generate_series(5001, 10000) i;
DELETE FROM big WHERE id % 2 = 0;
SELECT _change_type, count(*) FROM big_changelog(0, 1, ARRAY['id'], 'all') GROUP BY 1 ORDER BY 1;
SELECT _change_type, count(*) FROM big_changelog(0, 3) GROUP BY 1 ORDER BY 1;
SELECT _change_type, count(*) FROM big_changelog(0, 3, ARRAY['id']) GROUP BY 1 ORDER BY 1;
SELECT _change_type, count(*) FROM big_changelog(0, 3, ARRAY['id'], 'latest_pair') GROUP BY 1 ORDER BY 1;
SELECT _change_type, count(*) FROM big_changelog(0, 3, ARRAY['id'], 'net') GROUP BY 1 ORDER BY 1;
SELECT _change_type, count(*) FROM big_changelog(NULL, 3, ARRAY['id'], 'net') GROUP BY 1 ORDER BY 1;

-- the same with little memory, row for row
CREATE TABLE dup (v text);
INSERT INTO dup SELECT 'v' || i % 100 FROM generate_series(1, 4000) i;
SELECT cdc.track('dup');
DELETE FROM dup WHERE v < 'v5';
INSERT INTO dup SELECT 'v' || i % 10 FROM generate_series(1, 4000) i;
CREATE TABLE wide (id int, v text);
SELECT cdc.track('wide');
INSERT INTO wide SELECT i, repeat(md5(i::text), 100) FROM generate_series(1, 1500) i;
UPDATE wide SET v = v || '.' WHERE id % 3 = 0;
DELETE FROM wide WHERE id % 5 = 0;
CREATE FUNCTION bag_of(w text, what text, a bigint, ids text[], m text, OUT n bigint, OUT hash numeric) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('work_mem', w, true);
  EXECUTE format('SELECT count(*), sum(hashtextextended(x::text, 0)::numeric) FROM %s_changelog(%L, NULL, %L, %L) x', what, a, ids, m) INTO n, hash;
END $$;
CREATE TABLE cases AS
  SELECT what, m, CASE WHEN by_key THEN ids END AS ids, a
    FROM (VALUES ('big', '{id}'::text[]), ('dup', NULL), ('wide', '{id}')) t(what, ids),
         (VALUES ('net', false), ('all', false), ('net', true), ('all', true), ('latest', true), ('latest_pair', true)) m(m, by_key),
         (VALUES (NULL), (0), (1)) s(a)
   WHERE NOT by_key OR ids IS NOT NULL;
CREATE TABLE tight AS SELECT c.*, b.* FROM cases c, bag_of('64kB', what, a, ids, m) b;
CREATE TABLE ample AS SELECT c.*, b.* FROM cases c, bag_of('256MB', what, a, ids, m) b;
SELECT what, m, t.ids, t.a, n, t.hash = l.hash AS same FROM tight t JOIN ample l USING (what, m, n)
 WHERE t.ids IS NOT DISTINCT FROM l.ids AND t.a IS NOT DISTINCT FROM l.a ORDER BY 1, 3 NULLS FIRST, 2, 4 NULLS FIRST;

-- duplicates are found with little memory too
SET work_mem = '64kB';
INSERT INTO wide VALUES (4, 'twin');
SELECT count(*) FROM wide_changelog(0, NULL, ARRAY['id'], 'all');
RESET work_mem;

-- the first rows of a large result
SELECT count(*) FROM (SELECT * FROM big_changelog(NULL, NULL, mode => 'all') LIMIT 10) x;
BEGIN;
DECLARE c CURSOR FOR SELECT _change_ordinal FROM big_changelog(0, 1);
FETCH 1 FROM c;
CLOSE c;
COMMIT;

-- a transaction of many small statements, and many transactions
DO $$ BEGIN FOR i IN 1..3000 LOOP UPDATE big SET a = -i WHERE id = 2 * i + 1; END LOOP; END $$;
SELECT _change_type, count(*), min(a), max(a) FROM big_changelog(3, NULL, ARRAY['id'], 'latest') GROUP BY 1;
DO $$ BEGIN FOR i IN 1..500 LOOP UPDATE big SET a = 100000 + i WHERE id = i % 7 * 2 + 1; COMMIT; END LOOP; END $$;
SELECT cdc.current_snapshot('big');
SELECT id, a, _change_type, _change_ordinal FROM big_changelog(4, NULL, ARRAY['id'], 'latest') ORDER BY id;
SELECT _change_type, count(*), min(_change_ordinal), max(_change_ordinal) FROM big_changelog(4, NULL, ARRAY['id'], 'all') GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM big_changelog(100, 101, mode => 'all');
