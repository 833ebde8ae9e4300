-- The extension itself comes and goes (BB-44)
SET client_min_messages = warning;
DROP DATABASE IF EXISTS regress_cdc_ddl_extension;
CREATE DATABASE regress_cdc_ddl_extension;
RESET client_min_messages;
\set old :DBNAME
\set ECHO none
\c regress_cdc_ddl_extension
\set ECHO all
\set SHOW_CONTEXT never
\set VERBOSITY terse
CREATE EXTENSION cdc_changelog;
SELECT evtname, evtevent, evtenabled FROM pg_event_trigger ORDER BY 1;
CREATE TABLE e (id int PRIMARY KEY, v text);
SELECT cdc.track('e');
INSERT INTO e VALUES (1, 'a');
-- its own objects are safe from everything else
DROP EVENT TRIGGER cdc_changelog_ddl_drop;
DROP SCHEMA cdc_log CASCADE;
DROP FUNCTION cdc.capture() CASCADE;
ALTER SCHEMA cdc RENAME TO other;
ALTER SCHEMA cdc_log RENAME TO other;
DROP EXTENSION cdc_changelog;
SET client_min_messages = warning;
BEGIN;
DROP EXTENSION cdc_changelog CASCADE;
INSERT INTO e VALUES (2, 'b');
ROLLBACK;
INSERT INTO e VALUES (3, 'c');
SELECT id, v, _change_type, _change_ordinal FROM e_changelog(0) ORDER BY 1;
BEGIN;
INSERT INTO e VALUES (4, 'd');
DROP EXTENSION cdc_changelog CASCADE;
INSERT INTO e VALUES (5, 'e');
COMMIT;
INSERT INTO e VALUES (9, 'free');
ALTER TABLE e ADD COLUMN _change_type text;
SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal;
SELECT count(*) FROM pg_event_trigger;
SELECT count(*) FROM pg_proc p WHERE p.probin LIKE '%cdc_changelog%';
SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname LIKE 'cdc%';
SELECT count(*) FROM pg_namespace WHERE nspname = 'cdc_log';
-- and again
ALTER TABLE e DROP COLUMN _change_type;
CREATE EXTENSION cdc_changelog;
SELECT cdc.track('e');
INSERT INTO e VALUES (6, 'f');
SELECT id, v, _change_type, _change_ordinal FROM e_changelog(0);
DROP TABLE e;
-- without tracked tables, also in another schema
DROP EXTENSION cdc_changelog;
DROP SCHEMA cdc;
CREATE EXTENSION cdc_changelog;
CREATE TABLE e (id int);
DROP TABLE e;
\set ECHO none
\c :old
\set ECHO all
DROP DATABASE regress_cdc_ddl_extension;
