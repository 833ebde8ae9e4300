-- Names that need quoting, names of 63 bytes, names that are taken (BB-40, BB-41, BB-14)
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
\pset format unaligned
CREATE SCHEMA "Names.EU";
CREATE SCHEMA names;
SET search_path = names, public;

CREATE TABLE "Names.EU"."Order""s Détail" ("Order" int PRIMARY KEY, "select" text, "a.b" int, "x;y--" text, "É" int, " lead" int, "%I" text, "$1" text, "order" int, "to" text);
CREATE TABLE "Names.EU"."Tgt" (LIKE "Names.EU"."Order""s Détail" INCLUDING ALL);
SELECT cdc.track('"Names.EU"."Order""s Détail"');
INSERT INTO "Names.EU"."Order""s Détail" VALUES (1, 's', 2, 'x', 3, 4, '%s %I', '$1', 9, 't');
UPDATE "Names.EU"."Order""s Détail" SET "a.b" = 22, "%I" = '%' WHERE "Order" = 1;
SELECT "Order", "select", "a.b", "x;y--", "É", " lead", "%I", "$1", "order", "to", _change_type, _change_ordinal
  FROM "Names.EU"."Order""s Détail_changelog"(1, 2, ARRAY['Order'], 'all') ORDER BY 12, 11 DESC;
SELECT "Order", "a.b", _change_type FROM "Names.EU"."Order""s Détail_changelog"(1, 2, ARRAY['order', 'É', ' lead', '$1', 'x;y--'], 'all') ORDER BY 3 DESC;
SELECT * FROM "Names.EU"."Order""s Détail_changelog"(1, 2, ARRAY['ORDER']);
\echo :SQLSTATE
SELECT * FROM "Names.EU"."Order""s Détail_changelog"(1, 2, ARRAY['"Order"']);
\echo :SQLSTATE
CALL cdc.create_changelog_view('"Names.EU"."Order""s Détail"', '"Chg View"', '{"start-snapshot-id": 0, "end-snapshot-id": 1}', identifier_columns => ARRAY['Order']);
CALL cdc.create_changelog_view('"Names.EU"."Order""s Détail"', '"chg view"', '{"start-snapshot-id": 1, "end-snapshot-id": 2}', identifier_columns => ARRAY['Order']);
CALL cdc.create_changelog_view('"Names.EU"."Order""s Détail"');
SELECT count(*) FROM "Order""s Détail_changes";
CALL cdc.create_changelog_view('"Names.EU"."Order""s Détail"', '"Names.EU"."per.manent"', temporary => false);
SELECT count(*) FROM "Names.EU"."per.manent";
SELECT inserted, updated, deleted, unchanged, missing, stale FROM cdc.apply_changelog('"Names.EU"."Tgt"', '"Chg View"', ARRAY['Order']);
SELECT inserted, updated, deleted, unchanged, missing, stale FROM cdc.apply_changelog('"Names.EU"."Tgt"', '"chg view"', ARRAY['Order']);
TABLE "Names.EU"."Tgt";
DROP VIEW "Chg View", "chg view", "Order""s Détail_changes";

-- reserved words as names of everything
CREATE SCHEMA "select";
CREATE TABLE "select"."table" ("from" int, "where" text, "user" text);
SELECT cdc.track('"select"."table"');
INSERT INTO "select"."table" VALUES (1, 'w', 'u');
SELECT "from", "where", "user", _change_type FROM "select".table_changelog(0, NULL, ARRAY['from', 'user']);
CALL cdc.create_changelog_view('"select"."table"', '"group"', identifier_columns => ARRAY['where']);
SELECT "from", _change_type, _change_ordinal FROM "group";
DROP VIEW "group";
CREATE TABLE "User" (id int);
CREATE TABLE "user" (id int);
SELECT cdc.track('"User"'), cdc.track('"user"');
INSERT INTO "User" VALUES (1);
INSERT INTO "user" VALUES (2);
SELECT id, _change_type FROM "User_changelog"(0);
SELECT id, _change_type FROM "user_changelog"(0);

