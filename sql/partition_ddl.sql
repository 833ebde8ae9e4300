-- Partitions that come and go: their rows are in the log, or there is a gap
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA partition_ddl;
SET search_path = partition_ddl, public;

CREATE TABLE m (id int NOT NULL, v text) PARTITION BY RANGE (id);
CREATE TABLE m1 PARTITION OF m FOR VALUES FROM (0) TO (10);
INSERT INTO m VALUES (1, 'one'), (2, 'two');
SELECT cdc.track('m');
CREATE VIEW s AS SELECT snapshot_id, inserted, deleted, kind, reason FROM cdc.snapshots('m');
CREATE VIEW bad AS
  (SELECT id, v FROM m EXCEPT ALL SELECT id, v FROM m_changelog())
  UNION ALL (SELECT id, v FROM m_changelog() EXCEPT ALL SELECT id, v FROM m)
  UNION ALL SELECT 0, v::text FROM cdc.verify('m') v;

-- attached with rows, in another column order
CREATE TABLE m2 (v text, gone int, id int NOT NULL);
ALTER TABLE m2 DROP COLUMN gone;
INSERT INTO m2 VALUES ('eleven', 11), ('twelve', 12);
ALTER TABLE m ATTACH PARTITION m2 FOR VALUES FROM (10) TO (20);
INSERT INTO m VALUES (13, 'routed');
SELECT id, v, _change_type, _change_ordinal FROM m_changelog(0) ORDER BY 1;
-- detached: its rows go, and what happens to it does not matter any more
ALTER TABLE m DETACH PARTITION m2;
INSERT INTO m2 VALUES ('alone', 14);
TRUNCATE m2;
SELECT tgname FROM pg_trigger WHERE tgrelid = 'm2'::regclass;
SELECT id, v, _change_type, _change_ordinal FROM m_changelog(2) ORDER BY 1;
TABLE bad;

-- without effect
BEGIN;
INSERT INTO m2 VALUES ('again', 14);
ALTER TABLE m ATTACH PARTITION m2 FOR VALUES FROM (10) TO (20);
UPDATE m SET v = v || '!';
ROLLBACK;
BEGIN;
INSERT INTO m2 VALUES ('again', 14);
SAVEPOINT a;
ALTER TABLE m ATTACH PARTITION m2 FOR VALUES FROM (10) TO (20);
SAVEPOINT b;
DROP TABLE m2;
ROLLBACK TO b;
ALTER TABLE m DETACH PARTITION m2;
ROLLBACK TO a;
COMMIT;
SELECT * FROM s WHERE snapshot_id > 3;
SELECT relation FROM cdc.partition WHERE relation::text LIKE 'm%';
-- all in one transaction, with changes before and after
BEGIN;
UPDATE m2 SET v = 'before';
ALTER TABLE m ATTACH PARTITION m2 FOR VALUES FROM (10) TO (20);
UPDATE m SET v = 'between' WHERE id > 1;
SELECT id, v FROM m_changelog() ORDER BY 1;	-- own changes are not seen
ALTER TABLE m DETACH PARTITION m2;
UPDATE m2 SET v = 'after';
ALTER TABLE m ATTACH PARTITION m2 FOR VALUES FROM (10) TO (20);
COMMIT;
SELECT id, v, _change_type, _change_ordinal FROM m_changelog(3) ORDER BY 1, 3;
TABLE bad;

-- created, dropped
CREATE TABLE m3 PARTITION OF m FOR VALUES FROM (20) TO (30);
INSERT INTO m VALUES (20, 'a'), (21, 'b');
BEGIN;
CREATE TABLE m4 PARTITION OF m FOR VALUES FROM (30) TO (40);
INSERT INTO m VALUES (31, 'c'), (22, 'c');
DROP TABLE m3;
INSERT INTO m VALUES (32, 'd');
COMMIT;
SELECT id, v, _change_type, _change_ordinal FROM m_changelog(4) ORDER BY 1;
CREATE TABLE m3 (LIKE m);
INSERT INTO m3 VALUES (25, 'e');
ALTER TABLE m ATTACH PARTITION m3 FOR VALUES FROM (20) TO (30);
DROP TABLE IF EXISTS m4, m3, nothing_of_this_name;
TABLE s;
TABLE bad;

