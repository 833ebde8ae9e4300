--
-- apply_changelog through a consumer: reads what the consumer has not read,
-- changes the target and moves the positions in one statement.
--
CREATE SCHEMA apply_consumer;
SET search_path = apply_consumer;
\set SHOW_CONTEXT never

CREATE TABLE orders (id int PRIMARY KEY, status text, customer int);
INSERT INTO orders VALUES (1, 'new', 7), (2, 'new', 8), (3, 'paid', 7);
SELECT cdc.track('orders');
CREATE TABLE copy (id int PRIMARY KEY, status text, customer int);
INSERT INTO copy VALUES (2, 'new', 8), (3, 'other', 7), (99, 'left over', 1);

\set query '$$ SELECT * FROM orders_changelog(identifiers => ARRAY[''id''], consumer => ''copy'') $$'

-- the first run makes the target equal to the table
SELECT * FROM cdc.apply_changelog('copy', :query, ARRAY['id'], consumer => 'copy');
SELECT * FROM copy ORDER BY id;
SELECT relation, snapshot FROM cdc.position('copy');
-- nothing has happened since
SELECT * FROM cdc.apply_changelog('copy', :query, ARRAY['id'], consumer => 'copy');
-- some changes
UPDATE orders SET status = 'paid' WHERE id = 1;
DELETE FROM orders WHERE id = 2;
INSERT INTO orders VALUES (4, 'new', 9);
UPDATE orders SET status = 'packed' WHERE id = 4;
SELECT * FROM cdc.apply_changelog('copy', :query, ARRAY['id'], consumer => 'copy');
SELECT * FROM copy ORDER BY id;
SELECT relation, snapshot FROM cdc.position('copy');
-- an incremental run leaves other rows alone
INSERT INTO copy VALUES (77, 'mine', 1);
UPDATE orders SET status = 'shipped' WHERE id = 4;
SELECT * FROM cdc.apply_changelog('copy', :query, ARRAY['id'], consumer => 'copy');
SELECT * FROM copy ORDER BY id;

-- all or nothing: target and position go back together
BEGIN;
UPDATE orders SET status = 'lost' WHERE id = 3;
COMMIT;
BEGIN;
SELECT * FROM cdc.apply_changelog('copy', :query, ARRAY['id'], consumer => 'copy');
SELECT relation, snapshot FROM cdc.position('copy');
-- once more in one transaction: it has been done
SELECT * FROM cdc.apply_changelog('copy', :query, ARRAY['id'], consumer => 'copy');
ROLLBACK;
SELECT relation, snapshot FROM cdc.position('copy');
SELECT * FROM copy WHERE id = 3;
BEGIN;
SAVEPOINT s;
SELECT * FROM cdc.apply_changelog('copy', :query, ARRAY['id'], consumer => 'copy');
ROLLBACK TO s;
SELECT * FROM cdc.apply_changelog('copy', :query, ARRAY['id'], consumer => 'copy');
COMMIT;
SELECT relation, snapshot FROM cdc.position('copy');
SELECT * FROM copy WHERE id = 3;
-- what the transaction itself has changed comes later
BEGIN;
UPDATE orders SET status = 'found' WHERE id = 3;
SELECT * FROM cdc.apply_changelog('copy', :query, ARRAY['id'], consumer => 'copy');
COMMIT;
SELECT * FROM cdc.apply_changelog('copy', :query, ARRAY['id'], consumer => 'copy');
SELECT * FROM copy WHERE id = 3;

-- an error leaves both alone
UPDATE orders SET customer = 10 WHERE id = 1;
DELETE FROM orders WHERE id = 3;
SELECT * FROM cdc.apply_changelog('copy', :query, ARRAY['id'], consumer => 'copy', max_deletes => '0');
SELECT * FROM cdc.apply_changelog('copy', :query, ARRAY['id', 'nope'], consumer => 'copy');
SELECT relation, snapshot FROM cdc.position('copy');
SELECT * FROM copy ORDER BY id;
SELECT * FROM cdc.apply_changelog('copy', :query, ARRAY['id'], consumer => 'copy', max_deletes => '1');

