--
-- apply_changelog: what it refuses, with the target as it was
--
CREATE SCHEMA apply_errors;
SET search_path = apply_errors;
\set SHOW_CONTEXT never

CREATE TABLE an_t (id int, v varchar(5) NOT NULL);
INSERT INTO an_t VALUES (1, 'a'), (2, 'b'), (3, 'c');
CREATE TABLE an_changes (id int, v text, _change_type text, _change_ordinal bigint);
INSERT INTO an_changes VALUES (1, 'a', 'UPDATE_BEFORE', 1), (1, 'A', 'UPDATE_AFTER', 1),
                              (2, 'b', 'DELETE', 1), (4, 'd', 'INSERT', 1);
--
-- BB-49 (a) the same twice, (b) target key twice, (c) changelog key twice, (d) a type limit
--
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['id']);
SELECT * FROM an_t ORDER BY id;
INSERT INTO an_t VALUES (4, 'dup');
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['id']);
DELETE FROM an_t WHERE v = 'dup';
-- indexes that prove nothing: not unique, partial, deferred
CREATE TABLE unproven (id int, v text);
CREATE INDEX ON unproven (id);
CREATE UNIQUE INDEX ON unproven (id) WHERE v <> 'dup';
CREATE UNIQUE INDEX ON unproven (id, v);
CREATE UNIQUE INDEX ON unproven ((id + length(v)));
ALTER TABLE unproven ADD UNIQUE (id) DEFERRABLE INITIALLY DEFERRED;
BEGIN;
INSERT INTO unproven VALUES (4, 'd'), (4, 'dup');
SELECT * FROM cdc.apply_changelog('unproven', 'an_changes', ARRAY['id']);
ROLLBACK;
-- key 2 twice, and the other change is not made, either
INSERT INTO an_t VALUES (2, 'x'), (2, 'y');
SELECT * FROM cdc.apply_changelog('an_t', $$ SELECT id, 'Q' AS v, _change_type FROM an_changes WHERE id IN (1, 2) $$, ARRAY['id']);
DELETE FROM an_t WHERE id = 2;
CREATE TABLE bad AS TABLE an_changes;
INSERT INTO bad VALUES (1, 'Z', 'INSERT', 9);
SELECT * FROM cdc.apply_changelog('an_t', 'bad', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', $$ SELECT id, 'x' || id AS v, 'D' AS _change_type FROM (VALUES (1), (3), (1)) x (id) $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', $$ SELECT 'U' AS _change_type, NULL::int AS id, NULL AS v FROM generate_series(1, 2) $$, ARRAY['id', 'v']);
CREATE TABLE toolong AS
SELECT '3'::text AS id, 'far too long'::text AS v, 'UPDATE_AFTER'::text AS _change_type, 1::bigint AS _change_ordinal
UNION ALL SELECT '1', NULL, 'DELETE', 1;
SELECT * FROM cdc.apply_changelog('an_t', 'toolong', ARRAY['id']);
-- what is too long but ignored does not matter
SELECT * FROM cdc.apply_changelog('an_t', $$ SELECT 'UPDATE_BEFORE' AS _change_type, id || 'x' AS id, v FROM toolong $$, ARRAY['id']);
SELECT * FROM an_t ORDER BY id;
-- the write itself fails: all or nothing
SELECT * FROM cdc.apply_changelog('an_t', $$ VALUES (1) $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', $$ SELECT 'D' AS _change_type, 1 AS id, NULL AS v UNION ALL SELECT 'I', 9, NULL $$, ARRAY['id']);
BEGIN;
DELETE FROM an_t WHERE id = 3;
SAVEPOINT s;
SELECT * FROM cdc.apply_changelog('an_t', $$ SELECT 'D' AS _change_type, 1 AS id, NULL AS v UNION ALL SELECT 'I', 9, NULL $$, ARRAY['id']);
ROLLBACK TO s;
SELECT * FROM an_t ORDER BY id;
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['id']);
ROLLBACK;
SELECT * FROM an_t ORDER BY id;