-- whole branches, and a default partition
CREATE TABLE br (v text, id int NOT NULL) PARTITION BY LIST (v);
CREATE TABLE br_a PARTITION OF br FOR VALUES IN ('a');
CREATE TABLE br_ PARTITION OF br DEFAULT PARTITION BY RANGE (id);
CREATE TABLE br_1 PARTITION OF br_ FOR VALUES FROM (100) TO (150);
INSERT INTO br VALUES ('a', 101), ('b', 102);
ALTER TABLE m ATTACH PARTITION br FOR VALUES FROM (100) TO (200);
CREATE TABLE br_2 PARTITION OF br_ FOR VALUES FROM (150) TO (200);
CREATE TABLE m_rest PARTITION OF m DEFAULT;
INSERT INTO m VALUES (103, 'a'), (104, 'x'), (190, 'y'), (1000, 'z');
TRUNCATE br_;
ALTER TABLE br DETACH PARTITION br_a;
ALTER TABLE br ATTACH PARTITION br_a FOR VALUES IN ('a');
INSERT INTO m VALUES (105, 'a'), (106, 'q');
SELECT id, v, _change_type, _change_ordinal FROM m_changelog(7, NULL, NULL, 'all') ORDER BY 4, 1;
TABLE bad;
ALTER TABLE m DETACH PARTITION br;
SELECT tgrelid::regclass, tgname FROM pg_trigger
WHERE tgfoid = 'cdc.capture'::regproc AND tgrelid::regclass::text LIKE 'br%';
INSERT INTO br VALUES ('q', 107);
TRUNCATE br_;
ALTER TABLE m ATTACH PARTITION br FOR VALUES FROM (100) TO (200);
DROP TABLE br_;
DROP TABLE br;
TABLE bad;
SELECT snapshot_id, inserted, deleted, kind FROM s WHERE snapshot_id > 7;
CREATE SCHEMA partition_ddl2
  CREATE TABLE in_schema PARTITION OF partition_ddl.m FOR VALUES FROM (300) TO (400);
INSERT INTO m VALUES (301, 'in schema');
TRUNCATE partition_ddl2.in_schema;
INSERT INTO m VALUES (302, 'in schema');
TABLE bad;

-- what cannot be: each is refused, and leaves no trace
CREATE UNLOGGED TABLE m_un PARTITION OF m FOR VALUES FROM (400) TO (410);
\echo :SQLSTATE
ALTER TABLE m1 SET UNLOGGED;
\echo :SQLSTATE
CREATE UNLOGGED TABLE un (LIKE m);
ALTER TABLE m ATTACH PARTITION un FOR VALUES FROM (400) TO (410);
\echo :SQLSTATE
CREATE TABLE own_log (LIKE m);
SELECT cdc.track('own_log');
ALTER TABLE m ATTACH PARTITION own_log FOR VALUES FROM (400) TO (410);
\echo :SQLSTATE
SELECT cdc.untrack('own_log');
SELECT cdc.track('m1');
\echo :SQLSTATE
CREATE TABLE outer_ (id int NOT NULL, v text) PARTITION BY RANGE (id);
CREATE TABLE outer_un (id int NOT NULL, v text) PARTITION BY RANGE (id);
ALTER TABLE outer_un ATTACH PARTITION un FOR VALUES FROM (0) TO (10);
SELECT cdc.track('outer_un');
\echo :SQLSTATE
-- a tracked table below one that is not is still captured
ALTER TABLE outer_ ATTACH PARTITION m FOR VALUES FROM (0) TO (2000);
INSERT INTO outer_ VALUES (3, 'outer');
TABLE bad;
SELECT cdc.track('outer_');
\echo :SQLSTATE
ALTER TABLE outer_ DETACH PARTITION m;
TABLE bad;
TABLE s OFFSET 18;

