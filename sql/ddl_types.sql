-- Types of columns that change: mirrored where nothing is lost, else a gap
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
\set VERBOSITY terse
CREATE SCHEMA ddl_types;
SET search_path = ddl_types, public;
SET timezone = 'UTC';

-- Makes a table with a column of one type, changes it to another, and tells
-- what became of the history: kind of the snapshot after the change, if any;
-- the oldest snapshot; and if the log still leads to the content of the table.
-- The second row of the table is only in history when the type changes.
CREATE PROCEDURE change(from_type text, to_type text, v1 text, v2 text, how text DEFAULT '',
                       INOUT kinds text DEFAULT NULL, INOUT oldest bigint DEFAULT NULL, INOUT ok boolean DEFAULT NULL,
                       INOUT history text DEFAULT NULL)
LANGUAGE plpgsql AS $$
BEGIN
  DROP TABLE IF EXISTS c;
  EXECUTE format('CREATE TABLE c (id int, v %s)', from_type);
  INSERT INTO c VALUES (0, NULL);
  PERFORM cdc.track('c');
  COMMIT;
  EXECUTE format('INSERT INTO c VALUES (1, %L), (2, %L)', v1, v2);
  COMMIT;
  DELETE FROM c WHERE id = 2;
  COMMIT;
  EXECUTE format('ALTER TABLE c ALTER v TYPE %s %s', to_type, how);
  COMMIT;
  INSERT INTO c SELECT 3, v FROM c WHERE id = 1;
  COMMIT;
  UPDATE c SET id = 4 WHERE id = 3;
  COMMIT;
  SELECT string_agg(s.kind, ' ' ORDER BY snapshot_id), min(snapshot_id) INTO kinds, oldest FROM cdc.snapshots('c') s WHERE snapshot_id > 0;
  SELECT NOT EXISTS (SELECT FROM cdc.verify('c')) INTO ok;
  BEGIN
    SELECT string_agg(format('%s %s %s', left(_change_type, 1), id, v), ', ' ORDER BY _change_ordinal, id)
      INTO history FROM cdc.changelog('c', 0, 2, mode => 'all') AS x(id int, v text, _change_type text, _change_ordinal bigint, _commit_snapshot_id bigint, _commit_timestamp timestamptz);
  EXCEPTION WHEN datatype_mismatch THEN
    SELECT string_agg(format('%s %s %s', left(_change_type, 1), id, v), ', ' ORDER BY _change_ordinal, id)
      INTO history FROM c_changelog(0, 2, mode => 'all');
  WHEN object_not_in_prerequisite_state THEN
    history := SQLERRM;
  END;
