--
-- apply_changelog: kinds of targets, and that triggers, constraints, foreign
-- keys, row-level security and privileges work as for any statement
--
CREATE SCHEMA apply_targets;
SET search_path = apply_targets;
\set SHOW_CONTEXT never

CREATE TABLE changes (_change_type text, id int, v text);
INSERT INTO changes VALUES ('UPDATE_AFTER', 1, 'ONE'), ('DELETE', 2, 'two'), ('INSERT', 4, 'four'), ('UPDATE_AFTER', 3, 'three');

--
-- Partitioned, with a partition laid out differently, and rows that move
--
CREATE TABLE part (id int, v text, region text DEFAULT 'eu') PARTITION BY LIST (region);
CREATE TABLE part_eu PARTITION OF part FOR VALUES IN ('eu');
CREATE TABLE part_us (region text, v text, id int);
ALTER TABLE part ATTACH PARTITION part_us FOR VALUES IN ('us');
INSERT INTO part VALUES (1, 'one', 'eu'), (2, 'two', 'us'), (3, 'three', 'us');
SELECT * FROM cdc.apply_changelog('part', 'changes', ARRAY['id']);
SELECT tableoid::regclass, * FROM part ORDER BY id;
SELECT * FROM cdc.apply_changelog('part', $$ SELECT 'U' AS _change_type, id, 'moved' AS v, 'us' AS region FROM part WHERE id <> 3 $$, ARRAY['id']);
SELECT tableoid::regclass, * FROM part ORDER BY id;
SELECT * FROM cdc.apply_changelog('part', $$ SELECT 'I' AS _change_type, 9 AS id, 'asia' AS region $$, ARRAY['id']);
INSERT INTO part VALUES (1, 'again', 'eu');
SELECT * FROM cdc.apply_changelog('part', $$ SELECT 'U' AS _change_type, 1 AS id, 'x' AS v $$, ARRAY['id']);
-- the key with the partition key: an index proves it
DELETE FROM part WHERE v = 'again';
CREATE UNIQUE INDEX ON part (id, region);
SELECT * FROM cdc.apply_changelog('part', $$ SELECT 'U' AS _change_type, 1 AS id, 'us' AS region, 'x' AS v UNION ALL SELECT 'D', 1, 'eu', 'x' $$,
                                  ARRAY['id', 'region']);
SELECT tableoid::regclass, * FROM part ORDER BY id;

--
-- Inheritance: an index of the parent says nothing about the children
--
CREATE TABLE parent (id int PRIMARY KEY, v text);
CREATE TABLE child () INHERITS (parent);
INSERT INTO parent VALUES (1, 'one');
INSERT INTO child VALUES (2, 'two'), (3, 'three');
SELECT * FROM cdc.apply_changelog('parent', 'changes', ARRAY['id']);
SELECT tableoid::regclass, * FROM parent ORDER BY id;
INSERT INTO child VALUES (1, 'twin');
SELECT * FROM cdc.apply_changelog('parent', 'changes', ARRAY['id']);

--
-- Views: simple ones, WITH CHECK OPTION, INSTEAD OF triggers
--
CREATE TABLE base (id int PRIMARY KEY, v text, secret int DEFAULT 42);
INSERT INTO base VALUES (1, 'one'), (2, 'two'), (3, 'three');
CREATE VIEW simple AS SELECT id, v FROM base WHERE id < 100 WITH CHECK OPTION;
SELECT * FROM cdc.apply_changelog('simple', 'changes', ARRAY['id']);
SELECT * FROM base ORDER BY id;
SELECT * FROM cdc.apply_changelog('simple', $$ SELECT 'I' AS _change_type, 100 AS id $$, ARRAY['id']);
CREATE VIEW by_trigger AS SELECT id, string_agg(v, ',') AS v FROM base GROUP BY id;
CREATE FUNCTION instead() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN DELETE FROM apply_targets.base WHERE id = OLD.id; RETURN OLD; END IF;
  IF TG_OP = 'INSERT' THEN INSERT INTO apply_targets.base VALUES (NEW.id, NEW.v); RETURN NEW; END IF;
  UPDATE apply_targets.base SET v = NEW.v WHERE id = OLD.id;
  RETURN NEW;
END $$;
CREATE TRIGGER instead INSTEAD OF INSERT OR UPDATE OR DELETE ON by_trigger FOR EACH ROW EXECUTE FUNCTION instead();
SELECT * FROM cdc.apply_changelog('by_trigger', $$ SELECT 'U' AS _change_type, 1 AS id, 'uno' AS v
                                                   UNION ALL SELECT 'D', 4, NULL UNION ALL SELECT 'I', 5, 'cinque' $$, ARRAY['id']);
