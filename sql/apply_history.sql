--
-- apply_changelog with history: the target keeps the versions of each row,
-- type 2 of slowly changing dimensions.
--
CREATE SCHEMA apply_history;
SET search_path = apply_history;
\set SHOW_CONTEXT never

-- a tracked table and its history, by snapshot numbers
CREATE TABLE orders (id int PRIMARY KEY, status text, amount numeric, seen int);
INSERT INTO orders VALUES (1, 'placed', 10.0, 0), (2, 'placed', 20.0, 0), (3, 'placed', 30.0, 0);
SELECT cdc.track('orders');
CREATE TABLE orders_history (version_id bigint GENERATED ALWAYS AS IDENTITY, id int, status text, amount numeric, seen int,
                             valid_from bigint, valid_to bigint, valid_from_time timestamptz, valid_to_time timestamptz,
                             PRIMARY KEY (id, valid_from));
CREATE UNIQUE INDEX ON orders_history (id) WHERE valid_to IS NULL;
CREATE VIEW versions AS
  SELECT id, status, amount, seen, valid_from, valid_to,
         valid_from_time = (SELECT committed_at FROM cdc.snapshots('orders') WHERE snapshot_id = valid_from) AS from_ok,
         valid_to_time = (SELECT committed_at FROM cdc.snapshots('orders') WHERE snapshot_id = valid_to) AS to_ok
    FROM orders_history ORDER BY id, valid_from;
CREATE FUNCTION apply(first bigint, last bigint, exclude text[] DEFAULT '{seen}', filter text DEFAULT NULL,
                      OUT inserted bigint, OUT updated bigint, OUT deleted bigint, OUT unchanged bigint, OUT missing bigint, OUT stale bigint)
LANGUAGE sql AS $$
  SELECT * FROM cdc.apply_changelog('orders_history',
    format('SELECT * FROM orders_changelog(%L, %L, ''{id}'', ''all'')', first, last), ARRAY['id'],
    filter => filter, history => true, history_exclude => exclude)
$$;
SELECT * FROM apply(NULL, 0);
TABLE versions;
-- several changes of a key in one batch, excluded columns, delete and return
UPDATE orders SET status = 'paid' WHERE id = 1;
UPDATE orders SET status = 'shipped' WHERE id = 1;
UPDATE orders SET seen = 1;
DELETE FROM orders WHERE id = 2;
INSERT INTO orders VALUES (4, 'placed', 40.0, 0);
INSERT INTO orders VALUES (2, 'placed', 20.0, 1);
UPDATE orders SET amount = 30.00 WHERE id = 3;
DELETE FROM orders WHERE id = 4;
SELECT * FROM apply(0, 8);
TABLE versions;
-- again: nothing changes
SELECT * FROM apply(0, 8);
SELECT * FROM apply(NULL, 8);
SELECT count(*), max(version_id) FROM orders_history;
-- a key that changes, a truncate
UPDATE orders SET id = 5 WHERE id = 1;
TRUNCATE orders;
INSERT INTO orders VALUES (5, 'new', 1, 9);
SELECT * FROM apply(8, 11);
TABLE versions;
-- what was valid at a snapshot is what the table was
SELECT s, (SELECT count(*) FROM ((SELECT id, status, amount FROM cdc.as_of(NULL::orders, s)
                                  EXCEPT ALL SELECT id, status, amount FROM orders_history
                                              WHERE valid_from <= s AND (valid_to > s OR valid_to IS NULL))
                                 UNION ALL
                                 (SELECT id, status, amount FROM orders_history
                                   WHERE valid_from <= s AND (valid_to > s OR valid_to IS NULL)
                                  EXCEPT ALL SELECT id, status, amount FROM cdc.as_of(NULL::orders, s))) x) AS different
  FROM generate_series(0, 11) s;
-- in parts that overlap: the same
CREATE TABLE before AS TABLE versions;
TRUNCATE orders_history;
SELECT (apply(first, last)).*
  FROM (VALUES (NULL::int, 2), (0, 5), (3, 8), (1, 6), (5, 11), (8, 11), (0, 11)) a(first, last);
