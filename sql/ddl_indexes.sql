-- Unique indexes that come and go, and what they prove about identifiers
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
\set VERBOSITY terse
CREATE SCHEMA ddl_indexes;
SET search_path = ddl_indexes, public;
CREATE FUNCTION known(rel regclass, OUT index regclass, OUT since bigint) RETURNS SETOF record
LANGUAGE sql AS $$
SELECT u.index, u.since_snapshot FROM cdc.unique_index u JOIN cdc.tracked_table t USING (table_id)
 WHERE t.relation = rel ORDER BY u.index::text
$$;

CREATE TABLE t (id int, v text, w int);
INSERT INTO t VALUES (1, 'a', 1), (1, 'b', 1), (2, 'c', 2);
SELECT cdc.track('t');
SELECT * FROM known('t');
-- one of two rows of key 1 goes, the transaction makes the index after that
BEGIN;
DELETE FROM t WHERE v = 'b';
CREATE UNIQUE INDEX t_id ON t (id);
INSERT INTO t VALUES (3, 'd', 3);
COMMIT;
SELECT * FROM known('t');
-- content(0) has the key twice, whatever there is now
SELECT * FROM t_changelog(0, 1, ARRAY['id']);
UPDATE t SET v = 'A' WHERE id = 1;
SELECT id, v, _change_type, _change_ordinal FROM t_changelog(1, 2, ARRAY['id'], 'all') ORDER BY 1, 3;
SELECT * FROM t_changelog(0, 2, ARRAY['id']);
-- without changes of its own the last snapshot is proven
ALTER TABLE t ADD CONSTRAINT t_w UNIQUE (w), ADD PRIMARY KEY (id, v);
SELECT * FROM known('t');
-- what is not unique is not noted
CREATE INDEX t_plain ON t (v);
CREATE UNIQUE INDEX CONCURRENTLY t_conc ON t (v, w);
SELECT * FROM known('t');
-- rolled back
BEGIN;
CREATE UNIQUE INDEX t_rolled ON t (v);
DROP INDEX t_conc;
SELECT * FROM known('t');
ROLLBACK;
SELECT * FROM known('t');
-- and gone
DROP INDEX t_id;
ALTER TABLE t DROP CONSTRAINT t_w;
SELECT * FROM known('t');
DROP INDEX CONCURRENTLY t_conc;
SELECT * FROM known('t');
-- made anew because of another type: what it proved of old values is unknown
ALTER TABLE t ALTER id TYPE bigint;
SELECT * FROM known('t');
-- the column of an index is gone, and with it the index
ALTER TABLE t DROP COLUMN v;
SELECT * FROM known('t');
-- an index that was there for a while proves nothing of the time after it
INSERT INTO t VALUES (3, 3);
SELECT * FROM t_changelog(2, 3, ARRAY['id']);
-- several in one command of a schema
CREATE SCHEMA ddl_indexes_more
  CREATE TABLE m (id int PRIMARY KEY, v int UNIQUE);
SELECT cdc.track('ddl_indexes_more.m');
CREATE UNIQUE INDEX ON ddl_indexes_more.m (v, id);
SELECT * FROM known('ddl_indexes_more.m');
-- names in the way do not disturb
CREATE TABLE unique_index (id int);
CREATE TABLE tracked_table (id int);
CREATE FUNCTION pg_event_trigger_ddl_commands() RETURNS SETOF int LANGUAGE sql AS 'SELECT 1/0';
CREATE FUNCTION pg_event_trigger_dropped_objects() RETURNS SETOF int LANGUAGE sql AS 'SELECT 1/0';
CREATE FUNCTION never(oid, regclass) RETURNS boolean LANGUAGE sql AS 'SELECT 1/0 > 0';
CREATE OPERATOR = (FUNCTION = never, LEFTARG = oid, RIGHTARG = regclass);
SET search_path = ddl_indexes, pg_catalog;
CREATE UNIQUE INDEX t_hostile ON t (id) WHERE id < 3;
DROP INDEX t_hostile;
SET search_path = ddl_indexes, public;
DROP OPERATOR = (oid, regclass);
SELECT * FROM known('t');

SET client_min_messages = warning;
DROP SCHEMA ddl_indexes, ddl_indexes_more CASCADE;
