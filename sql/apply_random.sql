--
-- apply_changelog against an oracle: random targets and random batches, the
-- result compared with what plain SQL over complete states says.
--
CREATE SCHEMA apply_random;
SET search_path = apply_random;
SET client_min_messages = warning;

-- what the target is, what it should be, and the batch in the order of its rows;
-- the targets to apply it to differ in what an index says about the keys
CREATE TABLE target (k1 int, k2 text, v numeric, w json, s int, gone boolean);
CREATE TABLE target0 (LIKE target);
CREATE TABLE target1 (LIKE target);
ALTER TABLE target1 ALTER k2 TYPE text COLLATE "C";	-- rows are sorted
CREATE UNIQUE INDEX ON target1 (k1, k2);
CREATE TABLE target2 (LIKE target);
CREATE UNIQUE INDEX ON target2 (k1, k2) NULLS NOT DISTINCT;
CREATE TABLE target3 (LIKE target);
CREATE INDEX ON target3 (k1, k2);
CREATE TABLE expected (LIKE target);
CREATE TABLE batch (n serial, _change_type text, _change_ordinal int,
                    k1 int, k2 text, v numeric, w json, s int);
CREATE TABLE options (deduplicate boolean, sequence boolean, soft boolean,
                      nulls boolean, filter boolean);

CREATE FUNCTION pick(anyarray) RETURNS anyelement
LANGUAGE sql VOLATILE
AS $$ SELECT $1[1 + floor(random() * array_length($1, 1))::int] $$;

CREATE FUNCTION make_case() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  o options;
BEGIN
  DELETE FROM options;
  INSERT INTO options
  SELECT random() < 0.4, random() < 0.4, random() < 0.4, random() < 0.4,
         random() < 0.4
  RETURNING * INTO o;

  DELETE FROM target;
  DELETE FROM expected;
  DELETE FROM batch;
  INSERT INTO target
  SELECT k1, k2, pick(ARRAY[-1, 1, 1.0, 1.00, NULL::numeric]), pick(ARRAY['{}', '[1]', '[1.0]', NULL::text])::json,
         CASE WHEN random() < 0.9 THEN pick(ARRAY[1, 2, 3, 4]) END,
         pick(ARRAY[true, false, false, NULL])
    FROM unnest(ARRAY[1, 2, 3, 4, NULL]) k1, unnest(ARRAY['a', 'A', '', NULL]) k2
   WHERE random() < 0.5;

  INSERT INTO batch (_change_type, _change_ordinal, k1, k2, v, w, s)
  SELECT pick(ARRAY['INSERT', 'UPDATE_AFTER', 'DELETE', 'UPDATE_BEFORE', 'insert',
              'update_postimage', 'delete', 'update_preimage', 'I', 'U', 'D']),
         pick(ARRAY[1, 2, 3, 4, 5, 6, 7, 8, 9]), k1, k2,
         pick(ARRAY[-1, 1, 1.0, 1.00, NULL::numeric]), pick(ARRAY['{}', '[1]', '[1.0]', NULL::text])::json,
         pick(ARRAY[1, 2, 3, 4, 5, 6, 7])
    FROM unnest(ARRAY[1, 2, 3, 4, 5, NULL]) k1, unnest(ARRAY['a', 'A', '', NULL]) k2,
         generate_series(1, CASE WHEN o.deduplicate OR o.sequence THEN 3
                                 WHEN random() < 0.02 THEN 2 ELSE 1 END)
   WHERE random() < 0.4;
END
$$;

-- what should come out: the state (in "expected"), and the counts or an error
CREATE TABLE action (n int, k1 int, k2 text, v numeric, w json, s int, ordinal int,
                     given boolean, deletes boolean);
CREATE TABLE ranked (LIKE action, actions bigint, rank bigint, content text);
CREATE TABLE winner (LIKE ranked);
CREATE TABLE outcome (LIKE winner, tk1 int, tk2 text, tv numeric, tw json, ts int, tgone boolean,
                      there boolean, stale boolean);
