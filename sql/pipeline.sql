--
-- Stored pipelines
--
SET client_min_messages = warning;
CREATE SCHEMA pipeline;
SET search_path = pipeline;
\set VERBOSITY terse

CREATE TABLE customer (id int PRIMARY KEY, name text);
CREATE TABLE orders (id int PRIMARY KEY, customer_id int, status text, amount numeric);
INSERT INTO customer VALUES (1, 'Ada'), (2, 'Bob');
INSERT INTO orders VALUES (1, 1, 'active', 10), (2, 2, 'active', 20), (3, 1, 'closed', 30),
  (4, 2, 'closed', 40), (5, 1, 'active', 50), (6, 1, 'closed', 60);
CREATE TABLE copy (LIKE orders INCLUDING ALL);
SELECT cdc.track('orders'), cdc.track('customer');

-- what a run says, without its duration
CREATE FUNCTION ran(j jsonb) RETURNS text LANGUAGE sql AS
$$SELECT j ->> 'mode' || ' ' || (j ->> 'ranges') || ' ' || concat_ws(' ', j ->> 'inserted',
     j ->> 'updated', j ->> 'deleted', j ->> 'unchanged', j ->> 'missing', j ->> 'stale') $$;

--
-- First and later builds, nothing to do
--
SELECT cdc.create_pipeline('copy', 'copy', '{id}',
  $$SELECT * FROM orders_changelog(identifiers => '{id}', consumer => 'copy') $$);
SELECT ran(to_jsonb(r)) FROM cdc.dry_run('copy') r;
SELECT count(*) FROM copy;
SELECT count(*) FROM cdc.pipeline_runs WHERE name = 'copy';
SELECT ran(to_jsonb(r)) FROM cdc.run('copy') r;
SELECT ran(to_jsonb(r)) FROM cdc.run('copy') r;
UPDATE orders SET amount = 11 WHERE id = 1;
DELETE FROM orders WHERE id = 6;
INSERT INTO orders VALUES (7, 2, 'active', 70);
SELECT lag_snapshots, lag_rows FROM cdc.pipelines WHERE name = 'copy';
SELECT ran(to_jsonb(r)) FROM cdc.dry_run('copy') r;
SELECT * FROM cdc.position('copy');
SELECT ran(to_jsonb(r)) FROM cdc.run('copy') r;
SELECT * FROM cdc.position('copy');
SELECT count(*) FROM ((TABLE orders EXCEPT TABLE copy) UNION ALL (TABLE copy EXCEPT TABLE orders)) d;
SELECT run_id, mode, ranges, inserted, updated, deleted FROM cdc.pipeline_runs WHERE name = 'copy' ORDER BY 1;
SELECT name, owner = current_user::regrole AS own, target, keys, keep_runs, search_path, last_mode,
       last_inserted, last_updated, last_deleted, last_duration >= '0' AS took, lag_snapshots, lag_rows, lag_seconds
  FROM cdc.pipelines WHERE name = 'copy';

-- a rollback takes back target, position and history together
BEGIN;
DELETE FROM orders WHERE id = 7;
COMMIT;
BEGIN;
SELECT ran(to_jsonb(r)) FROM cdc.run('copy') r;
SELECT count(*) FROM copy WHERE id = 7;
ROLLBACK;
SELECT count(*) FROM copy WHERE id = 7;
SELECT * FROM cdc.position('copy');
SELECT count(*) FROM cdc.pipeline_runs WHERE name = 'copy';
BEGIN;
SAVEPOINT s;
SELECT ran(to_jsonb(r)) FROM cdc.run('copy') r;
ROLLBACK TO s;
SELECT ran(to_jsonb(r)) FROM cdc.run('copy') r;
SELECT ran(to_jsonb(r)) FROM cdc.run('copy') r;
COMMIT;
SELECT ran(to_jsonb(r)) FROM cdc.run('copy') r;

