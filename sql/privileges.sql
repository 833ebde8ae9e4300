-- Who may do what: writers need no right on the log and cannot tamper with it
-- (BB-37), nothing is resolved through the caller's search_path (BB-38), and
-- the changelog does not show what the caller may not read (BB-39)
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE ROLE regress_cdc_own;
CREATE ROLE regress_cdc_app;
CREATE ROLE regress_cdc_other;
CREATE SCHEMA privileges;
GRANT USAGE ON SCHEMA privileges TO PUBLIC;
CREATE SCHEMA privileges_app AUTHORIZATION regress_cdc_own;

--
-- BB-37
--
SET ROLE regress_cdc_own;
CREATE TABLE privileges_app.pv (id int PRIMARY KEY, v text);
GRANT USAGE ON SCHEMA privileges_app TO regress_cdc_app, regress_cdc_other;
GRANT INSERT, UPDATE, DELETE, SELECT, TRUNCATE ON privileges_app.pv TO regress_cdc_app;
RESET ROLE;
-- only the owner may track
SET ROLE regress_cdc_other;
SELECT cdc.track('privileges_app.pv');
\echo :SQLSTATE
SET ROLE regress_cdc_app;
SELECT cdc.track('privileges_app.pv');
\echo :SQLSTATE
SET ROLE regress_cdc_own;
SELECT cdc.track('privileges_app.pv');
SELECT cdc.untrack('privileges_app.pv');
RESET ROLE;
-- a superuser may as well; the log belongs to the owner of the table
SELECT cdc.track('privileges_app.pv');
SELECT relkind, relowner::regrole, relacl FROM pg_class WHERE oid IN (
  SELECT unnest(ARRAY[log_table, snapshot_sequence]) FROM cdc.tracked_table WHERE relation = 'privileges_app.pv'::regclass) ORDER BY 1;
SELECT proowner::regrole, prosecdef FROM pg_proc WHERE oid = 'privileges_app.pv_changelog'::regproc;
SELECT log_table::text AS log, snapshot_sequence::text AS seq FROM cdc.tracked_table WHERE relation = 'privileges_app.pv'::regclass \gset
SET ROLE regress_cdc_app;
BEGIN;
INSERT INTO privileges_app.pv VALUES (1, 'a'), (2, 'b');
UPDATE privileges_app.pv SET v = 'A' WHERE id = 1;
DELETE FROM privileges_app.pv WHERE id = 2;
COMMIT;
-- the log is not for the writer
\set VERBOSITY sqlstate
SELECT count(*) FROM :log;
INSERT INTO :log DEFAULT VALUES;
UPDATE :log SET _cdc_tx = 0;
DELETE FROM :log;
TRUNCATE :log;
SELECT nextval(:'seq');
\set VERBOSITY default
SELECT setval('cdc.transaction_number', 1);
\echo :SQLSTATE
SELECT nextval('cdc.transaction_number');
\echo :SQLSTATE
INSERT INTO cdc.snapshot DEFAULT VALUES;
\echo :SQLSTATE
UPDATE cdc.snapshot SET tx = 0;
\echo :SQLSTATE
DELETE FROM cdc.snapshot;
\echo :SQLSTATE
TRUNCATE cdc.snapshot;
\echo :SQLSTATE
DELETE FROM cdc.tracked_table;
\echo :SQLSTATE
UPDATE cdc.log_segment SET segment = 0;
\echo :SQLSTATE
DELETE FROM cdc.unique_index;
\echo :SQLSTATE
SELECT cdc.untrack('privileges_app.pv');
\echo :SQLSTATE
CREATE TABLE cdc.mine (id int);
\echo :SQLSTATE
CREATE TABLE cdc_log.mine (id int);
\echo :SQLSTATE
-- nor can the trigger function be hung on another table to write into the log
CREATE TEMP TABLE forged (id int PRIMARY KEY, v text);
CREATE TRIGGER forged AFTER INSERT ON forged FOR EACH ROW EXECUTE FUNCTION cdc.capture('privileges_app.pv');
INSERT INTO forged VALUES (666, 'forged');
DROP TABLE forged;
-- reading needs SELECT on the table and nothing else
SELECT id, v, _change_type FROM privileges_app.pv_changelog(0) ORDER BY 1;
SELECT cdc.current_snapshot('privileges_app.pv');
SELECT count(*) FROM cdc.snapshots('privileges_app.pv');
SELECT count(*) FROM cdc.tracked_tables WHERE relation = 'privileges_app.pv'::regclass;
RESET ROLE;
-- the owner of the table changes: capture goes on
ALTER TABLE privileges_app.pv OWNER TO regress_cdc_other;
SET ROLE regress_cdc_app;
INSERT INTO privileges_app.pv VALUES (3, 'after owner change');
TRUNCATE privileges_app.pv;
RESET ROLE;
SELECT id, v, _change_type, _change_ordinal FROM privileges_app.pv_changelog(0, 2, ARRAY['id'], 'all') ORDER BY 4, 1;
SELECT count(*) FROM privileges_app.pv_changelog();
-- rights of the writer alone: INSERT without SELECT
REVOKE ALL ON privileges_app.pv FROM regress_cdc_app;
GRANT INSERT ON privileges_app.pv TO regress_cdc_app;
SET ROLE regress_cdc_app;
INSERT INTO privileges_app.pv VALUES (4, 'write only');
SELECT count(*) FROM privileges_app.pv_changelog(0);
\echo :SQLSTATE
RESET ROLE;
SET ROLE regress_cdc_other;
SELECT id, v, _change_type FROM privileges_app.pv_changelog(3);
SELECT cdc.untrack('privileges_app.pv');
RESET ROLE;