SELECT count(*) FROM ((TABLE before EXCEPT TABLE versions) UNION ALL (TABLE versions EXCEPT TABLE before)) x;
-- what leaves the filter ends
TRUNCATE orders_history;
SELECT * FROM apply(NULL, 11, filter => 'status IN (''placed'', ''shipped'')');
SELECT id, status, amount, valid_from, valid_to FROM versions;
-- the whole content: what it does not have ends where it is
SELECT * FROM cdc.apply_changelog('orders_history',
  $$ SELECT 'INSERT' AS _change_type, 20 AS _change_ordinal, 3 AS id, 'placed' AS status, 30.00 AS amount, 7 AS seen
     UNION ALL SELECT 'INSERT', 20, 7, 'back', 1, 1 $$, ARRAY['id'], history => true, history_exclude => ARRAY['seen'], complete => true);
SELECT * FROM cdc.apply_changelog('orders_history',
  $$ SELECT 'INSERT' AS _change_type, 21 AS _change_ordinal, 7 AS id, 'back' AS status, 1 AS amount, 2 AS seen $$,
  ARRAY['id'], history => true, history_exclude => ARRAY['seen'], complete => true);
SELECT id, status, amount, seen, valid_from, valid_to FROM versions WHERE id IN (3, 7);
-- at the same place the content is right; before it, somebody must look
SELECT * FROM cdc.apply_changelog('orders_history',
  $$ SELECT 'INSERT' AS _change_type, 21 AS _change_ordinal, 8 AS id $$, ARRAY['id'], history => true, complete => true);
SELECT * FROM cdc.apply_changelog('orders_history',
  $$ SELECT 'INSERT' AS _change_type, 21 AS _change_ordinal, 8 AS id, 'now' AS status UNION ALL SELECT 'DELETE', 21, 9, NULL $$,
  ARRAY['id'], history => true, complete => true);
SELECT * FROM cdc.apply_changelog('orders_history',
  $$ SELECT 'INSERT' AS _change_type, 21 AS _change_ordinal, 10 AS id, 'x' AS status $$, ARRAY['id'], history => true, complete => true);
SELECT id, status, valid_from, valid_to FROM versions WHERE id > 7;
SELECT * FROM cdc.apply_changelog('orders_history',
  $$ SELECT 'INSERT' AS _change_type, 3 AS _change_ordinal, 10 AS id, 'x' AS status $$, ARRAY['id'], history => true, complete => true);
SELECT * FROM cdc.apply_changelog('orders_history',
  $$ SELECT 'INSERT' AS _change_type, 3 AS _change_ordinal, 10 AS id, 'y' AS status $$, ARRAY['id'], history => true, complete => true);
SELECT * FROM cdc.apply_changelog('orders_history',
  $$ SELECT 'INSERT' AS _change_type, 3 AS _change_ordinal, 11 AS id, 'y' AS status $$, ARRAY['id'], history => true, complete => true);
SELECT * FROM cdc.apply_changelog('orders_history',
  $$ SELECT 'INSERT' AS _change_type, 3 AS _change_ordinal, 11 AS id, 'y' AS status WHERE false $$, ARRAY['id'], history => true, complete => true);
-- a limit for deletes is one for versions that end without another
SELECT * FROM cdc.apply_changelog('orders_history',
  $$ SELECT 'DELETE' AS _change_type, 30 AS _change_ordinal, 10 AS id $$, ARRAY['id'], history => true, max_deletes => '0');
SELECT * FROM cdc.apply_changelog('orders_history',
  $$ SELECT 'DELETE' AS _change_type, 30 AS _change_ordinal, 10 AS id $$, ARRAY['id'], history => true, max_deletes => '50%');
SELECT * FROM cdc.apply_changelog('orders_history',
  $$ SELECT 'DELETE' AS _change_type, 30 AS _change_ordinal, 10 AS id $$, ARRAY['id'], history => true, max_deletes => '100%');