--
-- The nine transitions of a target with a filter: an order is in, out or
-- absent before, and in, out or absent after.  The target has renamed, computed
-- and joined columns.
--
TRUNCATE orders;
INSERT INTO orders VALUES
  (11, 1, 'active', 1), (12, 1, 'active', 1), (13, 1, 'active', 1),
  (21, 2, 'closed', 2), (22, 2, 'closed', 2), (23, 2, 'closed', 2);
CREATE TABLE active (order_id int PRIMARY KEY, customer text, cents bigint);
SELECT cdc.create_pipeline('active', 'active', '{order_id}', $$
  SELECT o.id AS order_id, c.name AS customer, (o.amount * 100)::bigint AS cents,
         o._change_type, o._change_ordinal
    FROM orders_changelog(identifiers => '{id}', consumer => 'active') o
    LEFT JOIN customer c ON c.id = o.customer_id
   CROSS JOIN LATERAL (SELECT o.status) s $$);
-- the filter is on columns of the changelog
SELECT cdc.create_pipeline('active', 'active', '{order_id}', $$
  SELECT o.id AS order_id, c.name AS customer, (o.amount * 100)::bigint AS cents,
         CASE WHEN o.status = 'active' OR o._change_type = 'DELETE'
              THEN o._change_type ELSE 'DELETE' END AS _change_type
    FROM orders_changelog(identifiers => '{id}', consumer => 'active') o
    LEFT JOIN customer c ON c.id = o.customer_id $$, replace => true);
SELECT ran(to_jsonb(r)) FROM cdc.run('active') r;
TABLE active ORDER BY 1;
BEGIN;
UPDATE orders SET amount = 5 WHERE id = 11;                      -- in, in
UPDATE orders SET status = 'closed' WHERE id = 12;               -- in, out
DELETE FROM orders WHERE id = 13;                                -- in, absent
UPDATE orders SET status = 'active' WHERE id = 21;               -- out, in
UPDATE orders SET amount = 6 WHERE id = 22;                      -- out, out
DELETE FROM orders WHERE id = 23;                                -- out, absent
INSERT INTO orders VALUES (31, 1, 'active', 3), (32, 1, 'closed', 3); -- absent, in; absent, out
INSERT INTO orders VALUES (33, 1, 'active', 3);
DELETE FROM orders WHERE id = 33;                                -- absent, absent
COMMIT;
SELECT ran(to_jsonb(r)) FROM cdc.run('active') r;
TABLE active ORDER BY 1;
-- the same by means of the option
CREATE TABLE active2 (LIKE orders INCLUDING ALL);
SELECT cdc.create_pipeline('active2', 'active2', '{id}',
  $$SELECT * FROM orders_changelog(identifiers => '{id}', consumer => 'active2') $$,
  filter => $$ status = 'active' $$);
SELECT ran(to_jsonb(r)) FROM cdc.run('active2') r;
BEGIN;
UPDATE orders SET status = 'closed' WHERE id = 11;
UPDATE orders SET status = 'active' WHERE id = 12;
UPDATE orders SET amount = 9 WHERE id IN (21, 22);
DELETE FROM orders WHERE id IN (31, 32);
INSERT INTO orders VALUES (41, 1, 'active', 4), (42, 1, 'closed', 4);
COMMIT;
SELECT ran(to_jsonb(r)) FROM cdc.run('active2') r;
SELECT * FROM active2 ORDER BY id;
SELECT count(*) FROM ((SELECT * FROM orders WHERE status = 'active' EXCEPT TABLE active2)
  UNION ALL (TABLE active2 EXCEPT SELECT * FROM orders WHERE status = 'active')) d;

--
-- Two sources in one query
--
CREATE TABLE named (id int PRIMARY KEY, name text, amount numeric);
SELECT cdc.create_pipeline('named', 'named', '{id}', $$
  WITH changed AS (
    SELECT id FROM orders_changelog(identifiers => '{id}', consumer => 'named')
    UNION
    SELECT o.id FROM customer_changelog(identifiers => '{id}', consumer => 'named') c
      JOIN orders o ON o.customer_id = c.id)
  SELECT k.id, c.name, o.amount, CASE WHEN o.id IS NULL THEN 'DELETE' ELSE 'INSERT' END AS _change_type
    FROM changed k LEFT JOIN orders o USING (id) LEFT JOIN customer c ON c.id = o.customer_id $$);
