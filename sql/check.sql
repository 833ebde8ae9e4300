-- cdc.check: what is not in order, and how to mend it
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA "check";
SET search_path = "check", public;
CREATE ROLE regress_cdc_check;
CREATE ROLE regress_cdc_other;
GRANT ALL ON SCHEMA "check" TO regress_cdc_check, regress_cdc_other;

SET ROLE regress_cdc_check;
CREATE TABLE "A b" (id int PRIMARY KEY, v text);
SELECT cdc.track('"A b"');
INSERT INTO "A b" VALUES (1, 'x');
SELECT * FROM cdc.check();
RESET ROLE;
CREATE TABLE plain (id int);
SELECT cdc.track('plain');
SELECT * FROM cdc.check();

-- triggers
ALTER TABLE "A b" DISABLE TRIGGER cdc_changelog_insert;
ALTER EVENT TRIGGER cdc_changelog_ddl_end DISABLE;
ALTER TABLE "A b" ENABLE ALWAYS TRIGGER cdc_changelog_update, ENABLE TRIGGER cdc_changelog_replica, ENABLE TRIGGER "~cdc_changelog_truncate";
ALTER EVENT TRIGGER cdc_changelog_ddl_end ENABLE ALWAYS;
SELECT * FROM cdc.check() WHERE problem LIKE 'capture%';
-- the owner sees it, others do not
SET ROLE regress_cdc_check;
SELECT count(*) FROM cdc.check() WHERE problem LIKE 'capture%';
SET ROLE regress_cdc_other;
SELECT * FROM cdc.check();
-- the fixes are statements that work
SET ROLE regress_cdc_check;
SELECT fix FROM cdc.check() WHERE problem LIKE 'capture%' \gexec
SELECT * FROM cdc.check() WHERE problem LIKE 'capture%';
DROP TRIGGER cdc_changelog_delete ON "A b";
SELECT * FROM cdc.check() WHERE problem LIKE 'capture%';
SELECT unnest(string_to_array(fix, '; ')) FROM cdc.check() WHERE problem LIKE 'capture%' \gexec
SELECT * FROM cdc.check();
RESET ROLE;

-- inheritance
CREATE TABLE child () INHERITS (plain);
SELECT * FROM cdc.check() WHERE level = 'error';
SELECT fix FROM cdc.check() WHERE level = 'error' \gexec
SELECT * FROM cdc.check() WHERE level = 'error';
CREATE TABLE parent (id int);
ALTER TABLE plain INHERIT parent;
SELECT * FROM cdc.check() WHERE level = 'error';
SELECT fix FROM cdc.check() WHERE level = 'error' \gexec
SELECT * FROM cdc.check() WHERE level = 'error';

-- a gap, which is mended by forgetting what was before it
SELECT cdc.untrack('plain');
SELECT cdc.track('plain');
INSERT INTO plain VALUES (1);
INSERT INTO plain VALUES (2);
INSERT INTO plain VALUES (3);
INSERT INTO plain VALUES (4);
UPDATE cdc.snapshot SET kind = 'g', reason = 'of this test'
 WHERE snapshot_id IN (1, 3) AND table_id = (SELECT table_id FROM cdc.tracked_table WHERE relation = 'plain'::regclass);
SELECT * FROM cdc.check();
SELECT fix FROM cdc.check() \gexec
SELECT * FROM cdc.check();

-- prepared transactions
BEGIN;
INSERT INTO plain VALUES (5);
PREPARE TRANSACTION 'cdc_check it''s me';
SELECT * FROM cdc.check();
SELECT fix FROM cdc.check() \gexec
SELECT * FROM cdc.check();

-- the log, the typed function
BEGIN;
DROP FUNCTION plain_changelog;
SELECT * FROM cdc.check();
ROLLBACK;
-- what the event triggers would not let happen
CREATE VIEW on_plain AS SELECT problem, fix FROM cdc.check() WHERE object = '"check".plain';
CREATE PROCEDURE unguarded(command text) LANGUAGE plpgsql AS $$
BEGIN
  ALTER EVENT TRIGGER cdc_changelog_ddl_start DISABLE;
  ALTER EVENT TRIGGER cdc_changelog_ddl_end DISABLE;
  ALTER EVENT TRIGGER cdc_changelog_ddl_drop DISABLE;
  EXECUTE (SELECT format(command, log_table, snapshot_sequence) FROM cdc.tracked_table WHERE relation = 'plain'::regclass);
  ALTER EVENT TRIGGER cdc_changelog_ddl_start ENABLE ALWAYS;
  ALTER EVENT TRIGGER cdc_changelog_ddl_end ENABLE ALWAYS;
  ALTER EVENT TRIGGER cdc_changelog_ddl_drop ENABLE ALWAYS;
