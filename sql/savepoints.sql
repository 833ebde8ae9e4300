-- Savepoints, exception blocks and rollbacks: what was undone is not there,
-- what was kept is (BB-33)
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA savepoints;
SET search_path = savepoints, public;

CREATE TABLE sp (id int PRIMARY KEY, v text);
SELECT cdc.track('sp');
BEGIN;
SAVEPOINT a;
INSERT INTO sp VALUES (1, 'first write of the transaction, undone');
ROLLBACK TO a;
INSERT INTO sp VALUES (2, 'kept');
SAVEPOINT b;
UPDATE sp SET v = 'kept-2' WHERE id = 2;
RELEASE b;
DO $$ BEGIN INSERT INTO sp VALUES (3, 'undone'); RAISE EXCEPTION 'x'; EXCEPTION WHEN OTHERS THEN NULL; END $$;
INSERT INTO sp VALUES (4, 'kept');
COMMIT;
SELECT cdc.current_snapshot('sp');
-- nothing left: no snapshot
BEGIN;
SAVEPOINT c;
INSERT INTO sp VALUES (5, 'undone');
ROLLBACK TO c;
COMMIT;
SELECT cdc.current_snapshot('sp');
BEGIN;
INSERT INTO sp VALUES (6, 'undone');
ROLLBACK;
INSERT INTO sp VALUES (6, 'kept');
SELECT cdc.current_snapshot('sp');
SELECT id, v, _change_type, _change_ordinal FROM sp_changelog(0, 1, ARRAY['id'], 'all') ORDER BY 4, 1;
SELECT id, v, _change_type, _change_ordinal FROM sp_changelog(1, 2, ARRAY['id'], 'all') ORDER BY 4, 1;
SELECT snapshot_id, inserted, deleted FROM cdc.snapshots('sp') ORDER BY 1;
-- ten thousand subtransactions that wrote and were undone
DO $$ BEGIN FOR i IN 1..10000 LOOP BEGIN INSERT INTO sp VALUES (1000 + i, 'undone'); RAISE EXCEPTION 'x'; EXCEPTION WHEN raise_exception THEN NULL; END; END LOOP; END $$;
SELECT cdc.current_snapshot('sp');

-- and as many whose place another write took
CREATE TABLE lp (id int PRIMARY KEY, v text);
INSERT INTO lp SELECT i, 'start' FROM generate_series(0, 19) i;
SELECT cdc.track('lp');
DO $$ BEGIN FOR i IN 1..10000 LOOP BEGIN INSERT INTO lp VALUES (i % 20, 'dup'); EXCEPTION WHEN unique_violation THEN UPDATE lp SET v = 'n' || i WHERE id = i % 20; END; END LOOP; END $$;
SELECT cdc.current_snapshot('lp');
SELECT id, v, _change_type, _change_ordinal FROM lp_changelog(0, 1, ARRAY['id'], 'all') WHERE id IN (0, 1, 19) ORDER BY 4, 1, 3 DESC;
SELECT count(*) FROM lp_changelog(0, 1, ARRAY['id'], 'all');
SELECT snapshot_id, inserted, deleted FROM cdc.snapshots('lp') WHERE snapshot_id > 0;

-- nesting: the inner one kept, the outer one undone, and the other way round
BEGIN;
INSERT INTO sp VALUES (10, 'outermost, kept');
SAVEPOINT a;
INSERT INTO sp VALUES (11, 'undone with a');
SAVEPOINT b;
INSERT INTO sp VALUES (12, 'released into a, undone with it');
RELEASE b;
SAVEPOINT c;
DELETE FROM sp WHERE id = 10;
ROLLBACK TO a;
INSERT INTO sp VALUES (13, 'in a again, kept');
SAVEPOINT d;
INSERT INTO sp VALUES (14, 'undone with d');
ROLLBACK TO d;
INSERT INTO sp VALUES (14, 'in d again, kept');
RELEASE a;
COMMIT;
SELECT id, v, _change_type, _change_ordinal FROM sp_changelog(2, 3, ARRAY['id'], 'all') ORDER BY 4, 1;
SELECT snapshot_id, inserted, deleted FROM cdc.snapshots('sp') WHERE snapshot_id = 3;

-- an error in a savepoint, and a statement that fails half-way
BEGIN;
SAVEPOINT a;
INSERT INTO sp SELECT i, 'half' FROM generate_series(20, 30) i UNION ALL SELECT 2, 'duplicate';
ROLLBACK TO a;
INSERT INTO sp VALUES (20, 'after the error');
COMMIT;
SELECT id, v, _change_type, _change_ordinal FROM sp_changelog(3, 4, ARRAY['id'], 'all') ORDER BY 4, 1;

