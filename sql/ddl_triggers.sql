-- Capture triggers that are disabled, dropped and renamed: nothing is answered
-- about the time in which changes may have been missed
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA ddl_triggers;
SET search_path = ddl_triggers, public;
CREATE FUNCTION states(rel regclass) RETURNS text LANGUAGE sql AS $$
SELECT string_agg(format('%s %s', replace(tgname::text, 'cdc_changelog_', ''), tgenabled), ', ' ORDER BY tgname) FROM pg_trigger WHERE tgrelid = rel AND NOT tgisinternal
$$;

CREATE TABLE t (id int PRIMARY KEY, v text);
SELECT cdc.track('t');
INSERT INTO t VALUES (1, 'a');
SELECT states('t');
-- enabling what is enabled changes nothing
ALTER TABLE t ENABLE TRIGGER ALL;
ALTER TABLE t ENABLE TRIGGER USER;
ALTER TABLE t ENABLE ALWAYS TRIGGER cdc_changelog_insert, ENABLE REPLICA TRIGGER cdc_changelog_update;
SELECT states('t');
INSERT INTO t VALUES (2, 'b');
SELECT snapshot_id, inserted, kind, reason FROM cdc.snapshots('t');
-- nor do other triggers matter
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER mine AFTER INSERT ON t EXECUTE FUNCTION nothing();
ALTER TABLE t DISABLE TRIGGER mine;
ALTER TABLE t ENABLE TRIGGER mine;
ALTER TRIGGER mine ON t RENAME TO mine2;
DROP TRIGGER mine2 ON t;
SELECT count(*) FROM cdc.snapshots('t');

-- one of them disabled: gaps until it is enabled again
ALTER TABLE t DISABLE TRIGGER cdc_changelog_insert;
INSERT INTO t VALUES (3, 'unseen');
UPDATE t SET v = 'seen' WHERE id = 1;
SELECT * FROM t_changelog(2);
\echo :SQLSTATE
SELECT * FROM t_changelog(3);
\echo :SQLSTATE
SELECT * FROM t_changelog();
\echo :SQLSTATE
SELECT * FROM t_changelog(3, 4);
\echo :SQLSTATE
SELECT id, v, _change_type FROM t_changelog(0, 2) ORDER BY 1;
SELECT * FROM t_changelog(NULL, 2);
\echo :SQLSTATE
SELECT * FROM cdc.as_of(NULL::t, 3);
\echo :SQLSTATE
ALTER TABLE t ENABLE TRIGGER cdc_changelog_insert;
SELECT snapshot_id, inserted, deleted, kind, reason FROM cdc.snapshots('t');
INSERT INTO t VALUES (4, 'd');
SELECT * FROM t_changelog(4);
\echo :SQLSTATE
SELECT id, v, _change_type FROM t_changelog(5);
SELECT id, v, _change_type, _change_ordinal FROM t_changelog() ORDER BY 1;
SELECT * FROM cdc.verify('t');

-- all of them, around a load, in one transaction
BEGIN;
INSERT INTO t VALUES (5, 'e');
ALTER TABLE t DISABLE TRIGGER ALL;
INSERT INTO t VALUES (6, 'unseen');
ALTER TABLE t ENABLE TRIGGER ALL;
INSERT INTO t VALUES (7, 'g');
COMMIT;
SELECT states('t');
INSERT INTO t VALUES (8, 'h');
SELECT snapshot_id, inserted, deleted, kind, reason FROM cdc.snapshots('t') WHERE snapshot_id > 5;
SELECT id, v, _change_type, _change_ordinal FROM t_changelog(7);
SELECT * FROM cdc.verify('t');
-- and in several
ALTER TABLE t DISABLE TRIGGER USER;
ALTER TABLE t ADD COLUMN n float8 DEFAULT random();
TRUNCATE t;
INSERT INTO t VALUES (9, 'unseen');
ALTER TABLE t ENABLE TRIGGER cdc_changelog_insert;
INSERT INTO t VALUES (10, 'partly');
ALTER TABLE t ENABLE TRIGGER USER;
INSERT INTO t VALUES (11, 'k');
SELECT snapshot_id, inserted, deleted, kind, reason FROM cdc.snapshots('t') WHERE snapshot_id > 8;
SELECT id, v, _change_type, _change_ordinal FROM t_changelog() ORDER BY 1;
SELECT * FROM cdc.verify('t');
-- rolled back
BEGIN;
INSERT INTO t VALUES (12, 'l');
SAVEPOINT s;
ALTER TABLE t DISABLE TRIGGER USER;
INSERT INTO t VALUES (13, 'gone');
ROLLBACK TO s;
COMMIT;
SELECT id, v, _change_type FROM t_changelog(14);

-- dropped, and made again by hand
DROP TRIGGER cdc_changelog_delete ON t;
DELETE FROM t WHERE id = 9;
SELECT * FROM t_changelog(15);
\echo :SQLSTATE
CREATE TRIGGER cdc_changelog_delete AFTER DELETE ON t REFERENCING OLD TABLE AS cdc_old FOR EACH STATEMENT EXECUTE FUNCTION cdc.capture();
DELETE FROM t WHERE id = 10;
SELECT snapshot_id, inserted, deleted, kind, reason FROM cdc.snapshots('t') WHERE snapshot_id > 15;
SELECT id, v, _change_type FROM t_changelog(17);
SELECT * FROM cdc.verify('t');
BEGIN;
DROP TRIGGER cdc_changelog_delete ON t;
ROLLBACK;
-- not by another name
ALTER TRIGGER cdc_changelog_delete ON t RENAME TO other;
\echo :SQLSTATE
-- the replica role, with the default triggers enabled by ALL
ALTER TABLE t ENABLE TRIGGER ALL;
SET session_replication_role = replica;
INSERT INTO t VALUES (20, 'replica');
RESET session_replication_role;
INSERT INTO t VALUES (21, 'origin');
SELECT id, v, _change_type, _change_ordinal FROM t_changelog(18) ORDER BY 1;
SELECT * FROM cdc.verify('t');
-- a rule or row-level security is no matter of the log
CREATE RULE r AS ON INSERT TO t WHERE NEW.id = 99 DO INSTEAD NOTHING;
INSERT INTO t VALUES (98, 'y'), (99, 'n');
ALTER TABLE t DISABLE RULE r;
INSERT INTO t VALUES (99, 'y');
SELECT id, v, _change_type, _change_ordinal FROM t_changelog(20) ORDER BY 1;

SET client_min_messages = warning;
DROP SCHEMA ddl_triggers CASCADE;
