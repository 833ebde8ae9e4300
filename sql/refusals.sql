-- What cannot be tracked is refused, and nothing is left behind (BB-50)
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA refusals;
SET search_path = refusals, public;
CREATE VIEW left_behind AS
SELECT (SELECT count(*) FROM pg_trigger WHERE tgfoid IN (SELECT oid FROM pg_proc WHERE pronamespace = 'cdc'::regnamespace)) AS triggers,
       (SELECT count(*) FROM pg_class WHERE relnamespace = 'cdc_log'::regnamespace) AS logs,
       (SELECT count(*) FROM cdc.tracked_table) AS tracked,
       (SELECT count(*) FROM cdc.log_segment) AS segments,
       (SELECT count(*) FROM cdc.snapshot) AS snapshots,
       (SELECT count(*) FROM pg_proc WHERE proname LIKE '%changelog%') AS functions;
CREATE TEMP TABLE before AS TABLE left_behind;

CREATE TABLE base (id int PRIMARY KEY, v text);
CREATE VIEW vw AS SELECT * FROM base;
CREATE MATERIALIZED VIEW mv AS SELECT * FROM base;
CREATE TEMP TABLE tt (id int PRIMARY KEY);
CREATE UNLOGGED TABLE ul (id int PRIMARY KEY);
CREATE FOREIGN DATA WRAPPER regress_cdc_dummy;
CREATE SERVER regress_cdc_server FOREIGN DATA WRAPPER regress_cdc_dummy;
CREATE FOREIGN TABLE ft (line text) SERVER regress_cdc_server;
CREATE TABLE parent (id int, v text);
CREATE TABLE child (extra int) INHERITS (parent);
CREATE TABLE parted (id int, v text) PARTITION BY RANGE (id);
CREATE TABLE part_1 PARTITION OF parted FOR VALUES FROM (0) TO (10);
CREATE SEQUENCE seq;
CREATE TYPE comp AS (a int);
INSERT INTO parent VALUES (1, 'p');
INSERT INTO child VALUES (2, 'c', 0);

SELECT cdc.track('vw');
\echo :SQLSTATE
SELECT cdc.track('mv');
\echo :SQLSTATE
SELECT cdc.track('tt');
\echo :SQLSTATE
SELECT cdc.track('ul');
\echo :SQLSTATE
SELECT cdc.track('ft');
\echo :SQLSTATE
SELECT cdc.track('parent');
\echo :SQLSTATE
SELECT cdc.track('child');
\echo :SQLSTATE
SELECT cdc.track('part_1');
\echo :SQLSTATE
SELECT cdc.track('pg_class');
\echo :SQLSTATE
SELECT cdc.track('pg_authid');
\echo :SQLSTATE
SELECT cdc.track('information_schema.sql_features');
\echo :SQLSTATE
SELECT cdc.track('cdc.snapshot');
\echo :SQLSTATE
SELECT cdc.track('cdc.tracked_table');
\echo :SQLSTATE
SELECT cdc.track('seq');
\echo :SQLSTATE
SELECT cdc.track('base_pkey');
\echo :SQLSTATE
SELECT cdc.track('comp');
\echo :SQLSTATE
SELECT cdc.track(NULL);
SELECT cdc.track('no_such_table');
\echo :SQLSTATE
-- reserved names of columns
CREATE TABLE r1 (id int PRIMARY KEY, _change_type text);
SELECT cdc.track('r1');
\echo :SQLSTATE
INSERT INTO r1 VALUES (1, 'mine');
-- too wide for a log: a row that fits here might not fit there
DO $$
BEGIN
  EXECUTE (SELECT format('CREATE TABLE widest (%s)', string_agg(format('c%s int', i), ', ')) FROM generate_series(1, 1600) i);
  EXECUTE (SELECT format('CREATE TABLE widest_bytes (%s)', string_agg(format('c%s bigint', i), ', ')) FROM generate_series(1, 1001) i);
  EXECUTE (SELECT format('CREATE TABLE just_fits (%s)', string_agg(format('c%s bigint', i), ', ')) FROM generate_series(1, 1000) i);
