-- Columns of tracked partitioned tables change: the log follows, for rows of
-- partitions with whatever layout
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA partition_columns;
SET search_path = partition_columns, public;

CREATE TABLE c (id int NOT NULL, a text, b int) PARTITION BY LIST (id);
CREATE TABLE c1 PARTITION OF c FOR VALUES IN (1);
CREATE TABLE c2 (gone int, b int, a text, id int NOT NULL);
ALTER TABLE c2 DROP COLUMN gone;
ALTER TABLE c ATTACH PARTITION c2 FOR VALUES IN (2);
CREATE TABLE c3 PARTITION OF c FOR VALUES IN (3, 4) PARTITION BY RANGE (id);
CREATE TABLE c31 (b int, id int NOT NULL, a text);
ALTER TABLE c3 ATTACH PARTITION c31 FOR VALUES FROM (3) TO (5);
INSERT INTO c VALUES (1, 'one', 10), (2, 'two', 20), (3, 'three', 30);
SELECT cdc.track('c');
CREATE VIEW s AS SELECT snapshot_id, inserted, deleted, kind, reason FROM cdc.snapshots('c');
UPDATE c SET a = upper(a);

-- with a constant default
ALTER TABLE c ADD COLUMN k int DEFAULT 7;
UPDATE c SET b = b + 1 WHERE id <> 3;
UPDATE c31 SET k = 8;
SELECT id, a, b, k, _change_type, _change_ordinal FROM c_changelog(0, NULL, NULL, 'all') ORDER BY 6, 1, 5;
SELECT * FROM cdc.as_of(NULL::c, 0) ORDER BY 1;
SELECT * FROM cdc.verify('c');
-- dropped and added again, renamed
ALTER TABLE c DROP COLUMN k;
ALTER TABLE c RENAME COLUMN a TO z;
ALTER TABLE c ADD COLUMN a date;
BEGIN;
UPDATE c SET a = 'epoch' WHERE id = 2;
ALTER TABLE c RENAME COLUMN z TO zz;
INSERT INTO c (id, zz) VALUES (1, 'new');
ALTER TABLE c ADD COLUMN last text DEFAULT 'l';
INSERT INTO c (id, last) VALUES (2, 'new');
COMMIT;
SELECT id, zz, b, a, last, _change_type, _change_ordinal FROM c_changelog(0, NULL, NULL, 'all') ORDER BY 7, 1, zz COLLATE "C", 6;
SELECT * FROM cdc.verify('c');
-- a partition that comes now has no holes
CREATE TABLE c5 (LIKE c);
INSERT INTO c5 VALUES (5, 'five', 5, NULL, 'five');
ALTER TABLE c ATTACH PARTITION c5 FOR VALUES IN (5);
UPDATE c SET b = 0 WHERE id = 5;
SELECT * FROM cdc.as_of(NULL::c, 0) ORDER BY 1;
SELECT id, zz, b, a, last, _change_type, _change_ordinal FROM c_changelog(5, NULL, NULL, 'all') ORDER BY 7, 1, zz COLLATE "C", 6;
SELECT * FROM cdc.verify('c');
TABLE s;
-- another type
ALTER TABLE c ALTER b TYPE bigint;
UPDATE c SET b = b + 5000000000 WHERE id = 2;
SELECT id, zz, b, _change_type, _change_ordinal FROM c_changelog(0) ORDER BY 5, 1, zz COLLATE "C", 4;
SELECT * FROM cdc.verify('c');
TABLE s OFFSET 7;
-- values that the log cannot know: a gap
SELECT max(snapshot_id) AS s FROM s \gset
ALTER TABLE c ADD COLUMN r float8 DEFAULT random();
SELECT kind, reason FROM s ORDER BY snapshot_id DESC LIMIT 1;
SELECT * FROM c_changelog(:s);
\echo :SQLSTATE
UPDATE c SET r = 0 WHERE id = 5;
SELECT id, zz, r, _change_type FROM c_changelog(:s + 1) WHERE r = 0;
SELECT * FROM cdc.verify('c');
ALTER TABLE c ALTER r TYPE text USING 'x' || r;
SELECT kind, reason FROM s ORDER BY snapshot_id DESC LIMIT 1;
UPDATE c SET r = 'y' WHERE id = 5;
SELECT * FROM cdc.verify('c');
SELECT id, r, _change_type FROM c_changelog((SELECT max(snapshot_id) - 1 FROM s)) ORDER BY 3;
-- a partition is rewritten, which does not change its rows
SELECT max(snapshot_id) AS s FROM s \gset
VACUUM FULL c1;
ALTER TABLE c2 SET TABLESPACE pg_default;
CREATE INDEX c5_i ON c5 (id);
CLUSTER c5 USING c5_i;
BEGIN;
UPDATE c SET b = 1 WHERE id = 1;
CLUSTER c5;
UPDATE c SET b = 2 WHERE id = 5;
SELECT count(*) FROM c_changelog();
COMMIT;
SELECT id, b, _change_type FROM c_changelog(:s) WHERE b IN (1, 2) ORDER BY 1;
SELECT * FROM cdc.verify('c');

SET client_min_messages = warning;
DROP SCHEMA partition_columns CASCADE;
