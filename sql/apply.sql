--
-- apply_changelog: what it does with the rows of a changelog.  The changelogs
-- here are tables and queries, so nothing is tracked.
--
CREATE SCHEMA apply;
SET search_path = apply;
\set SHOW_CONTEXT never

-- every word for a change, a no-op, deletes of keys that are not there
CREATE TABLE t (id int PRIMARY KEY, v text, n int DEFAULT 7);
INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three'), (4, 'four'), (5, 'five'),
                     (6, 'six'), (7, 'seven'), (8, 'eight'), (9, 'nine');
CREATE TABLE words (_change_type text, id int, v text);
INSERT INTO words VALUES
  ('INSERT', 10, 'ten'), ('INSERT', 1, 'ONE'), ('UPDATE_BEFORE', 2, 'two'),
  ('UPDATE_AFTER', 2, 'TWO'), ('DELETE', 3, NULL), ('insert', 11, 'eleven'),
  ('update_preimage', 4, 'four'), ('update_postimage', 4, 'FOUR'), ('delete', 5, 'x'),
  ('I', 12, 'twelve'), ('U', 6, 'six'), ('U', 13, 'thirteen'), ('D', 7, NULL),
  ('D', 77, NULL), ('DELETE', 78, 'x');
SELECT * FROM cdc.apply_changelog('t', 'words', ARRAY['id']);
SELECT * FROM t ORDER BY id;
-- again: nothing is left to do
SELECT * FROM cdc.apply_changelog('t', 'words', ARRAY['id']);
SELECT count(*), min(n), max(n) FROM t;