-- a target that was emptied is built anew
TRUNCATE copy;
SELECT * FROM cdc.apply_changelog('copy', :query, ARRAY['id'], consumer => 'copy');
SELECT * FROM copy ORDER BY id;

-- several targets in one transaction read the same
CREATE TABLE second (id int PRIMARY KEY, status text);
BEGIN;
SELECT * FROM cdc.apply_changelog('copy', :query, ARRAY['id'], consumer => 'copy');
SELECT * FROM cdc.apply_changelog('second',
  $$ SELECT _change_type, id, status FROM orders_changelog(identifiers => ARRAY['id'], consumer => 'copy') $$, ARRAY['id'], consumer => 'copy');
COMMIT;
UPDATE orders SET status = 'packed';
BEGIN;
SELECT * FROM cdc.apply_changelog('copy', :query, ARRAY['id'], consumer => 'copy');
SELECT * FROM cdc.apply_changelog('second',
  $$ SELECT _change_type, id, status FROM orders_changelog(identifiers => ARRAY['id'], consumer => 'copy') $$, ARRAY['id'], consumer => 'copy');
COMMIT;
SELECT * FROM second ORDER BY id;

--
-- two tables in one query; the second one joins later
--
CREATE TABLE customers (id int PRIMARY KEY, name text);
INSERT INTO customers VALUES (7, 'Ann'), (8, 'Bob'), (10, 'Cyd');
SELECT cdc.track('customers');
CREATE TABLE both_copy (kind text, id int, v text, PRIMARY KEY (kind, id));
SELECT * FROM cdc.apply_changelog('both_copy',
  $$ SELECT _change_type, 'order' AS kind, id, status AS v FROM orders_changelog(identifiers => ARRAY['id'], consumer => 'both') $$,
  ARRAY['kind', 'id'], consumer => 'both');
UPDATE orders SET status = 'done' WHERE id = 1;
\set both '$$ SELECT _change_type, ''order'' AS kind, id, status AS v FROM orders_changelog(identifiers => ARRAY[''id''], consumer => ''both'') UNION ALL SELECT _change_type, ''customer'', id, name FROM customers_changelog(identifiers => ARRAY[''id''], consumer => ''both'') $$'
SELECT * FROM cdc.apply_changelog('both_copy', :both, ARRAY['kind', 'id'], consumer => 'both');
SELECT * FROM both_copy ORDER BY kind, id;
UPDATE customers SET name = 'Cid' WHERE id = 10;
UPDATE orders SET status = 'open' WHERE id = 1;
SELECT * FROM cdc.apply_changelog('both_copy', :both, ARRAY['kind', 'id'], consumer => 'both');
SELECT * FROM both_copy ORDER BY kind, id;

--
-- options
--
CREATE TABLE opts (id int PRIMARY KEY, status text, customer int, gone boolean DEFAULT false, seq bigint);
\set opts '$$ SELECT id, status, customer, _change_type, _change_ordinal AS seq FROM orders_changelog(identifiers => ARRAY[''id''], consumer => ''opts'') $$'
SELECT * FROM cdc.apply_changelog('opts', :opts, ARRAY['id'], filter => 'status <> ''open''',
  sequence_by => 'seq', soft_delete => 'gone', consumer => 'opts');
SELECT id, status, gone FROM opts ORDER BY id;
DELETE FROM orders WHERE id = 4;
UPDATE orders SET status = 'paid' WHERE id = 1;
SELECT * FROM cdc.apply_changelog('opts', :opts, ARRAY['id'], filter => 'status <> ''open''',
  sequence_by => 'seq', soft_delete => 'gone', consumer => 'opts');
SELECT id, status, gone FROM opts ORDER BY id;

