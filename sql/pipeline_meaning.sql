--
-- Pipelines whose query means something else, although its text is the same and
-- no source has anything new
--
SET client_min_messages = warning;
CREATE SCHEMA meaning_first;
CREATE SCHEMA meaning;
SET search_path = meaning;
\set VERBOSITY terse

CREATE TABLE one (id int PRIMARY KEY, v text, w text);
CREATE TABLE two (id int PRIMARY KEY, v text, w text);
INSERT INTO one VALUES (1, 'one', 'uno'), (2, 'one', 'uno');
INSERT INTO two VALUES (2, 'two', 'due'), (3, 'two', 'due');
SELECT cdc.track(r) FROM (VALUES ('one'::regclass), ('two')) v(r);
CREATE TABLE target (id int PRIMARY KEY, v text);

-- a pipeline with a query, which has run
CREATE FUNCTION pipeline(query text, append boolean DEFAULT false) RETURNS text LANGUAGE plpgsql
SET search_path = meaning_first, meaning AS $$
BEGIN
  PERFORM cdc.drop_pipeline('p'), cdc.drop_consumer('p');
  TRUNCATE target;
  PERFORM cdc.create_pipeline('p', 'target', CASE WHEN NOT append THEN '{id}'::text[] END, query, append => append);
  RETURN mode FROM cdc.run('p');
END $$;
CREATE VIEW content AS SELECT string_agg(id || ' ' || coalesce(v, '-'), ', ' ORDER BY id, v) AS content FROM target;

--
-- An idle pipeline reads nothing, and writes nothing
--
SELECT pipeline($$SELECT id, v, _change_type FROM one_changelog(identifiers => '{id}', consumer => 'p') $$);
SELECT last_run_at AS at FROM cdc.consumers WHERE consumer = 'p' \gset
SELECT mode, ranges FROM cdc.run('p');
BEGIN;
SELECT mode FROM cdc.run('p');
SELECT mode FROM cdc.run('p');
ROLLBACK;
SELECT last_run_at = :'at' AS same FROM cdc.consumers WHERE consumer = 'p';
SELECT count(*) FROM cdc.pipeline_runs WHERE name = 'p';
-- nobody may execute it, so this shows that it is not executed
CREATE ROLE regress_cdc_meaning;
GRANT ALL ON SCHEMA meaning, meaning_first TO regress_cdc_meaning;
GRANT ALL ON target, one TO regress_cdc_meaning;
SET ROLE regress_cdc_meaning;
SELECT cdc.create_pipeline('idle', 'target', '{id}', $$ SELECT id, v, _change_type FROM one_changelog(identifiers => '{id}', consumer => 'idle') $$);
SELECT mode FROM cdc.run('idle');
RESET ROLE;
REVOKE ALL ON FUNCTION one_changelog FROM PUBLIC;
SET ROLE regress_cdc_meaning;
SELECT mode FROM cdc.run('idle');
RESET ROLE;
GRANT EXECUTE ON FUNCTION one_changelog TO PUBLIC;
SELECT cdc.drop_pipeline('idle');