-- rows that were gone before they could be seen: a gap
DROP SCHEMA partition_ddl2 CASCADE;
SELECT snapshot_id, kind, reason FROM s ORDER BY 1 DESC LIMIT 1;
SELECT count(*) FROM m_changelog((SELECT max(snapshot_id) - 1 FROM s));
\echo :SQLSTATE
TABLE bad;

-- triggers of a partition that were disabled
SELECT max(snapshot_id) AS s0 FROM s \gset
ALTER TABLE m1 DISABLE TRIGGER USER;
INSERT INTO m VALUES (4, 'unseen');
SELECT * FROM m_changelog();
\echo :SQLSTATE
ALTER TABLE m1 ENABLE TRIGGER USER;
SELECT id, v, _change_type FROM m_changelog(:s0 + 2);
TABLE bad;
INSERT INTO m VALUES (5, 'seen');
SET session_replication_role = replica;
INSERT INTO m VALUES (6, 'seen');
RESET session_replication_role;
SELECT id, v, _change_type FROM m_changelog(:s0 + 2);
ALTER TABLE m DISABLE TRIGGER cdc_changelog_row;
INSERT INTO m2 VALUES ('unseen', 15);
SELECT * FROM m_changelog();
\echo :SQLSTATE
ALTER TABLE m ENABLE TRIGGER cdc_changelog_row;
SELECT snapshot_id, kind, reason FROM s WHERE snapshot_id > :s0;
SELECT tgrelid::regclass, tgname, tgenabled FROM pg_trigger
WHERE tgfoid = 'cdc.capture'::regproc AND tgenabled <> 'A' AND tgrelid::regclass::text !~ '[.]';
DROP TRIGGER "~cdc_changelog_truncate" ON m1;
TRUNCATE m1;
SELECT * FROM m_changelog();
\echo :SQLSTATE
CREATE TRIGGER "~cdc_changelog_truncate" BEFORE TRUNCATE ON m1 EXECUTE FUNCTION cdc.capture();
ALTER TABLE m1 ENABLE ALWAYS TRIGGER "~cdc_changelog_truncate";
SELECT id, v FROM m_changelog() ORDER BY 1;
SELECT snapshot_id, kind, reason FROM s ORDER BY 1 DESC LIMIT 1;

-- partitions that came or went without the event triggers: refused
BEGIN;
ALTER EVENT TRIGGER cdc_changelog_ddl_end DISABLE;
CREATE TABLE m5 PARTITION OF m FOR VALUES FROM (500) TO (600);
ALTER EVENT TRIGGER cdc_changelog_ddl_end ENABLE ALWAYS;
SELECT * FROM m_changelog();
\echo :SQLSTATE
ROLLBACK;
BEGIN;
ALTER EVENT TRIGGER cdc_changelog_ddl_end DISABLE;
ALTER TABLE m DETACH PARTITION m2;
ALTER EVENT TRIGGER cdc_changelog_ddl_end ENABLE ALWAYS;
SELECT * FROM m_changelog();
\echo :SQLSTATE
ROLLBACK;
TABLE bad;

-- by somebody who owns the partitions, but nothing else
CREATE ROLE regress_cdc_partition;
GRANT USAGE, CREATE ON SCHEMA partition_ddl TO regress_cdc_partition;
ALTER TABLE m OWNER TO regress_cdc_partition;
ALTER TABLE m1 OWNER TO regress_cdc_partition;
ALTER TABLE m2 OWNER TO regress_cdc_partition;
SET ROLE regress_cdc_partition;
CREATE TABLE m6 PARTITION OF m FOR VALUES FROM (600) TO (700);
INSERT INTO m VALUES (600, 'role');
ALTER TABLE m DETACH PARTITION m6;
ALTER TABLE m ATTACH PARTITION m6 FOR VALUES FROM (600) TO (700);
DROP TABLE m2;
TRUNCATE m1;
DROP TABLE m_rest;	-- not his
\echo :SQLSTATE
RESET ROLE;
TABLE bad;

-- the end
DROP TABLE m CASCADE;
SELECT count(*) FROM cdc.partition;
SET client_min_messages = warning;
DROP SCHEMA partition_ddl CASCADE;
DROP ROLE regress_cdc_partition;