SELECT mode, (SELECT count(*) FROM jsonb_object_keys(ranges)) FROM cdc.run('named');
UPDATE customer SET name = 'Adele' WHERE id = 1;
DELETE FROM orders WHERE id = 21;
SELECT mode, updated, deleted, (SELECT count(*) FROM jsonb_object_keys(ranges)) FROM cdc.run('named');
SELECT count(*) FROM ((SELECT o.id, name, amount FROM orders o LEFT JOIN customer c ON c.id = customer_id EXCEPT TABLE named)
  UNION ALL (TABLE named EXCEPT SELECT o.id, name, amount FROM orders o LEFT JOIN customer c ON c.id = customer_id)) d;

--
-- The limit for deletes
--
SELECT mode, deleted FROM cdc.run('copy');
SELECT cdc.create_pipeline('copy', 'copy', '{id}',
  $$SELECT * FROM orders_changelog(identifiers => '{id}', consumer => 'copy') $$, max_deletes => '1', replace => true);
DELETE FROM orders WHERE id IN (11, 12);
\set VERBOSITY default
SELECT ran(to_jsonb(r)) FROM cdc.run('copy') r;
\set VERBOSITY terse
SELECT count(*) FROM copy WHERE id IN (11, 12);
SELECT deleted FROM cdc.dry_run('copy');
SELECT cdc.create_pipeline('copy', 'copy', '{id}',
  $$SELECT * FROM orders_changelog(identifiers => '{id}', consumer => 'copy') $$, max_deletes => '90%', replace => true);
SELECT mode, deleted FROM cdc.run('copy');

--
-- The history of runs is bounded
--
SELECT cdc.create_pipeline('copy', 'copy', '{id}',
  $$SELECT * FROM orders_changelog(identifiers => '{id}', consumer => 'copy') $$, keep_runs => 2, replace => true);
INSERT INTO orders VALUES (51, 1, 'active', 5);
SELECT mode FROM cdc.run('copy');
SELECT count(*), max(run_id) - min(run_id) AS span FROM cdc.pipeline_runs WHERE name = 'copy';
SELECT cdc.create_pipeline('copy', 'copy', '{id}',
  $$SELECT * FROM orders_changelog(identifiers => '{id}', consumer => 'copy') $$, keep_runs => 0, replace => true);
INSERT INTO orders VALUES (52, 1, 'active', 5);
SELECT mode FROM cdc.run('copy');
SELECT count(*) FROM cdc.pipeline_runs WHERE name = 'copy';

--
-- A changed definition builds the target anew; another limit does not
--
SELECT cdc.create_pipeline('copy', 'copy', '{id}',
  $$SELECT * FROM orders_changelog(identifiers => '{id}', consumer => 'copy') WHERE id > 20 OR _change_type = 'DELETE' $$, replace => true);
SELECT mode, deleted >= 0 AS d FROM cdc.run('copy');
SELECT count(*) FROM copy WHERE id <= 20;

--
-- Targets and sources that are not what they were
--
TRUNCATE copy;
SELECT mode FROM cdc.run('copy');
-- renamed: follows
ALTER TABLE copy RENAME TO copy2;
INSERT INTO orders VALUES (53, 1, 'active', 5);
SELECT mode, inserted FROM cdc.run('copy');
-- swapped: refused
CREATE TABLE copy (LIKE copy2 INCLUDING ALL);
\set VERBOSITY default
SELECT ran(to_jsonb(r)) FROM cdc.run('copy') r;
SELECT * FROM cdc.run_group('{copy}');
\set VERBOSITY terse
SELECT level, object, problem, fix FROM cdc.check() WHERE object ~ '^pipeline ';
SELECT cdc.create_pipeline('copy', 'copy', '{id}',
  $$SELECT * FROM orders_changelog(identifiers => '{id}', consumer => 'copy') WHERE id > 20 OR _change_type = 'DELETE' $$, replace => true);
