--
-- apply_changelog: several actions per key, late ones, soft deletes
--
CREATE SCHEMA apply_sequence;
SET search_path = apply_sequence;
\set SHOW_CONTEXT never

-- batches as they are staged from files, all text
CREATE TABLE batch1 (_change_type text, order_id text, status text, amount text, seq text);
INSERT INTO batch1 VALUES ('I', '1001', 'placed', '25.50', '1'), ('I', '1002', 'placed', '12.00', '2'),
                          ('U', '1001', 'paid', '25.50', '3'), ('I', '1003', 'placed', '60.00', '4');
CREATE TABLE batch2 (LIKE batch1);
INSERT INTO batch2 VALUES ('U', '1001', 'shipped', '25.50', '5'), ('D', '1002', NULL, NULL, '6'),
                          ('U', '1003', 'paid', '60.00', '7');
CREATE TABLE late (LIKE batch1);
INSERT INTO late VALUES ('U', '1001', 'paid', '25.50', '3'), ('I', '1002', 'placed', '12.00', '2');

CREATE TABLE orders (order_id int PRIMARY KEY, status text, amount numeric(10, 2), seq bigint,
                     deleted boolean NOT NULL DEFAULT false);
SELECT * FROM cdc.apply_changelog('orders', 'batch1', ARRAY['order_id'], sequence_by => 'seq', soft_delete => 'deleted');
SELECT * FROM orders ORDER BY order_id;
SELECT * FROM cdc.apply_changelog('orders', 'batch2', ARRAY['order_id'], sequence_by => 'seq', soft_delete => 'deleted');
SELECT * FROM orders ORDER BY order_id;
SELECT * FROM cdc.apply_changelog('orders', 'batch2', ARRAY['order_id'], sequence_by => 'seq', soft_delete => 'deleted');
SELECT * FROM orders ORDER BY order_id;
SELECT * FROM cdc.apply_changelog('orders', 'late', ARRAY['order_id'], sequence_by => 'seq', soft_delete => 'deleted');
SELECT * FROM orders ORDER BY order_id;

-- a delete that comes before its insert leaves a tombstone
TRUNCATE orders;
SELECT * FROM cdc.apply_changelog('orders', 'batch2', ARRAY['order_id'], sequence_by => 'seq', soft_delete => 'deleted');
SELECT * FROM cdc.apply_changelog('orders', 'batch1', ARRAY['order_id'], sequence_by => 'seq', soft_delete => 'deleted');
SELECT * FROM orders ORDER BY order_id;
-- a newer insert brings the row back
SELECT * FROM cdc.apply_changelog('orders', $$ SELECT 'I' AS _change_type, 1002 AS order_id, 'again' AS status, 8 AS seq $$,
                                  ARRAY['order_id'], sequence_by => 'seq', soft_delete => 'deleted');
SELECT * FROM orders ORDER BY order_id;

-- without soft_delete rows go, and an older insert can come back
TRUNCATE orders;
SELECT * FROM cdc.apply_changelog('orders', 'batch1', ARRAY['order_id'], sequence_by => 'seq');
SELECT * FROM cdc.apply_changelog('orders', 'batch2', ARRAY['order_id'], sequence_by => 'seq');
SELECT * FROM cdc.apply_changelog('orders', 'late', ARRAY['order_id'], sequence_by => 'seq');
SELECT * FROM cdc.apply_changelog('orders', $$ SELECT 'D' AS _change_type, order_id, seq FROM batch1
                                               WHERE seq IN ('2', '4') UNION ALL SELECT 'D', '9', '9' $$,
                                  ARRAY['order_id'], sequence_by => 'seq');
SELECT * FROM orders ORDER BY order_id;
-- rows of the target without a sequence are older than any
UPDATE orders SET seq = NULL;
SELECT * FROM cdc.apply_changelog('orders', 'late', ARRAY['order_id'], sequence_by => 'seq');
SELECT * FROM orders ORDER BY order_id;

-- soft_delete without sequence_by
TRUNCATE orders;
INSERT INTO orders VALUES (1, 'a', 1, 1, false), (2, 'b', 2, 2, true), (3, 'c', 3, 3, true);
CREATE TABLE soft (_change_type text, order_id int, status text, amount numeric);
INSERT INTO soft VALUES ('D', 1, NULL, NULL), ('D', 2, NULL, NULL), ('D', 4, 'd', NULL), ('U', 3, 'c', 3.00);
SELECT * FROM cdc.apply_changelog('orders', 'soft', ARRAY['order_id'], soft_delete => 'deleted');
SELECT * FROM orders ORDER BY order_id;
-- where the changelog has the column, upserts take it from there
SELECT * FROM cdc.apply_changelog('orders', $$ SELECT 'U' AS _change_type, 1 AS order_id, true AS deleted
                                               UNION ALL SELECT 'U', 3, true UNION ALL SELECT 'I', 5, true
                                               UNION ALL SELECT 'D', 6, false $$,
                                  ARRAY['order_id'], soft_delete => 'deleted');
