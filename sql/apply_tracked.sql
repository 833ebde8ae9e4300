--
-- apply_changelog fed by changelogs of tracked tables
--
CREATE SCHEMA apply_tracked;
SET search_path = apply_tracked;
SET client_min_messages = warning;
\set SHOW_CONTEXT never

CREATE TABLE src (id int, k text, v numeric, w json, PRIMARY KEY (id, k));
INSERT INTO src SELECT i, 'k' || i % 3, i, '{}' FROM generate_series(1, 200) i;
SELECT cdc.track('src');
CREATE TABLE copy (LIKE src INCLUDING ALL);

-- a target without rows is built from a range without a start
SELECT * FROM cdc.apply_changelog('copy', 'SELECT * FROM src_changelog(NULL, NULL, ARRAY[''id'', ''k''])', ARRAY['id', 'k']);
UPDATE src SET v = v + 0.0 WHERE id <= 10;                  -- the scale changes
UPDATE src SET k = 'moved' WHERE id BETWEEN 11 AND 20;
DELETE FROM src WHERE id BETWEEN 21 AND 30;
INSERT INTO src SELECT i, 'new', NULL, '[ ]' FROM generate_series(25, 35) i;
UPDATE src SET id = id + 1 WHERE id >= 100;
SELECT * FROM cdc.apply_changelog('copy', 'SELECT * FROM src_changelog(0, NULL, ARRAY[''id'', ''k''])', ARRAY['id', 'k']);
SELECT count(*) FROM (SELECT s::text FROM src s EXCEPT ALL SELECT c::text FROM copy c) x;
SELECT count(*) FROM (SELECT c::text FROM copy c EXCEPT ALL SELECT s::text FROM src s) x;

-- every mode with several changes of a key, put right by their ordinals
TRUNCATE copy;
INSERT INTO copy SELECT i, 'k' || i % 3, i, '{}' FROM generate_series(1, 200) i;
SELECT inserted + updated + deleted > 0 AS applied, missing
  FROM cdc.apply_changelog('copy', 'SELECT * FROM src_changelog(0)', ARRAY['id', 'k'], deduplicate => true);
SELECT count(*) FROM (SELECT s::text FROM src s EXCEPT ALL SELECT c::text FROM copy c) x;
TRUNCATE copy;
INSERT INTO copy SELECT i, 'k' || i % 3, i, '{}' FROM generate_series(1, 200) i;
SELECT inserted + updated + deleted > 0 AS applied, missing
  FROM cdc.apply_changelog('copy', 'SELECT * FROM src_changelog(0, NULL, ARRAY[''id'', ''k''], ''all'')', ARRAY['id', 'k'], deduplicate => true);
SELECT count(*) FROM (SELECT s::text FROM src s EXCEPT ALL SELECT c::text FROM copy c) x;
-- without it they are refused
SELECT * FROM cdc.apply_changelog('copy', 'SELECT * FROM src_changelog(0, NULL, ARRAY[''id'', ''k''], ''all'')', ARRAY['id']);

-- a changelog view; a filter that rows leave and enter
CALL cdc.create_changelog_view('src', '"The Changes"', '{"start-snapshot-id": 0}', identifier_columns => ARRAY['id', 'k']);
CREATE TABLE selected (LIKE src INCLUDING ALL);
INSERT INTO selected SELECT i, 'k' || i % 3, i, '{}' FROM generate_series(1, 200) i WHERE i % 3 = 1;
SELECT inserted + updated + deleted > 0 AS applied
  FROM cdc.apply_changelog('selected', '"The Changes"', ARRAY['id', 'k'], filter => 'k = ''k1''', deduplicate => true);
SELECT count(*) FROM (SELECT s::text FROM src s WHERE k = 'k1' EXCEPT ALL SELECT c::text FROM selected c) x;
SELECT count(*) FROM (SELECT c::text FROM selected c EXCEPT ALL SELECT s::text FROM src s WHERE k = 'k1') x;

-- BB-49 (g): the tracked table itself as target.  Its changelog is what it
-- already is; what is applied to it is one more snapshot.
SELECT cdc.current_snapshot('src') AS before \gset
SELECT * FROM cdc.apply_changelog('src', 'SELECT * FROM src_changelog(0, NULL, ARRAY[''id'', ''k''])', ARRAY['id', 'k']);
SELECT cdc.current_snapshot('src') - :before AS snapshots;
SELECT * FROM cdc.apply_changelog('src', 'SELECT ''U'' AS _change_type, id, k, v + 1 AS v FROM src_changelog(NULL, 0) WHERE id < 4', ARRAY['id', 'k']);
SELECT cdc.current_snapshot('src') - :before AS snapshots;
SELECT id, k, v, _change_type FROM src_changelog(:before, NULL, ARRAY['id', 'k'], 'all') ORDER BY id, _change_type DESC;

-- a chain: a tracked target, where values of a unique column change places
CREATE TABLE one (id int PRIMARY KEY, email text, CONSTRAINT one_email UNIQUE (email) DEFERRABLE);
INSERT INTO one VALUES (1, 'a@x'), (2, 'b@x'), (3, 'c@x');
CREATE TABLE two (id int PRIMARY KEY, email text UNIQUE);
INSERT INTO two TABLE one;
CREATE TABLE three (id int PRIMARY KEY, email text);
INSERT INTO three TABLE one;
SELECT cdc.track('one'), cdc.track('two');
BEGIN;
UPDATE one SET email = CASE id WHEN 1 THEN 'b@x' ELSE 'a@x' END WHERE id IN (1, 2);
DELETE FROM one WHERE id = 3;
INSERT INTO one VALUES (4, 'c@x');
COMMIT;
SELECT * FROM cdc.apply_changelog('two', 'SELECT * FROM one_changelog(0, NULL, ARRAY[''id''])', ARRAY['id']);
SELECT id, email, _change_type, _change_ordinal FROM two_changelog(0, NULL, ARRAY['id'], 'all') ORDER BY id, _change_type DESC;
SELECT * FROM cdc.apply_changelog('three', 'SELECT * FROM two_changelog(0, NULL, ARRAY[''id''])', ARRAY['id']);
SELECT * FROM three ORDER BY id;

-- a target that is a full copy of toasted rows which the source has lost
CREATE TABLE wide (id int PRIMARY KEY, big text);
ALTER TABLE wide ALTER big SET STORAGE EXTERNAL;
SELECT cdc.track('wide');
CREATE TABLE wide_copy (LIKE wide INCLUDING ALL);
INSERT INTO wide SELECT i, repeat(md5(i::text), 300) FROM generate_series(1, 20) i;
SELECT * FROM cdc.apply_changelog('wide_copy', 'SELECT * FROM wide_changelog(0, NULL, ARRAY[''id''])', ARRAY['id']);
UPDATE wide SET id = id + 100 WHERE id <= 10;
DELETE FROM wide WHERE id > 105;
SELECT * FROM cdc.apply_changelog('wide_copy', 'SELECT * FROM wide_changelog(1, NULL, ARRAY[''id''])', ARRAY['id']);
SELECT count(*), count(*) FILTER (WHERE w.big = c.big) AS equal FROM wide w FULL JOIN wide_copy c USING (id);
SELECT * FROM cdc.apply_changelog('wide_copy', 'SELECT * FROM wide_changelog(1, NULL, ARRAY[''id''])', ARRAY['id']);

DROP SCHEMA apply_tracked CASCADE;