--
-- (e) to (h): arguments
--
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', '{}');
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', NULL);
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['id', NULL]);
SELECT * FROM cdc.apply_changelog('an_t', NULL, ARRAY['id']);
SELECT * FROM cdc.apply_changelog(NULL, 'an_changes', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['ID']);
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['id', 'nope']);
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['_change_ordinal']);
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['ctid']);
SELECT * FROM cdc.apply_changelog('an_t', $$ SELECT 'U' AS _change_type, 'x' AS v $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', $$ SELECT 1 AS id, 'x' AS v $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', $$ SELECT 'U' AS _change_type, 1 AS id, 'x' AS v, 2 AS ctid $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', $$ SELECT 'U' AS _change_type, 1 AS id, 2 AS id $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', $$ SELECT 'UPSERT' AS _change_type, 1 AS id, 'x' AS v $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', $$ SELECT 'INS' AS _change_type, 1 AS id, 'x' AS v $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', $$ SELECT '' AS _change_type, 1 AS id, 'x' AS v $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', $$ SELECT NULL AS _change_type, 1 AS id, 'x' AS v $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['id'], sequence_by => 'seq');
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['id'], sequence_by => 'id');
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['id'], sequence_by => '_change_ordinal');
SELECT * FROM cdc.apply_changelog('an_t', 'SELECT id, _change_type FROM an_changes', ARRAY['id'], sequence_by => 'v');
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['id'], soft_delete => 'gone');
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['id'], soft_delete => 'v');
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['id'], soft_delete => 'id');
CREATE TABLE no_order (id json, p point, b boolean);
SELECT * FROM cdc.apply_changelog('no_order', 'an_changes', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('no_order', 'an_changes', ARRAY['b'], sequence_by => 'p');

--
-- the changelog
--
SELECT * FROM cdc.apply_changelog('an_t', '', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', '  ', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', 'no_such_table', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', 'a.b.c.d', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes; DROP TABLE an_t', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', 'SELECT 1; SELECT 2', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', ';', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', 'SELECT 1) AS c; DROP TABLE an_t; --', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', 'SELECT FROM WHERE', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', 'DELETE FROM an_t RETURNING *, ''D'' AS _change_type', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', 'DROP TABLE an_t', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', 'SELECT * INTO x FROM an_changes', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', 'WITH x AS (DELETE FROM an_t RETURNING *) SELECT *, ''D'' AS _change_type FROM x', ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', 'SELECT * FROM an_changes WHERE id = $1', ARRAY['id']);
-- types that cannot be assigned
SELECT * FROM cdc.apply_changelog('an_t', $$ SELECT 'U' AS _change_type, date '2024-01-01' AS id $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', $$ SELECT 'U' AS _change_type, true AS id $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', $$ SELECT 'U' AS _change_type, 'x' AS id $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('an_t', $$ SELECT 'U' AS _change_type, 3000000000 AS id $$, ARRAY['id']);
CREATE DOMAIN small AS int CHECK (VALUE < 10);
CREATE TABLE limits (id int PRIMARY KEY, d small, c char(2), b bit(3), vb bit varying(3), a varchar(2)[], n numeric(3, 1));
SELECT * FROM cdc.apply_changelog('limits', $$ SELECT 'I' AS _change_type, 1 AS id, 10 AS d $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('limits', $$ SELECT 'I' AS _change_type, 1 AS id, 'abc' AS c $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('limits', $$ SELECT 'I' AS _change_type, 1 AS id, '1' AS b $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('limits', $$ SELECT 'I' AS _change_type, 1 AS id, B'1111' AS vb $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('limits', $$ SELECT 'I' AS _change_type, 1 AS id, '{abc}' AS a $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('limits', $$ SELECT 'I' AS _change_type, 1 AS id, 100 AS n $$, ARRAY['id']);

--
-- the filter
--
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['id'], filter => '');
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['id'], filter => 'id');
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['id'], filter => 'nope > 1');
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['id'], filter => 'true), (false');
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['id'], filter => 'true) FROM an_t WHERE (true');
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['id'], filter => 'true); DROP TABLE an_t; SELECT (1');
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['id'], filter => 'id >');
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['id'], filter => 'true UNION ALL SELECT false');
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['id'], filter => 'count(*) > 1');