-- names with quotes are data, not SQL
CREATE SCHEMA "x'; DROP TABLE hj; --";
CREATE TABLE hj (id int);
CREATE TABLE "x'; DROP TABLE hj; --"."a.b" ("'" int, """" text, "\" text, "{},""'" int);
SELECT cdc.track('"x''; DROP TABLE hj; --"."a.b"');
INSERT INTO "x'; DROP TABLE hj; --"."a.b" VALUES (1, 'x', 'y', 2);
UPDATE "x'; DROP TABLE hj; --"."a.b" SET "\" = 'z';
SELECT "'", """", "\", "{},""'", _change_type FROM "x'; DROP TABLE hj; --"."a.b_changelog"(0, NULL, ARRAY['''', '"', '{},"'''], 'all') ORDER BY _change_ordinal, 5 DESC;
CALL cdc.create_changelog_view('"x''; DROP TABLE hj; --"."a.b"', '"v'';"""', identifier_columns => ARRAY['''', '"', '{},"''']);
SELECT "\", _change_type, _change_ordinal FROM "v';""" ORDER BY 3, 2 DESC;
INSERT INTO "x'; DROP TABLE hj; --"."a.b" VALUES (1, 'x', 'y', 2);
SELECT * FROM "x'; DROP TABLE hj; --"."a.b_changelog"(2, NULL, ARRAY['''', '"']);
DROP VIEW "v';""";
TABLE hj;

-- names that collide after truncation to 63 bytes
CREATE TABLE abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_long_a1 (id int PRIMARY KEY, v text);
CREATE TABLE abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_long_a2 (id int PRIMARY KEY, v text);
CREATE TABLE a23456789012345678901234567890123456789012345678901234567890123 (b23456789012345678901234567890123456789012345678901234567890123 int);
CREATE SCHEMA s23456789012345678901234567890123456789012345678901234567890123;
CREATE TABLE s23456789012345678901234567890123456789012345678901234567890123.abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_long_a1 (id int PRIMARY KEY, w int);
SELECT cdc.track('abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_long_a1');
SELECT cdc.track('abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_long_a2');
SELECT cdc.track('a23456789012345678901234567890123456789012345678901234567890123');
SELECT cdc.track('s23456789012345678901234567890123456789012345678901234567890123.abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_long_a1');
INSERT INTO abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_long_a1 VALUES (1, 'in a1');
INSERT INTO abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_long_a2 VALUES (1, 'in a2');
INSERT INTO a23456789012345678901234567890123456789012345678901234567890123 VALUES (63);
INSERT INTO s23456789012345678901234567890123456789012345678901234567890123.abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_long_a1 VALUES (1, 4711);
SELECT v, _change_type FROM cdc.changelog('abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_long_a1', 0) AS t(id int, v text, _change_type text, _change_ordinal bigint, _commit_snapshot_id bigint, _commit_timestamp timestamptz);
SELECT v, _change_type FROM cdc.changelog('abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_long_a2', 0) AS t(id int, v text, _change_type text, _change_ordinal bigint, _commit_snapshot_id bigint, _commit_timestamp timestamptz);
SELECT id, _change_type FROM cdc.changelog('a23456789012345678901234567890123456789012345678901234567890123', 0) AS t(id int, _change_type text, _change_ordinal bigint, _commit_snapshot_id bigint, _commit_timestamp timestamptz);
SELECT v, _change_type FROM cdc.changelog('s23456789012345678901234567890123456789012345678901234567890123.abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_long_a1', 0) AS t(id int, v int, _change_type text, _change_ordinal bigint, _commit_snapshot_id bigint, _commit_timestamp timestamptz);
-- the names of the functions are legal and different
SELECT nspname, proname, octet_length(proname::text) <= 63 AS fits FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
 WHERE nspname IN ('names', 's23456789012345678901234567890123456789012345678901234567890123') AND proname ~ '^(abc|a234)' ORDER BY 1, proname COLLATE "C";
CALL cdc.create_changelog_view('a23456789012345678901234567890123456789012345678901234567890123');
CALL cdc.create_changelog_view('abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_long_a1');
CALL cdc.create_changelog_view('abcdefghij_abcdefghij_abcdefghij_abcdefghij_abcdefghij_long_a2', 'c23456789012345678901234567890123456789012345678901234567890123');

-- a function of that name is there already: another one is chosen and reported
CREATE TABLE taken (id int);
CREATE FUNCTION taken_changelog(a bigint, b bigint, c text[], d text, e boolean) RETURNS text LANGUAGE sql AS $$ SELECT 'mine' $$;
SELECT cdc.track('taken');
INSERT INTO taken VALUES (1);
SELECT taken_changelog(1, 1, '{}', '', true);
SELECT proname FROM pg_proc WHERE pronamespace = 'names'::regnamespace AND proname ~ 'taken' ORDER BY 1;
SELECT cdc.untrack('taken');
SELECT proname FROM pg_proc WHERE pronamespace = 'names'::regnamespace AND proname ~ 'taken' ORDER BY 1;
-- one with other arguments does not make calls ambiguous
CREATE TABLE taken2 (id int);
CREATE FUNCTION taken2_changelog(a int, b int) RETURNS text LANGUAGE sql AS $$ SELECT 'mine' $$;
SELECT cdc.track('taken2');
SELECT proname, pronargs FROM pg_proc WHERE pronamespace = 'names'::regnamespace AND proname ~ 'taken2' ORDER BY 1, 2;

-- user columns called like columns of the changelog are refused, others are not (BB-14)
CREATE TABLE r1 (id int PRIMARY KEY, _change_type text);
SELECT cdc.track('r1');
\echo :SQLSTATE
INSERT INTO r1 VALUES (1, 'mine');
CREATE TABLE r1b (_change_ordinal int);
SELECT cdc.track('r1b');
CREATE TABLE r1c (_commit_snapshot_id int);
SELECT cdc.track('r1c');
CREATE TABLE r1d (_commit_timestamp int);
SELECT cdc.track('r1d');
CREATE TABLE r1e (id int, "_Change_Type" text);
SELECT cdc.track('r1e');
-- a dropped one does not count
ALTER TABLE r1 DROP COLUMN _change_type;
SELECT cdc.track('r1');
CREATE TABLE r2 (id int PRIMARY KEY, op text, xid bigint, lsn text, seq int, action text, old int, new int, tg_op text,
                 "row" text, snapshot int, ord int, _rn int, t int, s int, a int, b int, img text, key text, relid oid, changed_at timestamptz,
                 relation text, start_snapshot int, end_snapshot text, identifiers int, mode int, validate text, _cdc_tx int, _cdc_sign text, c1 int, c2 text, l int, r2 int);
SELECT cdc.track('r2');
BEGIN;
INSERT INTO r2 (id, op, xid, seq, action, old, new, "row", t, key, _cdc_tx, c1, mode, start_snapshot) VALUES (1, 'D', 7, 9, 'U', 1, 2, 'r', 3, 'k', 4, 5, 6, 7);
UPDATE r2 SET op = 'I', old = 5 WHERE id = 1;
COMMIT;
SELECT * FROM cdc.changelog('r2', 0, 1, ARRAY['id', 'mode', 'start_snapshot', '_cdc_tx']) AS x(id int, op text, xid bigint, lsn text, seq int, action text, old int, new int, tg_op text,
                 "row" text, snapshot int, ord int, _rn int, t int, s int, a int, b int, img text, key text, relid oid, changed_at timestamptz,
                 relation text, start_snapshot int, end_snapshot text, identifiers int, mode int, validate text, _cdc_tx int, _cdc_sign text, c1 int, c2 text, l int, r2 int,
                 o1 text, o2 bigint, o3 bigint, o4 timestamptz) WHERE o4 IS NULL;
SELECT id, op, old, t, key, mode, start_snapshot, _cdc_tx, c1, o1, o2 FROM cdc.changelog('r2', 0, 1, ARRAY['id', 'mode', 'start_snapshot', '_cdc_tx']) AS x(id int, op text, xid bigint, lsn text, seq int, action text, old int, new int, tg_op text,
                 "row" text, snapshot int, ord int, _rn int, t int, s int, a int, b int, img text, key text, relid oid, changed_at timestamptz,
                 relation text, start_snapshot int, end_snapshot text, identifiers int, mode int, validate text, _cdc_tx int, _cdc_sign text, c1 int, c2 text, l int, r2 int,
                 o1 text, o2 bigint, o3 bigint, o4 timestamptz);
CALL cdc.create_changelog_view('r2', 'r2_view', identifier_columns => ARRAY['id']);
SELECT id, op, old, t, key, mode, start_snapshot, _cdc_tx, c1, _change_type, _change_ordinal FROM r2_view;