SELECT mode FROM cdc.run('copy');
SELECT count(*) FROM cdc.check() WHERE object ~ '^pipeline ';
-- dropped and made again: refused
DROP TABLE copy;
CREATE TABLE copy (LIKE copy2 INCLUDING ALL);
SELECT ran(to_jsonb(r)) FROM cdc.run('copy') r;
SELECT cdc.create_pipeline('copy', 'copy', '{id}',
  $$SELECT * FROM orders_changelog(identifiers => '{id}', consumer => 'copy') WHERE id > 20 OR _change_type = 'DELETE' $$, replace => true);
SELECT mode FROM cdc.run('copy');
-- a source that is tracked anew: built anew
SELECT cdc.untrack('orders');
DELETE FROM orders WHERE id = 53;
SELECT cdc.run('copy');
SELECT cdc.track('orders');
SELECT mode, deleted FROM cdc.run('copy');
SELECT mode FROM cdc.run('copy');
-- a gap in the source: built anew
ALTER TABLE orders ADD COLUMN r float8 DEFAULT random();
ALTER TABLE copy ADD COLUMN r float8;
SELECT mode, updated > 0 AS updated FROM cdc.run('copy');
SELECT count(*) FROM ((SELECT * FROM orders WHERE id > 20 EXCEPT TABLE copy)
  UNION ALL (TABLE copy EXCEPT SELECT * FROM orders WHERE id > 20)) d;

--
-- Groups: parents and children, whatever moves
--
CREATE TABLE p (id int PRIMARY KEY, v int);
CREATE TABLE c (id int PRIMARY KEY, p_id int NOT NULL REFERENCES p, v int);
INSERT INTO p SELECT i, 0 FROM generate_series(1, 5) i;
INSERT INTO c SELECT i, 1 + i % 5, 0 FROM generate_series(1, 20) i;
SELECT cdc.track('p'), cdc.track('c');
CREATE TABLE pt (id int PRIMARY KEY, v int);
CREATE TABLE ct (id int PRIMARY KEY, p_id int NOT NULL REFERENCES pt, v int);
SELECT cdc.create_pipeline('pt', 'pt', '{id}', $$SELECT * FROM p_changelog(identifiers => '{id}', consumer => 'pt') $$),
       cdc.create_pipeline('ct', 'ct', '{id}', $$SELECT * FROM c_changelog(identifiers => '{id}', consumer => 'ct') $$);
SELECT name, mode, inserted FROM cdc.run_group('{ct,pt}');
SELECT name, mode, inserted FROM cdc.run_group('{ct,pt,ct}');
-- all parents go, others come, children move
BEGIN;
INSERT INTO p SELECT i, 1 FROM generate_series(11, 15) i;
UPDATE c SET p_id = p_id + 10;
DELETE FROM p WHERE id <= 5;
DELETE FROM c WHERE id > 15;
INSERT INTO c SELECT i, 15, 1 FROM generate_series(21, 25) i;
COMMIT;
SELECT cdc.run('ct');
SELECT cdc.run('pt');
SELECT name, mode, inserted, updated, deleted FROM cdc.run_group('{ct,pt}');
-- children of parents that have changed places
BEGIN;
UPDATE c SET p_id = CASE p_id WHEN 11 THEN 12 WHEN 12 THEN 11 ELSE p_id END;
UPDATE p SET v = 2;
COMMIT;
SELECT name, mode, inserted, updated, deleted FROM cdc.run_group('{pt,ct}');
SELECT count(*) FROM ((TABLE c EXCEPT TABLE ct) UNION ALL (TABLE ct EXCEPT TABLE c)) d;
SELECT count(*) FROM ((TABLE p EXCEPT TABLE pt) UNION ALL (TABLE pt EXCEPT TABLE p)) d;
-- what breaks them is an error, and changes nothing
INSERT INTO ct VALUES (99, 15, 0);
DELETE FROM c WHERE p_id = 15;
DELETE FROM p WHERE id = 15;
SELECT name FROM cdc.run_group('{pt,ct}');
SELECT count(*) FROM pt WHERE id = 15;
DELETE FROM ct WHERE id = 99;
SELECT name, mode, deleted FROM cdc.run_group('{pt,ct}');
SELECT * FROM cdc.run_group('{}');
SELECT * FROM cdc.run_group('{pt,null}');
SELECT * FROM cdc.run_group('{pt,nope}');

