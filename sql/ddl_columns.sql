-- Columns that come, go and change: history is read in the present shape
-- (BB-14, BB-21, BB-22, BB-24)
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
\set VERBOSITY terse
CREATE SCHEMA ddl_columns;
SET search_path = ddl_columns, public;

-- the log has what it takes to go from the first content to the present one
CREATE FUNCTION proven(rel regclass) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN NOT EXISTS (SELECT FROM cdc.verify(rel));
END
$$;

--
-- dropped columns (BB-24)
--
CREATE TABLE dc (a int, junk text, id int PRIMARY KEY, junk2 numeric, b text);
INSERT INTO dc VALUES (10, 'j', 1, 1.5, 'b1'), (20, 'j', 2, 2.5, 'b2');
ALTER TABLE dc DROP COLUMN junk;
ALTER TABLE dc DROP COLUMN junk2;
ALTER TABLE dc ADD COLUMN z text DEFAULT 'zz';
SELECT cdc.track('dc');
INSERT INTO dc (a, id, b) VALUES (30, 3, 'b3');
UPDATE dc SET b = 'B1' WHERE id = 1;
DELETE FROM dc WHERE id = 2;
SELECT a, id, b, z, _change_type, _change_ordinal FROM dc_changelog(0, 3, ARRAY['id'], 'all') ORDER BY 6, 5 DESC;
ALTER TABLE dc DROP COLUMN a;
INSERT INTO dc (id, b, z) VALUES (4, 'b4', NULL);
UPDATE dc SET z = 'y' WHERE id = 3;
SELECT * FROM dc ORDER BY id;
SELECT id, b, z, _change_type, _change_ordinal FROM dc_changelog(3, NULL, ARRAY['id'], 'all') ORDER BY 5, 4 DESC;
SELECT id, b, z, _change_type, _change_ordinal FROM dc_changelog(0, 3, ARRAY['id'], 'all') ORDER BY 5, 4 DESC;
SELECT id, b, z, _change_type, _change_ordinal FROM dc_changelog() ORDER BY 5, 1;
SELECT proven('dc');
-- the same name again is another column, and shows nothing of the old one
ALTER TABLE dc DROP COLUMN b, ADD COLUMN b text DEFAULT 'new';
SELECT id, z, b, _change_type, _change_ordinal FROM dc_changelog(0, 5, ARRAY['id'], 'all') ORDER BY 5, 4 DESC;
SELECT proven('dc');
-- all columns gone
CREATE TABLE nothing (a int);
SELECT cdc.track('nothing');
INSERT INTO nothing VALUES (1), (2);
ALTER TABLE nothing DROP COLUMN a;
INSERT INTO nothing DEFAULT VALUES;
SELECT _change_type, _change_ordinal FROM nothing_changelog(0);
ALTER TABLE nothing ADD COLUMN a int;
UPDATE nothing SET a = 1;
SELECT a, _change_type, _change_ordinal FROM nothing_changelog(2) ORDER BY 2, 1;
SELECT proven('nothing');

--
-- added columns
--
CREATE TABLE ac (id int PRIMARY KEY);
SELECT cdc.track('ac');
INSERT INTO ac VALUES (1);
ALTER TABLE ac ADD COLUMN n int;
ALTER TABLE ac ADD COLUMN d text DEFAULT 'dflt', ADD COLUMN ts timestamptz NOT NULL DEFAULT now();
INSERT INTO ac VALUES (2, 2, 'two');
ALTER TABLE ac ADD COLUMN big text DEFAULT repeat('x', 10000), ADD COLUMN arr int[] DEFAULT '{1,2}', ALTER d SET DEFAULT 'other';
INSERT INTO ac (id) VALUES (3);
UPDATE ac SET n = 5 WHERE id = 1;
SELECT id, n, d, ts = (SELECT ac.ts FROM ac WHERE ac.id = c.id) AS ts, length(big), arr, _change_type, _change_ordinal
  FROM ac_changelog(0, NULL, ARRAY['id'], 'all') c ORDER BY 8, 7 DESC;
