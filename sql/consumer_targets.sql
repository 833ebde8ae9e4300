-- What a consumer notices of its target: columns that are not the same any more,
-- and what becomes of a view and the tables behind it.
SET client_min_messages = warning;
CREATE SCHEMA consumer_targets;
SET search_path = consumer_targets;
CREATE TABLE src (id int PRIMARY KEY, v text);
INSERT INTO src VALUES (1, 'a'), (2, 'b');
SELECT cdc.track('src');

CREATE FUNCTION make(target text, options text DEFAULT '') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
BEGIN
  EXECUTE format('SELECT cdc.create_pipeline(%L, %L, ARRAY[''id''], %L %s)', target, target,
    format('SELECT id, v, _change_type FROM src_changelog(identifiers => ARRAY[''id''], consumer => %L)', target),
    options) INTO result;
  RETURN result;
END $$;
CREATE FUNCTION run(name text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT format('%s: %s inserted, %s updated, %s deleted, %s unchanged',
                        r.mode, r.inserted, r.updated, r.deleted, r.unchanged) FROM cdc.run(name) r);
EXCEPTION WHEN OTHERS THEN
  RETURN sqlstate || ': ' || sqlerrm;
END $$;

-- a column that is dropped and made again has lost what was in it
CREATE TABLE cols (id int PRIMARY KEY, v text, note text DEFAULT 'kept');
SELECT make('cols');
SELECT run('cols'), run('cols');
ALTER TABLE cols DROP COLUMN v;
SELECT run('cols');
ALTER TABLE cols ADD COLUMN v text;
SELECT run('cols'), run('cols');
SELECT * FROM cols ORDER BY id;

-- so has one that took the name of another
ALTER TABLE cols RENAME COLUMN v TO old_v;
SELECT run('cols');
ALTER TABLE cols ADD COLUMN v text;
SELECT run('cols'), run('cols');
SELECT * FROM cols ORDER BY id;

-- other columns come and go as they like
ALTER TABLE cols DROP COLUMN note, DROP COLUMN old_v, ADD COLUMN more int;
SELECT run('cols');

-- what says that a row is deleted counts, and what says when a version is valid
CREATE TABLE soft (id int PRIMARY KEY, v text, gone boolean);
SELECT make('soft', ', soft_delete => ''gone''');
SELECT run('soft');
ALTER TABLE soft DROP COLUMN gone, ADD COLUMN gone boolean;
SELECT run('soft'), run('soft');
SELECT * FROM soft ORDER BY id;
CREATE TABLE hist (id int, v text, valid_from bigint, valid_to bigint, valid_from_time timestamptz);
SELECT cdc.create_pipeline('hist', 'hist', ARRAY['id'],
  $$ SELECT * FROM src_changelog(identifiers => ARRAY['id'], mode => 'all', consumer => 'hist') $$, history => true);
SELECT run('hist');
ALTER TABLE hist RENAME COLUMN valid_from_time TO other_time;
SELECT run('hist'), run('hist');

-- what was appended stays
CREATE TABLE log (id int, v text);
SELECT cdc.create_pipeline('log', 'log', NULL,
  $$ SELECT id, v FROM src_changelog(mode => 'append_only', consumer => 'log') $$, append => true);
SELECT run('log');
ALTER TABLE log DROP COLUMN v, ADD COLUMN v text;
SELECT run('log');

-- without a pipeline
CREATE TABLE plain (id int PRIMARY KEY, v text);
CREATE FUNCTION apply() RETURNS text LANGUAGE sql AS $$
  SELECT format('%s inserted, %s updated, %s unchanged', inserted, updated, unchanged)
    FROM cdc.apply_changelog('plain', $q$ SELECT * FROM src_changelog(identifiers => ARRAY['id'], consumer => 'plain') $q$,
                             ARRAY['id'], consumer => 'plain') $$;
SELECT apply();
SELECT apply(), cdc.is_incremental('plain', 'src');
ALTER TABLE plain DROP COLUMN v, ADD COLUMN v text;
SELECT cdc.is_incremental('plain', 'src');
SELECT apply();

-- a view is what it is made of
CREATE TABLE base (id int PRIMARY KEY, v text);
CREATE VIEW seen AS SELECT * FROM base;
CREATE VIEW twice AS SELECT * FROM seen WHERE id > 0;
SELECT make('twice');
SELECT run('twice'), run('twice');
TRUNCATE base;
SELECT run('twice'), run('twice');
CREATE TABLE base2 (id int PRIMARY KEY, v text);
CREATE OR REPLACE VIEW seen AS SELECT * FROM base2;
SELECT run('twice'), run('twice');
SELECT * FROM base2 ORDER BY id;

-- the same definition again is nothing new
CREATE OR REPLACE VIEW seen AS   SELECT   *   FROM base2;
SELECT run('twice');

-- truncated in the transaction of the run, before and after it
BEGIN; TRUNCATE base2; SELECT run('twice'); COMMIT;
SELECT run('twice');
BEGIN; TRUNCATE base2; SELECT run('twice'); TRUNCATE base2; COMMIT;
SELECT run('twice'), run('twice');
SELECT * FROM twice ORDER BY id;

-- partitions behind a view, and children of a table
CREATE TABLE parts (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (1) TO (2);
CREATE TABLE parts2 PARTITION OF parts FOR VALUES FROM (2) TO (3);
CREATE VIEW of_parts AS SELECT * FROM parts;
SELECT make('of_parts');
SELECT run('of_parts'), run('of_parts');
TRUNCATE parts2;
SELECT run('of_parts'), run('of_parts');
CREATE TABLE parent (id int, v text);
CREATE TABLE child () INHERITS (parent);
SELECT make('parent');
SELECT run('parent');
WITH moved AS (DELETE FROM ONLY parent WHERE id = 2 RETURNING *) INSERT INTO child SELECT * FROM moved;
SELECT run('parent');
TRUNCATE child;
SELECT run('parent'), run('parent');

-- rules count as well
CREATE TABLE ruled_base (id int PRIMARY KEY, v text);
CREATE VIEW ruled AS SELECT id, v FROM ruled_base;
CREATE RULE ins AS ON INSERT TO ruled DO INSTEAD INSERT INTO ruled_base VALUES (NEW.id, NEW.v);
SELECT make('ruled');
SELECT run('ruled'), run('ruled');
CREATE OR REPLACE RULE ins AS ON INSERT TO ruled DO INSTEAD INSERT INTO ruled_base VALUES (NEW.id, upper(NEW.v));
SELECT run('ruled'), run('ruled');

SELECT count(cdc.drop_pipeline(name)) FROM cdc.pipelines;
SELECT cdc.drop_consumer('plain');
DROP SCHEMA consumer_targets CASCADE;
