-- The typed function and changelog views follow the table
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
\set VERBOSITY terse
CREATE SCHEMA ddl_function;
CREATE SCHEMA ddl_function2;
SET search_path = ddl_function, public;
CREATE FUNCTION columns(fn text) RETURNS text LANGUAGE sql AS $$
SELECT string_agg(format('%s %s', n, format_type(t, NULL)), ', ' ORDER BY ord) FROM pg_proc p,
  unnest(p.proallargtypes, p.proargnames, p.proargmodes) WITH ORDINALITY a(t, n, m, ord)
 WHERE p.oid = fn::regproc AND m = 't'
$$;

-- without anything that depends on it, the columns are always in order
CREATE TABLE t (id int PRIMARY KEY, v text, gone int);
SELECT cdc.track('t');
INSERT INTO t VALUES (1, 'a', 5);
REVOKE ALL ON FUNCTION t_changelog FROM PUBLIC;
COMMENT ON FUNCTION t_changelog IS 'mine';
SELECT columns('t_changelog');
ALTER TABLE t ADD COLUMN n numeric DEFAULT 1.5;
ALTER TABLE t DROP COLUMN gone, ALTER id TYPE bigint;
ALTER TABLE t RENAME v TO "V v";
SELECT columns('t_changelog');
SELECT * FROM t_changelog(0) LIMIT 0;
SELECT id, "V v", n, _change_type FROM t_changelog(0);
SELECT proacl IS NOT NULL AS acl, obj_description(oid) FROM pg_proc WHERE oid = 't_changelog'::regproc;
BEGIN;
ALTER TABLE t ADD COLUMN m int;
SELECT columns('t_changelog');
ROLLBACK;
SELECT columns('t_changelog');
ALTER TABLE t RENAME "V v" TO v;

-- with a view on it, the view goes on showing what it did
CREATE VIEW v AS SELECT id, v, _change_type, _change_ordinal FROM t_changelog(0);
CREATE VIEW vn AS SELECT n FROM t_changelog(0);
CREATE VIEW vall AS SELECT * FROM t_changelog(0);
INSERT INTO t VALUES (2, 'b', 2.5);
ALTER TABLE t ADD COLUMN later date DEFAULT '2026-01-01';
ALTER TABLE t RENAME v TO w;
SELECT columns('t_changelog');
TABLE v ORDER BY 4;
TABLE vn ORDER BY 1;
SELECT id, v, n, _change_type FROM vall ORDER BY 1;
SELECT id, w, n, later, _change_type FROM t_changelog(0) ORDER BY 1;
-- from 16 on, columns are qualified only where they have to be
SELECT replace(pg_get_viewdef('v'), ' t_changelog.', ' ') AS definition;
-- a column that a view uses is gone: that view fails, the others do not
ALTER TABLE t DROP COLUMN n;
SELECT columns('t_changelog');
\set VERBOSITY default
TABLE vn;
\set VERBOSITY terse
\echo :SQLSTATE
TABLE v ORDER BY 4;
-- the same name again is not the same column
ALTER TABLE t ADD COLUMN n numeric DEFAULT 7;
TABLE vn;
SELECT columns('t_changelog');
SELECT id, w, later, n, _change_type FROM t_changelog(0) ORDER BY 1;
-- a used column of another type
ALTER TABLE t ALTER id TYPE numeric;
TABLE v;
\echo :SQLSTATE
ALTER TABLE t ALTER id TYPE bigint USING id::bigint;
TABLE v;
INSERT INTO t VALUES (3, 'c');
CREATE OR REPLACE VIEW v AS SELECT id, w AS v, _change_type, _change_ordinal FROM t_changelog();
TABLE v;
-- in order again when there are no views any more
DROP VIEW v, vn, vall;
ALTER TABLE t ALTER n SET DEFAULT 8;
SELECT columns('t_changelog');
SELECT * FROM t_changelog() LIMIT 0;
-- a prepared statement
PREPARE p AS SELECT id, w, _change_type FROM t_changelog(NULL, NULL) ORDER BY 1;
EXECUTE p;
ALTER TABLE t ADD COLUMN more int DEFAULT 1;
EXECUTE p;
ALTER TABLE t RENAME w TO x;
EXECUTE p;
DEALLOCATE p;