SELECT proven('ac');
-- a domain, with a default of its own and without; the log does not care
CREATE DOMAIN posint AS int CHECK (VALUE > 0);
CREATE DOMAIN withdef AS text DEFAULT 'from domain';
ALTER TABLE ac ADD COLUMN p posint DEFAULT 7;
SELECT id, p, _change_type FROM ac_changelog(3, 4, ARRAY['id'], 'all') ORDER BY 3 DESC;
SELECT kind, reason FROM cdc.snapshots('ac') WHERE snapshot_id > 4;
ALTER TABLE ac ADD COLUMN wd withdef;
SELECT proven('ac');
-- values that the log cannot know: a gap, and history before it is still there
CREATE TABLE vol (id int PRIMARY KEY, v text);
INSERT INTO vol VALUES (1, 'a');
SELECT cdc.track('vol');
UPDATE vol SET v = 'b';
BEGIN;
UPDATE vol SET v = 'c';
ALTER TABLE vol ADD COLUMN r float8 DEFAULT random();
SELECT count(*) FROM vol_changelog();
ROLLBACK;
ALTER TABLE vol ADD COLUMN r float8 DEFAULT random();
SELECT id, v, r, _change_type FROM vol_changelog(0, 1, ARRAY['id'], 'all') ORDER BY 4 DESC;
SELECT * FROM vol_changelog(1, 2);
UPDATE vol SET v = 'd';
SELECT id, v, r = (SELECT vol.r FROM vol) AS r, _change_type FROM vol_changelog(2, 3, ARRAY['id'], 'all') ORDER BY 4 DESC;
SELECT * FROM vol_changelog(0, 3);
ALTER TABLE vol ADD COLUMN s serial;
ALTER TABLE vol ADD COLUMN i int GENERATED ALWAYS AS IDENTITY;
ALTER TABLE vol ADD COLUMN g text GENERATED ALWAYS AS (v || '!') STORED;
-- a rewrite for another reason also writes the constant default
ALTER TABLE vol ADD COLUMN k int DEFAULT 5, ALTER id TYPE bigint;
UPDATE vol SET v = 'e';
SELECT snapshot_id, kind, reason FROM cdc.snapshots('vol');
SELECT id, v, s, i, g, k, _change_type FROM vol_changelog(7, NULL, ARRAY['id'], 'all') ORDER BY 7 DESC;
SELECT proven('vol');
-- rolled back
BEGIN;
ALTER TABLE vol ADD COLUMN x1 int DEFAULT 1;
UPDATE vol SET x1 = 2;
ROLLBACK;
BEGIN;
UPDATE vol SET v = 'f';
SAVEPOINT s;
ALTER TABLE vol ADD COLUMN x2 int DEFAULT 1;
UPDATE vol SET x2 = 3;
ROLLBACK TO s;
UPDATE vol SET v = 'g';
ALTER TABLE vol ADD COLUMN x3 int DEFAULT 4;
UPDATE vol SET k = 6;
COMMIT;
SELECT v, k, x3, _change_type FROM vol_changelog(8, NULL, ARRAY['id'], 'all') ORDER BY 4 DESC;
SELECT proven('vol');
-- rows that wait in outer levels when the inner one changes the shape
BEGIN;
INSERT INTO vol (id, v) VALUES (2, 'outer');
SAVEPOINT a;
INSERT INTO vol (id, v) VALUES (3, 'inner');
SAVEPOINT b;
ALTER TABLE vol ALTER id TYPE numeric;
INSERT INTO vol (id, v) VALUES (4.5, 'innermost');
RELEASE b;
INSERT INTO vol (id, v) VALUES (5, 'inner again');
ROLLBACK TO a;
INSERT INTO vol (id, v) VALUES (6, 'kept');
SAVEPOINT c;
SAVEPOINT d;
ALTER TABLE vol ALTER id TYPE text;
INSERT INTO vol (id, v) VALUES ('seven', 'text');
RELEASE d;
INSERT INTO vol (id, v) VALUES ('eight', 'text');
RELEASE c;
COMMIT;
SELECT id, v, _change_type FROM vol_changelog(9) ORDER BY 1;
SELECT proven('vol');
-- in a function's exception block
DO $$
BEGIN
  INSERT INTO vol (id, v) VALUES ('nine', 'before');
  BEGIN
    ALTER TABLE vol ALTER id TYPE varchar;
    INSERT INTO vol (id, v) VALUES ('ten', 'gone');
    RAISE division_by_zero;
  EXCEPTION WHEN division_by_zero THEN
    INSERT INTO vol (id, v) VALUES ('eleven', 'after');
  END;
END
$$;
SELECT id, v, _change_type FROM vol_changelog(10) ORDER BY 1;
SELECT proven('vol');