--
-- Another function has the name
--
SELECT pipeline($$SELECT id, v, _change_type FROM one_changelog(identifiers => '{id}', consumer => 'p') $$);
ALTER FUNCTION one_changelog RENAME TO x;
SELECT mode FROM cdc.run('p');
ALTER FUNCTION two_changelog RENAME TO one_changelog;
SELECT mode FROM cdc.dry_run('p');
SELECT content FROM content;
SELECT mode, ranges FROM cdc.run('p');
SELECT mode FROM cdc.run('p');
SELECT content FROM content;
SELECT relation, snapshot FROM cdc.position('p');
ALTER FUNCTION one_changelog RENAME TO two_changelog;
ALTER FUNCTION x RENAME TO one_changelog;
SELECT name, mode FROM cdc.run_group('{p}');
SELECT name, mode FROM cdc.run_group('{p}');
SELECT content FROM content;
-- earlier in the search_path
CREATE FUNCTION meaning_first.one_changelog(start_snapshot bigint DEFAULT NULL, identifiers text[] DEFAULT NULL, consumer text DEFAULT NULL)
RETURNS TABLE (id int, v text, _change_type text) LANGUAGE sql VOLATILE AS
$$SELECT id, v, _change_type FROM meaning.two_changelog(identifiers => identifiers, consumer => consumer) $$;
SELECT mode FROM cdc.run('p');
SELECT content FROM content;
-- in it, too, which is only seen by reading; that writes nothing as long as there is nothing new
SELECT last_run_at AS at FROM cdc.consumers WHERE consumer = 'p' \gset
SELECT mode, ranges FROM cdc.run('p');
SELECT last_run_at = :'at' AS same FROM cdc.consumers WHERE consumer = 'p';
SELECT count(*) FROM cdc.pipeline_runs WHERE name = 'p';
CREATE FUNCTION meaning.inner_changelog() RETURNS TABLE (id int, v text, _change_type text) LANGUAGE sql AS
$$SELECT id, v, _change_type FROM meaning.two_changelog(identifiers => '{id}', consumer => 'p') $$;
CREATE OR REPLACE FUNCTION meaning_first.one_changelog(start_snapshot bigint DEFAULT NULL, identifiers text[] DEFAULT NULL, consumer text DEFAULT NULL)
RETURNS TABLE (id int, v text, _change_type text) LANGUAGE sql VOLATILE AS
$$SELECT * FROM meaning.inner_changelog() $$;
SELECT mode FROM cdc.run('p');
CREATE OR REPLACE FUNCTION meaning.inner_changelog() RETURNS TABLE (id int, v text, _change_type text) LANGUAGE sql AS
$$SELECT id, v, _change_type FROM meaning.one_changelog(identifiers => '{id}', consumer => 'p') $$;
SELECT mode FROM cdc.run('p');
SELECT mode FROM cdc.run('p');
SELECT content FROM content;
DROP FUNCTION meaning_first.one_changelog, meaning.inner_changelog;
SELECT mode FROM cdc.run('p');
SELECT mode FROM cdc.run('p');

--
-- Another view, or another definition of it or of what it is made of
--
CREATE VIEW base AS SELECT * FROM one_changelog(identifiers => '{id}', consumer => 'p');
CREATE VIEW top AS SELECT id, v, _change_type FROM base;
SELECT pipeline('top');
SELECT mode FROM cdc.run('p');
CREATE OR REPLACE VIEW base AS SELECT * FROM one_changelog(identifiers => '{id}', consumer => 'p');
SELECT mode FROM cdc.run('p');
CREATE OR REPLACE VIEW top AS SELECT id, upper(v) AS v, _change_type FROM base;
SELECT mode FROM cdc.run('p');
SELECT mode FROM cdc.run('p');
SELECT content FROM content;
CREATE OR REPLACE VIEW base AS SELECT * FROM two_changelog(identifiers => '{id}', consumer => 'p');
SELECT mode FROM cdc.run('p');
SELECT mode FROM cdc.run('p');
SELECT content FROM content;
CREATE OR REPLACE VIEW base AS SELECT * FROM two_changelog(identifiers => '{id}', consumer => 'p') WHERE id > 2;
SELECT mode FROM cdc.run('p');
SELECT mode FROM cdc.run('p');
SELECT content FROM content;
CREATE VIEW meaning_first.top AS SELECT id, w AS v, _change_type FROM one_changelog(identifiers => '{id}', consumer => 'p');
SELECT mode FROM cdc.run('p');
SELECT mode FROM cdc.run('p');
SELECT content FROM content;
DROP VIEW meaning_first.top;
-- also where there is something new
INSERT INTO two VALUES (4, 'two', 'due');
SELECT mode, inserted FROM cdc.run('p');
SELECT content FROM content;
CREATE OR REPLACE VIEW base AS SELECT * FROM two_changelog(identifiers => '{id}', consumer => 'p');
INSERT INTO two VALUES (5, 'two', 'due');
SELECT mode, inserted FROM cdc.run('p');
SELECT content FROM content;
-- and in the transaction of a run
BEGIN;
SELECT mode FROM cdc.run('p');
CREATE OR REPLACE VIEW top AS SELECT id, w AS v, _change_type FROM base;
SELECT mode FROM cdc.run('p');
SELECT mode FROM cdc.run('p');
COMMIT;
SELECT mode FROM cdc.run('p');
SELECT content FROM content;
-- nothing is appended twice
SELECT pipeline('SELECT id, v FROM top', append => true);
CREATE OR REPLACE VIEW top AS SELECT id, upper(v) AS v, _change_type FROM base;
SELECT mode, inserted FROM cdc.run('p');
SELECT mode FROM cdc.run('p');
INSERT INTO two VALUES (6, 'two', 'due');
ALTER TABLE target DROP CONSTRAINT target_pkey;
SELECT mode, inserted FROM cdc.run('p');
SELECT content FROM content;
CREATE OR REPLACE VIEW base AS SELECT * FROM one_changelog(identifiers => '{id}', consumer => 'p');
SELECT mode, inserted FROM cdc.run('p');
TRUNCATE target;
ALTER TABLE target ADD PRIMARY KEY (id);