-- names and schemas
ALTER TABLE t RENAME TO renamed;
SELECT proname FROM pg_proc WHERE prosrc = 'cdc_changelog_typed' AND pronamespace = 'ddl_function'::regnamespace;
SELECT id, x, _change_type FROM renamed_changelog(NULL, NULL) WHERE id < 3 ORDER BY 1;
CREATE FUNCTION ddl_function2.renamed_changelog(bigint) RETURNS int LANGUAGE sql AS 'SELECT 1';
ALTER TABLE renamed SET SCHEMA ddl_function2;
SELECT proname, pronamespace::regnamespace FROM pg_proc WHERE prosrc = 'cdc_changelog_typed' AND pronamespace::regnamespace::text ~ 'ddl_function';
SELECT id, x, _change_type FROM ddl_function2.renamed_changelog1() WHERE id < 3 ORDER BY 1;
ALTER TABLE ddl_function2.renamed SET SCHEMA ddl_function;
ALTER TABLE renamed RENAME TO t;
SELECT proname, pronamespace::regnamespace FROM pg_proc WHERE prosrc = 'cdc_changelog_typed' AND pronamespace::regnamespace::text ~ 'ddl_function';
-- two tables change places
CREATE TABLE u (id int, z text);
SELECT cdc.track('u');
INSERT INTO u VALUES (1, 'of u');
BEGIN;
ALTER TABLE t RENAME TO tmp;
ALTER TABLE u RENAME TO t;
ALTER TABLE tmp RENAME TO u;
COMMIT;
SELECT z FROM t_changelog(0);
SELECT x FROM u_changelog() WHERE id = 3;
INSERT INTO t VALUES (2, 'as t');
INSERT INTO u (id, x) VALUES (4, 'as u');
SELECT id, z FROM t_changelog(0) ORDER BY 1;
SELECT id, x FROM u_changelog() WHERE id > 2 ORDER BY 1;
-- a name of the user's own stays
ALTER FUNCTION u_changelog RENAME TO what_happened;
ALTER TABLE u RENAME TO t2;
ALTER TABLE t2 ADD COLUMN y2 int;
ALTER SCHEMA ddl_function RENAME TO ddl_function_x;
ALTER SCHEMA ddl_function_x RENAME TO ddl_function;
SELECT id, x, y2 FROM what_happened() WHERE id > 2 ORDER BY 1;
-- a long name is cut
ALTER TABLE t2 RENAME TO a_name_of_sixty_characters_and_three_more_is_the_longest_there_;
DROP FUNCTION what_happened;
ALTER TABLE a_name_of_sixty_characters_and_three_more_is_the_longest_there_ RENAME TO t2;
INSERT INTO t2 (id) VALUES (9);
SELECT count(*) FROM pg_proc WHERE prosrc = 'cdc_changelog_typed' AND pronamespace = 'ddl_function'::regnamespace;

-- views made by create_changelog_view
CREATE TABLE c (id int PRIMARY KEY, v text, n int);
SELECT cdc.track('c');
INSERT INTO c VALUES (1, 'a', 1);
UPDATE c SET v = 'b';
CALL cdc.create_changelog_view('c', 'c_view', identifier_columns => ARRAY['id'], temporary => false);
TABLE c_view LIMIT 0;
ALTER TABLE c ADD COLUMN added int DEFAULT 1;
SELECT id, v, n, _change_type, _change_ordinal FROM c_view ORDER BY 5, 4 DESC;
ALTER TABLE c RENAME id TO pk;
ALTER TABLE c RENAME v TO vv;
ALTER TABLE c RENAME n TO v;
ALTER TABLE c RENAME TO cc;
SELECT id, v, n, _change_type, _change_ordinal FROM c_view ORDER BY 5, 4 DESC;
BEGIN;
ALTER TABLE cc ALTER v TYPE text;
TABLE c_view;
ROLLBACK;
ALTER TABLE cc DROP COLUMN v, ADD COLUMN n int;
\set VERBOSITY default
TABLE c_view;
\set VERBOSITY terse
\echo :SQLSTATE
CALL cdc.create_changelog_view('cc', 'c_view', identifier_columns => ARRAY['pk'], temporary => false);
SELECT pk, vv, n, _change_type, _change_ordinal FROM c_view ORDER BY 5, 4 DESC;
-- whoever lists the columns himself has to list the present ones
SELECT * FROM cdc.changelog('cc', 0, 1) AS x(id int, v text, n int, a text, b bigint, c bigint, d timestamptz);
\echo :SQLSTATE

SET client_min_messages = warning;
DROP SCHEMA ddl_function, ddl_function2 CASCADE;