SELECT * FROM base ORDER BY id;

--
-- The target as its own changelog, and as part of it
--
SELECT * FROM cdc.apply_changelog('base', $$ SELECT 'U' AS _change_type, id + 1 AS id, v FROM base $$, ARRAY['id']);
SELECT * FROM base ORDER BY id;

--
-- Triggers: which fire, in which order, and what they may do
--
CREATE TABLE fired (n serial, what text);
CREATE TABLE trig (id int PRIMARY KEY, v text);
INSERT INTO trig VALUES (1, 'one'), (2, 'two'), (3, 'three');
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO apply_targets.fired (what)
  VALUES (concat_ws(' ', TG_WHEN, TG_OP, TG_LEVEL, CASE WHEN TG_LEVEL = 'ROW' THEN coalesce(OLD::text, '-') || ' ' || coalesce(NEW::text, '-') END));
  IF TG_WHEN = 'BEFORE' AND TG_LEVEL = 'ROW' THEN
    IF TG_OP = 'DELETE' THEN RETURN CASE WHEN OLD.v = 'keep' THEN NULL ELSE OLD END; END IF;
    IF NEW.v = 'skip' THEN RETURN NULL; END IF;
    NEW.v := NEW.v || '!';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER before_row BEFORE INSERT OR UPDATE OR DELETE ON trig FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER after_row AFTER INSERT OR UPDATE OR DELETE ON trig FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER after_statement AFTER INSERT OR UPDATE OR DELETE ON trig FOR EACH STATEMENT EXECUTE FUNCTION note();
SELECT * FROM cdc.apply_changelog('trig', 'changes', ARRAY['id']);
SELECT what FROM fired ORDER BY n;
TRUNCATE fired;
-- what a trigger refuses is counted as unchanged
INSERT INTO trig VALUES (5, 'five');
UPDATE trig SET v = 'x';
ALTER TABLE trig DISABLE TRIGGER before_row;
UPDATE trig SET v = 'keep' WHERE id = 5;
ALTER TABLE trig ENABLE TRIGGER before_row;
TRUNCATE fired;
SELECT * FROM cdc.apply_changelog('trig', $$ SELECT column1 AS _change_type, column2 AS id, column3 AS v
                                             FROM (VALUES ('U', 1, 'skip'), ('D', 5, NULL), ('I', 6, 'skip'), ('D', 7, NULL)) x $$, ARRAY['id']);
SELECT * FROM trig ORDER BY id;
SELECT what FROM fired ORDER BY n;

