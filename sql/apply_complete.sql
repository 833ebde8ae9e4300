--
-- apply_changelog with complete: the changelog is the whole content, and rows
-- of the target whose key it does not have go.
--
CREATE SCHEMA apply_complete;
SET search_path = apply_complete;
\set SHOW_CONTEXT never

-- equal rows are not touched: their xmin stays
CREATE TABLE t (id int PRIMARY KEY, v text);
INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 6) i;
CREATE TABLE touched AS SELECT id, xmin AS written_by FROM t;
CREATE VIEW content AS SELECT 'INSERT' AS _change_type, id, v
  FROM (VALUES (1, 'v1'), (2, 'changed'), (4, 'v4'), (9, 'new')) x (id, v);
SELECT * FROM cdc.apply_changelog('t', 'content', ARRAY['id'], complete => true);
SELECT t.*, CASE WHEN written_by = t.xmin THEN 'untouched' ELSE 'written' END FROM t LEFT JOIN touched USING (id) ORDER BY id;
SELECT * FROM cdc.apply_changelog('t', 'content', ARRAY['id'], complete => true);
-- a delete is as good as no row; an UPDATE_BEFORE is none
SELECT * FROM cdc.apply_changelog('t',
  $$ SELECT column1 AS _change_type, column2 AS id, column3 AS v
       FROM (VALUES ('U', 1, 'v1'), ('D', 2, ''), ('D', 77, ''), ('UPDATE_BEFORE', 4, 'v4')) x $$,
  ARRAY['id'], complete => true);
TABLE t;
-- what the filter takes out goes, too, and an empty changelog empties the target
SELECT * FROM cdc.apply_changelog('t', 'content', ARRAY['id'], filter => 'id < 3', complete => true);
SELECT * FROM t ORDER BY id;
SELECT * FROM cdc.apply_changelog('t', 'SELECT * FROM content WHERE false', ARRAY['id'], complete => true);
TABLE t;

-- NULL keys: columns with and without NULL in every combination
CREATE TABLE nulls (a int, b text, c numeric, v int);
INSERT INTO nulls
  SELECT a, b, c, 1 FROM unnest(ARRAY[1, 2, NULL]) a, unnest(ARRAY['x', 'y', NULL]) b, unnest(ARRAY[1.0, NULL]) c;
SELECT * FROM cdc.apply_changelog('nulls',
  $$ SELECT 'I' AS _change_type, a, b, c, 1 AS v FROM nulls WHERE a = 1 AND b IS NULL $$, ARRAY['a', 'b', 'c'], complete => true);
SELECT * FROM nulls ORDER BY a, b, c;
SELECT * FROM cdc.apply_changelog('nulls',
  $$ SELECT column1 AS _change_type, column2 AS a, column3 AS b, column4 AS c, column5 AS v
       FROM (VALUES ('I', 1, NULL, 1.00, 1), ('I', NULL, NULL, NULL, 2), ('I', NULL, 'x', NULL, 3), ('I', 2, 'x', 2, 4)) x $$,
  ARRAY['a', 'b', 'c'], complete => true);
SELECT * FROM nulls ORDER BY a, b, c;

-- keys twice: not where they stay, but where they go
CREATE TABLE twice (id int, v text);
INSERT INTO twice VALUES (1, 'a'), (1, 'b'), (2, 'c');
SELECT * FROM cdc.apply_changelog('twice', $$ SELECT 'I' AS _change_type, 1 AS id, 'a' AS v $$, ARRAY['id'], complete => true);
SELECT * FROM cdc.apply_changelog('twice', $$ SELECT 'I' AS _change_type, 2 AS id, 'c' AS v $$, ARRAY['id'], complete => true);
TABLE twice;

-- soft deletes; a mark that is there is not made again
CREATE TABLE soft (id int PRIMARY KEY, v text, gone boolean NOT NULL DEFAULT false);
INSERT INTO soft VALUES (1, 'a', false), (2, 'b', false), (3, 'c', true), (4, 'd', true);
SELECT * FROM cdc.apply_changelog('soft', $$ SELECT 'I' AS _change_type, i AS id, chr(96 + i) AS v FROM generate_series(1, 5, 2) i $$,
  ARRAY['id'], soft_delete => 'gone', complete => true);
