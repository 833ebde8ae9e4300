-- Rows are compared byte for byte, whatever the type: equal is not identical,
-- and types without an equality operator work (BB-15, BB-16, BB-17)
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA types;
SET search_path = types, public;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS citext SCHEMA public;
RESET client_min_messages;
SET datestyle = ISO;
SET intervalstyle = postgres;
SET timezone = 'UTC';

-- citext: two spellings are equal, not the same
CREATE TABLE c (id int, a citext);
INSERT INTO c VALUES (1, 'kiwi'), (2, 'q');
SELECT cdc.track('c');
UPDATE c SET a = 'KIWI' WHERE id = 1;
SELECT id, a, _change_type, _change_ordinal FROM c_changelog(0, NULL, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;
SELECT id, a, _change_type, _change_ordinal FROM c_changelog(0) ORDER BY 4, 1, 3;
-- as a key: one key
SELECT id, a, _change_type, _change_ordinal FROM c_changelog(0, NULL, ARRAY['a'], 'all') ORDER BY 4, 1, 3 DESC;
INSERT INTO c VALUES (3, 'Kiwi');
SELECT * FROM c_changelog(1, NULL, ARRAY['a'], 'all');
SELECT id, a, _change_type, _change_ordinal FROM c_changelog(1, NULL, ARRAY['id'], 'all') ORDER BY 4, 1;
CREATE TABLE c2 (a citext);
INSERT INTO c2 VALUES ('kiwi'), ('KIWI');
SELECT cdc.track('c2');
DELETE FROM c2 WHERE a::text = 'KIWI';
SELECT a, _change_type, _change_ordinal FROM c2_changelog(0);
SELECT a, _change_type, _change_ordinal FROM c2_changelog(NULL, NULL);

-- numeric scale, negative zero, NaN, interval
CREATE TABLE n (id int PRIMARY KEY, num numeric, f float8, i interval);
INSERT INTO n VALUES (1, 1.0, 0, '1 month'), (2, 2, 'NaN', '1 day'), (3, 3, 1, '24:00');
CREATE TABLE n_copy (LIKE n INCLUDING ALL);
INSERT INTO n_copy TABLE n;
SELECT cdc.track('n');
BEGIN;
UPDATE n SET num = 1.00 WHERE id = 1;
UPDATE n SET f = '-0' WHERE id = 1;
UPDATE n SET i = '30 days' WHERE id = 1;
UPDATE n SET f = 'NaN' WHERE id = 2;
UPDATE n SET i = '1 day' WHERE id = 3;
COMMIT;
SELECT id, num, f, i, _change_type, _change_ordinal FROM n_changelog(0) ORDER BY 6, 1, 5;
SELECT id, num, f, i, _change_type, _change_ordinal FROM n_changelog(0, NULL, ARRAY['id'], 'all') ORDER BY 6, 1, 5 DESC;
SELECT num, id, _change_type FROM n_changelog(0, NULL, ARRAY['num'], 'all') ORDER BY id, 3 DESC;
SELECT i, id, _change_type FROM n_changelog(0, NULL, ARRAY['i'], 'all') ORDER BY id, 3 DESC;
CALL cdc.create_changelog_view('n', options => '{"start-snapshot-id": 0}', identifier_columns => ARRAY['id']);
SELECT inserted, updated, deleted, unchanged, missing, stale FROM cdc.apply_changelog('n_copy', 'n_changes', ARRAY['id']);
SELECT n::text = n_copy::text AS same FROM n JOIN n_copy USING (id) ORDER BY id;
DROP VIEW n_changes;
-- there and back through an equal value: nothing; through NaN and infinities too
BEGIN;
UPDATE n SET num = 1.0, f = 0, i = '1 mon' WHERE id = 1;
UPDATE n SET num = 1.00, f = '-0', i = '30 days' WHERE id = 1;
COMMIT;
SELECT count(*) FROM n_changelog(1);
UPDATE n SET num = 'infinity', f = '-infinity' WHERE id = 1;
UPDATE n SET num = 'NaN', f = 'NaN' WHERE id = 1;
SELECT id, num, f, i, _change_type FROM n_changelog(1) ORDER BY 1, 5;

-- json, point, box, path, polygon, jsonb
CREATE TABLE j (id int PRIMARY KEY, d json, p point, b box, pa path, jb jsonb, pol polygon);
INSERT INTO j VALUES
  (1, '{"a":1}', '(0,0)', '(1,1),(0,0)', '[(0,0),(1,1)]', '{"n":1.0}', '((0,0),(1,0),(1,1))'),
  (2, '[]', '(1,1)', '(1,1),(0,0)', '[(0,0),(1,1)]', '{}', '((0,0),(1,0),(1,1))');
CREATE TABLE j_nokey AS TABLE j;
SELECT cdc.track('j'), cdc.track('j_nokey');
BEGIN;
UPDATE j SET d = '{"a": 1}' WHERE id = 1;
UPDATE j SET b = '(2,0.5),(0,0)' WHERE id = 2;
UPDATE j SET pa = '[(5,5),(6,6)]' WHERE id = 2;
UPDATE j SET jb = '{"n":1.00}' WHERE id = 1;
UPDATE j SET d = d, p = p, pol = pol;
UPDATE j_nokey SET d = '{"a": 1}' WHERE id = 1;
UPDATE j_nokey SET b = '(2,0.5),(0,0)' WHERE id = 2;
UPDATE j_nokey SET pa = '[(5,5),(6,6)]' WHERE id = 2;
UPDATE j_nokey SET jb = '{"n":1.00}' WHERE id = 1;
UPDATE j_nokey SET d = d, p = p, pol = pol;
COMMIT;
SELECT id, d, b, pa, jb, _change_type FROM j_changelog(0, NULL, ARRAY['id'], 'all') ORDER BY id, 6 DESC;
SELECT id, d, b, pa, jb, _change_type FROM j_changelog(0) ORDER BY id, 6;
SELECT id, d, b, pa, jb, _change_type FROM j_nokey_changelog(0) ORDER BY id, 6;
-- why = cannot be trusted
SELECT '(1,1),(0,0)'::box = '(2,0.5),(0,0)'::box AS box_eq, '[(0,0),(1,1)]'::path = '[(5,5),(6,6)]'::path AS path_eq;
-- as keys: jsonb has an equality of its own, the area of a box does not count as one
SELECT jb, id, _change_type FROM j_changelog(0, NULL, ARRAY['jb', 'id'], 'all') ORDER BY id, 3 DESC;
SELECT * FROM j_changelog(0, NULL, ARRAY['d']);
SELECT * FROM j_changelog(0, NULL, ARRAY['b']);
SELECT * FROM j_changelog(0, NULL, ARRAY['pa']);

-- everything else
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN posint AS int CHECK (VALUE > 0);
CREATE DOMAIN shorty AS varchar(5);
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN pairdom AS pair CHECK ((VALUE).a > 0);
CREATE TABLE all_types (
  id int PRIMARY KEY, bo bool, by bytea, ch char(5), vc varchar(10), "char" "char", nm name,
  i2 smallint, i8 bigint, f4 real, mo money, da date, ti time, tz timetz, ts timestamp, tsz timestamptz,
  uu uuid, inet inet, cidr cidr, mac macaddr, mac8 macaddr8, bi bit(4), vb bit varying(8),
  ci circle, ls lseg, li line, ra int4range, mr nummultirange, arr int[], arr2 text[], en mood,
  pi posint, sh shorty, co pair, cod pairdom, coa pair[], oi oid, rc regclass, tsv tsvector, tsq tsquery,
  jp jsonpath, lsn pg_lsn, xid xid8, n2 numeric(6,2), ea mood[], pia posint[]);
INSERT INTO all_types VALUES (
  1, true, '\xdeadbeef', 'ab', 'varchar', 'x', 'name',
  1, 2, 3.5, 4.50, '2026-02-28', '12:34:56', '12:34:56+02', '2026-02-28 12:00', '2026-02-28 12:00+02',
  '00000000-0000-0000-0000-000000000001', '10.0.0.1/8', '10.0.0.0/8', '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05', '1010', '101',
  '<(0,0),1>', '[(0,0),(1,1)]', '{1,2,3}', '[1,5)', '{[1,2],[4,5)}', '{1,2,NULL}', '[0:1]={a,NULL}', 'ok',
  7, 'short', '(1,x)', '(2,y)', '{"(3,z)",NULL}', 42, 'pg_class', 'fat:2A cat:1', 'fat & cat',
  '$.a[*]', '16/B374D848', '123', 12.3, '{sad,NULL}', '{1,2}');
INSERT INTO all_types (id) VALUES (2);
CREATE TABLE all_copy (LIKE all_types INCLUDING ALL);
INSERT INTO all_copy TABLE all_types;
SELECT cdc.track('all_types');
UPDATE all_types SET bo = NULL WHERE id = 1;
INSERT INTO all_types (id, arr, co, da, tsz) VALUES (3, '{}', '(,)', 'infinity', '-infinity');
UPDATE all_types SET arr = '{{1},{2}}', coa = '{}', ra = 'empty', mr = '{}', rc = '-', by = '', tsv = '' WHERE id = 2;
DELETE FROM all_types WHERE id = 3;
UPDATE all_types SET id = 4 WHERE id = 1;
SELECT snapshot_id, inserted, deleted FROM cdc.snapshots('all_types') WHERE snapshot_id > 0 ORDER BY 1;
-- content(0) + net changes = the table
CREATE FUNCTION rows_of(a bigint, b bigint, what text) RETURNS SETOF text LANGUAGE sql AS $$
  SELECT ROW(id, bo, by, ch, vc, "char", nm, i2, i8, f4, mo, da, ti, tz, ts, tsz, uu, inet, cidr, mac, mac8, bi, vb, ci, ls, li,
             ra, mr, arr, arr2, en, pi, sh, co, cod, coa, oi, rc, tsv, tsq, jp, lsn, xid, n2, ea, pia)::all_types::text
    FROM all_types_changelog(a, b) WHERE _change_type = what $$;
SELECT count(*) AS differ FROM (
  (SELECT x::text FROM all_copy x UNION ALL SELECT * FROM rows_of(0, 5, 'INSERT'))
  EXCEPT ALL
  (SELECT x::text FROM all_types x UNION ALL SELECT * FROM rows_of(0, 5, 'DELETE'))) d;
SELECT count(*) AS differ FROM (
  (SELECT x::text FROM all_types x UNION ALL SELECT * FROM rows_of(0, 5, 'DELETE'))
  EXCEPT ALL
  (SELECT x::text FROM all_copy x UNION ALL SELECT * FROM rows_of(0, 5, 'INSERT'))) d;
SELECT * FROM rows_of(0, 5, 'DELETE') ORDER BY 1;
SELECT * FROM rows_of(0, 5, 'INSERT') ORDER BY 1;
-- every type that has an equality can be a key, the others are refused: types refused
CREATE FUNCTION as_key(col text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM all_types_changelog(0, 1, ARRAY[col], 'all');
  RETURN 'ok';
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE;
END $$;
SELECT as_key(attname), string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute
 WHERE attrelid = 'all_types'::regclass AND attnum > 0 GROUP BY 1 ORDER BY 2;
-- and the key really decides
SELECT id, sh, _change_type, _change_ordinal FROM all_types_changelog(4, 5, ARRAY['sh', 'pi', 'en', 'uu', 'co', 'coa', 'arr', 'cod', 'ea'], 'all') ORDER BY 4, 1;
