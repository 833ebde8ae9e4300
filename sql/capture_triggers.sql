-- Writes from the user's own triggers, nested and recursive
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA capture_triggers;
SET search_path = capture_triggers, public;

-- BEFORE triggers: what they make of the row is what is captured
CREATE TABLE b (id int PRIMARY KEY, v text);
CREATE FUNCTION change_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.v = 'skip' THEN RETURN NULL; END IF;
  NEW.v := upper(NEW.v);
  RETURN NEW;
END $$;
CREATE TRIGGER change_row BEFORE INSERT OR UPDATE ON b FOR EACH ROW EXECUTE FUNCTION change_row();
CREATE FUNCTION keep_one() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN IF OLD.id = 1 THEN RETURN NULL; END IF; RETURN OLD; END $$;
CREATE TRIGGER keep_one BEFORE DELETE ON b FOR EACH ROW EXECUTE FUNCTION keep_one();
SELECT cdc.track('b');
INSERT INTO b VALUES (1, 'a'), (2, 'skip'), (3, 'c');
UPDATE b SET v = CASE id WHEN 1 THEN 'skip' ELSE 'd' END;
DELETE FROM b;
INSERT INTO b VALUES (4, 'skip');
SELECT id, v, _change_type, _change_ordinal FROM b_changelog(0, NULL, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;
SELECT * FROM b;

-- AFTER row trigger that writes to another tracked table, and to its own
CREATE TABLE src (id int PRIMARY KEY, n int);
CREATE TABLE sums (k int PRIMARY KEY, total int);
CREATE FUNCTION add_up() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO sums VALUES (NEW.id % 2, NEW.n) ON CONFLICT (k) DO UPDATE SET total = sums.total + EXCLUDED.total;
  IF NEW.n > 100 THEN INSERT INTO src VALUES (NEW.id + 1000, 1); END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER add_up AFTER INSERT ON src FOR EACH ROW EXECUTE FUNCTION add_up();
SELECT cdc.track('src'), cdc.track('sums');
INSERT INTO src VALUES (1, 10), (2, 20), (3, 30), (4, 400);
SELECT id, n, _change_type, _change_ordinal FROM src_changelog(0, NULL, ARRAY['id'], 'all') ORDER BY 4, 1;
SELECT k, total, _change_type, _change_ordinal FROM sums_changelog(0, NULL, ARRAY['k'], 'all') ORDER BY 4, 1;
INSERT INTO src VALUES (5, 1);
SELECT k, total, _change_type, _change_ordinal FROM sums_changelog(1, NULL, ARRAY['k'], 'all') ORDER BY 4, 1, 3 DESC;

-- statement triggers with transition tables of the user's own, firing before and
-- after the capture triggers by name, changing the same rows again
CREATE TABLE st (id int PRIMARY KEY, v text);
CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF pg_trigger_depth() < 3 THEN
    UPDATE st SET v = st.v || TG_ARGV[0] FROM new_rows n WHERE n.id = st.id;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER "aaa first" AFTER INSERT ON st REFERENCING NEW TABLE AS new_rows EXECUTE FUNCTION again('<');
CREATE TRIGGER "zzz last" AFTER INSERT ON st REFERENCING NEW TABLE AS new_rows EXECUTE FUNCTION again('>');
CREATE TRIGGER "~~ very last" AFTER UPDATE ON st REFERENCING NEW TABLE AS new_rows EXECUTE FUNCTION again('!');
SELECT cdc.track('st');
INSERT INTO st VALUES (1, 'a'), (2, 'b');
TABLE st ORDER BY id;
SELECT id, v, _change_type, _change_ordinal FROM st_changelog(0, NULL, ARRAY['id'], 'all') ORDER BY 4, 1;

-- a deferred constraint trigger that writes at commit
CREATE TABLE late (id int PRIMARY KEY, v text);
CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.id < 3 THEN INSERT INTO late VALUES (NEW.id + 1, 'at commit'); END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION at_commit();
SELECT cdc.track('late');
BEGIN;
INSERT INTO late VALUES (1, 'in the transaction');
COMMIT;
SELECT id, v, _change_type, _change_ordinal FROM late_changelog(0, NULL, ARRAY['id'], 'all') ORDER BY 4, 1;

-- a trigger that catches an error of its own write
CREATE TABLE caught (id int PRIMARY KEY, v text);
CREATE FUNCTION catching() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    UPDATE caught SET v = 'undone' WHERE id = NEW.id;
    INSERT INTO caught VALUES (NEW.id, 'duplicate');
  EXCEPTION WHEN unique_violation THEN
    UPDATE caught SET v = v || ' caught' WHERE id = NEW.id;
  END;
  RETURN NULL;
END $$;
CREATE TRIGGER catching AFTER INSERT ON caught FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION catching();
SELECT cdc.track('caught');
INSERT INTO caught VALUES (1, 'one'), (2, 'two');
SELECT id, v, _change_type, _change_ordinal FROM caught_changelog(0, NULL, ARRAY['id'], 'all') ORDER BY 4, 1;

-- INSTEAD OF trigger of a view
CREATE VIEW cv AS SELECT id, v FROM caught;
CREATE FUNCTION instead() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN UPDATE caught SET v = 'deleted' WHERE id = OLD.id; RETURN OLD; END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER instead INSTEAD OF DELETE ON cv FOR EACH ROW EXECUTE FUNCTION instead();
DELETE FROM cv WHERE id = 2;
SELECT id, v, _change_type, _change_ordinal FROM caught_changelog(1, NULL, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;

-- the capture triggers themselves
SELECT tgname, tgenabled, tgtype & 66 = 2 AS before, tgtype & 1 = 1 AS per_row FROM pg_trigger
 WHERE tgrelid = 'caught'::regclass AND NOT tgisinternal AND tgfoid = 'cdc.capture'::regproc ORDER BY tgname COLLATE "C";
-- the function is not for other use
CREATE TABLE stranger (id int);
CREATE TRIGGER x AFTER INSERT ON stranger FOR EACH ROW EXECUTE FUNCTION cdc.capture();
INSERT INTO stranger VALUES (1);
\echo :SQLSTATE
DROP TRIGGER x ON stranger;
CREATE TRIGGER x BEFORE INSERT ON stranger FOR EACH STATEMENT EXECUTE FUNCTION cdc.capture('caught');
INSERT INTO stranger VALUES (1);
\echo :SQLSTATE
SELECT cdc.capture();
