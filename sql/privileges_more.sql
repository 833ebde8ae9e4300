-- More of who may do what, and with whose rights what runs: writers with as few
-- privileges as possible, owners of tables, what errors and plans tell, and
-- user code that is in the way of capture, reading and DDL
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE ROLE regress_cdc_own;
CREATE ROLE regress_cdc_write;
CREATE ROLE regress_cdc_none;
CREATE SCHEMA privileges_more;
GRANT USAGE ON SCHEMA privileges_more TO regress_cdc_own, regress_cdc_write, regress_cdc_none;
-- nobody but superusers gets at the extension's schema by name
REVOKE USAGE ON SCHEMA cdc FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION cdc.capture() FROM PUBLIC;

--
-- Writers
--
CREATE TABLE privileges_more.t (id int PRIMARY KEY, v text, w text DEFAULT 'w', g serial);
ALTER TABLE privileges_more.t OWNER TO regress_cdc_own;
SELECT cdc.track('privileges_more.t');
INSERT INTO privileges_more.t(id, v) VALUES (1, 'a'), (2, 'b'), (3, 'c');
GRANT INSERT (id, v), UPDATE (v), SELECT (id) ON privileges_more.t TO regress_cdc_write;
GRANT USAGE ON SEQUENCE privileges_more.t_g_seq TO regress_cdc_write;
SET ROLE regress_cdc_write;
INSERT INTO privileges_more.t(id, v) VALUES (4, 'columns');
UPDATE privileges_more.t SET v = 'columns' WHERE id = 1;
INSERT INTO privileges_more.t(id, v) VALUES (5, 'copy') ON CONFLICT DO NOTHING;
COPY privileges_more.t (id, v) FROM stdin;
6	copied
\.
DELETE FROM privileges_more.t;
\echo :SQLSTATE
RESET ROLE;
SELECT id, v, _change_type, _change_ordinal FROM privileges_more.t_changelog(1) ORDER BY 4, 1, 3;
-- DELETE without SELECT
GRANT DELETE ON privileges_more.t TO regress_cdc_none;
SET ROLE regress_cdc_none;
DELETE FROM privileges_more.t;
SELECT id FROM privileges_more.t_changelog(0);
\echo :SQLSTATE
RESET ROLE;
SELECT count(*), min(_change_type) FROM privileges_more.t_changelog(5);
-- through a function of the owner, which the writer may only call
GRANT CREATE ON SCHEMA privileges_more TO regress_cdc_own;
SET ROLE regress_cdc_own;
CREATE FUNCTION privileges_more.add(i int) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = pg_temp
AS $$ INSERT INTO privileges_more.t(id, v) VALUES (i, current_user) $$;
RESET ROLE;
REVOKE CREATE ON SCHEMA privileges_more FROM regress_cdc_own;
SET ROLE regress_cdc_none;
SELECT privileges_more.add(10);
RESET ROLE;
-- the role changes between the write and the commit
BEGIN;
SET LOCAL ROLE regress_cdc_own;
INSERT INTO privileges_more.t(id, v) VALUES (11, 'own');
SAVEPOINT s;
SET LOCAL ROLE regress_cdc_none;
DELETE FROM privileges_more.t;
ROLLBACK TO s;
SET LOCAL ROLE regress_cdc_none;
COMMIT;
-- a writer's commit starts a new segment
SET cdc_changelog.segment_size = '8kB';
SET ROLE regress_cdc_own;
INSERT INTO privileges_more.t(id, v) SELECT i, repeat('long', 100) FROM generate_series(100, 150) i;
INSERT INTO privileges_more.t(id, v) VALUES (12, 'in the next segment');
RESET ROLE;
RESET cdc_changelog.segment_size;
SELECT count(*) > 1 AS segments, count(DISTINCT relowner) AS owners, count(relacl) AS acls
  FROM cdc.log_segment JOIN cdc.tracked_table USING (table_id) JOIN pg_class c ON c.oid = log_segment.log_table
 WHERE relation = 'privileges_more.t'::regclass;