--
-- by a sequence: changes that come late find their place
--
CREATE TABLE feed (_change_type text, id int, status text, seq int);
CREATE TABLE feed_history (id int, status text, seq int, valid_from int NOT NULL, valid_to int,
                           PRIMARY KEY (id, valid_from), EXCLUDE USING gist (int4range(id, id, '[]') WITH =, int4range(valid_from, valid_to) WITH &&));
CREATE FUNCTION feed(VARIADIC seqs int[], OUT inserted bigint, OUT updated bigint, OUT deleted bigint, OUT unchanged bigint, OUT missing bigint, OUT stale bigint)
LANGUAGE sql AS $$
  SELECT * FROM cdc.apply_changelog('feed_history', format('SELECT * FROM feed WHERE seq = ANY(%L)', seqs), ARRAY['id'],
                                    sequence_by => 'seq', history => true)
$$;
INSERT INTO feed VALUES ('I', 1, 'placed', 10), ('U', 1, 'paid', 20), ('U', 1, 'shipped', 30), ('D', 1, NULL, 40), ('I', 1, 'again', 50),
                        ('I', 2, 'placed', 15), ('U', 2, 'paid', 25);
SELECT * FROM feed(10, 30, 15);
SELECT * FROM feed_history ORDER BY id, valid_from;
SELECT * FROM feed(20, 50);
SELECT * FROM feed_history ORDER BY id, valid_from;
SELECT * FROM feed(40, 25);
SELECT * FROM feed_history ORDER BY id, valid_from;
SELECT * FROM feed(10, 15, 20, 25, 30, 40, 50);
SELECT * FROM feed_history ORDER BY id, valid_from;
-- another change at a place that is known is stale, and so is a delete
SELECT * FROM cdc.apply_changelog('feed_history', $$ SELECT 'U' AS _change_type, 1 AS id, 'other' AS status, 20 AS seq
  UNION ALL SELECT 'D', 1, 'shipped', 30 UNION ALL SELECT 'D', 2, 'x', 10 UNION ALL SELECT 'I', 1, 'x', 40 $$,
  ARRAY['id'], sequence_by => 'seq', history => true);
-- two at one place; the ordinal may settle it
SELECT * FROM cdc.apply_changelog('feed_history', $$ SELECT 'U' AS _change_type, 1 AS id, 'a' AS status, 60 AS seq, 1 AS _change_ordinal
  UNION ALL SELECT 'U', 1, 'b', 60, 2 UNION ALL SELECT 'U', 1, 'c', 70, 3 $$, ARRAY['id'], sequence_by => 'seq', history => true);
SELECT * FROM cdc.apply_changelog('feed_history', $$ SELECT 'U' AS _change_type, 1 AS id, 'a' AS status, 60 AS seq, 1 AS _change_ordinal
  UNION ALL SELECT 'U', 1, 'b', 60, 2 UNION ALL SELECT 'U', 1, 'c', 70, 3 $$, ARRAY['id'], sequence_by => 'seq', history => true, deduplicate => true);
SELECT * FROM feed_history WHERE seq > 50 ORDER BY id, valid_from;
SELECT * FROM cdc.apply_changelog('feed_history', $$ SELECT 'U' AS _change_type, 1 AS id, 'a' AS status, NULL::int AS seq $$,
  ARRAY['id'], sequence_by => 'seq', history => true);
-- the whole content, by a sequence
SELECT * FROM cdc.apply_changelog('feed_history', $$ SELECT 'I' AS _change_type, 2 AS id, 'paid' AS status, 25 AS seq UNION ALL SELECT 'I', 3, 'new', 80 $$,
  ARRAY['id'], sequence_by => 'seq', history => true, complete => true);
SELECT * FROM feed_history WHERE seq > 50 OR id > 1 ORDER BY id, valid_from;
SELECT * FROM cdc.apply_changelog('feed_history', $$ SELECT 'I' AS _change_type, 2 AS id, 'paid' AS status, 20 AS seq $$,
  ARRAY['id'], sequence_by => 'seq', history => true, complete => true);