-- several tables: one is written only in what is undone
CREATE TABLE other (id int, v text);
SELECT cdc.track('other');
BEGIN;
SAVEPOINT a;
INSERT INTO other VALUES (1, 'undone');
INSERT INTO sp VALUES (31, 'undone');
ROLLBACK TO a;
INSERT INTO sp VALUES (31, 'kept');
COMMIT;
SELECT cdc.current_snapshot('sp'), cdc.current_snapshot('other');
BEGIN;
INSERT INTO sp VALUES (32, 'kept');
SAVEPOINT a;
INSERT INTO other VALUES (1, 'kept');
RELEASE a;
SAVEPOINT a;
UPDATE other SET v = 'undone';
DELETE FROM sp WHERE id = 32;
ROLLBACK TO a;
COMMIT;
SELECT cdc.current_snapshot('sp'), cdc.current_snapshot('other');
SELECT id, v, _change_type, _change_ordinal FROM sp_changelog(5, 6) ORDER BY 4, 1;
SELECT id, v, _change_type, _change_ordinal FROM other_changelog(0, 1) ORDER BY 4, 1;

-- one transaction that touches a row many times is one change (BB-05)
CREATE TABLE o (id int PRIMARY KEY, v text);
INSERT INTO o VALUES (1, 'old'), (2, 'same'), (3, 'gone'), (5, 'five'), (6, 'six');
SELECT cdc.track('o');
BEGIN;
DELETE FROM o WHERE id IN (1, 2, 3);
INSERT INTO o VALUES (1, 'new'), (2, 'same'), (4, 'four');
UPDATE o SET v = 'four-b' WHERE id = 4;
INSERT INTO o VALUES (9, 'ghost');
UPDATE o SET v = 'ghost2' WHERE id = 9;
DELETE FROM o WHERE id = 9;
UPDATE o SET v = '5a' WHERE id = 5;
UPDATE o SET v = '5b' WHERE id = 5;
UPDATE o SET v = 'tmp' WHERE id = 6;
UPDATE o SET v = 'six' WHERE id = 6;
COMMIT;
BEGIN;
MERGE INTO o USING (VALUES (1, 'NEW'), (7, 'seven')) s(id, v) ON o.id = s.id
  WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v);
MERGE INTO o USING (SELECT o2.id FROM o o2 WHERE o2.id NOT IN (1, 7)) d ON o.id = d.id WHEN MATCHED THEN DELETE;
COMMIT;
SELECT id, v, _change_type, _change_ordinal FROM o_changelog(0, 1, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;
SELECT id, v, _change_type, _change_ordinal FROM o_changelog(0, 1) ORDER BY 4, 3, 1;
SELECT id, v, _change_type, _change_ordinal FROM o_changelog(1, 2, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;
-- there and back, and nothing else: no rows, whether or not there is a snapshot
SELECT cdc.current_snapshot('o') AS s \gset
BEGIN;
UPDATE o SET v = 'tmp' WHERE id = 1;
UPDATE o SET v = 'NEW' WHERE id = 1;
INSERT INTO o VALUES (10, 'x');
DELETE FROM o WHERE id = 10;
COMMIT;
SELECT count(*) FROM o_changelog(:s, NULL, ARRAY['id'], 'all');
SELECT count(*) FROM o_changelog(:s, NULL, mode => 'all');

-- tracking begun and rolled back, or begun late in a transaction
BEGIN;
CREATE TABLE r (id int, v text);
INSERT INTO r VALUES (1, 'before');
SELECT cdc.track('r');
INSERT INTO r VALUES (2, 'after');
ROLLBACK;
SELECT count(*) FROM cdc.tracked_tables WHERE relation::text LIKE '%savepoints.r';
CREATE TABLE r (id int, v text);
BEGIN;
INSERT INTO r VALUES (1, 'before');
SELECT cdc.track('r');
INSERT INTO r VALUES (2, 'after');
SAVEPOINT a;
INSERT INTO r VALUES (3, 'undone');
ROLLBACK TO a;
COMMIT;
SELECT cdc.current_snapshot('r');
SELECT id, v, _change_type, _change_ordinal FROM r_changelog() ORDER BY 4, 1;
BEGIN;
SAVEPOINT a;
SELECT cdc.untrack('r');
INSERT INTO r VALUES (4, 'not tracked for a moment, undone');
ROLLBACK TO a;
INSERT INTO r VALUES (5, 'tracked');
COMMIT;
SELECT id, v, _change_type, _change_ordinal FROM r_changelog(1) ORDER BY 4, 1;
