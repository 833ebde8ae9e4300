-- With sequence_by, a batch leaves the same target however its changes are
-- ordered, cut into smaller batches, or repeated: tables with soft deletes, and
-- histories.  What histories hold is also computed in plain SQL.
--
-- CDC_PERMUTATIONS in the environment changes the number of random batches; a
-- problem is printed with its batch, and CALL batches(n, n) repeats that one.
\set SHOW_CONTEXT never
\set batches 60
\getenv batches CDC_PERMUTATIONS
CREATE SCHEMA apply_permutations;
SET search_path = apply_permutations;
SET client_min_messages = warning;
SET synchronous_commit = off;
SET jit = off;

CREATE TABLE batch (n int, _change_type text, k1 int, k2 text, v text, note int, seq int);
CREATE TABLE part (LIKE batch);
-- by a sequence, with deletes that are remembered
CREATE TABLE current (k1 int, k2 text, v text, note int, seq int, gone boolean NOT NULL DEFAULT false);
CREATE UNIQUE INDEX ON current (k1, k2) NULLS NOT DISTINCT;
CREATE TABLE marked (LIKE current INCLUDING DEFAULTS, valid_from int NOT NULL, valid_to int,
                     EXCLUDE USING gist (int4range(k1, k1, '[]') WITH =, int4range(ascii(k2), ascii(k2), '[]') WITH =,
                                         int4range(valid_from, valid_to) WITH &&));
-- deletes end a version, and all comes in one batch
CREATE TABLE ended (k1 int, k2 text, v text, note int, seq int, valid_from int, valid_to int);
CREATE INDEX ON ended (k1, k2);
-- likewise, and changes of the note alone make no version
CREATE TABLE merged (LIKE ended);
CREATE TABLE problems (batch int, round int, problem text);

CREATE FUNCTION pick(anyarray) RETURNS anyelement LANGUAGE sql VOLATILE AS
$$ SELECT $1[1 + floor(random() * array_length($1, 1))::int] $$;

-- changes of a few keys, each with a sequence of its own; some are there twice
CREATE FUNCTION make_batch() RETURNS void LANGUAGE sql AS $$
  DELETE FROM batch;
  INSERT INTO batch
    SELECT row_number() OVER (), pick(ARRAY['I', 'U', 'U', 'D']), k1, k2, pick(ARRAY['a', 'b', NULL]), pick(ARRAY[1, 2]), seq
      FROM (SELECT pick(ARRAY[1, 2, NULL]) AS k1, pick(ARRAY['x', NULL]) AS k2, seq
              FROM generate_series(1, 4 + floor(random() * 16)::int) seq) x;
  INSERT INTO batch SELECT n + 100, _change_type, k1, k2, v, note, seq FROM batch WHERE random() < 0.1;
$$;

CREATE FUNCTION apply(target regclass, soft text DEFAULT NULL, history boolean DEFAULT true, exclude text[] DEFAULT NULL) RETURNS void LANGUAGE sql AS $$
  SELECT cdc.apply_changelog(target, 'SELECT _change_type, k1, k2, v, note, seq FROM part ORDER BY random()', ARRAY['k1', 'k2'],
                             sequence_by => 'seq', soft_delete => soft, history => history, history_exclude => exclude)
$$;
CREATE FUNCTION apply_part() RETURNS void LANGUAGE sql AS
$$ SELECT apply('current', 'gone', false); SELECT apply('marked', 'gone') $$;
CREATE FUNCTION apply_all() RETURNS void LANGUAGE sql AS $$
  DELETE FROM part;
  INSERT INTO part TABLE batch;
  SELECT apply('ended'); SELECT apply('merged', exclude => ARRAY['note'])
$$;

-- what should come out of all changes, whatever their order
CREATE VIEW changes AS SELECT DISTINCT _change_type = 'D' AS deletes, k1, k2, v, note, seq FROM batch;
CREATE VIEW expected_marked AS
  SELECT k1, k2, v, note, seq, deletes, seq AS valid_from, lead(seq) OVER (PARTITION BY k1, k2 ORDER BY seq)
    FROM changes;
