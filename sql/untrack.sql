-- untrack() leaves nothing behind, and cdc.tracked_tables shows what is tracked
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA untrack;
SET search_path = untrack, public;
CREATE TABLE t (id int PRIMARY KEY, v text);
INSERT INTO t VALUES (1, 'a');
CREATE VIEW state AS
SELECT (SELECT count(*) FROM pg_trigger WHERE tgrelid = 't'::regclass) AS triggers_of_t,
       (SELECT count(*) FROM pg_class WHERE relnamespace = 'cdc_log'::regnamespace) AS relations_in_cdc_log,
       (SELECT count(*) FROM pg_type WHERE typnamespace = 'cdc_log'::regnamespace) AS types_in_cdc_log,
       (SELECT count(*) FROM cdc.tracked_table) AS tracked_table,
       (SELECT count(*) FROM cdc.log_segment) AS log_segment,
       (SELECT count(*) FROM cdc.snapshot) AS snapshot,
       (SELECT count(*) FROM cdc.unique_index) AS unique_index,
       (SELECT count(*) FROM pg_proc WHERE proname LIKE '%changelog' AND pronamespace = 'untrack'::regnamespace) AS functions,
       (SELECT count(*) FROM pg_depend WHERE refobjid = 't'::regclass AND deptype <> 'i' AND classid <> 'pg_attrdef'::regclass
           AND classid <> 'pg_constraint'::regclass AND classid <> 'pg_rewrite'::regclass AND objid <> 't'::regclass) AS dependencies_on_t;
CREATE TEMP TABLE before AS TABLE state;
SELECT cdc.track('t');
INSERT INTO t VALUES (2, 'b');
UPDATE t SET v = upper(v);

SELECT relation, oldest_snapshot, newest_snapshot FROM cdc.tracked_tables WHERE relation = 't'::regclass;
SELECT count(*) FROM state, before WHERE state IS DISTINCT FROM before;
SELECT cdc.track('t');
\echo :SQLSTATE
BEGIN;
SELECT cdc.untrack('t');
TABLE before EXCEPT TABLE state;
ROLLBACK;
SELECT id, v, _change_type, _change_ordinal FROM t_changelog(0) ORDER BY 4, 1, 2;
SELECT cdc.untrack('t');
TABLE before EXCEPT TABLE state;
SELECT count(*) FROM cdc.tracked_tables WHERE relation = 't'::regclass;
INSERT INTO t VALUES (3, 'free');
TRUNCATE t;
SELECT cdc.current_snapshot('t');
\echo :SQLSTATE
SELECT * FROM cdc.changelog('t', 0) AS x(id int, v text, _change_type text, _change_ordinal bigint, _commit_snapshot_id bigint, _commit_timestamp timestamptz);
\echo :SQLSTATE
SELECT cdc.untrack('t');
\echo :SQLSTATE
SELECT cdc.untrack(NULL);
SELECT cdc.track(NULL);

-- tracked again: numbers begin at 0, nothing of the first time is there
INSERT INTO t VALUES (4, 'again');
SELECT cdc.track('t');
INSERT INTO t VALUES (5, 'x');
SELECT id, v, _change_type, _change_ordinal FROM t_changelog() ORDER BY 4, 1, 2;
-- changes of the very transaction that untracks are nobody's
BEGIN;
INSERT INTO t VALUES (6, 'y');
SELECT cdc.untrack('t');
COMMIT;
TABLE before EXCEPT TABLE state;
-- untracked and tracked in one transaction that wrote before, between and after
BEGIN;
SELECT cdc.track('t');
INSERT INTO t VALUES (7, 'first');
SELECT cdc.untrack('t');
INSERT INTO t VALUES (8, 'between');
SELECT cdc.track('t');
INSERT INTO t VALUES (9, 'last');
COMMIT;
SELECT id, v, _change_type, _change_ordinal FROM t_changelog() ORDER BY 4, 1, 2;
SELECT cdc.untrack('t');
-- a prepared plan of the old tracking does not write to a log that is gone
PREPARE ins(int) AS INSERT INTO t VALUES ($1, 'prepared');
SELECT cdc.track('t');
EXECUTE ins(20);
EXECUTE ins(21);
SELECT cdc.untrack('t');
EXECUTE ins(22);
SELECT cdc.track('t');
EXECUTE ins(23);
SELECT id, v, _change_type, _change_ordinal FROM t_changelog(0) ORDER BY 4, 1, 2;
PREPARE rd AS SELECT id, _change_type FROM t_changelog(0) ORDER BY 1;
EXECUTE rd;
-- a dropped table that is rolled back stays tracked
BEGIN;
DROP TABLE t CASCADE;
ROLLBACK;
INSERT INTO t VALUES (24, 'still tracked');
EXECUTE rd;
SELECT cdc.untrack('t');
SELECT count(*) FROM cdc.snapshot s WHERE NOT EXISTS (SELECT FROM cdc.tracked_table t WHERE t.table_id = s.table_id);
SELECT count(*) FROM cdc.log_segment s WHERE NOT EXISTS (SELECT FROM cdc.tracked_table t WHERE t.table_id = s.table_id);

-- the view cdc.tracked_tables
CREATE TABLE v (id int);
INSERT INTO v VALUES (1), (2);
SELECT cdc.track('v');
INSERT INTO v VALUES (3);
DELETE FROM v WHERE id < 3;
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'cdc.tracked_tables'::regclass AND attnum > 0 ORDER BY attnum;
SELECT relation, log_bytes > 0 AS has_size, log_rows, snapshots, oldest_snapshot, newest_snapshot,
       tracked_at = (SELECT committed_at FROM cdc.snapshots('v') WHERE snapshot_id = 0) AS since_baseline, changelog_function
  FROM cdc.tracked_tables WHERE relation = 'v'::regclass;