SELECT * FROM soft ORDER BY id;
SELECT * FROM cdc.apply_changelog('soft', $$ SELECT 'I' AS _change_type, i AS id, chr(96 + i) AS v FROM generate_series(1, 5, 2) i $$,
  ARRAY['id'], soft_delete => 'gone', complete => true);

-- with a sequence: the newest of the changelog counts, whatever the target has
CREATE TABLE seq (id int PRIMARY KEY, v text, s int, gone boolean DEFAULT false);
INSERT INTO seq VALUES (1, 'far ahead', 100, false), (2, 'same', 5, false), (3, 'other', 5, false), (4, 'not there', 1, false), (5, 'dead', 1, true);
CREATE TABLE seq_changes (_change_type text, id int, v text, s int);
INSERT INTO seq_changes VALUES ('I', 1, 'old', 1), ('U', 1, 'new', 2), ('I', 2, 'same', 5), ('I', 3, 'this', 5), ('D', 5, 'dead', 2), ('D', 6, 'unknown', 3);
SELECT * FROM cdc.apply_changelog('seq', 'seq_changes', ARRAY['id'], sequence_by => 's', soft_delete => 'gone', complete => true);
SELECT * FROM seq ORDER BY id;
SELECT * FROM cdc.apply_changelog('seq', 'seq_changes', ARRAY['id'], sequence_by => 's', soft_delete => 'gone', complete => true);