CREATE VIEW expected_ended AS
  SELECT k1, k2, v, note, seq, valid_from, valid_to
    FROM (SELECT *, seq AS valid_from, lead(seq) OVER (PARTITION BY k1, k2 ORDER BY seq) AS valid_to FROM changes) x
   WHERE NOT deletes;
CREATE VIEW expected_merged AS
  WITH marks AS (SELECT *, deletes OR v IS DISTINCT FROM lag(v) OVER w OR coalesce(lag(deletes) OVER w, true) AS begins
                   FROM changes WINDOW w AS (PARTITION BY k1, k2 ORDER BY seq)),
       runs AS (SELECT *, count(*) FILTER (WHERE begins) OVER (PARTITION BY k1, k2 ORDER BY seq) AS run FROM marks),
       spans AS (SELECT k1, k2, run, min(seq) AS valid_from, max(seq) AS seq, bool_or(deletes) AS deletes,
                        lead(min(seq)) OVER (PARTITION BY k1, k2 ORDER BY run) AS valid_to
                   FROM runs GROUP BY k1, k2, run)
  SELECT s.k1, s.k2, c.v, c.note, s.seq, valid_from, valid_to
    FROM spans s JOIN changes c ON c.k1 IS NOT DISTINCT FROM s.k1 AND c.k2 IS NOT DISTINCT FROM s.k2 AND c.seq = s.seq
   WHERE NOT s.deletes;

-- The current row of a soft-deleted key keeps the values it had, so they depend
-- on what was there; the row itself and its sequence do not.
CREATE FUNCTION differences() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  r record;
  n bigint;
BEGIN
  FOR r IN VALUES
    ('current', 'SELECT k1, k2, CASE WHEN NOT gone THEN v END, CASE WHEN NOT gone THEN note END, seq, gone FROM current',
     'SELECT k1, k2, CASE WHEN NOT deletes THEN v END, CASE WHEN NOT deletes THEN note END, seq, deletes FROM changes c WHERE seq =
        (SELECT max(seq) FROM changes x WHERE x.k1 IS NOT DISTINCT FROM c.k1 AND x.k2 IS NOT DISTINCT FROM c.k2)'),
    ('marked', 'TABLE marked', 'TABLE expected_marked'),
    ('ended', 'TABLE ended', 'TABLE expected_ended'),
    ('merged', 'TABLE merged', 'TABLE expected_merged')
  LOOP
    EXECUTE format('SELECT count(*) FROM ((%1$s EXCEPT ALL %2$s) UNION ALL (%2$s EXCEPT ALL %1$s)) x', r.column2, r.column3) INTO n;
    IF n > 0 THEN RETURN r.column1 || ' differs'; END IF;
  END LOOP;
  RETURN NULL;
END $$;

CREATE PROCEDURE batches(first int, last int) LANGUAGE plpgsql AS $$
DECLARE
  parts int;
  message text;
  i int;
BEGIN
  FOR b IN first .. last LOOP
    PERFORM setseed(b / 10000.0);
    PERFORM make_batch();
    -- all at once; then twice in random parts, in random order, some repeated
    FOR round IN 0 .. 2 LOOP
      DELETE FROM current; DELETE FROM marked; DELETE FROM ended; DELETE FROM merged;
      parts := CASE round WHEN 0 THEN 1 ELSE 2 + floor(random() * 4)::int END;
      UPDATE batch SET n = floor(random() * parts);
      BEGIN
        FOR i IN SELECT p FROM generate_series(0, parts - 1) p, generate_series(1, 1 + floor(random() * 2)::int) ORDER BY random() LOOP
          DELETE FROM part;
          INSERT INTO part SELECT * FROM batch WHERE n = i;
          PERFORM apply_part();
        END LOOP;
        PERFORM apply_all();
        IF round > 0 THEN PERFORM apply_all(); END IF;
        message := differences();
      EXCEPTION WHEN OTHERS THEN
        message := sqlstate || ' ' || sqlerrm;
      END;
      IF message IS NOT NULL THEN INSERT INTO problems VALUES (b, round, message); END IF;
    END LOOP;
    COMMIT;
  END LOOP;
END $$;

CALL batches(1, :batches);
SELECT problem, count(*), min(batch) AS first_batch FROM problems GROUP BY problem ORDER BY problem;

DROP SCHEMA apply_permutations CASCADE;
