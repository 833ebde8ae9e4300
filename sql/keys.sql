-- Identifier mode: upserts, key changes, swaps, NULL and composite keys
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA keys;
SET search_path = keys, public;

-- net rows carry the ordinal of the commit that made them (BB-03)
CREATE TABLE s (id int PRIMARY KEY, name text);
SELECT cdc.track('s');
MERGE INTO s USING (VALUES (10, 'ada'), (20, 'bo'), (30, 'cy'), (40, 'di')) v(id, name) ON s.id = v.id
  WHEN MATCHED THEN UPDATE SET name = v.name WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.name);
MERGE INTO s USING (VALUES (10, 'ada2'), (50, 'eve')) v(id, name) ON s.id = v.id
  WHEN MATCHED THEN UPDATE SET name = v.name WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.name);
SELECT id, name, _change_type, _change_ordinal FROM s_changelog(0, 2) ORDER BY 4, 1, 2;
SELECT id, name, _change_type, _change_ordinal FROM s_changelog(1, 2) ORDER BY 4, 1, 2;

-- ON CONFLICT leaves no phantom INSERTs (BB-06)
CREATE TABLE u (id int PRIMARY KEY, v text);
INSERT INTO u VALUES (1, 'one'), (2, 'two'), (3, 'three');
SELECT cdc.track('u');
INSERT INTO u VALUES (1, 'ONE') ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v;
INSERT INTO u VALUES (2, 'xxx') ON CONFLICT DO NOTHING;
INSERT INTO u VALUES (3, 'xxx') ON CONFLICT (id) DO UPDATE SET v = 'never' WHERE false;
INSERT INTO u VALUES (4, 'four') ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v;
INSERT INTO u VALUES (5, 'a'), (5, 'b') ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v;
\echo :SQLSTATE
SELECT id, v, _change_type, _change_ordinal FROM u_changelog(0, NULL, ARRAY['id'], 'latest_pair') ORDER BY 4, 1, 3 DESC;