-- with soft deletes, a delete that comes before its insert is not lost
CREATE TABLE soft_history (id int, status text, seq int, gone boolean NOT NULL DEFAULT false, valid_from int, valid_to int);
SELECT * FROM cdc.apply_changelog('soft_history', 'SELECT * FROM feed WHERE seq IN (40, 50)', ARRAY['id'],
                                  sequence_by => 'seq', soft_delete => 'gone', history => true);
SELECT * FROM cdc.apply_changelog('soft_history', 'SELECT * FROM feed WHERE seq IN (10, 20, 40)', ARRAY['id'],
                                  sequence_by => 'seq', soft_delete => 'gone', history => true);
SELECT * FROM soft_history ORDER BY id, valid_from;
SELECT * FROM cdc.apply_changelog('soft_history', $$ SELECT 'I' AS _change_type, 2 AS id, 'here' AS status, 60 AS seq, false AS gone $$, ARRAY['id'],
                                  sequence_by => 'seq', soft_delete => 'gone', history => true, complete => true);
SELECT * FROM soft_history WHERE valid_to IS NULL OR valid_to > 50 ORDER BY id, valid_from;

-- columns that make no version, with a sequence: it makes none by itself, and a
-- version knows the first and the last change that it stands for
CREATE TABLE touched (_change_type text, id int, v text, seen text, seq numeric);
INSERT INTO touched VALUES ('I', 1, 'a', 's1', 1), ('U', 1, 'a', 's2', 2), ('U', 1, 'b', 's3', 3), ('U', 1, 'a', 's4', 4), ('U', 1, 'a', 's5', 5);
CREATE TABLE touched_history (id int, v text, seen text, seq numeric, valid_from numeric, valid_to numeric);
CREATE FUNCTION touched(VARIADIC seqs numeric[], OUT inserted bigint, OUT updated bigint, OUT deleted bigint, OUT unchanged bigint, OUT missing bigint, OUT stale bigint)
LANGUAGE sql AS $$
  SELECT * FROM cdc.apply_changelog('touched_history', format('SELECT * FROM touched WHERE seq = ANY(%L)', seqs), ARRAY['id'],
                                    sequence_by => 'seq', history => true, history_exclude => ARRAY['seen'])
$$;
SELECT * FROM touched(1, 2);
SELECT * FROM touched(1);
SELECT * FROM touched_history ORDER BY id, valid_from;
SELECT * FROM touched(5);
SELECT * FROM touched_history ORDER BY id, valid_from;
SELECT * FROM touched(4);
SELECT * FROM touched(3);
SELECT * FROM touched_history ORDER BY id, valid_from;
SELECT * FROM touched(1, 2, 3, 4, 5);
SELECT * FROM touched_history ORDER BY id, valid_from;

-- through a consumer: changes, all of it again, and when there is nothing left
CREATE TABLE source (id int PRIMARY KEY, v text);
SELECT cdc.track('source');
CREATE TABLE source_history (id int, v text, valid_from bigint, valid_to bigint);
CREATE FUNCTION run(OUT inserted bigint, OUT updated bigint, OUT deleted bigint, OUT unchanged bigint, OUT missing bigint, OUT stale bigint)
LANGUAGE sql AS $$
  SELECT * FROM cdc.apply_changelog('source_history',
    'SELECT * FROM source_changelog(identifiers => ''{id}'', mode => ''all'', consumer => ''h'')', ARRAY['id'], history => true, consumer => 'h')
$$;
INSERT INTO source VALUES (1, 'a'), (2, 'b');
SELECT * FROM run();
UPDATE source SET v = 'A' WHERE id = 1;
UPDATE source SET v = 'AA' WHERE id = 1;
SELECT * FROM run();
SELECT * FROM run();
SELECT cdc.reset('h');
SELECT * FROM run();
DELETE FROM source WHERE id = 2;
SELECT cdc.reset('h');
SELECT * FROM run();
TRUNCATE source;
SELECT cdc.reset('h');
SELECT * FROM run();
SELECT * FROM source_history ORDER BY id, valid_from;
-- numbers that begin anew
SELECT cdc.untrack('source');
SELECT cdc.track('source');
INSERT INTO source VALUES (1, 'new');
SELECT * FROM run();
SELECT cdc.drop_consumer('h');