CREATE FUNCTION expect(OUT error text, OUT counts bigint[]) LANGUAGE plpgsql AS $$
DECLARE
  o options;
BEGIN
  SELECT * INTO o FROM options;

  INSERT INTO action
  SELECT n, k1, k2, v, w, s, _change_ordinal AS ordinal,
         _change_type IN ('DELETE', 'delete', 'D') AS given,
         _change_type IN ('DELETE', 'delete', 'D') OR
         (o.filter AND (v > 0) IS NOT TRUE) AS deletes
    FROM batch
   WHERE _change_type NOT IN ('UPDATE_BEFORE', 'update_preimage');

  INSERT INTO ranked
  SELECT *, count(*) OVER key AS actions, rank() OVER best AS rank,
         row(v, w::text, s, deletes)::text AS content
    FROM action
  WINDOW key AS (PARTITION BY k1, k2),
         best AS (PARTITION BY k1, k2
                  ORDER BY CASE WHEN o.sequence THEN s END DESC NULLS LAST,
                           CASE WHEN o.deduplicate THEN ordinal END DESC NULLS LAST,
                           CASE WHEN o.deduplicate THEN given END);
  INSERT INTO winner
  SELECT DISTINCT ON (k1, k2) * FROM ranked WHERE rank = 1 ORDER BY k1, k2, n;

  IF NOT o.sequence AND NOT o.deduplicate THEN
    IF EXISTS (SELECT FROM ranked WHERE actions > 1) THEN
      error := '21000';
    END IF;
  -- with a sequence a tie of any two actions, without one a tie of the newest
  ELSIF EXISTS (SELECT FROM ranked
                 WHERE o.sequence OR rank = 1
                 GROUP BY k1, k2, rank HAVING count(DISTINCT content) > 1) THEN
    error := '21000';
  END IF;

  INSERT INTO outcome
  SELECT w.*, t.k1 AS tk1, t.k2 AS tk2, t.v AS tv, t.w AS tw, t.s AS ts, t.gone AS tgone,
         t IS DISTINCT FROM NULL AS there,
         o.sequence AND t IS DISTINCT FROM NULL AND t.s >= w.s AS stale
    FROM winner w LEFT JOIN target t
      ON w.k1 IS NOT DISTINCT FROM t.k1 AND w.k2 IS NOT DISTINCT FROM t.k2;

  INSERT INTO expected
  -- not touched
  SELECT * FROM target t
   WHERE NOT EXISTS (SELECT FROM winner w
                      WHERE w.k1 IS NOT DISTINCT FROM t.k1 AND w.k2 IS NOT DISTINCT FROM t.k2)
  UNION ALL
  -- too late, or deleted
  SELECT tk1, tk2, tv, tw,
         CASE WHEN NOT coalesce(stale, false) AND o.sequence THEN s ELSE ts END,
         CASE WHEN NOT coalesce(stale, false) THEN true ELSE tgone END
    FROM outcome
   WHERE there AND (stale OR (deletes AND o.soft))
  UNION ALL
  -- tombstones
  SELECT k1, k2, v, w, s, true FROM outcome WHERE deletes AND o.soft AND NOT there
  UNION ALL
  SELECT k1, k2,
         CASE WHEN o.nulls AND there THEN coalesce(v, tv) ELSE v END,
         CASE WHEN o.nulls AND there THEN coalesce(w, tw) ELSE w END,
         s,
         CASE WHEN o.soft THEN false WHEN there THEN tgone END
    FROM outcome WHERE NOT deletes AND stale IS NOT TRUE;

  SELECT ARRAY[
    count(*) FILTER (WHERE NOT deletes AND NOT there),
    count(*) FILTER (WHERE NOT deletes AND there AND stale IS NOT TRUE AND NOT same),
    count(*) FILTER (WHERE deletes AND there AND stale IS NOT TRUE AND
                           NOT (o.soft AND NOT o.sequence AND tgone IS TRUE)),
    count(*) FILTER (WHERE stale IS NOT TRUE AND there AND
                           CASE WHEN deletes THEN o.soft AND NOT o.sequence AND tgone IS TRUE
                                ELSE same END),
    count(*) FILTER (WHERE deletes AND NOT there),
    count(*) FILTER (WHERE stale) + (SELECT count(*) FROM action) - count(*)]
    INTO counts
    FROM (SELECT *,
                 row(CASE WHEN o.nulls THEN coalesce(v, tv) ELSE v END::text,
                     CASE WHEN o.nulls THEN coalesce(w, tw) ELSE w END::text,
                     s::text, CASE WHEN o.soft THEN false ELSE tgone END) IS NOT DISTINCT FROM
                 row(tv::text, tw::text, ts::text, tgone) AS same
            FROM outcome) x;
  DELETE FROM action;
  DELETE FROM ranked;
  DELETE FROM winner;
  DELETE FROM outcome;