END $$;
BEGIN;
CALL unguarded('DROP TABLE %1$s');
SELECT * FROM on_plain;
SELECT DISTINCT s FROM on_plain, unnest(string_to_array(fix, '; ')) s WHERE problem LIKE 'segment%' ORDER BY s DESC \gexec
SELECT * FROM on_plain;
ROLLBACK;
BEGIN;
CALL unguarded('ALTER TABLE %1$s ADD COLUMN c9 int');
SELECT * FROM on_plain;
ROLLBACK;
BEGIN;
CALL unguarded('DROP SEQUENCE %2$s');
SELECT * FROM on_plain;
ROLLBACK;
-- a partitioned table
CREATE TABLE parts (id int) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
SELECT cdc.track('parts');
INSERT INTO parts VALUES (1);
SELECT * FROM cdc.check();
BEGIN;
ALTER TABLE parts_1 DISABLE TRIGGER ALL;
SELECT * FROM cdc.check();
ROLLBACK;
SELECT * FROM cdc.check();
SELECT cdc.untrack('parts');

BEGIN;
DELETE FROM cdc.snapshot WHERE snapshot_id = 3 AND table_id = (SELECT table_id FROM cdc.tracked_table WHERE relation = 'plain'::regclass);
SELECT * FROM cdc.check();
ROLLBACK;

-- event triggers
BEGIN;
ALTER EVENT TRIGGER cdc_changelog_ddl_start DISABLE;
ALTER EVENT TRIGGER cdc_changelog_ddl_end ENABLE;
ALTER EXTENSION cdc_changelog DROP EVENT TRIGGER cdc_changelog_ddl_drop;
DROP EVENT TRIGGER cdc_changelog_ddl_drop;
SELECT * FROM cdc.check();
SELECT unnest(string_to_array(fix, '; ')) FROM cdc.check() \gexec
SELECT * FROM cdc.check();
ROLLBACK;

-- what is left behind, for superusers
BEGIN;
CREATE TABLE cdc_log.stray (a int);
CREATE SEQUENCE cdc_log.stray_sequence;
INSERT INTO cdc.snapshot (table_id, segment, snapshot_id, tx, xid, next_xid, committed_at, inserted, deleted, kind)
VALUES (-1, 1, 1, 1, '1', '1', now(), 0, 0, 'c'), (-1, 1, 2, 1, '1', '1', now(), 0, 0, 'c'), (2000000000, 1, 2, 1, '1', '1', now(), 0, 0, 'c');
INSERT INTO cdc.log_segment VALUES (-1, 1, 0);
SELECT * FROM cdc.check();
SET LOCAL ROLE regress_cdc_check;
SELECT * FROM cdc.check();
RESET ROLE;
SELECT fix FROM cdc.check() \gexec
SELECT * FROM cdc.check();
ROLLBACK;

-- triggers that came without the rest
BEGIN;
DELETE FROM cdc.tracked_table WHERE relation = 'plain'::regclass;
ALTER TABLE plain SET (fillfactor = 90);
SELECT * FROM on_plain;
SELECT unnest(string_to_array(fix, '; ')) FROM on_plain \gexec
SELECT * FROM on_plain;
ROLLBACK;

-- a consumer and a pipeline that have not run for a day
BEGIN;
CREATE TABLE plain_copy (LIKE plain INCLUDING ALL);
CREATE TABLE plain_copy2 (LIKE plain INCLUDING ALL);
SELECT FROM cdc.apply_changelog('plain_copy', $$ SELECT * FROM plain_changelog(identifiers => '{id}', consumer => 'it''s late') $$,
  '{id}', consumer => 'it''s late');
SELECT cdc.create_pipeline('late', 'plain_copy2', '{id}',
  $$ SELECT * FROM plain_changelog(identifiers => '{id}', consumer => 'late') $$);
SELECT mode FROM cdc.run('late');
CREATE TABLE plain_copy3 AS SELECT * FROM plain LIMIT 0;
SELECT FROM cdc.apply_changelog('plain_copy3', $$ SELECT * FROM plain_changelog(mode => 'append_only', consumer => 'appends') $$,
  NULL, consumer => 'appends', append => true);
UPDATE cdc.consumer SET last_run_at = now() - interval '25 hours';
SELECT * FROM cdc.check();
-- something to read, but not for long
UPDATE cdc.consumer_position SET position = position - 1;
SELECT * FROM cdc.check();
UPDATE cdc.snapshot SET committed_at = now() - interval '25 hours';
SELECT * FROM cdc.check();
SELECT replace(fix, '*', 'mode') FROM cdc.check() \gexec
SELECT * FROM cdc.check();
ROLLBACK;

SELECT cdc.untrack('plain');
SELECT cdc.untrack('"A b"');
SELECT * FROM cdc.check();
SET client_min_messages = warning;
DROP SCHEMA "check" CASCADE;
DROP ROLE regress_cdc_check, regress_cdc_other;