-- NULL keys, keys that are equal and look different, times of a feed
CREATE TABLE nulls (a numeric, b text, v point, at timestamptz, valid_from timestamptz, valid_to timestamptz);
SELECT * FROM cdc.apply_changelog('nulls', $$ SELECT column1 AS _change_type, column2 AS a, column3 AS b, column4 AS v, column5 AS at
  FROM (VALUES ('I', 1.0, NULL, '1,1', '2024-01-01 00:00Z'), ('U', 1.00, NULL, '2,2', '2024-01-02 00:00Z'), ('I', NULL, 'x', '3,3', '2024-01-01 00:00Z'),
               ('D', NULL, 'x', NULL, '2024-01-03 00:00Z'), ('I', NULL, NULL, '4,4', '2024-01-01 00:00Z'), ('I', 2, 'x', '5,5', '2024-01-01 00:00Z')) x $$,
  ARRAY['a', 'b'], sequence_by => 'at', history => true);
SELECT * FROM cdc.apply_changelog('nulls', $$ SELECT 'U' AS _change_type, NULL::numeric AS a, NULL AS b, '9,9'::point AS v, '2024-01-05 00:00Z'::timestamptz AS at $$,
  ARRAY['a', 'b'], sequence_by => 'at', history => true, complete => true);
SELECT a, b, v, valid_from AT TIME ZONE 'UTC' AS valid_from, valid_to AT TIME ZONE 'UTC' AS valid_to FROM nulls ORDER BY a, b, valid_from;

-- partitions for what is current and what is not, a view, triggers
CREATE TABLE part (id int, v text, valid_from bigint, valid_to bigint) PARTITION BY LIST ((valid_to IS NULL));
CREATE TABLE part_current PARTITION OF part FOR VALUES IN (true);
CREATE TABLE part_old PARTITION OF part FOR VALUES IN (false);
CREATE INDEX ON part (id);
CREATE VIEW part_view AS SELECT * FROM part;
SELECT * FROM cdc.apply_changelog('part', $$ SELECT 'I' AS _change_type, 1 AS _change_ordinal, i AS id, 'a' AS v FROM generate_series(1, 3) i $$, ARRAY['id'], history => true);
SELECT * FROM cdc.apply_changelog('part_view', $$ SELECT 'U' AS _change_type, 2 AS _change_ordinal, 1 AS id, 'b' AS v UNION ALL SELECT 'D', 2, 2, 'a' $$,
  ARRAY['id'], history => true);
SELECT tableoid::regclass, * FROM part ORDER BY id, valid_from;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER refuse BEFORE UPDATE ON part_current FOR EACH ROW EXECUTE FUNCTION refuse();
SELECT * FROM cdc.apply_changelog('part', $$ SELECT 'U' AS _change_type, 3 AS _change_ordinal, 1 AS id, 'c' AS v $$, ARRAY['id'], history => true);
DROP TRIGGER refuse ON part_current;
CREATE TRIGGER refuse BEFORE INSERT ON part_current FOR EACH ROW EXECUTE FUNCTION refuse();
SELECT * FROM cdc.apply_changelog('part', $$ SELECT 'I' AS _change_type, 3 AS _change_ordinal, 9 AS id, 'c' AS v $$, ARRAY['id'], history => true);