SELECT order_id, deleted FROM orders ORDER BY order_id;

-- a filter makes deletes, which keep their sequence
TRUNCATE orders;
SELECT * FROM cdc.apply_changelog('orders', 'batch1', ARRAY['order_id'], sequence_by => 'seq', soft_delete => 'deleted',
                                  filter => 'status <> ''paid''');
SELECT * FROM orders ORDER BY order_id;

--
-- deduplicate: the highest ordinal
--
CREATE TABLE many (_change_type text, _change_ordinal int, id int, v text);
CREATE TABLE t (id int PRIMARY KEY, v text);
INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three'), (4, 'four'), (6, 'six');
INSERT INTO many VALUES
  ('UPDATE_AFTER', 5, 1, 'new'), ('UPDATE_AFTER', 4, 1, 'old'), ('DELETE', 3, 1, NULL),
  ('UPDATE_BEFORE', 9, 1, 'before'),
  ('INSERT', 1, 2, 'x'), ('DELETE', 2, 2, 'x'),
  ('DELETE', 7, 3, 'three'), ('INSERT', 7, 3, 'THREE'),
  ('INSERT', 7, 4, 'FOUR'), ('DELETE', 7, 4, 'four'),
  ('INSERT', 1, 5, 'five'), ('INSERT', 1, 5, 'five'),
  ('UPDATE_AFTER', 1, 6, 'a'), ('UPDATE_AFTER', 1, 6, 'b'), ('UPDATE_AFTER', 2, 6, 'six');
