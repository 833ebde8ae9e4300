-- Commands that move or rewrite the table or its log, but change nothing in it
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
\set VERBOSITY terse
CREATE SCHEMA ddl_storage;
SET search_path = ddl_storage, public;
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_cdc_space LOCATION '';

CREATE TABLE t (id int PRIMARY KEY, v text, big text, n int);
ALTER TABLE t ALTER big SET STORAGE EXTERNAL;
CREATE INDEX t_n ON t (n);
INSERT INTO t SELECT i, 'v' || i, repeat(i::text, 5000), i % 7 FROM generate_series(1, 50) i;
CREATE TABLE copy_0 AS TABLE t;
SELECT cdc.track('t');
UPDATE t SET v = v || '!' WHERE id <= 20;
DELETE FROM t WHERE id > 40;
INSERT INTO t SELECT i, 'w' || i, repeat(i::text, 5000), i % 7 FROM generate_series(101, 130) i;
CREATE TABLE copy_3 AS TABLE t;
SELECT log_table AS log FROM cdc.tracked_table WHERE relation = 't'::regclass \gset

-- the changelog leads from one copy to the other, whatever happens
CREATE FUNCTION check_t() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  wrong bigint;
BEGIN
  SELECT count(*) INTO wrong FROM (
    (TABLE copy_3 UNION ALL SELECT id, v, big, n FROM t_changelog(0, 3) WHERE _change_type = 'DELETE'
     EXCEPT ALL (TABLE copy_0 UNION ALL SELECT id, v, big, n FROM t_changelog(0, 3) WHERE _change_type = 'INSERT'))
    UNION ALL
    ((TABLE copy_0 UNION ALL SELECT id, v, big, n FROM t_changelog(0, 3) WHERE _change_type = 'INSERT')
     EXCEPT ALL (TABLE copy_3 UNION ALL SELECT id, v, big, n FROM t_changelog(0, 3) WHERE _change_type = 'DELETE'))) d;
  RETURN format('%s wrong, %s gaps, %s problems', wrong,
                (SELECT count(*) FROM cdc.snapshots('t') WHERE kind = 'gap'),
                (SELECT count(*) FROM cdc.verify('t')));
END
$$;
SELECT check_t();
VACUUM FULL t;
SELECT check_t();
CLUSTER t USING t_n;
SELECT check_t();
CLUSTER t;
REINDEX TABLE t;
REINDEX TABLE CONCURRENTLY t;
VACUUM FREEZE t;
SELECT check_t();
VACUUM FULL :log;
SELECT check_t();
VACUUM FREEZE :log;
SELECT check_t();
ALTER TABLE t SET TABLESPACE regress_cdc_space;
SELECT check_t();
ALTER TABLE :log SET TABLESPACE regress_cdc_space;
SELECT check_t();
ALTER TABLE t SET TABLESPACE pg_default;
ALTER TABLE ALL IN TABLESPACE regress_cdc_space SET TABLESPACE pg_default;
SELECT check_t();
ALTER TABLE t SET LOGGED;
ALTER TABLE t SET ACCESS METHOD heap;
ALTER TABLE t SET (fillfactor = 50);
ALTER TABLE t CLUSTER ON t_pkey;
ALTER TABLE t ALTER big SET STORAGE EXTENDED, ALTER v SET COMPRESSION pglz, ALTER n SET STATISTICS 10;
ALTER TABLE t REPLICA IDENTITY FULL;
ALTER TABLE t ADD CHECK (n >= 0), ADD CONSTRAINT later CHECK (id > 0) NOT VALID;
ALTER TABLE t VALIDATE CONSTRAINT later;
ALTER TABLE t ALTER v SET NOT NULL, ALTER v SET DEFAULT 'd';
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
ALTER TABLE t DISABLE ROW LEVEL SECURITY;
CREATE STATISTICS t_stat ON id, n FROM t;
ANALYZE t;
COMMENT ON TABLE t IS 'tracked';
GRANT SELECT ON t TO PUBLIC;
SELECT check_t();
-- refused, as track() would
ALTER TABLE t SET UNLOGGED;
\echo :SQLSTATE
SELECT relpersistence FROM pg_class WHERE oid = 't'::regclass;
-- within a transaction, with changes before and after
BEGIN;
INSERT INTO t VALUES (200, 'x', 'x', 1);
ALTER TABLE t SET TABLESPACE regress_cdc_space;
UPDATE t SET v = 'y' WHERE id = 200;
ALTER TABLE t ALTER n TYPE bigint;
DELETE FROM t WHERE id = 1;
-- its own changes can be told apart from the content before it
SELECT count(*), count(*) FILTER (WHERE id = 200), count(*) FILTER (WHERE id = 1) FROM t_changelog();
SAVEPOINT s;
CLUSTER t USING t_n;
INSERT INTO t VALUES (201, 'x', 'x', 1);
TRUNCATE t;
ROLLBACK TO s;
INSERT INTO t VALUES (202, 'x', 'x', 1);
COMMIT;
SELECT id, v, _change_type FROM t_changelog(3, NULL) ORDER BY 1;
SELECT check_t();
ALTER TABLE t SET TABLESPACE pg_default;
-- the rows of the transaction move to other blocks of the log
CREATE TABLE m (id int, v text);
INSERT INTO m VALUES (0, 'first');
SELECT cdc.track('m');
BEGIN;
INSERT INTO m SELECT i, repeat('x', 100) FROM generate_series(1, 20000) i;
ROLLBACK;
BEGIN;
INSERT INTO m SELECT i, repeat('y', 100) FROM generate_series(1, 3000) i;
ALTER TABLE m ALTER id TYPE bigint;
SELECT id, v, _change_type FROM m_changelog();
INSERT INTO m SELECT i, repeat('z', 100) FROM generate_series(1, 3000) i;
SELECT id, v, _change_type FROM m_changelog();
COMMIT;
SELECT count(*), _change_type FROM m_changelog(0) GROUP BY 2;
SELECT * FROM cdc.verify('m');
-- a copy of its definition is not tracked
CREATE TABLE like_t (LIKE t INCLUDING ALL);
INSERT INTO like_t VALUES (1, 'v', 'b', 2);
ALTER TABLE like_t ADD COLUMN _change_type text;
SELECT count(*) FROM cdc.tracked_table WHERE relation = 'like_t'::regclass;

-- a wide table: refused before its rows would not fit in the log
DO $$
BEGIN
  EXECUTE (SELECT format('CREATE TABLE wide (%s)', string_agg(format('c%s int8', i), ', ')) FROM generate_series(1, 990) i);
END
$$;
SELECT cdc.track('wide');
INSERT INTO wide (c1) VALUES (1);
ALTER TABLE wide ADD COLUMN d1 int8;
DO $$
BEGIN
  EXECUTE (SELECT format('ALTER TABLE wide %s', string_agg(format('ADD COLUMN e%s int8', i), ', ')) FROM generate_series(1, 30) i);
END
$$;
INSERT INTO wide (c1, d1) VALUES (2, 4);
SELECT c1, d1, _change_type FROM wide_changelog(0);

SET client_min_messages = warning;
DROP SCHEMA ddl_storage CASCADE;
DROP TABLESPACE regress_cdc_space;