--
-- Rights
--
CREATE ROLE regress_cdc_pipe;
CREATE ROLE regress_cdc_pipe_member IN ROLE regress_cdc_pipe;
CREATE ROLE regress_cdc_pipe_other;
CREATE SCHEMA regress_cdc_pipe AUTHORIZATION regress_cdc_pipe;
GRANT USAGE ON SCHEMA pipeline TO PUBLIC;
SET ROLE regress_cdc_pipe;
SET search_path = "$user";
CREATE TABLE src (id int PRIMARY KEY, v text);
CREATE TABLE tgt (id int PRIMARY KEY, v text);
INSERT INTO src VALUES (1, 'one');
SELECT cdc.track('src');
SELECT cdc.create_pipeline('mine', 'tgt', '{id}', $$SELECT * FROM src_changelog(identifiers => '{id}', consumer => 'mine') $$);
SELECT cdc.create_pipeline('not mine', 'pipeline.pt', '{id}', $$SELECT 1 AS id, 'D' AS _change_type $$);
SELECT search_path FROM cdc.pipelines;
RESET ROLE;
SET ROLE regress_cdc_pipe_other;
SELECT count(*) FROM cdc.pipelines;
SELECT count(*) FROM cdc.pipeline_runs;
SELECT * FROM cdc.pipeline;
SELECT cdc.run('mine');
SELECT cdc.dry_run('mine');
SELECT cdc.run_group('{mine}');
SELECT cdc.drop_pipeline('mine');
SELECT cdc.create_pipeline('mine', 'regress_cdc_pipe.tgt', '{id}', 'SELECT 1', replace => true);
RESET ROLE;
-- members run it with the rights and the search_path of the owner, wherever
-- they are and whatever temporary tables they have
SET ROLE regress_cdc_pipe_member;
SET search_path = '';
CREATE TEMP TABLE tgt (id int PRIMARY KEY, v text);
CREATE TEMP TABLE src (id int PRIMARY KEY, v text);
SELECT mode, inserted FROM cdc.run('mine');
SHOW search_path;
SELECT current_user;
RESET ROLE;
SELECT mode FROM cdc.run('mine');
SET search_path = regress_cdc_pipe, pipeline;
SELECT * FROM regress_cdc_pipe.tgt;
SELECT name FROM cdc.run_group('{mine,pt}');

-- a trigger of the owner's does what it can to a superuser who calls
SET ROLE regress_cdc_pipe;
CREATE FUNCTION regress_cdc_pipe.trap() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE 'SET search_path = regress_cdc_pipe, pg_catalog';
  EXECUTE 'SET statement_timeout = 1234567';
  PERFORM set_config('cdc_changelog.horizon_timeout', '7', false);
  RAISE WARNING '% as %', NEW.v, current_user;
  BEGIN
    CASE NEW.v
      WHEN 'role' THEN RESET ROLE;
      WHEN 'session' THEN SET SESSION AUTHORIZATION DEFAULT;
      WHEN 'temp' THEN CREATE TEMP TABLE trap (i int);
      WHEN 'cursor' THEN EXECUTE 'DECLARE trap CURSOR WITH HOLD FOR SELECT 1';
      WHEN 'listen' THEN EXECUTE 'LISTEN trap';
      WHEN 'prepare' THEN EXECUTE 'PREPARE trap AS SELECT 1';
      ELSE NULL;
    END CASE;
    IF NEW.v <> 'one' THEN RAISE WARNING 'trapped by %', NEW.v; END IF;
  EXCEPTION WHEN OTHERS THEN
    RAISE WARNING '%', SQLERRM;
  END;
  RETURN NULL;