--
-- Foreign keys: what is updated is not deleted
--
CREATE TABLE pk (id int PRIMARY KEY, v text);
CREATE TABLE fk (id int REFERENCES pk ON DELETE CASCADE ON UPDATE CASCADE, n int REFERENCES pk ON DELETE SET NULL);
INSERT INTO pk VALUES (1, 'one'), (2, 'two'), (3, 'three');
INSERT INTO fk VALUES (1, 1), (2, 1), (3, 3), (3, 2);
SELECT * FROM cdc.apply_changelog('pk', 'changes', ARRAY['id']);
SELECT * FROM fk ORDER BY id, n;
SELECT * FROM cdc.apply_changelog('fk', $$ SELECT 'I' AS _change_type, 77 AS id, 1 AS n $$, ARRAY['id', 'n']);
-- a tree, parents after children
CREATE TABLE tree (id int PRIMARY KEY, up int REFERENCES tree);
SELECT * FROM cdc.apply_changelog('tree', $$ SELECT 'I' AS _change_type, i AS id, NULLIF(i - 1, 0) AS up FROM generate_series(5, 1, -1) i $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('tree', $$ SELECT 'D' AS _change_type, i AS id FROM generate_series(1, 5) i $$, ARRAY['id']);

--
-- BB-47: values of a secondary unique constraint move between rows
--
CREATE TABLE ut (id int PRIMARY KEY, email text UNIQUE, n int);
INSERT INTO ut VALUES (1, 'a@x', 1), (2, 'b@x', 2), (3, 'c@x', 3), (5, 'e@x', 5);
CREATE TABLE us_changes (_change_type text, id int, email text);
INSERT INTO us_changes VALUES ('UPDATE_AFTER', 1, 'b@x'), ('UPDATE_AFTER', 2, 'a@x'), ('DELETE', 3, 'c@x'),
                              ('INSERT', 4, 'c@x'), ('UPDATE_AFTER', 5, NULL);
SELECT * FROM cdc.apply_changelog('ut', 'us_changes', ARRAY['id']);
SELECT * FROM ut ORDER BY id;
SELECT * FROM cdc.apply_changelog('ut', 'us_changes', ARRAY['id']);
-- a cycle, with a row that only lends its value, and nulls that keep theirs
SELECT * FROM cdc.apply_changelog('ut', $$ SELECT 'U' AS _change_type, id, CASE id WHEN 1 THEN 'a@x' WHEN 2 THEN 'c@x' WHEN 4 THEN 'b@x' END AS email,
                                                  n * 10 AS n FROM ut $$, ARRAY['id'], ignore_null_updates => true);
SELECT * FROM ut ORDER BY id;
-- a value that is really taken
SELECT * FROM cdc.apply_changelog('ut', $$ SELECT 'U' AS _change_type, 1 AS id, 'c@x' AS email UNION ALL SELECT 'D', 5, NULL $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('ut', $$ SELECT 'U' AS _change_type, id, 'same' AS email FROM ut $$, ARRAY['id']);
SELECT * FROM ut ORDER BY id;
-- not where NULL would be wrong, seen or take other rows along
CREATE TABLE ut_not_null (id int PRIMARY KEY, email text NOT NULL UNIQUE);
INSERT INTO ut_not_null VALUES (1, 'a@x'), (2, 'b@x'), (3, 'c@x');
SELECT * FROM cdc.apply_changelog('ut_not_null', $$ SELECT * FROM us_changes WHERE id < 5 $$, ARRAY['id']);
SELECT * FROM ut_not_null ORDER BY id;
ALTER TABLE ut_not_null DROP CONSTRAINT ut_not_null_email_key, ADD UNIQUE (email) DEFERRABLE;
SELECT * FROM cdc.apply_changelog('ut_not_null', $$ SELECT * FROM us_changes WHERE id < 5 $$, ARRAY['id']);
SELECT * FROM ut_not_null ORDER BY id;
CREATE TABLE ut_check (id int PRIMARY KEY, email text UNIQUE CHECK (email IS NOT NULL));
INSERT INTO ut_check VALUES (1, 'a@x'), (2, 'b@x'), (3, 'c@x');
SELECT * FROM cdc.apply_changelog('ut_check', $$ SELECT * FROM us_changes WHERE id < 5 $$, ARRAY['id']);
CREATE TABLE ut_trigger (LIKE ut INCLUDING ALL);
INSERT INTO ut_trigger VALUES (1, 'a@x', 1), (2, 'b@x', 2);
CREATE TRIGGER note AFTER UPDATE ON ut_trigger FOR EACH STATEMENT EXECUTE FUNCTION note();
SELECT * FROM cdc.apply_changelog('ut_trigger', $$ SELECT * FROM us_changes WHERE id < 3 $$, ARRAY['id']);
CREATE TABLE ut_referenced (LIKE ut INCLUDING ALL);
INSERT INTO ut_referenced VALUES (1, 'a@x', 1), (2, 'b@x', 2);
CREATE TABLE referring (email text REFERENCES ut_referenced (email) ON UPDATE CASCADE);
INSERT INTO referring VALUES ('a@x');
SELECT * FROM cdc.apply_changelog('ut_referenced', $$ SELECT * FROM us_changes WHERE id < 3 $$, ARRAY['id']);
TABLE referring;
-- exclusion constraints
CREATE TABLE rooms (id int PRIMARY KEY, during int4range, EXCLUDE USING gist (during WITH &&));
INSERT INTO rooms VALUES (1, '[1,3)'), (2, '[3,5)');
SELECT * FROM cdc.apply_changelog('rooms', $$ SELECT 'U' AS _change_type, id, CASE id WHEN 1 THEN '[3,6)' ELSE '[1,2)' END::int4range AS during FROM rooms $$, ARRAY['id']);
SELECT * FROM rooms ORDER BY id;

--
-- Privileges are the caller's
--
CREATE ROLE regress_cdc_apply;
GRANT USAGE ON SCHEMA apply_targets TO regress_cdc_apply;
CREATE TABLE priv (id int PRIMARY KEY, v text, w text);
INSERT INTO priv VALUES (1, 'one'), (2, 'two'), (3, 'three');
SET ROLE regress_cdc_apply;
SELECT * FROM cdc.apply_changelog('priv', 'changes', ARRAY['id']);
RESET ROLE;
GRANT SELECT, UPDATE (v) ON priv TO regress_cdc_apply;
SET ROLE regress_cdc_apply;
SELECT * FROM cdc.apply_changelog('priv', 'changes', ARRAY['id']);
RESET ROLE;
GRANT SELECT ON changes TO regress_cdc_apply;
SET ROLE regress_cdc_apply;
SELECT * FROM cdc.apply_changelog('priv', $$ SELECT * FROM changes WHERE _change_type = 'UPDATE_AFTER' $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('priv', $$ SELECT *, 'w' AS w FROM changes WHERE _change_type = 'UPDATE_AFTER' $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('priv', $$ SELECT * FROM changes WHERE _change_type = 'DELETE' $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('priv', $$ SELECT * FROM changes WHERE _change_type = 'INSERT' $$, ARRAY['id']);
RESET ROLE;
SELECT * FROM priv ORDER BY id;

--
-- Row-level security
--
CREATE TABLE rls (id int PRIMARY KEY, v text, owner text);
INSERT INTO rls VALUES (1, 'one', 'me'), (2, 'two', 'you'), (3, 'three', 'me');
ALTER TABLE rls ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON rls USING (owner = 'me') WITH CHECK (owner = 'me');
GRANT ALL ON rls TO regress_cdc_apply;
SET ROLE regress_cdc_apply;
SELECT * FROM cdc.apply_changelog('rls', $$ SELECT 'U' AS _change_type, 1 AS id, 'ONE' AS v, 'me' AS owner
                                            UNION ALL SELECT 'D', 2, NULL, NULL UNION ALL SELECT 'D', 3, NULL, NULL $$, ARRAY['id']);
SELECT * FROM cdc.apply_changelog('rls', $$ SELECT 'U' AS _change_type, 1 AS id, 'ONE' AS v, 'you' AS owner $$, ARRAY['id']);
RESET ROLE;
SELECT * FROM rls ORDER BY id;

--
-- BB-38: a hostile search path
--
CREATE SCHEMA evil AUTHORIZATION regress_cdc_apply;
SET ROLE regress_cdc_apply;
CREATE FUNCTION evil.trap(int, int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'hijacked as %', current_user; END $$;
CREATE FUNCTION evil.trap(text, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'hijacked as %', current_user; END $$;
CREATE FUNCTION evil.trap(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'hijacked as %', current_user; END $$;
CREATE OPERATOR evil.= (FUNCTION = evil.trap, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR evil.= (FUNCTION = evil.trap, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR evil.<> (FUNCTION = evil.trap, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR evil.> (FUNCTION = evil.trap, LEFTARG = bigint, RIGHTARG = bigint);
CREATE DOMAIN evil.text AS int;
CREATE DOMAIN evil.int8 AS text;
CREATE TEMP TABLE hj (id int PRIMARY KEY, v text, seq bigint, gone boolean);
CREATE TEMP TABLE cdc_apply_rows (n text, c2 text, c3 text);
SET search_path = pg_temp, evil, pg_catalog, apply_targets;
SELECT * FROM cdc.apply_changelog('hj', $$ SELECT 'I'::pg_catalog.text AS _change_type, 1 AS id, 'x'::pg_catalog.text AS v, 1::pg_catalog.int8 AS seq, 5 AS _change_ordinal $$,
                                  ARRAY['id']::pg_catalog.text[], sequence_by => 'seq', soft_delete => 'gone', deduplicate => true, filter => 'true');
SELECT * FROM cdc.apply_changelog('hj', $$ SELECT 'U'::pg_catalog.text AS _change_type, 1 AS id, 'y'::pg_catalog.text AS v $$,
                                  ARRAY['id']::pg_catalog.text[]);
SELECT * FROM cdc.apply_changelog('hj', $$ SELECT 'D'::pg_catalog.text AS _change_type, 1 AS id, 2::pg_catalog.int8 AS seq $$,
                                  ARRAY['id']::pg_catalog.text[], sequence_by => 'seq');
SELECT count(*) FROM hj;
RESET search_path;
DROP TABLE pg_temp.hj, pg_temp.cdc_apply_rows;
RESET ROLE;

SET client_min_messages = warning;
DROP SCHEMA evil, apply_targets CASCADE;
DROP ROLE regress_cdc_apply;
