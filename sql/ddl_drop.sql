-- What belongs to a tracked table goes with it, however it is dropped (BB-44)
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
\set VERBOSITY terse
CREATE SCHEMA ddl_drop;
SET search_path = ddl_drop, public;
CREATE ROLE regress_cdc_drop;
GRANT CREATE, USAGE ON SCHEMA ddl_drop TO regress_cdc_drop;
CREATE VIEW left_behind AS
SELECT (SELECT count(*) FROM pg_trigger WHERE tgfoid = 'cdc.capture'::regproc) AS triggers,
       (SELECT count(*) FROM pg_class WHERE relnamespace = 'cdc_log'::regnamespace) AS logs,
       (SELECT count(*) FROM cdc.tracked_table) AS tracked,
       (SELECT count(*) FROM cdc.log_segment) AS segments,
       (SELECT count(*) FROM cdc.snapshot) AS snapshots,
       (SELECT count(*) FROM cdc.unique_index) AS indexes,
       (SELECT count(*) FROM pg_proc WHERE prosrc = 'cdc_changelog_typed') AS functions;
-- other tests leave their tables
CREATE TEMP TABLE before AS TABLE left_behind;

CREATE TABLE dt (id int PRIMARY KEY, v text);
SELECT cdc.track('dt');
INSERT INTO dt VALUES (1, 'a');
-- rolled back, also by a savepoint: nothing has happened
BEGIN;
DROP TABLE dt;
SELECT count(*) FROM left_behind l JOIN before b ON l = b;
ROLLBACK;
BEGIN;
INSERT INTO dt VALUES (2, 'b');
SAVEPOINT s;
DROP TABLE dt;
ROLLBACK TO s;
INSERT INTO dt VALUES (3, 'c');
COMMIT;
SELECT id, v, _change_type, _change_ordinal FROM dt_changelog(0, 2, ARRAY['id'], 'all') ORDER BY 4, 1;
-- plain DROP, with writes before it in the transaction
BEGIN;
INSERT INTO dt VALUES (4, 'd');
DROP TABLE dt;
COMMIT;
SELECT count(*) FROM left_behind l JOIN before b ON l = b;
-- the same name again is another table
CREATE TABLE dt (id int PRIMARY KEY, v text, extra int);
SELECT cdc.track('dt');
INSERT INTO dt VALUES (1, 'x', 5);
SELECT id, v, extra, _change_type, _change_ordinal FROM dt_changelog(0, 1, ARRAY['id']);
SELECT * FROM dt_changelog(0, 2);
-- dropped and made again in one transaction
BEGIN;
INSERT INTO dt VALUES (2, 'y', 6);
DROP TABLE dt;
CREATE TABLE dt (id int);
SELECT cdc.track('dt');
INSERT INTO dt VALUES (7);
COMMIT;
INSERT INTO dt VALUES (8);
SELECT id, _change_type, _change_ordinal FROM dt_changelog(0) ORDER BY 3, 1;
DROP TABLE dt;

-- a view on the changelog is the user's: it is in the way, as on any table
CREATE TABLE vt (id int);
SELECT cdc.track('vt');
CREATE VIEW vt_view AS SELECT id FROM vt_changelog();
DROP TABLE vt;
INSERT INTO vt VALUES (1);
SELECT count(*) FROM vt_changelog(0);
DROP TABLE vt CASCADE;
SELECT count(*) FROM left_behind l JOIN before b ON l = b;

-- whole schemas, and several tables at once
CREATE SCHEMA ddl_zap;
CREATE TABLE ddl_zap.t1 (id int PRIMARY KEY);
CREATE TABLE ddl_zap.t2 (id int, v text UNIQUE);
SELECT cdc.track('ddl_zap.t1'), cdc.track('ddl_zap.t2');
INSERT INTO ddl_zap.t2 VALUES (1, 'a');
SET client_min_messages = warning;
BEGIN;
DROP SCHEMA ddl_zap CASCADE;
ROLLBACK;
INSERT INTO ddl_zap.t1 VALUES (1);
SELECT id, _change_type FROM ddl_zap.t1_changelog(0);
DROP SCHEMA ddl_zap CASCADE;
RESET client_min_messages;
SELECT count(*) FROM left_behind l JOIN before b ON l = b;
CREATE TABLE d1 (id int);
CREATE TABLE d2 (id int);
SELECT cdc.track('d1'), cdc.track('d2');
DROP TABLE d1, d2;
SELECT count(*) FROM left_behind l JOIN before b ON l = b;