SELECT id, left(v, 20) AS v, _change_type FROM privileges_more.t_changelog(6) WHERE id NOT BETWEEN 101 AND 150 ORDER BY _change_ordinal, id;
-- under row-level security: the policies decide what is written, and that is logged
CREATE TABLE privileges_more.rls (id int PRIMARY KEY, who text DEFAULT current_user);
ALTER TABLE privileges_more.rls ENABLE ROW LEVEL SECURITY;
ALTER TABLE privileges_more.rls FORCE ROW LEVEL SECURITY;
CREATE POLICY p ON privileges_more.rls USING (who = current_user) WITH CHECK (who = current_user);
INSERT INTO privileges_more.rls VALUES (1, 'regress_cdc_write'), (2, 'boss');
ALTER TABLE privileges_more.rls OWNER TO regress_cdc_own;
GRANT ALL ON privileges_more.rls TO regress_cdc_write;
SELECT cdc.track('privileges_more.rls');
SET ROLE regress_cdc_write;
UPDATE privileges_more.rls SET id = id + 10;
INSERT INTO privileges_more.rls VALUES (20, 'boss');
\echo :SQLSTATE
RESET ROLE;
GRANT USAGE ON SCHEMA cdc TO PUBLIC;
SET ROLE regress_cdc_write;
-- the row type's function, the content and the proof are no way round the policies
SELECT * FROM privileges_more.rls_changelog(0);
\echo :SQLSTATE
SELECT * FROM cdc.as_of(NULL::privileges_more.rls, 0);
\echo :SQLSTATE
SELECT * FROM cdc.verify('privileges_more.rls');
\echo :SQLSTATE
TRUNCATE privileges_more.rls;
RESET ROLE;
SELECT id, who, _change_type, _change_ordinal FROM privileges_more.rls_changelog(0, NULL, NULL, 'all') ORDER BY 4, 1;

--
-- Owners
--
-- a table in a schema in which its owner may not create anything
SET ROLE regress_cdc_own;
CREATE TABLE privileges_more.no (id int);
\echo :SQLSTATE
SELECT cdc.untrack('privileges_more.t');
SELECT cdc.track('privileges_more.t');
SELECT proowner::regrole FROM pg_proc WHERE oid = 'privileges_more.t_changelog'::regproc;
INSERT INTO privileges_more.t(id, v) VALUES (30, 'again');
SELECT count(*) FROM cdc.verify('privileges_more.t');
SELECT count(*) FROM cdc.as_of(NULL::privileges_more.t, 0);
SELECT inserted FROM cdc.snapshots('privileges_more.t') ORDER BY snapshot_id;
SELECT * FROM cdc.check();
-- the log is the owner's, but it is out of reach by name
SELECT log_table FROM cdc.tracked_table;
\echo :SQLSTATE
SELECT count(*) FROM cdc_log.t1_1;
\echo :SQLSTATE
DROP SCHEMA cdc_log CASCADE;
\echo :SQLSTATE
DROP EXTENSION cdc_changelog CASCADE;
\echo :SQLSTATE
ALTER EVENT TRIGGER cdc_changelog_ddl_end DISABLE;
\echo :SQLSTATE
SELECT cdc.ddl_end();
\echo :SQLSTATE
-- by OID neither
RESET ROLE;
SELECT snapshot_sequence::oid AS seq, 'cdc.transaction_number'::regclass::oid AS txseq FROM cdc.tracked_table
 WHERE relation = 'privileges_more.t'::regclass \gset