-- a target that is no history
CREATE TABLE bad (id int, v text, valid_from bigint, valid_to bigint);
CREATE VIEW one AS SELECT 'U' AS _change_type, 5 AS _change_ordinal, 1 AS id, 'n' AS v;
INSERT INTO bad VALUES (1, 'a', 1, NULL), (1, 'b', 3, NULL);
SELECT * FROM cdc.apply_changelog('bad', 'one', ARRAY['id'], history => true);
UPDATE bad SET valid_to = 4 WHERE v = 'a';
SELECT * FROM cdc.apply_changelog('bad', 'one', ARRAY['id'], history => true);
UPDATE bad SET valid_to = 8, valid_from = 8 WHERE v = 'a';
SELECT * FROM cdc.apply_changelog('bad', 'one', ARRAY['id'], history => true);
UPDATE bad SET valid_to = NULL, valid_from = NULL WHERE v = 'a';
SELECT * FROM cdc.apply_changelog('bad', 'one', ARRAY['id'], history => true);
TABLE bad;
-- options and columns that do not fit
CREATE TABLE none (id int, v text, s int);
CREATE TABLE odd (id int, v text, s int, valid_from int, valid_to bigint, valid_from_time date);
SELECT cdc.apply_changelog('none', 'one', ARRAY['id'], history => true);
SELECT cdc.apply_changelog('odd', 'one', ARRAY['id'], history => true);
ALTER TABLE odd DROP COLUMN valid_from_time;
SELECT cdc.apply_changelog('odd', 'one', ARRAY['id'], history => true);
SELECT cdc.apply_changelog('odd', 'one', ARRAY['id'], history => true, sequence_by => 's');
ALTER TABLE odd ALTER valid_from TYPE bigint;
SELECT cdc.apply_changelog('odd', 'SELECT *, 1 AS valid_to FROM one', ARRAY['id'], history => true);
SELECT cdc.apply_changelog('odd', 'SELECT _change_type, id FROM one', ARRAY['id'], history => true);
SELECT cdc.apply_changelog('odd', 'one', ARRAY['id', 'valid_from'], history => true);
SELECT cdc.apply_changelog('odd', 'one', ARRAY['id'], history => true, ignore_null_updates => true);
SELECT cdc.apply_changelog('odd', 'one', ARRAY['id'], history => true, history_exclude => ARRAY['id']);
SELECT cdc.apply_changelog('odd', 'one', ARRAY['id'], history => true, history_exclude => ARRAY['valid_to']);
SELECT cdc.apply_changelog('odd', 'one', ARRAY['id'], history => true, history_exclude => ARRAY['nope']);
SELECT cdc.apply_changelog('odd', 'one', ARRAY['id'], history_exclude => ARRAY['v']);
SELECT cdc.apply_changelog('odd', 'SELECT _change_type, NULL::int AS _change_ordinal, id FROM one', ARRAY['id'], history => true);
ALTER TABLE odd ALTER id TYPE xid USING NULL;
SELECT cdc.apply_changelog('odd', 'one', ARRAY['id'], history => true);

-- many keys, through an index and without
CREATE TABLE big (id int, v int, valid_from bigint, valid_to bigint);
CREATE TABLE big_indexed (LIKE big, PRIMARY KEY (valid_from, id));
CREATE INDEX ON big_indexed (id, valid_from);
CREATE VIEW big_changes AS
  SELECT CASE WHEN i % 10 = 9 AND o % 3 = 2 THEN 'D' ELSE 'U' END AS _change_type, o AS _change_ordinal, i AS id, (i + o / 2) % 7 AS v
    FROM generate_series(1, 3000) i, generate_series(1, 6) o;
SELECT * FROM cdc.apply_changelog('big', 'big_changes', ARRAY['id'], history => true);
SELECT * FROM cdc.apply_changelog('big_indexed', 'SELECT * FROM big_changes WHERE _change_ordinal <= 3', ARRAY['id'], history => true);
SELECT * FROM cdc.apply_changelog('big_indexed', 'SELECT * FROM big_changes WHERE _change_ordinal > 3', ARRAY['id'], history => true);
SELECT count(*), count(*) FILTER (WHERE valid_to IS NULL) AS current FROM big;
SELECT count(*) FROM ((TABLE big EXCEPT ALL TABLE big_indexed) UNION ALL (TABLE big_indexed EXCEPT ALL TABLE big)) x;

SET client_min_messages = warning;
DROP SCHEMA apply_history CASCADE;