-- all that a role owns
SET ROLE regress_cdc_drop;
CREATE TABLE owned (id int PRIMARY KEY);
SELECT cdc.track('owned');
INSERT INTO owned VALUES (1);
RESET ROLE;
DROP OWNED BY regress_cdc_drop;
SELECT count(*) FROM left_behind l JOIN before b ON l = b;

-- the table of a type, with the type
CREATE TYPE row_type AS (id int, v text);
CREATE TABLE of_type OF row_type;
SELECT cdc.track('of_type');
SET client_min_messages = warning;
DROP TYPE row_type CASCADE;
RESET client_min_messages;
SELECT count(*) FROM left_behind l JOIN before b ON l = b;

-- a restored database does not have the dependencies
CREATE TABLE lost (id int PRIMARY KEY);
SELECT cdc.track('lost');
CREATE VIEW lost_view AS SELECT id FROM lost_changelog();
CREATE FUNCTION lose(rel regclass) RETURNS void LANGUAGE sql AS $$
DELETE FROM pg_depend d WHERE d.refobjid = rel AND d.deptype = 'a'
   AND (d.objid IN (SELECT oid FROM pg_class WHERE relnamespace = 'cdc_log'::regnamespace)
        OR d.classid = 'pg_proc'::regclass)
$$;
SELECT lose('lost');
DROP TABLE lost;
DROP TABLE lost CASCADE;
SELECT count(*) FROM left_behind l JOIN before b ON l = b;
CREATE TABLE lost (id int PRIMARY KEY);
SELECT cdc.track('lost');
SELECT lose('lost');
BEGIN;
DROP TABLE lost;
ROLLBACK;
INSERT INTO lost VALUES (1);
SELECT id, _change_type FROM lost_changelog(0);
DROP TABLE lost;
SELECT count(*) FROM left_behind l JOIN before b ON l = b;

-- the log alone: refused, except by a restore that drops one after the other
CREATE TABLE logless (id int PRIMARY KEY);
SELECT cdc.track('logless');
SELECT log_table AS log, snapshot_sequence AS seq FROM cdc.tracked_table WHERE relation = 'logless'::regclass \gset
\set VERBOSITY sqlstate
CREATE INDEX ON :log (c1);
ALTER TABLE :log ADD COLUMN more int;
DROP TABLE :log;
DROP SEQUENCE :seq;
\set VERBOSITY terse
ALTER TABLE :log SET (autovacuum_enabled = off);
INSERT INTO logless VALUES (1);
SELECT id FROM logless_changelog(0);
DROP TRIGGER cdc_changelog_insert ON logless;
DROP TRIGGER cdc_changelog_update ON logless;
DROP TRIGGER cdc_changelog_delete ON logless;
DROP TRIGGER cdc_changelog_replica ON logless;
DROP TRIGGER "~cdc_changelog_truncate" ON logless;
BEGIN;
DROP SEQUENCE :seq;
SELECT count(*) FROM left_behind l JOIN before b ON l = b;
ROLLBACK;
DROP TABLE :log;
INSERT INTO logless VALUES (2);
SELECT count(*) FROM left_behind l JOIN before b ON l = b;
DROP TABLE logless;

-- a session in which ordinary triggers do not fire
CREATE TABLE rep (id int PRIMARY KEY);
SELECT cdc.track('rep');
SET session_replication_role = replica;
DROP TABLE rep;
RESET session_replication_role;
SELECT count(*) FROM left_behind l JOIN before b ON l = b;

-- a session that has written to many tables does not keep what it knew of them
CREATE PROCEDURE come_and_go(tables int) LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. tables LOOP
    CREATE TABLE short_lived (id int);
    PERFORM cdc.track('short_lived');
    INSERT INTO short_lived VALUES (i);
    COMMIT;
    DROP TABLE short_lived;
    COMMIT;
  END LOOP;
END $$;
CALL come_and_go(100);
SELECT count(*) < 90 AS freed FROM pg_backend_memory_contexts WHERE name = 'cdc_changelog log map';

SET client_min_messages = warning;
DROP SCHEMA ddl_drop CASCADE;
DROP OWNED BY regress_cdc_drop;
DROP ROLE regress_cdc_drop;