SET ROLE regress_cdc_write;
\set VERBOSITY sqlstate
SELECT nextval(:seq);
\echo :SQLSTATE
SELECT setval(:seq, 1);
\echo :SQLSTATE
SELECT nextval(:txseq);
\echo :SQLSTATE
\set VERBOSITY default
SELECT cdc.expire_snapshots('privileges_more.t', retain_last => 1);
\echo :SQLSTATE
SELECT cdc.track('privileges_more.t');
\echo :SQLSTATE
RESET ROLE;
-- the triggers' functions are not for others' tables
SET ROLE regress_cdc_write;
CREATE TEMP TABLE mine (id int PRIMARY KEY, v text, w text, g int);
CREATE TRIGGER cdc_changelog_insert AFTER INSERT ON mine REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION cdc.capture();
\echo :SQLSTATE
CREATE TRIGGER r BEFORE INSERT ON mine FOR EACH ROW EXECUTE FUNCTION cdc.restore();
\echo :SQLSTATE
RESET ROLE;
GRANT EXECUTE ON FUNCTION cdc.capture() TO PUBLIC;
SET ROLE regress_cdc_write;
CREATE TRIGGER cdc_changelog_insert AFTER INSERT ON mine REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION cdc.capture('privileges_more.t');
INSERT INTO mine VALUES (666, 'forged');
DROP TABLE mine;
RESET ROLE;
-- nor for a second trigger on the tracked one, which would log everything twice
SET ROLE regress_cdc_own;
CREATE TRIGGER my_cdc_changelog_insert AFTER INSERT ON privileges_more.t REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION cdc.capture();
INSERT INTO privileges_more.t(id, v) VALUES (31, 'twice');
\echo :SQLSTATE
DROP TRIGGER my_cdc_changelog_insert ON privileges_more.t;
RESET ROLE;
SELECT id, v, _change_type FROM privileges_more.t_changelog(0) ORDER BY 1;
-- what is restored into the catalog tables does not come from others
SET ROLE regress_cdc_write;
INSERT INTO cdc.snapshot VALUES (1, 1, 999, 0, '1', '1', now(), 0, 0, NULL, NULL, 'c', NULL, NULL);
\echo :SQLSTATE
\copy cdc.tracked_table FROM '/dev/null'
\echo :SQLSTATE
RESET ROLE;