-- appending: everything once, then what is added; never everything again
CREATE TABLE audit (id int, status text, _change_type text, _change_ordinal bigint);
\set audit '$$ SELECT id, status, _change_type, _change_ordinal FROM orders_changelog(identifiers => ARRAY[''id''], mode => ''all'', consumer => ''audit'') $$'
SELECT * FROM cdc.apply_changelog('audit', :audit, NULL, append => true, consumer => 'audit');
UPDATE orders SET status = 'shipped' WHERE id = 1;
SELECT * FROM cdc.apply_changelog('audit', :audit, NULL, append => true, consumer => 'audit');
SELECT id, status, _change_type FROM audit ORDER BY _change_ordinal, _change_type DESC;
TRUNCATE audit;
SELECT * FROM cdc.apply_changelog('audit', :audit, NULL, append => true, consumer => 'audit');
SELECT cdc.reset('audit');
SELECT * FROM cdc.apply_changelog('audit', :audit, NULL, append => true, consumer => 'audit');
SELECT id, status, _change_type FROM audit;
-- nor where the positions went with the tracking of the table
CREATE TABLE visits (id int);
SELECT cdc.track('visits');
INSERT INTO visits VALUES (1), (2);
CREATE TABLE all_visits (id int);
\set visits '$$ SELECT id FROM visits_changelog(mode => ''append_only'', consumer => ''visits'') $$'
SELECT * FROM cdc.apply_changelog('all_visits', :visits, NULL, append => true, consumer => 'visits');
SELECT cdc.untrack('visits');
SELECT cdc.track('visits');
SELECT * FROM cdc.apply_changelog('all_visits', :visits, NULL, append => true, consumer => 'visits');
TRUNCATE all_visits;
SELECT cdc.reset('visits');
SELECT * FROM cdc.apply_changelog('all_visits', :visits, NULL, append => true, consumer => 'visits');
SELECT cdc.untrack('visits');

-- versions
INSERT INTO orders VALUES (5, 'new', 7);
CREATE TABLE versions (id int, status text, customer int, valid_from bigint, valid_to bigint);
\set versions '$$ SELECT * FROM orders_changelog(identifiers => ARRAY[''id''], mode => ''all'', consumer => ''versions'') $$'
SELECT * FROM cdc.apply_changelog('versions', :versions, ARRAY['id'], history => true, consumer => 'versions');
UPDATE orders SET status = 'paid' WHERE id = 5;
DELETE FROM orders WHERE id = 1;
SELECT * FROM cdc.apply_changelog('versions', :versions, ARRAY['id'], history => true, consumer => 'versions');
SELECT id, status, valid_from - min(valid_from) OVER () AS valid_from, valid_to - min(valid_from) OVER () AS valid_to
  FROM versions ORDER BY id, valid_from;

--
-- errors
--
SELECT * FROM cdc.apply_changelog('copy', $$ SELECT 'I' AS _change_type, 1 AS id, 'x' AS status $$, ARRAY['id'], consumer => 'copy');
SELECT * FROM cdc.apply_changelog('copy', :query, ARRAY['id'], consumer => 'other');
SELECT * FROM cdc.apply_changelog('copy', :query, ARRAY['id'], consumer => '');
CREATE ROLE regress_cdc_apply_consumer;
GRANT USAGE ON SCHEMA apply_consumer TO regress_cdc_apply_consumer;
GRANT ALL ON copy TO regress_cdc_apply_consumer;
SET ROLE regress_cdc_apply_consumer;
SELECT * FROM cdc.apply_changelog('copy', :query, ARRAY['id'], consumer => 'copy');
RESET ROLE;
SELECT * FROM cdc.apply_changelog('copy', :query, ARRAY['id'], consumer => 'copy');
SELECT (SELECT array_agg(o ORDER BY id) FROM orders o)::text = (SELECT array_agg(c ORDER BY id) FROM copy c)::text AS equal;

SET client_min_messages = warning;
SELECT count(cdc.drop_consumer(c)) FROM unnest(ARRAY['copy', 'both', 'opts', 'audit', 'visits', 'versions']) c;
DROP SCHEMA apply_consumer CASCADE;
DROP ROLE regress_cdc_apply_consumer;