END $$;
CREATE TRIGGER trap AFTER INSERT ON regress_cdc_pipe.tgt FOR EACH ROW EXECUTE FUNCTION regress_cdc_pipe.trap();
INSERT INTO regress_cdc_pipe.src VALUES (2, 'role'), (3, 'session'), (4, 'temp'), (5, 'cursor'), (6, 'listen'), (7, 'prepare');
RESET ROLE;
SELECT mode, inserted FROM cdc.run('mine');
SHOW search_path;
SHOW statement_timeout;
SHOW cdc_changelog.horizon_timeout;
SELECT current_user = session_user AS myself;
SET ROLE regress_cdc_pipe;
INSERT INTO regress_cdc_pipe.src VALUES (8, 'role'), (9, 'temp');
RESET ROLE;
SELECT mode, inserted FROM cdc.run_group('{mine}');
SELECT current_user = session_user AS myself;
-- what is left for the end of the transaction would run as the caller
SET ROLE regress_cdc_pipe;
DROP TRIGGER trap ON regress_cdc_pipe.tgt;
CREATE CONSTRAINT TRIGGER trap AFTER INSERT ON regress_cdc_pipe.tgt DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION regress_cdc_pipe.trap();
INSERT INTO regress_cdc_pipe.src VALUES (10, 'deferred');
RESET ROLE;
SELECT mode, inserted FROM cdc.run('mine');
SET ROLE regress_cdc_pipe;
SELECT mode, inserted FROM cdc.run('mine');
DROP TRIGGER trap ON regress_cdc_pipe.tgt;
RESET ROLE;
-- operators and functions of the caller's search_path are of no use
CREATE SCHEMA regress_cdc_evil;
CREATE FUNCTION regress_cdc_evil.evil(int, int) RETURNS boolean LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'evil'; END $$;
CREATE OPERATOR regress_cdc_evil.= (LEFTARG = int, RIGHTARG = int, FUNCTION = regress_cdc_evil.evil);
SET search_path = regress_cdc_evil, pg_catalog;
INSERT INTO regress_cdc_pipe.src VALUES (11, 'operator');
SELECT mode, inserted FROM cdc.run('mine');
SET search_path = pipeline;

-- an owner that is gone
DROP OWNED BY regress_cdc_pipe, regress_cdc_pipe_member;
DROP ROLE regress_cdc_pipe_member, regress_cdc_pipe;
SELECT regexp_replace(problem, 'role \d+', 'role N') FROM cdc.check() WHERE object ~ '^pipeline ';
SELECT cdc.drop_pipeline('mine');

--
-- Errors of definitions
--
SELECT cdc.create_pipeline(NULL, 'pt', '{id}', 'SELECT 1');
SELECT cdc.create_pipeline('x', NULL, '{id}', 'SELECT 1');
SELECT cdc.create_pipeline('x', 'pt', '{id}', NULL);
SELECT cdc.create_pipeline('', 'pt', '{id}', 'SELECT 1');
SELECT cdc.create_pipeline('x', 'pt', NULL, 'TABLE p');
SELECT cdc.create_pipeline('x', 'pt', '{nope}', $$SELECT *, 'I' AS _change_type FROM p $$);
SELECT cdc.create_pipeline('x', 'pt', '{id}', 'SELECT 1 AS id');
SELECT cdc.create_pipeline('x', 'pt', '{id}', 'SELECT FROM nope');
SELECT cdc.create_pipeline('x', 'pt', '{id}', 'SELECT 1; SELECT 2');
SELECT cdc.create_pipeline('x', 'pt', '{id}', $$SELECT *, 'I' AS _change_type FROM p $$, filter => 'nope');
SELECT cdc.create_pipeline('x', 'pt', '{id}', $$SELECT *, 'I' AS _change_type FROM p $$, max_deletes => 'many');
SELECT cdc.create_pipeline('x', 'pt', '{id}', $$SELECT *, 'I' AS _change_type FROM p $$, keep_runs => -1);
CREATE TEMP TABLE temporary (id int PRIMARY KEY);
SELECT cdc.create_pipeline('x', 'temporary', '{id}', $$SELECT id, 'I' AS _change_type FROM p $$);
SELECT cdc.create_pipeline('pt', 'pt', '{id}', $$SELECT *, 'I' AS _change_type FROM p $$);
SELECT cdc.run('nope');
SELECT cdc.dry_run('nope');
SELECT cdc.drop_pipeline('nope');
-- a query that reads nothing through the consumer
SELECT cdc.create_pipeline('x', 'pt', '{id}', $$SELECT *, 'I' AS _change_type FROM p $$);
SELECT cdc.run('x');
-- append
CREATE TABLE audit (id int, v int, _change_type text);
SELECT cdc.create_pipeline('x', 'audit', NULL, $$SELECT id, v, _change_type FROM p_changelog(mode => 'all', identifiers => '{id}', consumer => 'x') $$,
  append => true, replace => true);
