-- Changes of partitioned tables, through whatever table of the tree (BB-25)
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA partition_changes;
SET search_path = partition_changes, public;

-- BB-25: row movement between partitions, one with another layout
CREATE TABLE pt (id int, region text, v text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE pt_eu PARTITION OF pt FOR VALUES IN ('eu');
CREATE TABLE pt_us (junk int, v text, region text NOT NULL, id int NOT NULL, PRIMARY KEY (id, region));
ALTER TABLE pt_us DROP COLUMN junk;
ALTER TABLE pt ATTACH PARTITION pt_us FOR VALUES IN ('us');
INSERT INTO pt VALUES (1, 'eu', 'one'), (2, 'us', 'two'), (3, 'us', 'three');
SELECT cdc.track('pt');
UPDATE pt SET region = 'us' WHERE id = 1;
UPDATE pt SET v = 'deux' WHERE id = 2;
UPDATE pt_us SET v = 'trois' WHERE id = 3;
CREATE TABLE pt_ap PARTITION OF pt FOR VALUES IN ('ap');
INSERT INTO pt VALUES (4, 'ap', 'four');
INSERT INTO pt_ap VALUES (5, 'ap', 'five');
SELECT id, region, v, _change_type, _change_ordinal
FROM pt_changelog(0, NULL, ARRAY['id'], 'all') ORDER BY _change_ordinal, 1, 4 DESC;
SELECT id, region, v, _change_type, _change_ordinal
FROM pt_changelog(0, NULL, ARRAY['id', 'region'], 'all') ORDER BY _change_ordinal, 1, 4 DESC;
-- all of it, with base rows from partitions of either layout
SELECT id, region, v, _change_type, _change_ordinal FROM pt_changelog() ORDER BY 1;
SELECT * FROM cdc.as_of(NULL::pt, 0) ORDER BY 1;
SELECT tgrelid::regclass, tgname, tgenabled
FROM pg_trigger WHERE tgfoid = 'cdc.capture'::regproc AND tgrelid::regclass::text LIKE 'pt%'
ORDER BY tgrelid::regclass::text COLLATE "C", 2;

-- a deep tree whose tables all differ, with a default partition and types of
-- all kinds of storage
CREATE TABLE deep (gone int, k int NOT NULL, a text, gone2 text, d date, n numeric, big text);
ALTER TABLE deep DROP COLUMN gone, DROP COLUMN gone2;
CREATE TABLE root (k int NOT NULL, x int, big text, a text, n numeric, d date) PARTITION BY RANGE (k);
ALTER TABLE root DROP COLUMN x;
CREATE TABLE mid (n numeric, k int NOT NULL, y int, d date, a text, big text) PARTITION BY LIST (a);
ALTER TABLE mid DROP COLUMN y;
CREATE TABLE leaf (a text, z text, n numeric, big text, d date, k int NOT NULL);
ALTER TABLE leaf DROP COLUMN z;
ALTER TABLE leaf ALTER big SET STORAGE EXTERNAL;
ALTER TABLE mid ATTACH PARTITION leaf FOR VALUES IN ('x');
CREATE TABLE mid_rest PARTITION OF mid DEFAULT;
ALTER TABLE root ATTACH PARTITION mid FOR VALUES FROM (0) TO (100);
ALTER TABLE root ATTACH PARTITION deep FOR VALUES FROM (100) TO (200);
CREATE TABLE other PARTITION OF root DEFAULT;
INSERT INTO root (k, big, a, n, d)
SELECT i, CASE WHEN i % 50 = 0 THEN repeat(md5(i::text), 200) END, (ARRAY['x', 'y', NULL])[1 + i % 3],
       i / 3.0, date '2000-01-01' + i
FROM generate_series(0, 299) i;
CREATE TABLE saved AS SELECT 0::bigint AS s, r FROM root r;
SELECT cdc.track('root');

-- notes the content at the newest snapshot; then tells where what the
-- changelog says of any two noted contents is not so
CREATE PROCEDURE note() LANGUAGE sql AS $$
  DELETE FROM saved WHERE s = cdc.current_snapshot('root');
  INSERT INTO saved SELECT cdc.current_snapshot('root'), r FROM root r;
$$;
CREATE FUNCTION problems() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  s1 bigint; s2 bigint; wrong bigint;
BEGIN
  FOR s1, s2 IN SELECT x.s, y.s FROM (SELECT DISTINCT s FROM saved) x,
                                   (SELECT DISTINCT s FROM saved) y WHERE x.s <= y.s LOOP
    SELECT count(*) INTO wrong FROM (
      (SELECT r::text FROM saved WHERE s = s1
       UNION ALL SELECT (k, big, a, n, d)::text FROM root_changelog(s1, s2) WHERE _change_type = 'INSERT')
      EXCEPT ALL
      (SELECT r::text FROM saved WHERE s = s2
       UNION ALL SELECT (k, big, a, n, d)::text FROM root_changelog(s1, s2) WHERE _change_type = 'DELETE')) d;
    IF wrong > 0 THEN RETURN NEXT format('net (%s,%s]: %s', s1, s2, wrong); END IF;
    SELECT count(*) INTO wrong FROM (
      (SELECT r::text FROM saved WHERE s = s2
       UNION ALL SELECT (k, big, a, n, d)::text FROM root_changelog(s1, s2, NULL, 'all') WHERE _change_type = 'DELETE')
      EXCEPT ALL
      (SELECT r::text FROM saved WHERE s = s1
       UNION ALL SELECT (k, big, a, n, d)::text FROM root_changelog(s1, s2, NULL, 'all') WHERE _change_type = 'INSERT')) d;
    IF wrong > 0 THEN RETURN NEXT format('all (%s,%s]: %s', s1, s2, wrong); END IF;
  END LOOP;
  FOR s1 IN SELECT DISTINCT s FROM saved LOOP
    SELECT count(*) INTO wrong FROM (
      (SELECT r::text FROM saved WHERE s = s1 EXCEPT ALL SELECT t::text FROM cdc.as_of(NULL::root, s1) t)
      UNION ALL
      (SELECT t::text FROM cdc.as_of(NULL::root, s1) t EXCEPT ALL SELECT r::text FROM saved WHERE s = s1)) d;
    IF wrong > 0 THEN RETURN NEXT format('as of %s: %s', s1, wrong); END IF;
  END LOOP;
  RETURN QUERY SELECT 'verify: ' || v::text FROM cdc.verify('root') v;
END $$;

UPDATE root SET n = n + 1 WHERE k % 7 = 0;
CALL note();
UPDATE root SET k = 299 - k WHERE k % 5 = 0;		-- moves
CALL note();
UPDATE mid SET a = 'x', big = 'small' WHERE k < 20;	-- moves below mid
CALL note();
DELETE FROM leaf WHERE k < 50;
DELETE FROM ONLY deep WHERE k % 2 = 0;
CALL note();
INSERT INTO mid (k, a, n) VALUES (1, 'x', 1), (2, 'q', 2);
INSERT INTO deep (k, a, big) VALUES (150, 'deep', repeat('b', 9000));
COPY root (k, a, n) FROM stdin;
5	x	1.50
5	x	1.5
150	\N	-0
999	z	7
\.
CALL note();
-- what does not change is no snapshot
SELECT max(snapshot_id) AS before FROM cdc.snapshots('root') \gset
UPDATE root SET a = a;
UPDATE root SET big = big WHERE big IS NOT NULL;
SELECT max(snapshot_id) = :before AS no_snapshot FROM cdc.snapshots('root');
-- but a move back and forth in one transaction is counted, and nets to nothing
BEGIN;
UPDATE root SET k = k + 100 WHERE k BETWEEN 0 AND 99;
UPDATE root SET k = k - 100 WHERE k BETWEEN 100 AND 199 AND d < date '2000-04-10';
SAVEPOINT a;
DELETE FROM root;
TRUNCATE mid;
ROLLBACK TO a;
INSERT INTO root (k) VALUES (77);
COMMIT;
CALL note();
-- MERGE and ON CONFLICT
CREATE UNIQUE INDEX ON deep (k, a, d);
MERGE INTO root r USING (VALUES (5, 'x'), (7, 'new')) s (k, a) ON r.k = s.k AND r.a = s.a
WHEN MATCHED THEN UPDATE SET n = 0
WHEN NOT MATCHED THEN INSERT (k, a) VALUES (s.k, s.a);
INSERT INTO deep (k, a, d) VALUES (101, 'c', 'today'::date);
INSERT INTO deep (k, a, d) VALUES (101, 'c', 'today'::date), (102, 'c', 'today'::date) ON CONFLICT DO NOTHING;
CALL note();
-- TRUNCATE of a leaf, of a branch, of all of it: each row goes once
TRUNCATE deep;
CALL note();
TRUNCATE mid;
CALL note();
INSERT INTO root (k, a) SELECT i, 'x' FROM generate_series(0, 250, 10) i;
CALL note();
BEGIN;
INSERT INTO root (k, a) VALUES (3, 'own');
TRUNCATE root;
INSERT INTO root (k, a) VALUES (3, 'after');
COMMIT;
CALL note();
BEGIN;
TRUNCATE ONLY leaf, other;
ROLLBACK;
CALL note();
-- with the replica role
SET session_replication_role = replica;
INSERT INTO root (k, a) VALUES (4, 'replica'), (104, 'replica'), (500, 'replica');
UPDATE root SET k = k + 100 WHERE a = 'replica';
TRUNCATE other;
RESET session_replication_role;
CALL note();
SELECT snapshot_id, inserted, deleted, kind FROM cdc.snapshots('root');
SELECT * FROM problems();

-- by key: no unique index proves k, but the content does
SELECT k, a, _change_type FROM root_changelog((SELECT max(s) - 1 FROM saved), NULL, ARRAY['k']) ORDER BY 1;
INSERT INTO root (k, a) VALUES (3, 'twice');
SELECT k, a, _change_type FROM root_changelog((SELECT max(s) FROM saved), NULL, ARRAY['k']);
-- a transaction that reads what it has changed: not its own changes
BEGIN;
INSERT INTO root (k, a) VALUES (50, 'unseen');
DELETE FROM root WHERE a = 'after';
SELECT k, a FROM root_changelog() ORDER BY 1;
TRUNCATE leaf;
SELECT k, a FROM root_changelog() ORDER BY 1;
ROLLBACK;

-- end of tracking
SELECT cdc.untrack('root');
SELECT tgrelid::regclass, tgname FROM pg_trigger
WHERE tgfoid = 'cdc.capture'::regproc AND tgrelid::regclass::text !~ '^pt|[.]';
SELECT count(*) FROM cdc.partition WHERE relation::text !~ '^pt';
INSERT INTO root (k) VALUES (1);
SELECT cdc.track('root');
SELECT cdc.untrack('root');
DROP TABLE pt;
SELECT count(*) FROM cdc.partition;

SET client_min_messages = warning;
DROP SCHEMA partition_changes CASCADE;