--
-- other kinds of targets
--
CREATE TABLE part (id int, region text, v text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE part_eu PARTITION OF part FOR VALUES IN ('eu');
CREATE TABLE part_us PARTITION OF part FOR VALUES IN ('us');
INSERT INTO part SELECT i, r, 'old' FROM generate_series(1, 3) i, unnest(ARRAY['eu', 'us']) r;
SELECT * FROM cdc.apply_changelog('part', $$ SELECT 'I' AS _change_type, i AS id, 'us' AS region, 'new' AS v FROM generate_series(2, 4) i $$,
  ARRAY['id', 'region'], complete => true);
SELECT tableoid::regclass, * FROM part ORDER BY id;

-- a view: rows that it does not show stay
CREATE TABLE base (id int PRIMARY KEY, v text, mine boolean DEFAULT true);
INSERT INTO base VALUES (1, 'a', true), (2, 'b', true), (3, 'c', false);
CREATE VIEW mine AS SELECT id, v FROM base WHERE mine;
SELECT * FROM cdc.apply_changelog('mine', $$ SELECT 'I' AS _change_type, 2 AS id, 'B' AS v $$, ARRAY['id'], complete => true);
SELECT * FROM base ORDER BY id;
-- row-level security likewise
CREATE ROLE regress_cdc_complete;
GRANT USAGE ON SCHEMA apply_complete TO regress_cdc_complete;
ALTER TABLE base ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON base USING (mine);
GRANT SELECT, INSERT, UPDATE, DELETE ON base TO regress_cdc_complete;
SET ROLE regress_cdc_complete;
SELECT * FROM cdc.apply_changelog('base', $$ SELECT 'I' AS _change_type, 4 AS id, 'D' AS v $$, ARRAY['id'], complete => true);
RESET ROLE;
SELECT * FROM base ORDER BY id;
-- no right to delete
REVOKE DELETE ON base FROM regress_cdc_complete;
SET ROLE regress_cdc_complete;
SELECT * FROM cdc.apply_changelog('base', $$ SELECT 'I' AS _change_type, 5 AS id, 'E' AS v $$, ARRAY['id'], complete => true);
RESET ROLE;
-- a trigger that keeps rows, and one that sees them go
CREATE TABLE kept (id int PRIMARY KEY, v text);
INSERT INTO kept VALUES (1, 'keep me'), (2, 'b'), (3, 'c');
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.v = 'keep me' THEN RETURN NULL; END IF;
  RAISE NOTICE 'row % goes', OLD.id;
  RETURN OLD;
END $$;
CREATE TRIGGER keep BEFORE DELETE ON kept FOR EACH ROW EXECUTE FUNCTION keep();
SELECT * FROM cdc.apply_changelog('kept', $$ SELECT 'I' AS _change_type, 3 AS id, 'c' AS v $$, ARRAY['id'], complete => true);
SELECT * FROM kept ORDER BY id;
-- children of an inheritance parent
CREATE TABLE parent (id int, v text);
CREATE TABLE child () INHERITS (parent);
INSERT INTO parent VALUES (1, 'p'), (2, 'p');
INSERT INTO child VALUES (3, 'c'), (4, 'c');
SELECT * FROM cdc.apply_changelog('parent', $$ SELECT 'I' AS _change_type, i AS id, 'n' AS v FROM generate_series(2, 3) i $$, ARRAY['id'], complete => true);
SELECT tableoid::regclass, * FROM parent ORDER BY id;
-- key types: a domain, no hash function, neither hash nor order
CREATE DOMAIN code AS text;
CREATE TABLE domains (id code COLLATE "C" PRIMARY KEY, v int);
INSERT INTO domains VALUES ('a', 1), ('b', 2);
SELECT * FROM cdc.apply_changelog('domains', $$ SELECT 'I' AS _change_type, 'b' AS id, 2 AS v $$, ARRAY['id'], complete => true);
TABLE domains;
CREATE TABLE no_hash (id tsvector, v int);
INSERT INTO no_hash VALUES ('a b', 1), ('c', 2), (NULL, 3);
SELECT * FROM cdc.apply_changelog('no_hash', $$ SELECT 'I' AS _change_type, 'b a'::tsvector AS id, 2 AS v $$, ARRAY['id'], complete => true);
TABLE no_hash;
CREATE TABLE no_order (id xid8, x xid, v int);
INSERT INTO no_order VALUES ('1', '1', 1), ('2', NULL, 2), ('3', '3', 3);
SELECT * FROM cdc.apply_changelog('no_order', $$ SELECT 'I' AS _change_type, '2'::xid8 AS id, NULL::xid AS x, 2 AS v $$, ARRAY['id', 'x'], complete => true);
TABLE no_order;
-- the target itself as the changelog: nothing happens
SELECT * FROM cdc.apply_changelog('no_order', $$ SELECT 'I' AS _change_type, * FROM no_order $$, ARRAY['id', 'x'], complete => true);

--
-- any content, any target: they are equal afterwards, and doing it again does
-- nothing; with and without an index
--
CREATE FUNCTION try(indexed boolean, seed double precision) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  result record;
  differs bigint;
BEGIN
  PERFORM setseed(seed);
  FOR round IN 1..60 LOOP
    CREATE TEMP TABLE target (a int, b text, v int);
    IF indexed THEN
      CREATE UNIQUE INDEX ON target (a, b) NULLS NOT DISTINCT;
    END IF;
    CREATE TEMP TABLE source (a int, b text, v int);
    INSERT INTO target SELECT a, b, floor(random() * 3)
      FROM unnest(ARRAY[1, 2, 3, NULL]) a, unnest(ARRAY['x', 'y', NULL]) b WHERE random() < round / 60.0;
    INSERT INTO source SELECT a, b, floor(random() * 3)
      FROM unnest(ARRAY[1, 2, 3, NULL]) a, unnest(ARRAY['x', 'y', NULL]) b WHERE random() < 0.5;
    SELECT * INTO result FROM cdc.apply_changelog('target', $q$ SELECT 'INSERT' AS _change_type, * FROM source $q$, ARRAY['a', 'b'], complete => true);
    SELECT count(*) INTO differs FROM (
      (TABLE target EXCEPT ALL TABLE source) UNION ALL (TABLE source EXCEPT ALL TABLE target)) x;
    IF differs > 0 THEN
      RETURN NEXT format('round %s: %s rows differ, %s', round, differs, result);
    END IF;
    SELECT * INTO result FROM cdc.apply_changelog('target', $q$ SELECT 'INSERT' AS _change_type, * FROM source $q$, ARRAY['a', 'b'], complete => true);
    IF result.inserted + result.updated + result.deleted > 0 THEN
      RETURN NEXT format('round %s: not the same again, %s', round, result);
    END IF;
    DROP TABLE target, source;
  END LOOP;
END $$;
SELECT try(false, 0.1);
SELECT try(true, 0.2);

-- many rows: the target is read once, not once for each row
CREATE TABLE many (id int PRIMARY KEY, v int);
INSERT INTO many SELECT i, 0 FROM generate_series(1, 20000) i;
SELECT * FROM cdc.apply_changelog('many', $$ SELECT 'I' AS _change_type, i AS id, i % 2 AS v FROM generate_series(2, 30000, 2) i $$,
  ARRAY['id'], complete => true);
SELECT count(*), min(id), max(id) FROM many;

\set VERBOSITY terse
DROP SCHEMA apply_complete CASCADE;
DROP ROLE regress_cdc_complete;