END
$$;
SET client_min_messages = warning;
-- nothing is rewritten
CALL change('varchar(10)', 'text', 'a', 'b');
CALL change('varchar(10)', 'varchar(20)', 'a', 'b');
CALL change('varchar(10)', 'varchar', 'a', 'b');
CALL change('text', 'text COLLATE "C"', 'a', 'b');
CALL change('numeric(10,2)', 'numeric(12,2)', '1.25', '2.50');
CALL change('numeric(10,2)', 'numeric', '1.25', '2.50');
CALL change('int', 'oid', '1', '2');
CALL change('timestamp', 'timestamptz', '2026-01-01 12:00', '2026-01-02 12:00');
-- rewritten, but nothing is lost
CALL change('int', 'bigint', '1', '2');
CALL change('smallint', 'int', '1', '2');
CALL change('int', 'numeric', '1', '2');
CALL change('int', 'text', '1', '2');
CALL change('real', 'double precision', '1.5', '2.5');
CALL change('date', 'timestamp', '2026-01-01', '2026-01-02');
CALL change('numeric', 'text', '1.250', '2');
CALL change('uuid', 'text', '00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000002');
-- something may be lost: a gap, with the history before it in the new type
CALL change('numeric', 'int', '1.25', '2.50');
CALL change('numeric(10,2)', 'numeric(10,1)', '1.25', '2.75');
CALL change('bigint', 'int', '1', '2');
CALL change('float8', 'real', '1.5', '2.5');
CALL change('char(5)', 'char(10)', 'a', 'b');
CALL change('char(5)', 'text', 'a', 'b');
CALL change('text', 'varchar(3)', 'abc', 'def');
CALL change('timestamp(6)', 'timestamp(0)', '2026-01-01 12:00:00.6', '2026-01-02 12:00:00.4');
CALL change('json', 'jsonb', '{"a": 1}', '{"b": 2}');
CALL change('int[]', 'bigint[]', '{1,2}', '{3}');
SET timezone = 'Europe/Berlin';
CALL change('timestamp', 'timestamptz', '2026-01-01 12:00', '2026-07-02 12:00');
SET timezone = 'UTC';
-- a value of long ago does not fit: the history is given up, not the command
CALL change('bigint', 'int', '1', '3000000000');
CALL change('numeric', 'numeric(4,2)', '1', '12345');
CALL change('bit varying', 'bit varying(2)', '1', '10101');
-- but limits of length do not matter to it
CALL change('varchar(10)', 'varchar(3)', 'abc', 'defghi');
CALL change('text', 'varchar(3)', 'abc', 'defghi');
-- with a cast of the user's own
CALL change('numeric', 'int', '1.25', '2.50', 'USING (v * 100)::int');
CALL change('text', 'int', '1', '2', 'USING v::int');
CALL change('text', 'text', 'a', 'b', 'USING upper(v)');
CALL change('int', 'bigint', '1', '2', 'USING v * 2');
CALL change('varchar', 'text', 'a', 'b', 'USING v::text');
CALL change('int', 'smallint', '1', '2', 'USING CASE WHEN v > 1 THEN v * 10 + id ELSE COALESCE(NULLIF(v, 5), 0) END');
CALL change('text', 'boolean', 'yes', 'no', $$USING v = ANY (ARRAY['yes', 'y'])$$);
-- which is not certain to give the same for old rows, or fails there
CALL change('text', 'int', '1', 'x', 'USING CASE WHEN id < 2 THEN v::int END + (random() * 0)::int');
CALL change('text', 'int', '1', 'x', 'USING v::int');
CALL change('text', 'timestamptz', '2026-01-01', '2026-01-02', 'USING v::timestamptz');
CALL change('int', 'smallint', '1', '2', 'USING c.v + 1');
CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 2';
CALL change('int', 'smallint', '1', '2', 'USING twice(v)');
CREATE FUNCTION abs(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 99';
SET search_path = ddl_types, pg_catalog;
CALL change('int', 'smallint', '1', '2', 'USING abs(v)');
SET search_path = ddl_types, public;
CALL change('int', 'smallint', '1', '2', 'USING abs(v)');
DROP FUNCTION ddl_types.abs(int);
-- domains, enums, composites
CREATE DOMAIN small AS int CHECK (VALUE < 1000);
CREATE DOMAIN word AS varchar(10) CHECK (VALUE <> '');
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE pair AS (a int, b text);
CALL change('small', 'int', '1', '2');
CALL change('int', 'small', '1', '2');
CALL change('int', 'small', '1', '2000');
CALL change('small', 'bigint', '1', '2');
CALL change('text', 'word', 'a', 'b');
CALL change('word', 'text', 'a', 'b');
CALL change('mood', 'text', 'sad', 'ok');
CALL change('text', 'mood', 'sad', 'ok', 'USING v::mood');
CALL change('pair', 'text', '(1,a)', '(2,b)');
-- a cast that runs code of a user: it runs on the table, not on the log
CREATE FUNCTION mood_int(mood) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN length($1::text); END $$;
CREATE CAST (mood AS int) WITH FUNCTION mood_int(mood) AS ASSIGNMENT;
CALL change('mood', 'int', 'sad', 'ok');
DROP TABLE c;
RESET client_min_messages;

-- several columns at once, some of them given up
CREATE TABLE many (id int PRIMARY KEY, a int, b int, c varchar(5), d text, e text, gone int);
INSERT INTO many VALUES (1, 1, 1, 'c', 'd', '1', 1);
SELECT cdc.track('many');
UPDATE many SET a = 2;
ALTER TABLE many ALTER a TYPE bigint, ALTER b TYPE text, ALTER c TYPE text, DROP COLUMN gone, ADD COLUMN n int DEFAULT 9;
UPDATE many SET a = 3;
SELECT * FROM many_changelog(0, 1, ARRAY['id'], 'latest') LIMIT 0;
SELECT snapshot_id, kind, reason FROM cdc.snapshots('many');
BEGIN;
UPDATE many SET a = 4;
ALTER TABLE many ALTER a TYPE numeric, ALTER e TYPE int USING e::int + (random() * 0)::int;
UPDATE many SET e = 5;
COMMIT;
UPDATE many SET a = 6.5;
SELECT snapshot_id, kind, reason FROM cdc.snapshots('many');
SELECT id, a, b, c, d, e, n, _change_type, _change_ordinal FROM many_changelog() ORDER BY 9;
SELECT id, a, b, c, d, e, n, _change_type, _change_ordinal FROM many_changelog(3, NULL, ARRAY['id'], 'all') ORDER BY 8 DESC;
\set VERBOSITY default
SELECT * FROM many_changelog(0);
\set VERBOSITY terse
SELECT * FROM cdc.verify('many');
-- rolled back, in a savepoint and as a whole
BEGIN;
UPDATE many SET a = 7;
SAVEPOINT s;
ALTER TABLE many ALTER a TYPE int USING 0, ALTER d TYPE int USING 1;
UPDATE many SET a = 8;
ROLLBACK TO s;
UPDATE many SET a = 9.5;
COMMIT;
BEGIN;
ALTER TABLE many ALTER d TYPE int USING 1;
ROLLBACK;
SELECT id, a, d, _change_type, _change_ordinal FROM many_changelog(4, NULL, ARRAY['id'], 'all') ORDER BY 4 DESC;
SELECT snapshot_id, kind FROM cdc.snapshots('many');
SELECT * FROM cdc.verify('many');
-- generated columns: what they are computed from, and they themselves
CREATE TABLE gen (id int PRIMARY KEY, a numeric, g numeric(10,1) GENERATED ALWAYS AS (a * 1.5) STORED, h int GENERATED ALWAYS AS (id * 2) STORED);
INSERT INTO gen VALUES (1, 1.25);
SELECT cdc.track('gen');
UPDATE gen SET a = 2.33;
ALTER TABLE gen ALTER g TYPE int;
ALTER TABLE gen ALTER h DROP EXPRESSION;
UPDATE gen SET a = 3.33;
ALTER TABLE gen ALTER a TYPE int;
ALTER TABLE gen DROP COLUMN g;
ALTER TABLE gen ALTER h SET DEFAULT 7, ALTER h SET NOT NULL;
ALTER TABLE gen ALTER id ADD GENERATED BY DEFAULT AS IDENTITY (START 10);
INSERT INTO gen (a) VALUES (5);
ALTER TABLE gen ALTER h DROP NOT NULL, ALTER h DROP DEFAULT, ALTER id DROP IDENTITY;
SELECT snapshot_id, kind, reason FROM cdc.snapshots('gen');
SELECT id, a, h, _change_type, _change_ordinal FROM gen_changelog(2, NULL, ARRAY['id'], 'all') ORDER BY 5, 4 DESC;
SELECT * FROM cdc.verify('gen');

-- the types themselves
CREATE TABLE of_types (id int PRIMARY KEY, m mood, p pair, s small, sa small[], w word);
SELECT cdc.track('of_types');
INSERT INTO of_types VALUES (1, 'sad', '(1,x)', 1, '{1,2}', 'w');
ALTER TYPE mood ADD VALUE 'ecstatic';
ALTER TYPE mood RENAME VALUE 'sad' TO 'blue';
ALTER TYPE pair ADD ATTRIBUTE c int;
ALTER TYPE pair RENAME ATTRIBUTE a TO aa;
ALTER DOMAIN small DROP CONSTRAINT small_check;
ALTER DOMAIN small ADD CHECK (VALUE < 2000);
UPDATE of_types SET m = 'ecstatic', p = '(2,y,3)', s = 1500, sa = '{3}';
SELECT id, m, p, s, sa, w, _change_type FROM of_types_changelog(0, NULL, ARRAY['id'], 'all') ORDER BY _change_ordinal, 7 DESC;
ALTER TYPE pair DROP ATTRIBUTE b;
SELECT id, p, _change_type FROM of_types_changelog(0, NULL, ARRAY['id'], 'all') ORDER BY _change_ordinal, 3 DESC;
SELECT * FROM cdc.verify('of_types');
-- they cannot be dropped because of the table, and can without it
DROP TYPE mood;
DROP DOMAIN small;
ALTER TABLE of_types DROP COLUMN m, DROP COLUMN s;
SET client_min_messages = warning;
DROP TYPE mood CASCADE;
DROP DOMAIN small;
DROP DOMAIN small CASCADE;
DROP TYPE pair CASCADE;
RESET client_min_messages;
INSERT INTO of_types VALUES (2, 'two');
SELECT id, w, _change_type FROM of_types_changelog(0, NULL, ARRAY['id'], 'all') ORDER BY _change_ordinal, 3 DESC;
SELECT * FROM cdc.verify('of_types');
DROP DOMAIN word CASCADE;
INSERT INTO of_types VALUES (3);
SELECT id, _change_type FROM of_types_changelog(0, NULL, ARRAY['id'], 'all') ORDER BY _change_ordinal, 2 DESC;
-- the table of a type follows it
CREATE TYPE row_type AS (id int, v text);
CREATE TABLE of_row OF row_type;
SELECT cdc.track('of_row');
INSERT INTO of_row VALUES (1, 'a');
ALTER TYPE row_type ADD ATTRIBUTE n int CASCADE;
ALTER TYPE row_type ALTER ATTRIBUTE id TYPE bigint CASCADE;
ALTER TYPE row_type RENAME ATTRIBUTE v TO w CASCADE;
INSERT INTO of_row VALUES (5000000000, 'b', 5);
ALTER TYPE row_type DROP ATTRIBUTE id CASCADE;
INSERT INTO of_row VALUES ('c', 6);
SELECT w, n, _change_type, _change_ordinal FROM of_row_changelog(0) ORDER BY 4;
SELECT * FROM cdc.verify('of_row');

SET client_min_messages = warning;
DROP SCHEMA ddl_types CASCADE;
