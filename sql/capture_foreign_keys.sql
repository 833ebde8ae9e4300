-- Changes made by foreign-key actions (BB-35)
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_cdc_fk;
RESET client_min_messages;
CREATE ROLE regress_cdc_fk;
CREATE SCHEMA capture_foreign_keys;
GRANT USAGE ON SCHEMA capture_foreign_keys TO regress_cdc_fk;
SET search_path = capture_foreign_keys, public;

CREATE TABLE fp (id int PRIMARY KEY);
CREATE TABLE fc (id int PRIMARY KEY, p int REFERENCES fp ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE fn (id int PRIMARY KEY, p int REFERENCES fp ON DELETE SET NULL ON UPDATE CASCADE);
CREATE TABLE fd (id int PRIMARY KEY, p int DEFAULT 3 REFERENCES fp ON DELETE SET DEFAULT ON UPDATE SET NULL);
CREATE TABLE tree (id int PRIMARY KEY, up int REFERENCES tree ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED);
INSERT INTO fp VALUES (1), (2), (3);
INSERT INTO fc VALUES (10, 1), (11, 2);
INSERT INTO fn VALUES (20, 1), (21, 2);
INSERT INTO fd VALUES (30, 1), (31, 2);
INSERT INTO tree VALUES (1, NULL), (2, 1), (3, 2), (4, NULL);
SELECT cdc.track('fc'), cdc.track('fn'), cdc.track('fd'), cdc.track('tree');
-- by a role that has rights on fp only
GRANT SELECT, DELETE, UPDATE ON fp TO regress_cdc_fk;
SET ROLE regress_cdc_fk;
DELETE FROM fp WHERE id = 1;
UPDATE fp SET id = 200 WHERE id = 2;
RESET ROLE;
BEGIN;
INSERT INTO tree VALUES (6, 5);
INSERT INTO tree VALUES (5, 4);
DELETE FROM tree WHERE id = 1;
COMMIT;
\pset null N
SELECT id, p, _change_type, _change_ordinal FROM fc_changelog(0, NULL, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;
SELECT id, p, _change_type, _change_ordinal FROM fn_changelog(0, NULL, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;
SELECT id, p, _change_type, _change_ordinal FROM fd_changelog(0, NULL, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;
SELECT id, up, _change_type, _change_ordinal FROM tree_changelog(0, NULL, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;
SELECT 'fc', cdc.current_snapshot('fc'), * FROM fc
UNION ALL SELECT 'fn', cdc.current_snapshot('fn'), * FROM fn
UNION ALL SELECT 'fd', cdc.current_snapshot('fd'), * FROM fd ORDER BY 1, 3;

-- parent and child tracked, the whole chain in one statement; a tree of many levels
SELECT cdc.track('fp');
CREATE TABLE chain (id int PRIMARY KEY, up int REFERENCES chain ON DELETE CASCADE ON UPDATE CASCADE);
INSERT INTO chain SELECT i, nullif(i - 1, 0) FROM generate_series(1, 50) i;
SELECT cdc.track('chain');
UPDATE chain SET id = 1000 WHERE id = 1;
DELETE FROM chain WHERE id = 1000;
SELECT _change_type, _change_ordinal, count(*), min(id), max(id) FROM chain_changelog(0, NULL, ARRAY['id'], 'all') GROUP BY 1, 2 ORDER BY 2, 1;
SELECT _change_type, count(*), min(up), max(up) FROM chain_changelog(0) GROUP BY 1;
DELETE FROM fp WHERE id = 200;
SELECT id, _change_type, _change_ordinal FROM fp_changelog(0) ORDER BY 1;
SELECT id, p, _change_type, _change_ordinal FROM fc_changelog(2, NULL, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;
-- a violation undoes all of it
CREATE TABLE strict (id int PRIMARY KEY, p int REFERENCES fc);
INSERT INTO fp VALUES (500);
INSERT INTO fc VALUES (50, 500);
INSERT INTO strict VALUES (1, 50);
SELECT cdc.current_snapshot('fp') AS fp, cdc.current_snapshot('fc') AS fc \gset
DELETE FROM fp WHERE id = 500;
SELECT cdc.current_snapshot('fp') = :fp AS fp_same, cdc.current_snapshot('fc') = :fc AS fc_same;
-- a deferred constraint that fails at commit: no snapshot, no hole in the numbers
BEGIN;
INSERT INTO tree VALUES (77, 78);
COMMIT;
SELECT cdc.current_snapshot('tree') AS tree;
INSERT INTO tree VALUES (77, NULL);
SELECT id, up, _change_type, _change_ordinal FROM tree_changelog(1, NULL, ARRAY['id'], 'all') ORDER BY 4, 1;

DROP OWNED BY regress_cdc_fk;
DROP ROLE regress_cdc_fk;