SELECT * FROM cdc.apply_changelog('t', 'many', ARRAY['id'], deduplicate => true);
SELECT * FROM t ORDER BY id;
-- the order of the rows is no matter
SELECT * FROM cdc.apply_changelog('t', 'SELECT * FROM many ORDER BY v, _change_type', ARRAY['id'], deduplicate => true);
SELECT * FROM t ORDER BY id;
-- a tie of different content, the same without the option, and a tie only of words
SELECT * FROM cdc.apply_changelog('t', 'SELECT * FROM many WHERE _change_ordinal = 1', ARRAY['id'], deduplicate => true);
SELECT * FROM cdc.apply_changelog('t', 'SELECT * FROM many WHERE id = 5', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('t', $$ SELECT 'I' AS _change_type, 1 AS _change_ordinal, 5 AS id, 'five' AS v
                                          UNION ALL SELECT 'U', 1, 5, 'five' $$, ARRAY['id'], deduplicate => true);
SELECT * FROM t ORDER BY id;

--
-- sequence_by: ties and NULL
--
CREATE TABLE s (id int PRIMARY KEY, v text, at timestamptz);
CREATE TABLE ties (_change_type text, _change_ordinal int, id int, v text, at timestamptz);
INSERT INTO ties VALUES ('U', 1, 1, 'a', '2024-01-01'), ('U', 2, 1, 'b', '2024-01-01');
SELECT * FROM cdc.apply_changelog('s', 'ties', ARRAY['id'], sequence_by => 'at');
SELECT * FROM cdc.apply_changelog('s', $$ SELECT _change_type, id, at FROM ties $$, ARRAY['id'], sequence_by => 'at');
SELECT * FROM cdc.apply_changelog('s', $$ SELECT CASE _change_ordinal WHEN 1 THEN 'D' ELSE 'U' END AS _change_type, id, at FROM ties $$,
                                  ARRAY['id'], sequence_by => 'at');
-- both options: the ordinal settles ties of the sequence
SELECT * FROM cdc.apply_changelog('s', 'ties', ARRAY['id'], sequence_by => 'at', deduplicate => true);
UPDATE ties SET _change_ordinal = 2;
SELECT * FROM cdc.apply_changelog('s', 'ties', ARRAY['id'], sequence_by => 'at', deduplicate => true);
-- a newer one does not settle a tie of the past, in whatever order they come
INSERT INTO ties VALUES ('U', 1, 1, 'c', '2024-01-02');
SELECT * FROM cdc.apply_changelog('s', 'ties', ARRAY['id'], sequence_by => 'at');
SELECT * FROM cdc.apply_changelog('s', 'SELECT * FROM ties ORDER BY at DESC', ARRAY['id'], sequence_by => 'at');
SELECT * FROM cdc.apply_changelog('s', $$ SELECT * FROM ties ORDER BY v = 'c' $$, ARRAY['id'], sequence_by => 'at');
SELECT * FROM cdc.apply_changelog('s', $$ SELECT * FROM ties ORDER BY v <> 'a', v DESC $$, ARRAY['id'], sequence_by => 'at');
SELECT * FROM cdc.apply_changelog('s', 'SELECT * FROM ties ORDER BY at DESC', ARRAY['id'], sequence_by => 'at', deduplicate => true);
-- the ordinal does, and the same action twice is no tie; nor are those of two keys
SELECT * FROM cdc.apply_changelog('s', $$ SELECT _change_type, CASE v WHEN 'a' THEN 1 ELSE 2 END AS _change_ordinal, id, v, at
                                            FROM ties ORDER BY at DESC $$, ARRAY['id'], sequence_by => 'at', deduplicate => true);
SELECT * FROM cdc.apply_changelog('s', $$ SELECT t._change_type, t.id, t.v, t.at FROM ties t, generate_series(1, 3) WHERE v <> 'b' ORDER BY at DESC $$,
                                  ARRAY['id'], sequence_by => 'at');
SELECT * FROM cdc.apply_changelog('s', $$ SELECT t._change_type, ascii(t.v) AS id, t.v, d AS at FROM ties t, unnest(ARRAY['2024-02-01', '2024-01-01']::timestamptz[]) d $$,
                                  ARRAY['id'], sequence_by => 'at');
DELETE FROM s WHERE id > 1;
INSERT INTO ties VALUES ('D', 9, 2, 'x', NULL);
SELECT * FROM cdc.apply_changelog('s', 'SELECT * FROM ties WHERE id = 2', ARRAY['id'], sequence_by => 'at');
INSERT INTO ties VALUES ('D', NULL, 3, 'x', now());
SELECT * FROM cdc.apply_changelog('s', 'SELECT * FROM ties WHERE id = 3', ARRAY['id'], deduplicate => true);
SELECT * FROM cdc.apply_changelog('s', 'SELECT _change_type, id, v, at FROM ties', ARRAY['id'], deduplicate => true);
SELECT id, v, at AT TIME ZONE 'America/Los_Angeles' AS at FROM s;
-- old ties among many actions that do not fit in memory, in all orders
SET maintenance_work_mem = '1MB';
SET work_mem = '64kB';
CREATE TABLE big_s (id int PRIMARY KEY, v text, n int);
CREATE TABLE big_ties AS SELECT 'U' AS _change_type, i % 6000 AS id, 'v' || i AS v, i / 6000 AS n FROM generate_series(0, 23999) i;
SELECT * FROM cdc.apply_changelog('big_s', 'SELECT * FROM big_ties ORDER BY id, n', ARRAY['id'], sequence_by => 'n');
INSERT INTO big_ties VALUES ('D', 4321, NULL, 1);
SELECT * FROM cdc.apply_changelog('big_s', 'SELECT * FROM big_ties ORDER BY id, n', ARRAY['id'], sequence_by => 'n');
SELECT * FROM cdc.apply_changelog('big_s', 'SELECT * FROM big_ties ORDER BY n DESC', ARRAY['id'], sequence_by => 'n');
SELECT * FROM cdc.apply_changelog('big_s', 'SELECT * FROM big_ties ORDER BY md5(v), n', ARRAY['id'], sequence_by => 'n');
RESET work_mem;
RESET maintenance_work_mem;
-- 1.0 and 1.00 are the same sequence, and the key compares with its collation
CREATE TABLE scaled (id text PRIMARY KEY, seq numeric, v text);
INSERT INTO scaled VALUES ('a', 1.0, 'old');
SELECT * FROM cdc.apply_changelog('scaled', $$ SELECT 'U' AS _change_type, 'a' AS id, 1.00 AS seq, 'new' AS v $$,
                                  ARRAY['id'], sequence_by => 'seq');

--
-- More keys than fit into memory at once: duplicates are found in whichever
-- part of the hash space they are
--
SET maintenance_work_mem = '1MB';
SET work_mem = '64kB';
CREATE TABLE big (id int PRIMARY KEY, v int, seq int);
CREATE VIEW big_changes AS SELECT 'U' AS _change_type, i AS id, i % 7 AS v, 1 AS seq FROM generate_series(1, 100000) i;
SELECT * FROM cdc.apply_changelog('big', 'big_changes', ARRAY['id']);
SELECT count(*), sum(v) FROM big;
DO $$
BEGIN
  FOR i IN 1 .. 4 LOOP
    BEGIN
      PERFORM cdc.apply_changelog('big', format('TABLE big_changes UNION ALL SELECT ''D'', %s, 0, 1', i * 24000), ARRAY['id']);
      RAISE 'a duplicate was not found';
    EXCEPTION WHEN cardinality_violation THEN
      NULL;
    END;
  END LOOP;
END
$$;
SELECT * FROM cdc.apply_changelog('big',
  $$ TABLE big_changes UNION ALL SELECT CASE i % 3 WHEN 0 THEN 'D' ELSE 'U' END, i, -1, i % 4 FROM generate_series(1, 110000, 2) i
     WHERE i % 4 <> 1 $$, ARRAY['id'], sequence_by => 'seq', soft_delete => NULL);
SELECT count(*), count(*) FILTER (WHERE v = -1) AS changed, sum(seq) FROM big;
RESET maintenance_work_mem;
RESET work_mem;

SET client_min_messages = warning;
DROP SCHEMA apply_sequence CASCADE;