--
-- What errors and plans tell
--
CREATE FUNCTION privileges_more.plan_rows(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
    RETURN substring(line FROM 'rows=\d+');
  END LOOP;
END $$;
CREATE TABLE privileges_more.secret (id int, v text);
SELECT cdc.track('privileges_more.secret');
INSERT INTO privileges_more.secret SELECT i, 'x' FROM generate_series(1, 123) i;
INSERT INTO privileges_more.secret VALUES (1, 'very secret');
SELECT privileges_more.plan_rows('SELECT * FROM privileges_more.secret_changelog(0)');
GRANT SELECT (id) ON privileges_more.secret TO regress_cdc_write;
SET ROLE regress_cdc_write;
SELECT privileges_more.plan_rows('SELECT * FROM privileges_more.secret_changelog(0)');
SELECT * FROM privileges_more.secret_changelog(0, NULL, '{id}');
\echo :SQLSTATE
SELECT * FROM cdc.verify('privileges_more.secret');
\echo :SQLSTATE
SELECT count(*) FROM cdc.snapshots('privileges_more.secret');
RESET ROLE;
SET ROLE regress_cdc_none;
SELECT privileges_more.plan_rows('SELECT * FROM privileges_more.secret_changelog(0)');
SELECT privileges_more.plan_rows('SELECT * FROM cdc.changelog(''privileges_more.secret'', 0) AS t(a int)');
SELECT * FROM privileges_more.secret_changelog(0, NULL, '{id}');
\echo :SQLSTATE
SELECT cdc.current_snapshot('privileges_more.secret');
\echo :SQLSTATE
SELECT * FROM cdc.snapshots('privileges_more.secret');
\echo :SQLSTATE
SELECT * FROM cdc.tracked_tables WHERE relation = 'privileges_more.secret'::regclass;
SELECT * FROM cdc.check() WHERE object ~ 'secret';
RESET ROLE;

--
-- User code in the way
--
CREATE ROLE regress_cdc_evil;
GRANT CREATE ON DATABASE :DBNAME TO regress_cdc_evil;
GRANT ALL ON SCHEMA privileges_more TO regress_cdc_evil;
SET ROLE regress_cdc_evil;
SET client_min_messages = warning;
CREATE SCHEMA regress_cdc_evil;
CREATE FUNCTION regress_cdc_evil.trap() RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked as %', current_user; END $$;
-- types whose values cannot be looked at without running their owner's code
CREATE FUNCTION regress_cdc_evil.domain_check(int) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('regress.armed', true) = 'yes' THEN PERFORM regress_cdc_evil.trap(); END IF;
  RETURN true;
END $$;
CREATE DOMAIN regress_cdc_evil.dom AS int CHECK (regress_cdc_evil.domain_check(VALUE));
CREATE FUNCTION regress_cdc_evil.diff(int, int) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN regress_cdc_evil.trap()::int; END $$;
CREATE TYPE regress_cdc_evil.ran AS RANGE (subtype = int, subtype_diff = regress_cdc_evil.diff);
CREATE TYPE regress_cdc_evil.mood AS ENUM ('sad', 'glad');
CREATE TYPE regress_cdc_evil.comp AS (a int, m regress_cdc_evil.mood);
CREATE FUNCTION regress_cdc_evil.cast_text(regress_cdc_evil.comp) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN regress_cdc_evil.trap()::text; END $$;
CREATE CAST (regress_cdc_evil.comp AS text) WITH FUNCTION regress_cdc_evil.cast_text(regress_cdc_evil.comp) AS IMPLICIT;
CREATE FUNCTION regress_cdc_evil.eq_comp(regress_cdc_evil.comp, regress_cdc_evil.comp) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RETURN regress_cdc_evil.trap(); END $$;
CREATE OPERATOR regress_cdc_evil.= (FUNCTION = regress_cdc_evil.eq_comp, LEFTARG = regress_cdc_evil.comp, RIGHTARG = regress_cdc_evil.comp);
CREATE FUNCTION regress_cdc_evil.eq_mood(regress_cdc_evil.mood, regress_cdc_evil.mood) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RETURN regress_cdc_evil.trap(); END $$;
CREATE OPERATOR regress_cdc_evil.= (FUNCTION = regress_cdc_evil.eq_mood, LEFTARG = regress_cdc_evil.mood, RIGHTARG = regress_cdc_evil.mood);
CREATE OPERATOR regress_cdc_evil.<> (FUNCTION = regress_cdc_evil.eq_mood, LEFTARG = regress_cdc_evil.mood, RIGHTARG = regress_cdc_evil.mood);
-- names that the extension's own statements might be caught by
CREATE FUNCTION regress_cdc_evil.pg_event_trigger_ddl_commands() RETURNS SETOF pg_class LANGUAGE plpgsql AS $$ BEGIN PERFORM regress_cdc_evil.trap(); END $$;
CREATE FUNCTION regress_cdc_evil.pg_event_trigger_dropped_objects() RETURNS SETOF pg_class LANGUAGE plpgsql AS $$ BEGIN PERFORM regress_cdc_evil.trap(); END $$;
CREATE FUNCTION regress_cdc_evil.eq_oid(oid, oid) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RETURN regress_cdc_evil.trap(); END $$;
CREATE OPERATOR regress_cdc_evil.= (FUNCTION = regress_cdc_evil.eq_oid, LEFTARG = oid, RIGHTARG = oid);
CREATE FUNCTION regress_cdc_evil.capture() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM regress_cdc_evil.trap(); END $$;
CREATE TABLE regress_cdc_evil.pg_class (oid oid);
CREATE TABLE regress_cdc_evil.pg_trigger (oid oid);
CREATE TYPE regress_cdc_evil.regclass AS ENUM ('x');
CREATE TYPE regress_cdc_evil.bigint AS ENUM ('x');
CREATE TABLE privileges_more.evil (
  id regress_cdc_evil.dom PRIMARY KEY,
  r regress_cdc_evil.ran,
  c regress_cdc_evil.comp,
  m regress_cdc_evil.mood);
INSERT INTO privileges_more.evil VALUES (1, '[1,2)', '(1,sad)', 'sad'), (2, '[2,3)', '(2,sad)', 'glad');
GRANT ALL ON privileges_more.evil TO regress_cdc_write;
RESET ROLE;
SET search_path = regress_cdc_evil, pg_catalog, pg_temp;
-- everything the extension does, by a superuser, with the traps first in the search_path
SELECT cdc.track('privileges_more.evil');
SET regress.armed = 'no';
UPDATE privileges_more.evil SET m = 'glad', r = '[5,9)';
INSERT INTO privileges_more.evil VALUES (3, NULL, NULL, NULL);
DELETE FROM privileges_more.evil WHERE id OPERATOR(pg_catalog.=) 2;
SET regress.armed = 'yes';
SELECT id::pg_catalog.int4, r, m, _change_type FROM privileges_more.evil_changelog(0, NULL, '{id}', 'all') ORDER BY _change_ordinal, 1, 4 DESC;
SELECT pg_catalog.count(*) FROM privileges_more.evil_changelog(0);
SELECT pg_catalog.count(*) FROM privileges_more.evil_changelog(NULL, NULL, '{c,m,r}');
SELECT pg_catalog.count(*) FROM cdc.as_of(NULL::privileges_more.evil, 0);
SELECT pg_catalog.count(*) FROM cdc.verify('privileges_more.evil');
SELECT pg_catalog.count(*) FROM cdc.check() WHERE object OPERATOR(pg_catalog.~) 'evil';
SELECT pg_catalog.count(*) FROM cdc.tracked_tables WHERE relation OPERATOR(pg_catalog.=) 'privileges_more.evil'::pg_catalog.regclass;
-- DDL, which the event triggers follow
SET regress.armed = 'no';
CREATE UNIQUE INDEX ON privileges_more.evil (m, id);
ALTER TABLE privileges_more.evil RENAME TO evil2;
ALTER TABLE privileges_more.evil2 OWNER TO regress_cdc_own;
ALTER TABLE privileges_more.evil2 OWNER TO regress_cdc_evil;
TRUNCATE privileges_more.evil2;
SET regress.armed = 'yes';
SELECT pg_catalog.count(*) FROM cdc.changelog('privileges_more.evil2', 3) AS
  t(id regress_cdc_evil.dom, r regress_cdc_evil.ran, c regress_cdc_evil.comp, m regress_cdc_evil.mood,
    _change_type text, _change_ordinal pg_catalog.int8, _commit_snapshot_id pg_catalog.int8, _commit_timestamp timestamptz);
SELECT cdc.untrack('privileges_more.evil2');
SELECT cdc.track('privileges_more.evil2');
DROP TABLE privileges_more.evil2;
RESET search_path;
RESET regress.armed;
SELECT count(*) FROM cdc.tracked_table WHERE NOT EXISTS (SELECT FROM pg_class WHERE oid = relation);

DROP OWNED BY regress_cdc_evil CASCADE;
DROP ROLE regress_cdc_evil;
-- everything of an owner goes, with the tables' logs
SELECT count(*) FROM cdc.tracked_table WHERE relation::text ~ '^privileges_more';
DROP OWNED BY regress_cdc_own CASCADE;
SELECT relation FROM cdc.tracked_table WHERE relation::text ~ '^privileges_more';
SELECT count(*) FROM pg_class WHERE relnamespace = 'cdc_log'::regnamespace AND relkind = 'r'
   AND oid NOT IN (SELECT log_table FROM cdc.log_segment);
DROP SCHEMA privileges_more CASCADE;
DROP OWNED BY regress_cdc_write, regress_cdc_none;
RESET client_min_messages;
DROP ROLE regress_cdc_own, regress_cdc_write, regress_cdc_none;
