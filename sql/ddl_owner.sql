-- Owner, name and schema: what belongs to a table follows it
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
\set VERBOSITY terse
CREATE SCHEMA ddl_owner;
CREATE SCHEMA ddl_owner2;
SET search_path = ddl_owner, public;
CREATE ROLE regress_cdc_one;
CREATE ROLE regress_cdc_two;
GRANT ALL ON SCHEMA ddl_owner, ddl_owner2 TO regress_cdc_one, regress_cdc_two;
CREATE FUNCTION parts(rel regclass, OUT kind text, OUT name text, OUT owner regrole) RETURNS SETOF record
LANGUAGE sql AS $$
SELECT 'log', '', c.relowner::regrole FROM cdc.log_segment s JOIN cdc.tracked_table t USING (table_id)
  JOIN pg_class c ON c.oid = s.log_table WHERE t.relation = rel
UNION ALL
SELECT 'sequence', '', c.relowner::regrole FROM cdc.tracked_table t
  JOIN pg_class c ON c.oid = t.snapshot_sequence WHERE t.relation = rel
UNION ALL
SELECT 'function', p.oid::regproc::text, p.proowner::regrole FROM cdc.tracked_table t
  JOIN pg_proc p ON p.prosrc = 'cdc_changelog_typed'
   AND split_part(p.proconfig[1], '.', 2) = 'table_id=' || t.table_id WHERE t.relation = rel
$$;

-- another owner
SET ROLE regress_cdc_one;
CREATE TABLE t (id int PRIMARY KEY, v text);
SELECT cdc.track('t');
INSERT INTO t VALUES (1, 'a');
RESET ROLE;
SELECT * FROM parts('t');
BEGIN;
ALTER TABLE t OWNER TO regress_cdc_two;
SELECT * FROM parts('t');
ROLLBACK;
SELECT * FROM parts('t');
ALTER TABLE t OWNER TO regress_cdc_two;
SELECT * FROM parts('t');
SET ROLE regress_cdc_two;
INSERT INTO t VALUES (2, 'b');
SELECT id, v, _change_type FROM t_changelog(0) ORDER BY 1;
RESET ROLE;
REASSIGN OWNED BY regress_cdc_two TO regress_cdc_one;
SELECT * FROM parts('t');
-- nothing is left of the former owner
REVOKE ALL ON SCHEMA ddl_owner, ddl_owner2 FROM regress_cdc_two;
DROP ROLE regress_cdc_two;
CREATE ROLE regress_cdc_two;

SET client_min_messages = warning;
DROP SCHEMA ddl_owner, ddl_owner2 CASCADE;
DROP OWNED BY regress_cdc_one, regress_cdc_two;
DROP ROLE regress_cdc_one, regress_cdc_two;