--
-- Other things that are found by name
--
CREATE TABLE partner (id int PRIMARY KEY, name text);
CREATE TABLE partner_new (id int PRIMARY KEY, name text);
INSERT INTO partner VALUES (1, 'Ada');
INSERT INTO partner_new VALUES (1, 'Eve'), (2, 'Bob');
SELECT pipeline($$SELECT id, p.name AS v, _change_type FROM one_changelog(identifiers => '{id}', consumer => 'p') LEFT JOIN partner p USING (id) $$);
UPDATE partner SET name = 'Ann';
SELECT mode FROM cdc.run('p');
ALTER TABLE partner RENAME TO partner_old;
ALTER TABLE partner_new RENAME TO partner;
SELECT mode FROM cdc.run('p');
SELECT mode FROM cdc.run('p');
SELECT content FROM content;
CREATE FUNCTION label(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT $1 || '!' $$;
SELECT pipeline($$SELECT id, label(v) AS v, _change_type FROM one_changelog(identifiers => '{id}', consumer => 'p') $$);
SELECT mode FROM cdc.run('p');
CREATE OR REPLACE FUNCTION label(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT $1 || '?' $$;
SELECT mode FROM cdc.run('p');
SELECT mode FROM cdc.run('p');
CREATE FUNCTION meaning_first.label(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT $1 || '.' $$;
SELECT mode FROM cdc.run('p');
SELECT mode FROM cdc.run('p');
SELECT content FROM content;
DROP FUNCTION meaning_first.label;
ALTER TABLE target ADD COLUMN w text;
SELECT pipeline($$SELECT * FROM cdc.changelog('one', identifiers => '{id}', consumer => 'p')
  AS (id int, v text, w text, _change_type text, _change_ordinal bigint, _commit_snapshot_id bigint, _commit_timestamp timestamptz) $$);
SELECT mode FROM cdc.run('p');
CREATE TABLE meaning_first.one (LIKE one INCLUDING ALL);
INSERT INTO meaning_first.one VALUES (7, 'first', 'prima');
SELECT cdc.track('meaning_first.one');
SELECT mode FROM cdc.run('p');
SELECT mode FROM cdc.run('p');
SELECT content FROM content;
DROP TABLE meaning_first.one;
-- by a text, which is only seen by reading
SELECT pipeline($$SELECT * FROM cdc.changelog(to_regclass('one'), identifiers => '{id}', consumer => 'p')
  AS (id int, v text, w text, _change_type text, _change_ordinal bigint, _commit_snapshot_id bigint, _commit_timestamp timestamptz) $$);
SELECT mode FROM cdc.run('p');
CREATE TABLE meaning_first.one (LIKE one INCLUDING ALL);
INSERT INTO meaning_first.one VALUES (8, 'first', 'prima');
SELECT cdc.track('meaning_first.one');
SELECT mode FROM cdc.run('p');
SELECT mode FROM cdc.run('p');
SELECT content FROM content;
DROP TABLE meaning_first.one;
-- the filter
CREATE FUNCTION wanted(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT $1 = 1 $$;
SELECT cdc.drop_pipeline('p');
SELECT cdc.create_pipeline('p', 'target', '{id}', $$ SELECT * FROM one_changelog(identifiers => '{id}', consumer => 'p') $$, filter => 'wanted(id)', replace => true);
SELECT mode FROM cdc.run('p');
SELECT mode FROM cdc.run('p');
CREATE OR REPLACE FUNCTION wanted(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT $1 = 2 $$;
SELECT mode FROM cdc.run('p');
SELECT mode FROM cdc.run('p');
SELECT content FROM content;

--
-- Columns: those that are not used do not matter
--
SELECT pipeline($$SELECT o.id, o.v, o._change_type FROM (one_changelog(identifiers => '{id}', consumer => 'p') o JOIN partner p USING (id)) $$);
SELECT mode FROM cdc.run('p');
ALTER TABLE one ADD COLUMN a int DEFAULT 5;
ALTER TABLE one DROP COLUMN w;
ALTER TABLE one ADD COLUMN w text DEFAULT 'tre';
ALTER TABLE one RENAME COLUMN a TO b;
ALTER TABLE partner ADD COLUMN a int;
SELECT mode FROM cdc.run('p');
INSERT INTO one VALUES (1000, 'x'), (8, 'x');
INSERT INTO partner VALUES (8, 'x');
SELECT mode FROM cdc.run('p');
SELECT mode FROM cdc.run('p');
-- two change their names
ALTER TABLE one RENAME COLUMN v TO x;
ALTER TABLE one RENAME COLUMN w TO v;
SELECT mode FROM cdc.run('p');
SELECT mode FROM cdc.run('p');
SELECT content FROM content;
-- one is another one
ALTER TABLE one DROP COLUMN v, ADD COLUMN v text DEFAULT 'new';
SELECT mode FROM cdc.run('p');
SELECT mode FROM cdc.run('p');
SELECT content FROM content;
-- a row as a whole has all of them
SELECT pipeline($$SELECT o.id, to_jsonb(o) ->> 'y' AS v, _change_type FROM one_changelog(identifiers => '{id}', consumer => 'p') o $$);
ALTER TABLE one RENAME COLUMN x TO y;
SELECT mode FROM cdc.run('p');
SELECT mode FROM cdc.run('p');

--
-- What looks different, but is not
--
SELECT pipeline($$SELECT id, v, _change_type FROM one_changelog(identifiers => '{id}', consumer => 'p')
  WHERE now() > '2020-01-01 00:00' AND now() <@ '[2020-01-01 00:00,)'::tstzrange AND now() >= 'today' $$);
SET timezone = 'Asia/Tokyo';
SET datestyle = 'German';
SELECT mode FROM cdc.run('p');
RESET timezone;
RESET datestyle;
SET search_path = '';
SELECT mode FROM cdc.run('p');
SET search_path = meaning;
-- a consumer that is there goes on where it is
SELECT cdc.drop_pipeline('p');
SELECT FROM cdc.apply_changelog('target', $$ SELECT id, v, _change_type FROM one_changelog(identifiers => '{id}', consumer => 'p') $$, '{id}', consumer => 'p');
SELECT cdc.create_pipeline('p', 'target', '{id}', $$
  SELECT id, v, _change_type -- as before
    FROM one_changelog(identifiers => '{id}', consumer => 'p') $$);
SELECT mode FROM cdc.run('p');
-- what it was before is not known
UPDATE cdc.consumer_target SET meaning = 0 WHERE consumer = 'p';
SELECT mode FROM cdc.run('p');
SELECT mode FROM cdc.run('p');
-- by another server
UPDATE cdc.consumer_target SET meaning = meaning # (1::bigint << 60) WHERE consumer = 'p';
SELECT mode FROM cdc.run('p');
SELECT mode FROM cdc.run('p');

--
-- Queries of all shapes: the second run has nothing to do
--
CREATE VIEW changes AS SELECT * FROM one_changelog(identifiers => '{id}', consumer => 'p');
SELECT format('SELECT pipeline(%L)', q), 'SELECT mode FROM cdc.run(''p'')' FROM (VALUES
  (1, $$ SELECT id, NULL::text AS v, _change_type FROM changes UNION SELECT -id, v, _change_type FROM changes WHERE false $$),
  (2, $$ WITH RECURSIVE r (id, v, _change_type) AS (SELECT id, v, _change_type FROM changes
         UNION SELECT id, v || '+', _change_type FROM r WHERE length(v) < 5) SELECT id, max(v) AS v, _change_type FROM r GROUP BY 1, 3 $$),
  (3, $$ SELECT id, v, _change_type FROM changes FULL JOIN (VALUES (1), (77)) x (id) USING (id) WHERE v IS NOT NULL $$),
  (4, $$ SELECT id, v, _change_type FROM (changes c JOIN partner p USING (id)) j
         WHERE EXISTS (SELECT FROM (SELECT j.id AS i) k JOIN two t ON t.id = k.i OR j.name <> '' CROSS JOIN LATERAL (SELECT j.v || t.v) l) $$),
  (5, $$ SELECT (j).id, (j).v, (j)._change_type FROM (SELECT c AS j, (c.*)::text AS t FROM changes c) x $$),
  (6, $$ SELECT DISTINCT ON (id) id, first_value(v) OVER (PARTITION BY id ORDER BY v RANGE UNBOUNDED PRECEDING) AS v, _change_type FROM changes ORDER BY id $$),
  (7, $$ SELECT id, string_agg(v, ',' ORDER BY v) FILTER (WHERE v > '') AS v, 'INSERT' AS _change_type FROM changes
         GROUP BY GROUPING SETS ((id), (id, v)) HAVING GROUPING(v) = 1 $$),
  (8, $$ SELECT c.id, x.v, c._change_type FROM ROWS FROM (one_changelog(identifiers => '{id}', consumer => 'p')) WITH ORDINALITY c
         LEFT JOIN LATERAL (SELECT * FROM unnest(ARRAY[c.v, 'y']) WITH ORDINALITY u (v, n) WHERE n = 1) x ON true $$),
  (9, $$ SELECT c.id, x.v, c._change_type FROM changes c, ROWS FROM (generate_series(1, 1), jsonb_to_recordset('[{"v": 1}]') AS (v text)) x (n, v) $$),
  (10, $$ SELECT c.id, (SELECT max(p.name) FROM partner p TABLESAMPLE SYSTEM (100) WHERE p.id = c.id AND (p.id, c.id) >= (1, 1)) AS v,
         CASE c._change_type WHEN 'DELETE' THEN 'D' ELSE 'I' END AS _change_type FROM changes c WHERE c.id = ANY (ARRAY[1, 2]) LIMIT 10 $$),
  (11, $$ SELECT id, lower(v) COLLATE "C" AS v, coalesce(nullif(_change_type, ''), greatest('x', 'y')) AS _change_type
          FROM changes NATURAL LEFT JOIN (SELECT 1 AS id, 'z' AS z) z WHERE v IS DISTINCT FROM z AND id::text::regtype IS NULL OR true $$)
  ) v (n, q) ORDER BY n \gexec
SELECT pipeline($$SELECT id, v, _change_type FROM one_changelog(identifiers => '{id}', consumer => 'p') $$);

--
-- cdc.apply_changelog always reads
--
DROP VIEW base CASCADE;
CREATE VIEW base AS SELECT id, v, _change_type FROM one_changelog(identifiers => '{id}', consumer => 'q');
SELECT inserted + unchanged AS n FROM cdc.apply_changelog('target', 'base', '{id}', consumer => 'q');
CREATE OR REPLACE VIEW base AS SELECT id, v, _change_type FROM two_changelog(identifiers => '{id}', consumer => 'q');
SELECT deleted > 0 AS deleted FROM cdc.apply_changelog('target', 'base', '{id}', consumer => 'q');
SELECT count(*) FROM ((SELECT id, v FROM two EXCEPT SELECT id, v FROM target) UNION ALL (SELECT id, v FROM target EXCEPT SELECT id, v FROM two)) d;

SELECT cdc.drop_pipeline('p'), cdc.drop_consumer('q');
DROP SCHEMA meaning, meaning_first CASCADE;
DROP OWNED BY regress_cdc_meaning;
DROP ROLE regress_cdc_meaning;
