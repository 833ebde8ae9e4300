--
-- apply_changelog with append: rows are inserted as they come.
--
CREATE SCHEMA apply_append;
SET search_path = apply_append;
\set SHOW_CONTEXT never

CREATE TABLE changes (_change_type text, _change_ordinal bigint, _commit_snapshot_id bigint, _commit_timestamp timestamptz, id int, v text);
INSERT INTO changes VALUES
  ('INSERT', 1, 1, '2024-01-01 00:00+0', 1, 'a'), ('UPDATE_BEFORE', 2, 2, '2024-01-02 00:00+0', 1, 'a'),
  ('UPDATE_AFTER', 2, 2, '2024-01-02 00:00+0', 1, 'b'), ('DELETE', 3, 3, '2024-01-03 00:00+0', 1, 'b');

-- an audit table: the change columns that it has are written
CREATE TABLE audit (nr int GENERATED ALWAYS AS IDENTITY, id int, v text, _change_type text, _change_ordinal bigint, noted text DEFAULT 'now');
SELECT * FROM cdc.apply_changelog('audit', 'SELECT * FROM changes ORDER BY _change_ordinal, _change_type DESC', NULL, append => true);
SELECT * FROM audit ORDER BY nr;
-- again is twice
SELECT * FROM cdc.apply_changelog('audit', 'TABLE changes', NULL, append => true);
SELECT count(*) FROM audit;
-- with a filter, which leaves rows out
SELECT * FROM cdc.apply_changelog('audit', 'TABLE changes', NULL, filter => '_change_type = ''DELETE''', append => true);
SELECT id, v, _change_type, _change_ordinal FROM audit ORDER BY nr DESC LIMIT 1;
-- types are brought to those of the target
CREATE TABLE narrow (id bigint, _change_type char(1), _commit_timestamp date);
SELECT * FROM cdc.apply_changelog('narrow', $$ SELECT id, left(_change_type, 1) AS _change_type, _commit_timestamp AT TIME ZONE 'UTC' AS _commit_timestamp FROM changes $$, NULL, append => true);
SELECT * FROM narrow ORDER BY _commit_timestamp, _change_type COLLATE "C";

-- a target that does not tell what the rows are takes those that are there
CREATE TABLE plain (id int, v text);
SELECT * FROM cdc.apply_changelog('plain', $$ SELECT * FROM changes WHERE _change_type IN ('INSERT', 'UPDATE_AFTER') $$, NULL, append => true);
SELECT * FROM cdc.apply_changelog('plain', 'TABLE changes', NULL, append => true);
SELECT * FROM cdc.apply_changelog('plain', $$ SELECT * FROM changes WHERE _change_type = 'DELETE' $$, NULL, append => true);
SELECT * FROM cdc.apply_changelog('plain', $$ SELECT 'what' AS _change_type, 1 AS id $$, NULL, append => true);
-- or any, if the changelog does not tell, either
SELECT * FROM cdc.apply_changelog('plain', $$ SELECT id, v FROM changes WHERE _change_type = 'DELETE' $$, NULL, append => true);
SELECT * FROM plain ORDER BY v;
SELECT * FROM cdc.apply_changelog('plain', $$ SELECT id, v FROM changes WHERE false $$, NULL, append => true);
-- the target as the changelog: what is there is doubled, once
SELECT * FROM cdc.apply_changelog('plain', $$ SELECT id, v FROM plain $$, NULL, append => true);

-- partitions, and a trigger that turns rows down
CREATE TABLE part (id int, v text, _change_ordinal bigint) PARTITION BY RANGE (_change_ordinal);
CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (1) TO (2);
CREATE TABLE part2 PARTITION OF part FOR VALUES FROM (2) TO (9);
CREATE FUNCTION turn_down() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.v = 'b' THEN RETURN NULL; END IF; RETURN NEW; END $$;
CREATE TRIGGER turn_down BEFORE INSERT ON part FOR EACH ROW EXECUTE FUNCTION turn_down();
SELECT * FROM cdc.apply_changelog('part', $$ SELECT id, v, _change_ordinal FROM changes $$, NULL, append => true);
SELECT tableoid::regclass, * FROM part ORDER BY _change_ordinal;
-- all or nothing
SELECT * FROM cdc.apply_changelog('part', $$ SELECT 5 AS id, x::bigint AS _change_ordinal FROM generate_series(8, 9) x $$, NULL, append => true);
SELECT count(*) FROM part WHERE id = 5;

-- errors
SELECT * FROM cdc.apply_changelog('plain', 'TABLE changes', NULL);
SELECT * FROM cdc.apply_changelog('plain', 'TABLE changes', ARRAY['id'], append => true);
SELECT * FROM cdc.apply_changelog('plain', 'TABLE changes', NULL, append => true, sequence_by => 'id');
SELECT * FROM cdc.apply_changelog('plain', 'TABLE changes', NULL, append => true, soft_delete => 'id');
SELECT * FROM cdc.apply_changelog('plain', 'TABLE changes', NULL, append => true, ignore_null_updates => true);
SELECT * FROM cdc.apply_changelog('plain', 'TABLE changes', NULL, append => true, deduplicate => true);
SELECT * FROM cdc.apply_changelog('plain', 'TABLE changes', NULL, append => true, complete => true);
SELECT * FROM cdc.apply_changelog('plain', 'TABLE changes', NULL, append => true, history => true);
SELECT * FROM cdc.apply_changelog('plain', 'SELECT 1 AS nope', NULL, append => true);
SELECT * FROM cdc.apply_changelog('plain', 'TABLE changes', NULL, append => true, filter => 'id');
SELECT * FROM cdc.apply_changelog('audit', $$ SELECT 1 AS id, 'x' AS _change_ordinal $$, NULL, append => true);
SELECT * FROM cdc.apply_changelog('audit', $$ SELECT 1 AS id, now() AS _change_ordinal $$, NULL, append => true);

\set VERBOSITY terse
DROP SCHEMA apply_append CASCADE;
