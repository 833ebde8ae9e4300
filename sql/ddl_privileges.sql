-- DDL by owners who are no superusers, with a hostile search_path
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
\set VERBOSITY terse
CREATE SCHEMA ddl_privileges;
CREATE ROLE regress_cdc_owner;
CREATE ROLE regress_cdc_member IN ROLE regress_cdc_owner;
CREATE ROLE regress_cdc_other;
GRANT ALL ON SCHEMA ddl_privileges TO regress_cdc_owner, regress_cdc_other;
GRANT CREATE ON SCHEMA public TO regress_cdc_owner;
SET search_path = ddl_privileges, public;
CREATE TYPE letter AS ENUM ('x', 'y');
CREATE DOMAIN open_domain AS letter;
REVOKE EXECUTE ON FUNCTION pg_event_trigger_ddl_commands(), pg_event_trigger_dropped_objects() FROM PUBLIC;

SET ROLE regress_cdc_owner;
CREATE TABLE t (id int PRIMARY KEY, v text);
SELECT cdc.track('t');
INSERT INTO t VALUES (1, 'a');
-- objects of the same names as built-in ones, that come first
CREATE FUNCTION boom() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'called with the rights of %', current_user; END $$;
CREATE FUNCTION int8(int) RETURNS bigint LANGUAGE sql AS 'SELECT ddl_privileges.boom()::bigint';
CREATE FUNCTION "numeric"(int) RETURNS pg_catalog.numeric LANGUAGE sql AS 'SELECT ddl_privileges.boom()::pg_catalog.numeric';
CREATE FUNCTION op(oid, oid) RETURNS boolean LANGUAGE sql AS 'SELECT ddl_privileges.boom() > 0';
CREATE OPERATOR = (FUNCTION = op, LEFTARG = oid, RIGHTARG = oid);
CREATE FUNCTION op(int, int) RETURNS boolean LANGUAGE sql AS 'SELECT ddl_privileges.boom() > 0';
CREATE OPERATOR = (FUNCTION = op, LEFTARG = int, RIGHTARG = int);
CREATE TABLE pg_class (oid oid);
CREATE TABLE pg_trigger (oid oid);
CREATE FUNCTION pg_event_trigger_ddl_commands(OUT classid oid, OUT objid oid, OUT objsubid int) RETURNS SETOF record LANGUAGE sql AS 'SELECT boom()::oid, 0::oid, 0';
SET search_path = ddl_privileges, pg_catalog;
ALTER TABLE t ALTER id TYPE bigint;
ALTER TABLE t ADD COLUMN o open_domain DEFAULT 'x', ADD COLUMN n int DEFAULT 3;
ALTER TABLE t ALTER n TYPE numeric;
ALTER TABLE t RENAME v TO w;
CREATE UNIQUE INDEX ON t (w);
ALTER TABLE t DROP COLUMN n;
ALTER TABLE t DISABLE TRIGGER ALL;
ALTER TABLE t DISABLE TRIGGER USER;
ALTER TABLE t ENABLE TRIGGER USER;
ALTER TABLE t RENAME TO t2;
ALTER TABLE t2 RENAME TO t;
INSERT INTO t VALUES (2, 'b', 'y');
DROP OPERATOR ddl_privileges.= (oid, oid);
DROP OPERATOR ddl_privileges.= (int, int);
DROP TABLE ddl_privileges.pg_class, ddl_privileges.pg_trigger;
SET search_path = ddl_privileges, public;
SELECT id, w, o, _change_type, _change_ordinal FROM t_changelog() ORDER BY 1;
SELECT snapshot_id, kind FROM cdc.snapshots('t');
-- a member of the owner can do the same, others cannot
SET ROLE regress_cdc_member;
ALTER TABLE t ADD COLUMN m int, ALTER w TYPE varchar;
INSERT INTO t VALUES (3, 'c', 'y', 1);
SET ROLE regress_cdc_other;
ALTER TABLE t DISABLE TRIGGER USER;
ALTER TABLE t ADD COLUMN q int;
DROP TABLE t;
-- the log is out of reach for everybody
SET ROLE regress_cdc_owner;
\set VERBOSITY sqlstate
ALTER TABLE cdc_log.t1_1 ADD COLUMN x int;
DROP TABLE cdc_log.t1_1;
SELECT cdc.ddl_end();
CREATE EVENT TRIGGER mine ON ddl_command_end EXECUTE FUNCTION cdc.ddl_end();
DROP EVENT TRIGGER cdc_changelog_ddl_end;
ALTER EVENT TRIGGER cdc_changelog_ddl_end DISABLE;
\set VERBOSITY terse
-- a cast of one's own is not run with other rights
CREATE TYPE own AS ENUM ('p', 'q');
CREATE FUNCTION who(own) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN current_user; END $$;
CREATE CAST (own AS text) WITH FUNCTION who(own) AS ASSIGNMENT;
ALTER TABLE t ADD COLUMN own own DEFAULT 'p';
UPDATE t SET own = 'q' WHERE id = 1;
ALTER TABLE t ALTER own TYPE text;
SELECT DISTINCT own FROM t;
INSERT INTO t (id) VALUES (5);
SELECT own, _change_type FROM t_changelog((SELECT max(snapshot_id) - 1 FROM cdc.snapshots('t')));
DROP FUNCTION who(own) CASCADE;
-- default expressions and generated columns run as the owner only, too
CREATE FUNCTION whoami() RETURNS text LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN current_user; END $$;
ALTER TABLE t ADD COLUMN me text DEFAULT whoami();
SELECT DISTINCT me FROM t;
DROP TABLE t;
RESET ROLE;
SELECT count(*) FROM cdc.tracked_table WHERE relation::text ~ 'ddl_privileges';

GRANT EXECUTE ON FUNCTION pg_event_trigger_ddl_commands(), pg_event_trigger_dropped_objects() TO PUBLIC;
SET client_min_messages = warning;
DROP SCHEMA ddl_privileges CASCADE;
DROP OWNED BY regress_cdc_owner, regress_cdc_other;
DROP ROLE regress_cdc_owner, regress_cdc_member, regress_cdc_other;
