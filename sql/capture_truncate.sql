-- TRUNCATE is captured, also when it arrives by CASCADE (BB-27)
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA capture_truncate;
SET search_path = capture_truncate, public;

CREATE TABLE tp (id int PRIMARY KEY, v text);
CREATE TABLE tc (id int PRIMARY KEY, p int REFERENCES tp);
INSERT INTO tp VALUES (1, 'a'), (2, 'b'), (3, 'c');
INSERT INTO tc VALUES (10, 1), (11, 2);
SELECT cdc.track('tp'), cdc.track('tc');
SET client_min_messages = warning;      -- no notices about the cascade
BEGIN;
TRUNCATE tp CASCADE;
INSERT INTO tp VALUES (1, 'a'), (2, 'B');
COMMIT;
SELECT cdc.current_snapshot('tp'), cdc.current_snapshot('tc');
BEGIN;
TRUNCATE tp CASCADE;
ROLLBACK;
TRUNCATE tc;                            -- is empty already
SELECT cdc.current_snapshot('tp'), cdc.current_snapshot('tc');
SELECT id, v, _change_type, _change_ordinal FROM tp_changelog(0, 1, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;
SELECT id, p, _change_type, _change_ordinal FROM tc_changelog(0, 1, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;
SELECT id, v, _change_type, _change_ordinal FROM tp_changelog(0, 1) ORDER BY 4, 1, 2;
SELECT count(*) FROM tp_changelog(1, NULL);

-- truncated twice, refilled, truncated in a savepoint that is undone
BEGIN;
TRUNCATE tp CASCADE;
INSERT INTO tp VALUES (4, 'd');
TRUNCATE tp CASCADE;
INSERT INTO tp VALUES (5, 'e');
SAVEPOINT a;
TRUNCATE tp, tc;
INSERT INTO tp VALUES (6, 'f');
ROLLBACK TO a;
INSERT INTO tp VALUES (7, 'g');
COMMIT;
SELECT id, v, _change_type, _change_ordinal FROM tp_changelog(1, 2, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;
-- rows of the same transaction, and changed ones, at the moment of TRUNCATE
BEGIN;
INSERT INTO tp VALUES (8, 'h');
UPDATE tp SET v = 'changed';
DELETE FROM tp WHERE id = 5;
TRUNCATE tp CASCADE;
COMMIT;
SELECT id, v, _change_type, _change_ordinal FROM tp_changelog(2, 3, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;
SELECT count(*) FROM tp;
SELECT count(*) FROM tp_changelog();

-- two tables at once, RESTART IDENTITY, duplicates, out-of-line values
CREATE TABLE big (n int GENERATED ALWAYS AS IDENTITY, v text);
ALTER TABLE big ALTER v SET STORAGE EXTERNAL;
CREATE TABLE dup (v text);
INSERT INTO big (v) VALUES (repeat('x', 10000)), (NULL);
INSERT INTO dup VALUES ('a'), ('a'), ('b');
SELECT cdc.track('big'), cdc.track('dup');
TRUNCATE big, dup RESTART IDENTITY;
INSERT INTO big (v) VALUES ('after');
SELECT n, length(v), _change_type, _change_ordinal FROM big_changelog(0, NULL, mode => 'all') ORDER BY 4, 1, 2;
SELECT v, _change_type, _change_ordinal FROM dup_changelog(0) ORDER BY 3, 1;

-- a BEFORE TRUNCATE trigger of the user that changes the table first
CREATE TABLE bt (id int, v text);
INSERT INTO bt VALUES (1, 'a'), (2, 'b');
CREATE FUNCTION before_truncate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM bt WHERE id = 1;
  INSERT INTO bt VALUES (3, 'made by the trigger');
  RETURN NULL;
END $$;
CREATE TRIGGER a_first BEFORE TRUNCATE ON bt EXECUTE FUNCTION before_truncate();
CREATE TRIGGER zz_last BEFORE TRUNCATE ON bt EXECUTE FUNCTION before_truncate();
SELECT cdc.track('bt');
TRUNCATE bt;
SELECT count(*) FROM bt;
SELECT id, v, _change_type, _change_ordinal FROM bt_changelog(0) ORDER BY 4, 1;
SELECT count(*) FROM bt_changelog();

-- emptied by TRUNCATE and filled by COPY FREEZE in the transaction
BEGIN;
TRUNCATE dup;
COPY dup FROM stdin WITH (FREEZE);
x
x
\.
COMMIT;
SELECT v, _change_type, _change_ordinal FROM dup_changelog(1) ORDER BY 3, 1;

-- Triggers that change a table after its rows were logged and before they are
-- gone: of another table of the command, and one that sorts behind ours.  What
-- they do is never seen, but for what they do to other tables.
CREATE TABLE first (id int, v text);
CREATE TABLE second (id int, v text);
CREATE FUNCTION change_first() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO first VALUES (90, 'lost');
  UPDATE first SET v = 'changed' WHERE id = 1;
  DELETE FROM first WHERE id = 2;
  BEGIN
    DELETE FROM first;
    RAISE EXCEPTION 'undone';
  EXCEPTION WHEN raise_exception THEN NULL;
  END;
  INSERT INTO second VALUES (10, 'archived');
  IF TG_RELNAME <> 'second' AND EXISTS (SELECT FROM second WHERE v = 'stop') THEN
    RAISE EXCEPTION 'stop';
  END IF;
  RETURN NULL;
END $$;
CREATE TABLE third (id int);
CREATE TRIGGER t BEFORE TRUNCATE ON third EXECUTE FUNCTION change_first();
CREATE TRIGGER "~z" BEFORE TRUNCATE ON first EXECUTE FUNCTION change_first();
INSERT INTO first VALUES (1, 'a'), (2, 'b');
SELECT cdc.track('first'), cdc.track('second');
TRUNCATE first, third;
SELECT id, v, _change_type, _change_ordinal FROM first_changelog(0, mode => 'all') ORDER BY 4, 1, 3;
SELECT id, v, _change_type, _change_ordinal FROM second_changelog(0, mode => 'all') ORDER BY 4, 1, 3;
-- with changes before and after, and one that fails
BEGIN;
INSERT INTO first VALUES (1, 'before'), (2, 'before');
TRUNCATE first;
INSERT INTO first VALUES (1, 'after'), (2, 'after');
INSERT INTO second VALUES (11, 'stop');
DO $$
BEGIN
  TRUNCATE first, third;
EXCEPTION WHEN raise_exception THEN
  RAISE NOTICE '%', SQLERRM;
END $$;
UPDATE first SET v = 'later' WHERE id = 1;
COMMIT;
SELECT id, v, _change_type, _change_ordinal FROM first_changelog(1, mode => 'all') ORDER BY 4, 1, 3;
SELECT id, v, _change_type, _change_ordinal FROM second_changelog(1, mode => 'all') ORDER BY 4, 1, 3;
DELETE FROM second;
-- a partition keeps its own time
CREATE TABLE parts (id int, v text) PARTITION BY LIST (id);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts2 PARTITION OF parts FOR VALUES IN (2);
CREATE FUNCTION move_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE parts SET id = 2;
  RETURN NULL;
END $$;
CREATE TRIGGER "~z" BEFORE TRUNCATE ON parts1 EXECUTE FUNCTION move_row();
INSERT INTO parts VALUES (1, 'a'), (2, 'b');
SELECT cdc.track('parts');
TRUNCATE parts1;
SELECT * FROM parts ORDER BY id, v;
SELECT id, v, _change_type, _change_ordinal FROM parts_changelog(0, mode => 'all') ORDER BY 4, 1, 3;
-- a table that the transaction itself has made is emptied in place: no telling
BEGIN;
TRUNCATE first;
INSERT INTO first VALUES (1, 'x');
TRUNCATE first, third;
INSERT INTO first VALUES (2, 'y');
COMMIT;
SELECT snapshot_id, kind, reason FROM cdc.snapshots('first') WHERE kind = 'gap';
INSERT INTO first VALUES (3, 'z');
SELECT id, v, _change_type, _change_ordinal FROM first_changelog() ORDER BY 4, 1, 3;
SELECT * FROM cdc.verify('first');
SELECT * FROM cdc.verify('second');
SELECT * FROM cdc.verify('parts');

SET client_min_messages = warning;
DROP SCHEMA capture_truncate CASCADE;