-- a changed key value is DELETE of the old key and INSERT of the new (BB-07)
CREATE TABLE k (a int, b int, c int, uid uuid NOT NULL, v text, PRIMARY KEY (a, b, c));
INSERT INTO k VALUES (7, 3, 9, '00000000-0000-0000-0000-000000000001', 'row');
CREATE TABLE k_copy (LIKE k INCLUDING ALL);
INSERT INTO k_copy TABLE k;
SELECT cdc.track('k');
UPDATE k SET b = 8, v = 'moved' WHERE a = 7 AND b = 3 AND c = 9;
SELECT a, b, c, v, _change_type, _change_ordinal FROM k_changelog(0, 1, ARRAY['a', 'b', 'c'], 'latest_pair') ORDER BY 6, 1, 2;
SELECT a, b, c, v, _change_type, _change_ordinal FROM k_changelog(0, 1, ARRAY['uid'], 'latest_pair') ORDER BY 6, 1, 2;
CALL cdc.create_changelog_view('k', options => '{"start-snapshot-id": 0, "end-snapshot-id": 1}', identifier_columns => ARRAY['a', 'b', 'c']);
SELECT inserted, updated, deleted, unchanged, missing, stale FROM cdc.apply_changelog('k_copy', 'k_changes', ARRAY['a', 'b', 'c']);
SELECT a, b, c, v FROM k_copy;
-- shifted keys
CREATE TABLE sh (id int PRIMARY KEY DEFERRABLE, v text);
INSERT INTO sh VALUES (1, 'a'), (2, 'b'), (3, 'c');
SELECT cdc.track('sh');
UPDATE sh SET id = id + 1;
SELECT id, v, _change_type, _change_ordinal FROM sh_changelog(0, 1, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;

-- a key swap under a deferred constraint is not a duplicate (BB-09)
CREATE TABLE sw (id int, uid int, v text, CONSTRAINT sw_pk PRIMARY KEY (id) DEFERRABLE INITIALLY DEFERRED);
INSERT INTO sw VALUES (1, 101, 'x'), (2, 102, 'y');
SELECT cdc.track('sw');
BEGIN;
UPDATE sw SET id = 2 WHERE uid = 101;
UPDATE sw SET id = 1 WHERE uid = 102;
COMMIT;
SELECT id, uid, v, _change_type, _change_ordinal FROM sw_changelog(0, 1, ARRAY['id'], 'latest_pair') ORDER BY 5, 1, 4 DESC;
SELECT id, uid, v, _change_type, _change_ordinal FROM sw_changelog(0, 1, ARRAY['uid'], 'latest_pair') ORDER BY 5, 2, 4 DESC;

-- NULL in an identifier column (BB-12)
\pset null N
CREATE TABLE nk (k1 text, k2 int, v int);
INSERT INTO nk VALUES ('p', 1, 10), ('q', NULL, 20);
CREATE TABLE nk_copy AS TABLE nk;
SELECT cdc.track('nk');
UPDATE nk SET v = 21 WHERE k1 = 'q';
SELECT k1, k2, v, _change_type, _change_ordinal FROM nk_changelog(0, 1, ARRAY['k1', 'k2'], 'latest_pair') ORDER BY 5, 1, 3;
CALL cdc.create_changelog_view('nk', options => '{"start-snapshot-id": 0, "end-snapshot-id": 1}', identifier_columns => ARRAY['k1', 'k2']);
SELECT inserted, updated, deleted, unchanged, missing, stale FROM cdc.apply_changelog('nk_copy', 'nk_changes', ARRAY['k1', 'k2']);
SELECT inserted, updated, deleted, unchanged, missing, stale FROM cdc.apply_changelog('nk_copy', 'nk_changes', ARRAY['k1', 'k2']);
SELECT * FROM nk_copy ORDER BY k1;
INSERT INTO nk VALUES ('q', NULL, 99);
SELECT * FROM nk_changelog(1, 2, ARRAY['k1', 'k2'], 'latest_pair');
\echo :SQLSTATE

-- composite keys are not glued into one string (BB-13)
CREATE TABLE ck (a text, b text, v int);
INSERT INTO ck VALUES ('a', 'bc', 1), ('ab', 'c', 2), ('a|b', 'c', 3), ('a', 'b|c', 4), ('x', '', 5), ('x', NULL, 6),
                      ('(1', '2)', 7), ('1,2', '', 8), ('1', ',2', 9), (E'q\x1f', 'r', 10), ('q', E'\x1fr', 11);
SELECT cdc.track('ck');
UPDATE ck SET v = v + 100 WHERE v IN (1, 3, 6, 8, 10);
SELECT a, b, v, _change_type FROM ck_changelog(0, 1, ARRAY['a', 'b'], 'latest_pair') ORDER BY v % 100, v;
SELECT count(*) FROM ck_changelog(0, 1, ARRAY['b', 'a'], 'latest_pair');

-- modes side by side over a longer history of few keys
CREATE TABLE h (id int PRIMARY KEY, v text);
INSERT INTO h VALUES (1, '1'), (2, '1'), (3, '1');
SELECT cdc.track('h');
UPDATE h SET v = '2';
DELETE FROM h WHERE id = 2;
BEGIN;
INSERT INTO h VALUES (2, '3'), (4, '3');
UPDATE h SET v = '3' WHERE id = 1;
COMMIT;
DELETE FROM h WHERE id IN (3, 4);
UPDATE h SET v = '1' WHERE id = 1;
SELECT id, v, _change_type, _change_ordinal FROM h_changelog(0, NULL, ARRAY['id'], 'all') ORDER BY 1, 4, 3 DESC;
SELECT id, v, _change_type, _change_ordinal FROM h_changelog(0, NULL, ARRAY['id'], 'latest') ORDER BY 1, 4, 3 DESC;
SELECT id, v, _change_type, _change_ordinal FROM h_changelog(0, NULL, ARRAY['id'], 'latest_pair') ORDER BY 1, 4, 3 DESC;
SELECT id, v, _change_type, _change_ordinal FROM h_changelog(0, NULL, ARRAY['id'], 'net') ORDER BY 1, 4, 3 DESC;
SELECT id, v, _change_type, _change_ordinal FROM h_changelog(0, NULL, NULL, 'net') ORDER BY 1, 4, 3;
SELECT id, v, _change_type, _change_ordinal FROM h_changelog(1, 4, ARRAY['id'], 'net') ORDER BY 1, 4, 3 DESC;