END
$$;

CREATE FUNCTION run_case(seed float8, applied regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  o options;
  e record;
  r record;
  state text;
  same boolean;
BEGIN
  PERFORM setseed(seed);
  PERFORM make_case();
  SELECT * INTO o FROM options;
  SELECT * INTO e FROM expect();
  EXECUTE format('DELETE FROM %1$s; INSERT INTO %1$s TABLE target', applied);
  BEGIN
    SELECT * INTO r FROM cdc.apply_changelog(applied,
        'SELECT _change_type, _change_ordinal, k1, k2, v, w, s FROM batch ORDER BY n',
        ARRAY['k1', 'k2'],
        filter => CASE WHEN o.filter THEN 'v > 0' END,
        sequence_by => CASE WHEN o.sequence THEN 's' END,
        soft_delete => CASE WHEN o.soft THEN 'gone' END,
        ignore_null_updates => o.nulls,
        deduplicate => o.deduplicate);
  EXCEPTION WHEN OTHERS THEN
    state := sqlstate;
    IF state <> '21000' THEN
      RETURN 'unexpected error: ' || sqlerrm;
    END IF;
  END;

  IF state IS NOT NULL THEN
    IF e.error IS NULL THEN RETURN 'error where none was expected: ' || state; END IF;
    DELETE FROM expected;
    INSERT INTO expected TABLE target;
  ELSIF e.error = '21000' THEN
    RETURN 'no error where one was expected';
  ELSIF ARRAY[r.inserted, r.updated, r.deleted, r.unchanged, r.missing, r.stale] <> e.counts THEN
    RETURN format('counts %s, expected %s', r, e.counts);
  END IF;

  EXECUTE format('SELECT (SELECT array_agg(x::text ORDER BY x::text) FROM %s x) IS NOT DISTINCT FROM
                         (SELECT array_agg(x::text ORDER BY x::text) FROM expected x)', applied)
     INTO same;
  IF NOT same THEN RETURN 'rows differ'; END IF;
  RETURN CASE WHEN state IS NULL THEN 'ok' ELSE 'refused' END;
END
$$;

CREATE TABLE outcomes (seed int, kind int, result text);
CREATE PROCEDURE run_cases(cases int) LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. cases LOOP
    INSERT INTO outcomes VALUES (i, i % 4, run_case(i / 1000.0, ('target' || i % 4)::regclass));
    COMMIT;
  END LOOP;
END
$$;
CALL run_cases(320);

-- failures
SELECT result, min(seed) AS first_seed, count(*)
  FROM outcomes
 WHERE result NOT IN ('ok', 'refused')
 GROUP BY result;

-- and the cases are not all of one sort
SELECT kind, count(*) AS cases,
       count(*) FILTER (WHERE result = 'ok') > 50 AS many_applied,
       count(*) FILTER (WHERE result = 'refused') > 10 AS many_refused
  FROM outcomes
 GROUP BY kind ORDER BY kind;

DROP SCHEMA apply_random CASCADE;