--
-- targets that cannot be changed
--
CREATE MATERIALIZED VIEW mv AS TABLE an_t;
SELECT * FROM cdc.apply_changelog('mv', 'an_changes', ARRAY['id']);
CREATE SEQUENCE sq;
SELECT * FROM cdc.apply_changelog('sq', 'an_changes', ARRAY['id']);
CREATE INDEX an_i ON an_t (id);
SELECT * FROM cdc.apply_changelog('an_i', 'an_changes', ARRAY['id']);
CREATE VIEW joined AS SELECT a.id, b.v FROM an_t a JOIN an_t b USING (id);
SELECT * FROM cdc.apply_changelog('joined', 'an_changes', ARRAY['id']);
BEGIN READ ONLY;
SELECT * FROM cdc.apply_changelog('an_t', 'an_changes', ARRAY['id']);
ROLLBACK;
SELECT * FROM an_t ORDER BY id;

--
-- the limit for deletes; nothing is changed beyond it
--
CREATE TABLE guarded (id int PRIMARY KEY, v text, gone boolean DEFAULT false);
INSERT INTO guarded SELECT i, 'v' FROM generate_series(1, 200) i;
CREATE VIEW seen AS TABLE guarded;
CREATE VIEW deletes AS SELECT 'D' AS _change_type, i AS id, NULL AS v FROM generate_series(1, 11) i
  UNION ALL SELECT 'I', 1000, 'new' UNION ALL SELECT 'D', 2000, NULL;
SELECT * FROM cdc.apply_changelog('guarded', 'deletes', ARRAY['id'], max_deletes => '10');
SELECT * FROM cdc.apply_changelog('guarded', 'deletes', ARRAY['id'], max_deletes => '5%');
SELECT * FROM cdc.apply_changelog('guarded', 'deletes', ARRAY['id'], max_deletes => '0');
SELECT * FROM cdc.apply_changelog('guarded', 'deletes', ARRAY['id'], soft_delete => 'gone', max_deletes => '5.49%');
BEGIN;
SELECT * FROM cdc.apply_changelog('guarded', 'deletes', ARRAY['id'], max_deletes => '100%', complete => true);
ROLLBACK;
SELECT * FROM cdc.apply_changelog('guarded', 'deletes', ARRAY['id'], max_deletes => '199', complete => true);
SELECT * FROM cdc.apply_changelog('seen', 'deletes', ARRAY['id'], max_deletes => '5%');
SELECT count(*), sum(id), count(*) FILTER (WHERE gone) FROM guarded;
-- only what is there and goes counts
BEGIN;
SELECT * FROM cdc.apply_changelog('guarded', 'deletes', ARRAY['id'], max_deletes => '11');
SELECT * FROM cdc.apply_changelog('guarded', 'deletes', ARRAY['id'], max_deletes => '0%');
ROLLBACK;
BEGIN;
SELECT * FROM cdc.apply_changelog('guarded', 'deletes', ARRAY['id'], soft_delete => 'gone', max_deletes => '5.5%');
SELECT * FROM cdc.apply_changelog('guarded', 'deletes', ARRAY['id'], soft_delete => 'gone', max_deletes => '0');
ROLLBACK;
-- statistics that promise too much are not believed
BEGIN;
INSERT INTO guarded SELECT i, 'v' FROM generate_series(201, 20000) i;
ANALYZE guarded;
DELETE FROM guarded WHERE id > 200;
SELECT * FROM cdc.apply_changelog('guarded', 'deletes', ARRAY['id'], max_deletes => '5%');
ROLLBACK;
SELECT * FROM cdc.apply_changelog('guarded', 'deletes', ARRAY['id'], max_deletes => '');
SELECT * FROM cdc.apply_changelog('guarded', 'deletes', ARRAY['id'], max_deletes => '-1');
SELECT * FROM cdc.apply_changelog('guarded', 'deletes', ARRAY['id'], max_deletes => '1.5');
SELECT * FROM cdc.apply_changelog('guarded', 'deletes', ARRAY['id'], max_deletes => '101%');
SELECT * FROM cdc.apply_changelog('guarded', 'deletes', ARRAY['id'], max_deletes => '%');
SELECT * FROM cdc.apply_changelog('guarded', 'deletes', ARRAY['id'], max_deletes => '5 %');
SELECT * FROM cdc.apply_changelog('guarded', 'deletes', ARRAY['id'], max_deletes => '5%%');
-- options that do not go together
SELECT * FROM cdc.apply_changelog('guarded', 'deletes', ARRAY['id'], history_exclude => ARRAY['v']);
SELECT * FROM cdc.apply_changelog('guarded', 'deletes', ARRAY['id'], history_exclude => ARRAY['v', NULL]);

SET client_min_messages = warning;
DROP SCHEMA apply_errors CASCADE;