SELECT mode, inserted FROM cdc.run('x');
UPDATE p SET v = 9 WHERE id = 11;
SELECT mode, inserted FROM cdc.run('x');
SELECT * FROM audit WHERE id = 11;
TRUNCATE audit;
SELECT mode, inserted FROM cdc.run('x');

-- a source that has another name: found out although nothing has changed
CREATE TABLE src (id int PRIMARY KEY, v int);
CREATE TABLE src_new (LIKE src INCLUDING ALL);
CREATE TABLE src_copy (LIKE src INCLUDING ALL);
INSERT INTO src VALUES (1, 1);
INSERT INTO src_new VALUES (2, 2);
SELECT cdc.track(r) FROM (VALUES ('src'::regclass), ('src_new')) v(r);
SELECT cdc.create_pipeline('s', 'src_copy', '{id}', $$SELECT * FROM src_changelog(identifiers => '{id}', consumer => 's') $$);
SELECT mode FROM cdc.run('s');
ALTER TABLE src RENAME TO src_old;
SELECT mode FROM cdc.run('s');
ALTER TABLE src_old RENAME TO src;
SELECT mode, ranges FROM cdc.run('s');
SELECT mode FROM cdc.run('s');
ALTER TABLE src RENAME TO src_old;
ALTER TABLE src_new RENAME TO src;
SELECT mode, ranges, inserted, deleted FROM cdc.run('s');
SELECT mode FROM cdc.run('s');
TABLE src_copy;
-- likewise its schema
CREATE SCHEMA regress_cdc_one CREATE TABLE z (id int PRIMARY KEY);
CREATE SCHEMA regress_cdc_two CREATE TABLE z (id int PRIMARY KEY);
CREATE TABLE z_copy (id int PRIMARY KEY);
INSERT INTO regress_cdc_one.z VALUES (1);
INSERT INTO regress_cdc_two.z VALUES (2);
SELECT cdc.track(r) FROM (VALUES ('regress_cdc_one.z'::regclass), ('regress_cdc_two.z')) v(r);
SELECT cdc.create_pipeline('z', 'z_copy', '{id}', $$SELECT * FROM regress_cdc_one.z_changelog(identifiers => '{id}', consumer => 'z') $$);
SELECT mode FROM cdc.run('z');
ALTER SCHEMA regress_cdc_one RENAME TO regress_cdc_three;
ALTER SCHEMA regress_cdc_two RENAME TO regress_cdc_one;
SELECT mode FROM cdc.run('z');
TABLE z_copy;
SET client_min_messages = error;
DROP SCHEMA regress_cdc_one, regress_cdc_three CASCADE;
RESET client_min_messages;

SELECT cdc.drop_pipeline(name) FROM cdc.pipelines;
SELECT count(*) FROM cdc.pipeline_run;
SELECT count(*) FROM cdc.consumers;
DROP ROLE regress_cdc_pipe_other;
SET client_min_messages = error;
DROP SCHEMA regress_cdc_evil CASCADE;
DROP SCHEMA pipeline CASCADE;
