-- Inheritance that begins after tracking: never a silent difference (BB-50)
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA ddl_inherit;
SET search_path = ddl_inherit, public;

-- the table gets a child
CREATE TABLE lone (id int, v text);
SELECT cdc.track('lone');
INSERT INTO lone VALUES (1, 'a');
BEGIN;
CREATE TABLE late_child () INHERITS (lone);
ROLLBACK;
SELECT id, v, _change_type FROM lone_changelog(0);
CREATE TABLE late_child () INHERITS (lone);
INSERT INTO late_child VALUES (7, 'x');
UPDATE lone SET v = v || '!';
SELECT * FROM lone_changelog(0);
\echo :SQLSTATE
DROP TABLE late_child;
-- it was there in the meantime
SELECT * FROM lone_changelog(0);
\echo :SQLSTATE
SELECT id, v, _change_type FROM lone_changelog(0, 1);
SELECT snapshot_id, inserted, deleted, kind, reason FROM cdc.snapshots('lone');
-- and does not matter from here on
INSERT INTO lone VALUES (2, 'b');
SELECT id, v, _change_type FROM lone_changelog(3);

-- by ALTER TABLE, with changes in the same transaction
CREATE TABLE other (id int, v text);
BEGIN;
INSERT INTO lone VALUES (3, 'c');
ALTER TABLE other INHERIT lone;
INSERT INTO lone VALUES (4, 'd');
COMMIT;
ALTER TABLE other NO INHERIT lone;
SELECT snapshot_id, inserted, deleted, kind, reason FROM cdc.snapshots('lone') WHERE snapshot_id > 4;

-- the table gets a parent
CREATE TABLE parent (id int, v text);
ALTER TABLE lone INHERIT parent;
UPDATE parent SET v = 'unseen' WHERE id = 1;
DELETE FROM lone WHERE id = 2;
SELECT * FROM lone_changelog(7);
\echo :SQLSTATE
ALTER TABLE lone NO INHERIT parent;
SELECT snapshot_id, inserted, deleted, kind, reason FROM cdc.snapshots('lone') WHERE snapshot_id > 7;
SELECT * FROM lone_changelog(8, 9);
\echo :SQLSTATE
INSERT INTO lone VALUES (5, 'e');
SELECT id, v, _change_type FROM lone_changelog(9);
-- the whole content starts at the last gap
SELECT id, v, _change_type, _change_ordinal FROM lone_changelog() ORDER BY 1;

-- the table becomes a partition of another
CREATE TABLE part (id int, v text);
SELECT cdc.track('part');
CREATE TABLE root (id int, v text) PARTITION BY LIST (id);
ALTER TABLE root ATTACH PARTITION part FOR VALUES IN (1, 2);
INSERT INTO part VALUES (2, 'b');
INSERT INTO root VALUES (1, 'unseen');
ALTER TABLE root DETACH PARTITION part;
INSERT INTO part VALUES (3, 'c');
SELECT snapshot_id, inserted, deleted, kind, reason FROM cdc.snapshots('part');

SET client_min_messages = warning;
DROP SCHEMA ddl_inherit CASCADE;