--
-- BB-38
--
CREATE ROLE regress_cdc_evil;
GRANT CREATE ON DATABASE :DBNAME TO regress_cdc_evil;
CREATE TABLE privileges.hj (id int PRIMARY KEY, v text);
CREATE TABLE privileges.hj_copy (id int PRIMARY KEY, v text);
GRANT ALL ON privileges.hj, privileges.hj_copy TO regress_cdc_evil;
SELECT cdc.track('privileges.hj');
SELECT log_table::text AS log FROM cdc.tracked_table WHERE relation = 'privileges.hj'::regclass \gset
SET ROLE regress_cdc_evil;
SET client_min_messages = warning;
CREATE SCHEMA regress_cdc_evil;
CREATE FUNCTION regress_cdc_evil.trap_i(int, int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked as %', current_user; END $$;
CREATE FUNCTION regress_cdc_evil.trap_b(bigint, bigint) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked as %', current_user; END $$;
CREATE FUNCTION regress_cdc_evil.trap_t(text, text) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked as %', current_user; END $$;
CREATE FUNCTION regress_cdc_evil.trap_o(oid, oid) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked as %', current_user; END $$;
CREATE OPERATOR regress_cdc_evil.= (FUNCTION = regress_cdc_evil.trap_i, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR regress_cdc_evil.= (FUNCTION = regress_cdc_evil.trap_b, LEFTARG = bigint, RIGHTARG = bigint);
CREATE OPERATOR regress_cdc_evil.= (FUNCTION = regress_cdc_evil.trap_t, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR regress_cdc_evil.= (FUNCTION = regress_cdc_evil.trap_o, LEFTARG = oid, RIGHTARG = oid);
CREATE OPERATOR regress_cdc_evil.<> (FUNCTION = regress_cdc_evil.trap_t, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR regress_cdc_evil.<= (FUNCTION = regress_cdc_evil.trap_b, LEFTARG = bigint, RIGHTARG = bigint);
CREATE OPERATOR regress_cdc_evil.> (FUNCTION = regress_cdc_evil.trap_b, LEFTARG = bigint, RIGHTARG = bigint);
CREATE FUNCTION regress_cdc_evil.format(text, VARIADIC text[]) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked as %', current_user; END $$;
CREATE FUNCTION regress_cdc_evil.quote_ident(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked as %', current_user; END $$;
CREATE FUNCTION regress_cdc_evil.now() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked as %', current_user; END $$;
CREATE FUNCTION regress_cdc_evil.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked as %', current_user; END $$;
CREATE FUNCTION regress_cdc_evil.nextval(regclass) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked as %', current_user; END $$;
CREATE TYPE pg_temp.int4 AS ENUM ('hijacked');
CREATE TYPE pg_temp.text AS ENUM ('hijacked');
CREATE TYPE pg_temp.int8 AS ENUM ('hijacked');
CREATE TEMP TABLE pg_class (oid oid, relname name, relnamespace oid);
CREATE TEMP TABLE pg_attribute (attrelid oid, attname name, attnum int);
CREATE TEMP TABLE hj (id pg_catalog.int4, v pg_catalog.text);
CREATE TEMP TABLE tracked_table (table_id pg_catalog.int4);
CREATE TEMP TABLE snapshot (table_id pg_catalog.int4);
CREATE TEMP TABLE log_segment (table_id pg_catalog.int4);
SET search_path = pg_temp, regress_cdc_evil, pg_catalog, public;
BEGIN;
INSERT INTO privileges.hj VALUES (1, 'a');
UPDATE privileges.hj SET v = 'b';
DELETE FROM privileges.hj WHERE v OPERATOR(pg_catalog.=) 'x';
COMMIT;
SELECT id, v, _change_type FROM privileges.hj_changelog(0, NULL, '{id}', 'all');
SELECT id, v, _change_type FROM privileges.hj_changelog(NULL, NULL);
SELECT cdc.current_snapshot('privileges.hj');
CALL cdc.create_changelog_view('privileges.hj', 'pg_temp.hj_view', identifier_columns => '{id}');
SELECT id, v, _change_type, _change_ordinal FROM pg_temp.hj_view;
SELECT inserted, updated, deleted, unchanged, missing, stale FROM cdc.apply_changelog('privileges.hj_copy', 'pg_temp.hj_view', '{id}');
CREATE TABLE regress_cdc_evil.own (id pg_catalog.int4, v pg_catalog.text);
SELECT cdc.track('regress_cdc_evil.own');
INSERT INTO regress_cdc_evil.own VALUES (1, 'x');
SELECT id, v, _change_type FROM regress_cdc_evil.own_changelog(0);
SELECT cdc.untrack('regress_cdc_evil.own');
RESET search_path;
SELECT pg_catalog.count(*) FROM pg_temp.hj;
RESET client_min_messages;
RESET ROLE;
SELECT id, v, _change_type, _change_ordinal FROM privileges.hj_changelog(0, NULL, ARRAY['id'], 'all');
TABLE privileges.hj_copy;
DISCARD ALL;
SELECT cdc.untrack('privileges.hj');
SET client_min_messages = warning;
DROP OWNED BY regress_cdc_evil CASCADE;
RESET client_min_messages;
DROP ROLE regress_cdc_evil;

--
-- BB-39
--
\set SHOW_CONTEXT never
SET search_path = privileges;
CREATE TABLE emp (id int PRIMARY KEY, owner_name text, salary int);
INSERT INTO emp VALUES (1, 'regress_cdc_app', 100), (2, 'boss', 900);
GRANT SELECT (id, owner_name) ON emp TO regress_cdc_app;
CREATE TABLE sec (id int PRIMARY KEY, owner_name text, v text);
INSERT INTO sec VALUES (1, 'regress_cdc_app', 'mine'), (2, 'boss', 'secret');
ALTER TABLE sec ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON sec USING (owner_name = current_user);
GRANT SELECT ON sec TO regress_cdc_app;
CREATE TABLE open (id int, v text);
INSERT INTO open VALUES (1, 'x');
GRANT SELECT ON open TO regress_cdc_app;
SELECT cdc.track('emp'), cdc.track('sec'), cdc.track('open');
UPDATE emp SET salary = salary + 1;
UPDATE sec SET v = v || '!';
INSERT INTO open VALUES (1, 'twin');
CALL cdc.create_changelog_view('emp', 'privileges.emp_view', '{"start-snapshot-id": 0}', temporary => false);
CALL cdc.create_changelog_view('open', 'privileges.open_view', '{"start-snapshot-id": 0}', temporary => false);
CALL cdc.create_changelog_view('sec', 'privileges.sec_view', '{"start-snapshot-id": 0}', temporary => false);
SELECT log_table::text AS emp_log FROM cdc.tracked_table WHERE relation = 'emp'::regclass \gset
SET ROLE regress_cdc_app;
SELECT salary FROM emp;
\echo :SQLSTATE
SELECT id, v FROM sec;
SELECT * FROM emp_changelog(0);
\echo :SQLSTATE
SELECT id FROM emp_changelog(0, NULL, ARRAY['id']);
\echo :SQLSTATE
SELECT * FROM emp_changelog(0, NULL, ARRAY['owner_name'], 'all');
\echo :SQLSTATE
SELECT * FROM cdc.changelog('emp', 0) AS t(a int, b text, c int, d text, e bigint, f bigint, g timestamptz);
\echo :SQLSTATE
SELECT * FROM sec_changelog(0);
\echo :SQLSTATE
SELECT * FROM cdc.changelog_relative('sec', 0) AS t(a int, b text, c text, d text, e bigint, f bigint, g timestamptz);
\echo :SQLSTATE
\set VERBOSITY sqlstate
SELECT * FROM :emp_log;
\set VERBOSITY default
SELECT * FROM cdc.snapshot;
\echo :SQLSTATE
SELECT * FROM emp_view;
\echo :SQLSTATE
SELECT id, v, _change_type FROM open_changelog(0);
SELECT * FROM open_changelog(0, NULL, ARRAY['id']);
-- no untracking, no views on what may not be read
SELECT cdc.untrack('open');
\echo :SQLSTATE
CALL cdc.create_changelog_view('emp', 'pg_temp.x');
SELECT * FROM pg_temp.x;
\echo :SQLSTATE
RESET ROLE;
-- the functions in a view run with the rights of who reads it: a view never
-- shows more than the reader may see in the table
GRANT SELECT ON open_view TO regress_cdc_other;
SET ROLE regress_cdc_other;
SELECT id, v, _change_type FROM open_view;
\echo :SQLSTATE
SELECT id, v, _change_type FROM open_changelog(0);
\echo :SQLSTATE
RESET ROLE;
-- the owner under FORCE ROW LEVEL SECURITY, and a role that bypasses it
GRANT ALL ON SCHEMA privileges TO regress_cdc_own;
ALTER TABLE sec OWNER TO regress_cdc_own;
SET ROLE regress_cdc_own;
SELECT id, v, _change_type FROM sec_changelog(0) ORDER BY 1, 2;
ALTER TABLE sec FORCE ROW LEVEL SECURITY;
SELECT id, v, _change_type FROM sec_changelog(0) ORDER BY 1, 2;
\echo :SQLSTATE
RESET ROLE;
SELECT id, v, _change_type FROM sec_changelog(0) ORDER BY 1, 2;
SET row_security = off;
SELECT count(*) FROM sec_changelog(0);
RESET row_security;
SELECT cdc.untrack('emp'), cdc.untrack('sec'), cdc.untrack('open');
RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA privileges CASCADE;
DROP OWNED BY regress_cdc_own, regress_cdc_app, regress_cdc_other CASCADE;
RESET client_min_messages;
DROP ROLE regress_cdc_own, regress_cdc_app, regress_cdc_other;
SELECT count(*) FROM cdc.tracked_table WHERE NOT EXISTS (SELECT FROM pg_class WHERE oid = relation);