END $$;
SELECT cdc.track('widest');
\echo :SQLSTATE
SELECT cdc.track('widest_bytes');
\echo :SQLSTATE
DO $$ BEGIN EXECUTE (SELECT format('INSERT INTO widest_bytes VALUES (%s)', string_agg(i::text, ', ')) FROM generate_series(1, 1001) i); END $$;
SELECT cdc.track('just_fits');
DO $$ BEGIN EXECUTE (SELECT format('INSERT INTO just_fits VALUES (%s)', string_agg(i::text, ', ')) FROM generate_series(1, 1000) i); END $$;
UPDATE just_fits SET c1 = -1, c500 = NULL;
SELECT c1, c499, c500, c501, c1000, _change_type FROM just_fits_changelog(0, NULL, ARRAY['c2'], 'all') ORDER BY _change_ordinal, 6 DESC;
SELECT cdc.untrack('just_fits');

-- nothing is left, and the tables work as before
TABLE left_behind EXCEPT TABLE before;
INSERT INTO base VALUES (1, 'a');
REFRESH MATERIALIZED VIEW mv;
INSERT INTO tt VALUES (1);
INSERT INTO ul VALUES (1);
UPDATE parent SET v = 'both';
SELECT tableoid::regclass, * FROM parent ORDER BY id;
INSERT INTO parted VALUES (1, 'x');

-- a log of the extension
SELECT cdc.track('base');
SELECT log_table::text AS log, snapshot_sequence::text AS seq FROM cdc.tracked_table WHERE relation = 'base'::regclass \gset
\set VERBOSITY sqlstate
SELECT cdc.track(:'log') IS NULL;
SELECT cdc.track(:'seq') IS NULL;
SELECT cdc.untrack(:'log') IS NULL;
\set VERBOSITY default
SELECT cdc.track('base');
\echo :SQLSTATE
SELECT cdc.untrack('base');
TABLE left_behind EXCEPT TABLE before;

-- a table without any key can be tracked
CREATE TABLE nokey (a int, b text);
SELECT cdc.track('nokey');
SELECT cdc.untrack('nokey');
TABLE left_behind EXCEPT TABLE before;

-- children that come after tracking: no changelog that disagrees with the table
CREATE TABLE lone (id int, v text);
INSERT INTO lone VALUES (1, 'own');
SELECT cdc.track('lone');
CREATE TABLE late_child () INHERITS (lone);
INSERT INTO late_child VALUES (7, 'x');
SELECT count(*) FROM lone_changelog(0);
\echo :SQLSTATE
UPDATE lone SET v = 'all';
SELECT count(*) FROM lone_changelog(0);
\echo :SQLSTATE
SELECT cdc.untrack('lone');

-- row-level security and rules do not stand in the way of tracking
CREATE TABLE rls (id int);
ALTER TABLE rls ENABLE ROW LEVEL SECURITY;
CREATE TABLE ruled (id int);
CREATE RULE ruled_ins AS ON INSERT TO ruled DO INSTEAD NOTHING;
SELECT cdc.track('rls'), cdc.track('ruled');
INSERT INTO rls VALUES (1);
INSERT INTO ruled VALUES (1);
SELECT id, _change_type FROM rls_changelog(0);
SELECT count(*) FROM ruled_changelog(0);
SELECT cdc.untrack('rls'), cdc.untrack('ruled');

-- in a transaction that cannot write
BEGIN READ ONLY;
SELECT cdc.track('nokey');
ROLLBACK;
BEGIN;
SELECT cdc.track('nokey');
DECLARE c CURSOR FOR SELECT * FROM nokey;
SELECT cdc.untrack('nokey');
ROLLBACK;
TABLE left_behind EXCEPT TABLE before;
DROP FOREIGN TABLE ft;
DROP SERVER regress_cdc_server;
DROP FOREIGN DATA WRAPPER regress_cdc_dummy;