--
-- renamed columns (BB-21)
--
CREATE TABLE rn (id int PRIMARY KEY, home text, work text);
SELECT cdc.track('rn');
INSERT INTO rn VALUES (1, 'H1', 'W1');
ALTER TABLE rn RENAME home TO z_;
ALTER TABLE rn RENAME work TO home;
ALTER TABLE rn RENAME z_ TO work;
INSERT INTO rn (id, home, work) VALUES (2, 'h2', 'w2');
UPDATE rn SET home = 'W1!' WHERE id = 1;
SELECT id, home, work FROM rn ORDER BY id;
SELECT id, home, work, _change_type FROM rn_changelog(0, 1, ARRAY['id'], 'all');
SELECT id, home, work, _change_type FROM rn_changelog(1, 3, ARRAY['id'], 'all') ORDER BY 1, 4 DESC;
SELECT * FROM cdc.changelog('rn', 0, 1) AS c(id int, work text, home text, t text, o bigint, s bigint, ts timestamptz) LIMIT 0;
ALTER TABLE rn RENAME id TO pk;
UPDATE rn SET home = 'again' WHERE pk = 2;
SELECT pk, home, work, _change_type FROM rn_changelog(0, NULL, ARRAY['pk'], 'all') ORDER BY _change_ordinal, 4 DESC;
SELECT * FROM rn_changelog(0, NULL, ARRAY['id']);
\echo :SQLSTATE
SELECT proven('rn');

--
-- names that the changelog needs (BB-14)
--
CREATE TABLE r3 (id int PRIMARY KEY, v int);
SELECT cdc.track('r3');
ALTER TABLE r3 ADD COLUMN _change_ordinal int;
\echo :SQLSTATE
ALTER TABLE r3 RENAME v TO _commit_timestamp;
\echo :SQLSTATE
INSERT INTO r3 (id, v) VALUES (1, 1);
SELECT id, v, _change_type FROM r3_changelog(0);

--
-- types (BB-22)
--
CREATE TABLE at (id int PRIMARY KEY, qty int, price numeric);
INSERT INTO at VALUES (1, 1, 1.25), (2, 2, 2.50);
SELECT cdc.track('at');
UPDATE at SET qty = 10 WHERE id = 1;
ALTER TABLE at ALTER qty TYPE bigint;
UPDATE at SET qty = 5000000000 WHERE id = 2;
SELECT id, qty, price, _change_type, _change_ordinal FROM at_changelog(0, 2, ARRAY['id'], 'all') ORDER BY 5, 4 DESC;
SELECT pg_typeof(qty) FROM at_changelog(0, 1) LIMIT 1;
SELECT proven('at');
ALTER TABLE at ALTER price TYPE int USING (price * 100)::int;
UPDATE at SET price = 999 WHERE id = 1;
SELECT id, qty, price, _change_type FROM at_changelog(3, 4, ARRAY['id'], 'all') ORDER BY 4 DESC;
SELECT * FROM at_changelog(2, 3);
\echo :SQLSTATE
SELECT * FROM at_changelog(0, 4);
\echo :SQLSTATE
-- dollars can be told in cents
SELECT id, qty, price, _change_type FROM at_changelog(0, 1, ARRAY['id'], 'all') ORDER BY 4 DESC;
ALTER TABLE at ADD COLUMN r float8 DEFAULT random();
SELECT id, qty, price, _change_type FROM at_changelog(3, 4, ARRAY['id'], 'all') ORDER BY 4 DESC;
SELECT * FROM at_changelog(4, 5);
\echo :SQLSTATE
SELECT snapshot_id, kind, reason FROM cdc.snapshots('at');
SELECT proven('at');

--
-- the event triggers were disabled for a while
--
CREATE TABLE un (id int PRIMARY KEY, v int);
INSERT INTO un VALUES (1, 1);
SELECT cdc.track('un');
UPDATE un SET v = 2;
BEGIN;
ALTER EVENT TRIGGER cdc_changelog_ddl_end DISABLE;
ALTER EVENT TRIGGER cdc_changelog_ddl_rewrite DISABLE;
ALTER TABLE un ADD COLUMN r float8 DEFAULT random();
ALTER EVENT TRIGGER cdc_changelog_ddl_end ENABLE ALWAYS;
ALTER EVENT TRIGGER cdc_changelog_ddl_rewrite ENABLE ALWAYS;
COMMIT;
-- no silence, but an error
UPDATE un SET v = 3;
SELECT * FROM un_changelog(0);
-- whatever changes the definition next repairs it, with a gap
ALTER TABLE un ALTER v SET DEFAULT 7;
UPDATE un SET v = 4;
SELECT snapshot_id, kind, reason FROM cdc.snapshots('un');
SELECT id, v, r = (SELECT un.r FROM un) AS r, _change_type FROM un_changelog(2) ORDER BY 4;
SELECT proven('un');

SET client_min_messages = warning;
DROP SCHEMA ddl_columns CASCADE;