-- forms of a changelog
CREATE VIEW "a view" AS SELECT 'U' AS _change_type, 1 AS id, 'by view'::text AS v;
SELECT * FROM cdc.apply_changelog('t', '"a view"', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('t', ' apply . "a view" ', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('t', 'SELECT ''U'' AS _change_type, 1 AS id, ''by select'' AS v; ', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('t', '-- dbt says hello
  /* and goodbye */ WITH x(_change_type, id, v) AS (VALUES (''U'', 1, ''by with''))
  TABLE x -- the end', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('t', '(TABLE "a view")', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('t', 'TABLE "a view" UNION ALL SELECT ''D'', 99, NULL', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('t', 'SELECT * FROM "a view" WHERE false', ARRAY['id']);
SELECT * FROM t WHERE id = 1;

-- positional arguments, and one row as a composite value
SELECT cdc.apply_changelog('t', '"a view"', '{id}', NULL, NULL, NULL, false, false);
SELECT (cdc.apply_changelog('t', '"a view"', '{id,id}')).unchanged;

--
-- BB-07: a changed key is a delete and an insert
--
CREATE TABLE k_copy (a int, b int, c int, uid uuid NOT NULL, v text, PRIMARY KEY (a, b, c));
INSERT INTO k_copy VALUES (7, 3, 9, '00000000-0000-0000-0000-000000000001', 'row');
SELECT * FROM cdc.apply_changelog('k_copy',
  $$ VALUES (7, 3, 9, '00000000-0000-0000-0000-000000000001', 'row', 'DELETE'),
            (7, 8, 9, '00000000-0000-0000-0000-000000000001', 'moved', 'INSERT') $$,
  ARRAY['a', 'b', 'c']);
SELECT * FROM cdc.apply_changelog('k_copy',
  $$ SELECT column1 AS a, column2 AS b, column3 AS c, column4 AS uid, column5 AS v, column6 AS _change_type
       FROM (VALUES (7, 3, 9, '00000000-0000-0000-0000-000000000001', 'row', 'DELETE'),
                    (7, 8, 9, '00000000-0000-0000-0000-000000000001', 'moved', 'INSERT')) x $$,
  ARRAY['a', 'b', 'c']);
TABLE k_copy;

-- shifted keys: each row is deleted or inserted at one end and updated between
CREATE TABLE shifted AS SELECT i AS id, 'v' || i AS v FROM generate_series(1, 5) i;
ALTER TABLE shifted ADD PRIMARY KEY (id);
SELECT * FROM cdc.apply_changelog('shifted',
  $$ SELECT 'UPDATE_AFTER' AS _change_type, i + 1 AS id, 'v' || i AS v FROM generate_series(1, 4) i
     UNION ALL SELECT 'INSERT', 6, 'v5' UNION ALL SELECT 'DELETE', 1, 'v1' $$, ARRAY['id']);
SELECT * FROM shifted ORDER BY id;

--
-- BB-12: NULL in key columns matches NULL
--
CREATE TABLE nk_copy (k1 text, k2 int, v int);
INSERT INTO nk_copy VALUES ('p', 1, 10), ('q', NULL, 20), (NULL, NULL, 30), (NULL, 1, 40), ('r', NULL, 50);
CREATE TABLE nk_changes (_change_type text, k1 text, k2 int, v int);
INSERT INTO nk_changes VALUES ('UPDATE_BEFORE', 'q', NULL, 20), ('UPDATE_AFTER', 'q', NULL, 21),
  ('UPDATE_AFTER', NULL, NULL, 31), ('DELETE', NULL, 1, 40), ('DELETE', NULL, 2, 40),
  ('INSERT', 's', NULL, 60), ('UPDATE_AFTER', 'p', 1, 11), ('DELETE', 'r', NULL, NULL);
SELECT * FROM cdc.apply_changelog('nk_copy', 'nk_changes', ARRAY['k1', 'k2']);
SELECT * FROM nk_copy ORDER BY k1, k2;
SELECT * FROM cdc.apply_changelog('nk_copy', 'nk_changes', ARRAY['k1', 'k2']);
SELECT * FROM nk_copy ORDER BY k1, k2;
-- an ordinary unique index allows several NULLs, so it proves nothing for them
CREATE UNIQUE INDEX ON nk_copy (k1, k2);
INSERT INTO nk_copy VALUES ('s', NULL, 61);
\set VERBOSITY terse
SELECT * FROM cdc.apply_changelog('nk_copy', 'nk_changes', ARRAY['k1', 'k2']);
\set VERBOSITY default
DELETE FROM nk_copy WHERE v = 61;
CREATE UNIQUE INDEX ON nk_copy (k1, k2) NULLS NOT DISTINCT;
SELECT * FROM cdc.apply_changelog('nk_copy', 'nk_changes', ARRAY['k1', 'k2']);
-- one column, passed by value, once with NULL
CREATE TABLE one_null (k int, v int);
SELECT * FROM cdc.apply_changelog('one_null',
  $$ SELECT 'I' AS _change_type, k, 1 AS v FROM unnest(ARRAY[0, 1, NULL, 2]) k $$, ARRAY['k']);
SELECT * FROM cdc.apply_changelog('one_null',
  $$ SELECT 'U' AS _change_type, k, 2 AS v FROM unnest(ARRAY[0, 1, NULL, 2]) k $$, ARRAY['k']);
SELECT * FROM one_null ORDER BY k;
-- a composite value of NULLs is not NULL, though IS NULL says so
CREATE TYPE pair AS (a int, b int);
CREATE TABLE composite_key (k pair, v int);
INSERT INTO composite_key VALUES (ROW(NULL, NULL), 1), (NULL, 2), (ROW(1, 2), 3);
SELECT * FROM cdc.apply_changelog('composite_key',
  $$ SELECT 'U' AS _change_type, k, v + 10 AS v FROM composite_key $$, ARRAY['k']);
SELECT * FROM composite_key ORDER BY v;

--
-- BB-16, BB-17: keys compare as equal, rows by image
--
CREATE TABLE n_copy (id int PRIMARY KEY, num numeric, f float8, i interval);
INSERT INTO n_copy VALUES (1, 1.0, 0, '1 month'), (2, 2, 'NaN', '1 day'), (3, 3, 1, '24:00');
SELECT * FROM cdc.apply_changelog('n_copy',
  $$ SELECT 'U' AS _change_type, id, num, f, i
       FROM (VALUES (1, 1.00, '-0'::float8, '30 days'::interval), (2, 2, 'NaN', '1 day'),
                    (3, 3, 1, '1 day')) x (id, num, f, i) $$, ARRAY['id']);
SELECT * FROM n_copy ORDER BY id;
CREATE TABLE num_key (k numeric PRIMARY KEY, v text);
INSERT INTO num_key VALUES (1.0, 'a'), (2.50, 'b'), (3, 'c');
SELECT * FROM cdc.apply_changelog('num_key',
  $$ SELECT 'U' AS _change_type, k, v FROM (VALUES (1.00, 'a'), (2.5, 'B'), (3, 'c')) x (k, v) $$, ARRAY['k']);
SELECT * FROM num_key ORDER BY k;
CREATE TABLE odd_types (id int PRIMARY KEY, j json, p point, b box, a json[]);
INSERT INTO odd_types VALUES (1, '{"a":1}', '(1,1)', '(1,1),(0,0)', ARRAY['1', '2']::json[]), (2, '{}', NULL, NULL, NULL);
SELECT * FROM cdc.apply_changelog('odd_types',
  $$ SELECT 'U' AS _change_type, id, j, p, b, a FROM odd_types $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('odd_types',
  $$ SELECT 'U' AS _change_type, 1 AS id, '{"a": 1}' AS j, '(1,1)' AS p, '(2,0.5),(1,-0.5)' AS b, '{1,2}' AS a $$,
  ARRAY['id']);
SELECT * FROM odd_types ORDER BY id;
-- key types without a hash function
CREATE TABLE odd_keys (m money, b bit varying(8), v tsvector, n int);
INSERT INTO odd_keys SELECT i::numeric::money, i::bit(8), ('w' || i)::tsvector, 0 FROM generate_series(1, 3) i;
SELECT * FROM cdc.apply_changelog('odd_keys',
  $$ SELECT CASE WHEN n % 2 = 0 THEN 'U' ELSE 'D' END AS _change_type,
            n::numeric::money AS m, n::bit(8)::varbit AS b, ('w' || n)::tsvector AS v, n
       FROM generate_series(1, 4) n $$, ARRAY['m', 'b', 'v']);
SELECT * FROM odd_keys ORDER BY n, m;
SELECT * FROM cdc.apply_changelog('odd_keys',
  $$ SELECT 'U' AS _change_type, 3::numeric::money AS m, 3 AS n FROM generate_series(1, 2) n $$, ARRAY['m']);
-- all of them have one hash, and NULL has it, too
SELECT * FROM cdc.apply_changelog('odd_keys',
  $$ SELECT 'I' AS _change_type, v, 5 AS n FROM unnest(ARRAY['w4', NULL, 'w5', 'w6']::tsvector[]) v $$, ARRAY['v']);
SELECT v, n FROM odd_keys ORDER BY v;

--
-- BB-40: names
--
CREATE SCHEMA "Sales.EU";
CREATE TABLE "Sales.EU"."Tgt" ("Order" int PRIMARY KEY, "select" text, "a.b" int, "x;y--" text, "É" int,
                               " lead" int, "%I" text, "$1" text, "order" int, "to" text, t text, c text);
CREATE TABLE "Chg View" (LIKE "Sales.EU"."Tgt", _change_type "char");
INSERT INTO "Chg View" VALUES (1, 's', 2, 'x', 3, 4, '%s %I', '$1', 9, 't', 'T', 'C', 'I');
SELECT * FROM cdc.apply_changelog('"Sales.EU"."Tgt"', '"Chg View"', ARRAY['Order']);
UPDATE "Chg View" SET "a.b" = 22, "%I" = '%', _change_type = 'U';
SELECT * FROM cdc.apply_changelog('"Sales.EU"."Tgt"', '"Chg View"', ARRAY['Order'],
                                  filter => ' c = ''C'' and "Order" > 0 -- and more');
TABLE "Sales.EU"."Tgt";

--
-- BB-45: generated and identity columns
--
CREATE TABLE gi_copy (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, qty int, price int,
                      total int GENERATED ALWAYS AS (qty * price) STORED, seq bigint GENERATED ALWAYS AS IDENTITY);
INSERT INTO gi_copy (id, qty, price, seq) OVERRIDING SYSTEM VALUE VALUES (1, 1, 10, 1), (2, 2, 20, 2);
CREATE TABLE gi_changes (_change_type text, id int, qty int, price int, total int, seq bigint);
INSERT INTO gi_changes VALUES ('UPDATE_AFTER', 1, 5, 10, 50, 1), ('INSERT', 3, 3, 30, 90, 3), ('DELETE', 2, 2, 20, 40, 2);
SELECT * FROM cdc.apply_changelog('gi_copy', 'gi_changes', ARRAY['id']);
SELECT * FROM gi_copy ORDER BY id;
-- another identity value cannot be written, and is not passed over
UPDATE gi_changes SET seq = 11 WHERE id = 1;
SELECT * FROM cdc.apply_changelog('gi_copy', 'gi_changes', ARRAY['id']);
ALTER TABLE gi_copy ALTER seq SET GENERATED BY DEFAULT;
SELECT * FROM cdc.apply_changelog('gi_copy', 'gi_changes', ARRAY['id']);
SELECT * FROM gi_copy ORDER BY id;

-- nor where there is nothing else to write
CREATE TABLE gi_only (id int PRIMARY KEY, seq bigint GENERATED ALWAYS AS IDENTITY, late int);
INSERT INTO gi_only VALUES (1), (2);
SELECT * FROM cdc.apply_changelog('gi_only', $$ SELECT 'U' AS _change_type, 1 AS id, 9 AS seq $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('gi_only', $$ SELECT 'U' AS _change_type, i AS id, i AS seq FROM generate_series(1, 3) i $$, ARRAY['id']);
SELECT id, seq FROM gi_only ORDER BY id;

--
-- BB-46: columns match by name
--
CREATE TABLE tgt (mail text, dropped int, loaded_at timestamptz NOT NULL DEFAULT '2000-01-01 UTC',
                  city text, note text DEFAULT 'n/a', id int PRIMARY KEY);
ALTER TABLE tgt DROP COLUMN dropped;
INSERT INTO tgt (id, city, mail, note) VALUES (1, 'Rome', 'r@x', 'keep me'), (2, 'Oslo', 'o@x', 'keep me');
CREATE TABLE src_changes (id int, city text, mail text, _change_type text, _change_ordinal bigint,
                          _commit_snapshot_id bigint, _commit_timestamp timestamptz);
INSERT INTO src_changes VALUES (1, 'Roma', 'r@x', 'UPDATE_AFTER', 1, 1, now()), (3, 'Bern', 'b@x', 'INSERT', 1, 1, now());
SELECT * FROM cdc.apply_changelog('tgt', 'src_changes', ARRAY['id']);
SELECT id, city, mail, note, loaded_at AT TIME ZONE 'UTC' AS loaded_at FROM tgt ORDER BY id;
CREATE TABLE tgt_short (id int PRIMARY KEY, city text);
INSERT INTO tgt_short SELECT id, city FROM tgt WHERE id < 3;
SELECT * FROM cdc.apply_changelog('tgt_short', 'src_changes', ARRAY['id']);
SELECT * FROM tgt_short ORDER BY id;
-- a target's own column with the name of a metadata column is left alone
CREATE TABLE meta (id int PRIMARY KEY, v text, _change_type text DEFAULT 'mine', _change_ordinal int);
INSERT INTO meta VALUES (1, 'a', 'its', 5);
SELECT * FROM cdc.apply_changelog('meta',
  $$ SELECT id, city AS v, _change_type, _change_ordinal FROM src_changes $$, ARRAY['id']);
SELECT * FROM meta ORDER BY id;

-- only keys
CREATE TABLE only_keys (a int, b text, PRIMARY KEY (a, b));
SELECT * FROM cdc.apply_changelog('only_keys',
  $$ SELECT 'I' AS _change_type, 1 AS a, 'x' AS b UNION ALL SELECT 'I', 2, 'x' $$, ARRAY['a', 'b']);
SELECT * FROM cdc.apply_changelog('only_keys',
  $$ SELECT 'I' AS _change_type, 1 AS a, 'x' AS b UNION ALL SELECT 'D', 2, 'x' UNION ALL SELECT 'U', 3, 'x' $$, ARRAY['a', 'b']);
SELECT * FROM only_keys ORDER BY a;

--
-- filter: rows that leave it leave the target
--
CREATE TABLE filtered (id int PRIMARY KEY, status text);
INSERT INTO filtered VALUES (1, 'active'), (2, 'active'), (3, 'active');
CREATE TABLE filter_changes (_change_type text, id int, status text);
INSERT INTO filter_changes VALUES ('UPDATE_AFTER', 1, 'closed'), ('INSERT', 4, 'active'), ('INSERT', 5, 'new'),
  ('UPDATE_AFTER', 2, NULL), ('UPDATE_AFTER', 3, 'active'), ('DELETE', 6, 'active'), ('UPDATE_BEFORE', 7, 'x');
-- the filter is not asked about other rows than upserts
SELECT * FROM cdc.apply_changelog('filtered', 'filter_changes', ARRAY['id'],
                                  filter => 'status = ''active'' AND 1 / CASE WHEN _change_type IN (''DELETE'', ''UPDATE_BEFORE'') THEN 0 ELSE 1 END = 1');
SELECT * FROM filtered ORDER BY id;

--
-- ignore_null_updates: NULL keeps what is there
--
CREATE TABLE sparse (id int PRIMARY KEY, a text, p pair, n int);
INSERT INTO sparse VALUES (1, 'a', ROW(1, NULL), 1), (2, 'b', NULL, 2);
SELECT * FROM cdc.apply_changelog('sparse',
  $$ SELECT 'U' AS _change_type, id, a, p, n
       FROM (VALUES (1, NULL, NULL::pair, 11), (2, 'B', ROW(NULL, NULL)::pair, NULL), (3, NULL, NULL, NULL)) x (id, a, p, n) $$,
  ARRAY['id'], ignore_null_updates => true);
SELECT *, p IS DISTINCT FROM NULL AS has_p FROM sparse ORDER BY id;
SELECT * FROM cdc.apply_changelog('sparse',
  $$ SELECT 'U' AS _change_type, 1 AS id, NULL AS a, NULL::int AS n $$, ARRAY['id'], ignore_null_updates => true);
SELECT * FROM cdc.apply_changelog('sparse',
  $$ SELECT 'U' AS _change_type, 1 AS id, NULL AS a, NULL::int AS n $$, ARRAY['id']);
SELECT * FROM sparse ORDER BY id;

--
-- BB-49 (a): types are brought to the target's as an assignment does it
--
CREATE DOMAIN positive AS numeric(6, 2) CHECK (VALUE > 0);
CREATE DOMAIN code AS varchar(5);
CREATE TABLE staged (id text, v text, amount text, price text, at text, tags text, flag text, c text, raw text, day text, _change_type text);
CREATE TABLE typed (id bigint PRIMARY KEY, v varchar(5), amount numeric(10, 2), price positive, at timestamp(0),
                    tags text[], flag boolean, c char(4), raw bytea, day date, k code);
INSERT INTO staged VALUES ('1', 'abc', '1.005', '2', '2024-01-01 10:00:00.6', '{a,b}', 'yes', 'x', '\xff', '2024-02-29', 'I'),
                          ('2', 'abcde  ', '7', '1.999', '2024-01-01', '{}', 'f', 'abcd   ', '', '1999-12-31', 'I');
SELECT * FROM cdc.apply_changelog('typed', 'staged', ARRAY['id']);
SELECT * FROM typed ORDER BY id;
-- and so an equal value is no change, blanks and scale included
SELECT * FROM cdc.apply_changelog('typed', 'staged', ARRAY['id']);
-- a cast that an assignment would use
SELECT * FROM cdc.apply_changelog('typed',
  $$ SELECT 'U' AS _change_type, 1::smallint AS id, 12.345::float8 AS amount, 3 AS price, timestamptz '2024-05-05 12:00' AS at,
            'xyz'::name AS k, 'q'::"char" AS v $$, ARRAY['id']);
SELECT id, v, amount, price, at, k FROM typed ORDER BY id;

SET client_min_messages = warning;
DROP SCHEMA apply, "Sales.EU" CASCADE;
