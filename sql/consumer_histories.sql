-- Random histories of two tables, and random moments at which targets are
-- brought up to date through consumers: plain, filtered and transformed, with
-- soft deletes, joined, and keeping versions.  After each run every target is
-- what a full build makes of the tables at that moment.
--
-- In between: key changes, NULL keys, savepoints and rollbacks, TRUNCATE, gaps,
-- expiry, positions that are set back, targets that are emptied, runs that are
-- rolled back.
--
-- CDC_CONSUMER_HISTORIES in the environment changes the number of histories; a
-- problem is printed with its history, and CALL histories(n, n) repeats it.
\set SHOW_CONTEXT never
\set histories 100
\getenv histories CDC_CONSUMER_HISTORIES
CREATE SCHEMA consumer_histories;
SET search_path = consumer_histories;
SET client_min_messages = warning;
SET synchronous_commit = off;
SET jit = off;

CREATE TABLE a (k1 int, k2 text, v int, w numeric);
CREATE TABLE b (id int PRIMARY KEY, name text);
SELECT cdc.track('a'), cdc.track('b');

CREATE TABLE plain (LIKE a);
CREATE UNIQUE INDEX ON plain (k1, k2) NULLS NOT DISTINCT;
CREATE TABLE filtered (key2 text, key1 int, doubled int);
CREATE TABLE soft (LIKE a, gone boolean NOT NULL DEFAULT false);
CREATE TABLE joined (k1 int, k2 text, v int, name text);
CREATE TABLE versions (LIKE a, valid_from bigint NOT NULL, valid_to bigint);
CREATE INDEX ON versions (k1, k2);
CREATE TABLE named (id int, name text, valid_from bigint, valid_to bigint, PRIMARY KEY (id, valid_from));

CREATE TABLE seen (at bigint);
CREATE TABLE runs (mode text);
CREATE TABLE problems (history int, step int, problem text);

CREATE FUNCTION pick(anyarray) RETURNS anyelement LANGUAGE sql VOLATILE AS
$$ SELECT $1[1 + floor(random() * array_length($1, 1))::int] $$;

-- one statement; keys stay unique, NULLs included
CREATE FUNCTION change() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  x int := pick(ARRAY[1, 2, 3, NULL]);
  y text := pick(ARRAY['p', 'q', NULL]);
  z int := pick(ARRAY[0, 1, 2, 3, NULL]);
BEGIN
  CASE pick(ARRAY[0, 0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 6, 7, 8])
    WHEN 0 THEN
      INSERT INTO a SELECT i, y, z, pick(ARRAY[1.0, 1.00, NULL]) FROM unnest(ARRAY[x, z]) i
       WHERE NOT EXISTS (SELECT FROM a WHERE k1 IS NOT DISTINCT FROM i AND k2 IS NOT DISTINCT FROM y)
       LIMIT CASE WHEN x IS DISTINCT FROM z THEN 2 ELSE 1 END;
    WHEN 1 THEN UPDATE a SET v = z WHERE k1 IS NOT DISTINCT FROM x;
    WHEN 2 THEN DELETE FROM a WHERE k2 IS NOT DISTINCT FROM y AND random() < 0.6;
    WHEN 3 THEN
      -- keys change, all at once
      UPDATE a SET k1 = CASE k1 WHEN 1 THEN 2 WHEN 2 THEN 1 ELSE k1 END, k2 = CASE k2 WHEN 'p' THEN 'q' WHEN 'q' THEN 'p' END;
    WHEN 4 THEN UPDATE a SET w = CASE w::text WHEN '1.0' THEN 1.00 ELSE 1.0 END;
    WHEN 5 THEN
      DELETE FROM a WHERE k1 IS NOT DISTINCT FROM x;
      INSERT INTO a VALUES (x, y, z, 1.0);
    WHEN 6 THEN
      INSERT INTO b VALUES (coalesce(x, 4), y) ON CONFLICT (id) DO UPDATE SET name = excluded.name || z;
    WHEN 7 THEN DELETE FROM b WHERE id = x;
    WHEN 8 THEN
      IF z = 0 THEN TRUNCATE a; ELSIF z = 1 THEN TRUNCATE b; ELSE UPDATE b SET id = id + 1 WHERE id = (SELECT max(id) FROM b); END IF;
  END CASE;
END $$;

-- a transaction's worth, some of it undone
CREATE FUNCTION changes() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. 1 + floor(random() * 3)::int LOOP
    BEGIN
      PERFORM change();
      IF random() < 0.3 THEN
        BEGIN
          PERFORM change();
          PERFORM change();
          IF random() < 0.5 THEN RAISE EXCEPTION 'undo'; END IF;
        EXCEPTION WHEN raise_exception THEN
          PERFORM change();
        END;
      END IF;
      IF random() < 0.2 THEN RAISE EXCEPTION 'undo'; END IF;
    EXCEPTION WHEN raise_exception THEN
      NULL;
    END;
  END LOOP;
END $$;

-- what disturbs consumers and targets
CREATE FUNCTION disturb() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN
  CASE floor(random() * 30)::int
    WHEN 0 THEN
      -- values that cannot be known make a gap
      EXECUTE 'ALTER TABLE a ADD COLUMN extra float8 DEFAULT random()';
      EXECUTE 'ALTER TABLE a DROP COLUMN extra';
    WHEN 1 THEN
      EXECUTE 'ALTER TABLE b ADD COLUMN extra float8 DEFAULT random()';
      EXECUTE 'ALTER TABLE b DROP COLUMN extra';
    WHEN 2 THEN PERFORM cdc.expire_snapshots('a', retain_last => 1, ignore_consumers => true);
    WHEN 3 THEN PERFORM cdc.expire_snapshots('b', retain_last => 1, ignore_consumers => true);
    WHEN 4 THEN PERFORM cdc.reset(pick(ARRAY['copies', 'join', 'history', 'names']));
    WHEN 5, 6 THEN
      FOR r IN SELECT 'copies' AS c, * FROM cdc.position('copies') UNION ALL SELECT 'join', * FROM cdc.position('join')
               UNION ALL SELECT 'history', * FROM cdc.position('history') LOOP
        IF random() < 0.5 AND r.snapshot - 2 >= (SELECT oldest_snapshot FROM cdc.tracked_tables t WHERE t.relation = r.relation) THEN
          PERFORM cdc.rewind(r.c, r.relation, r.snapshot - 2);
        END IF;
      END LOOP;
    WHEN 7 THEN EXECUTE format('TRUNCATE %I', pick(ARRAY['plain', 'filtered', 'soft', 'joined']));
    WHEN 8 THEN
      TRUNCATE versions, named, seen;
    ELSE NULL;
  END CASE;
END $$;

CREATE FUNCTION run(target regclass, query text, keys text[], consumer text, filter text DEFAULT NULL, soft text DEFAULT NULL,
                    history boolean DEFAULT false)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  r record;
  at bigint[] := (SELECT array_agg(snapshot ORDER BY relation) FROM cdc.position(consumer));
BEGIN
  INSERT INTO runs SELECT CASE WHEN cdc.is_incremental(consumer, CASE consumer WHEN 'names' THEN 'b' ELSE 'a' END::regclass)
                               THEN 'incremental' ELSE 'full' END;
  SELECT * INTO r FROM cdc.apply_changelog(target, query, keys, filter => filter, soft_delete => soft, history => history, consumer => consumer);
END $$;

CREATE FUNCTION bring_up_to_date() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM run('plain', $q$ SELECT * FROM a_changelog(identifiers => '{k1,k2}', consumer => 'copies') $q$, '{k1,k2}', 'copies');
  PERFORM run('filtered', $q$ SELECT _change_type, k1 AS key1, k2 AS key2, 2 * v AS doubled
                                FROM a_changelog(identifiers => '{k1,k2}', consumer => 'copies') $q$, '{key2,key1}', 'copies', filter => 'doubled > 2');
  PERFORM run('soft', $q$ SELECT * FROM a_changelog(identifiers => '{k1,k2}', consumer => 'copies') $q$, '{k1,k2}', 'copies', soft => 'gone');
  PERFORM run('joined', $q$
    WITH touched AS (SELECT k1, k2 FROM a_changelog(identifiers => '{k1,k2}', consumer => 'join')
                     UNION SELECT a.k1, a.k2 FROM b_changelog(identifiers => '{id}', consumer => 'join') c JOIN a ON a.k1 = c.id)
    SELECT CASE WHEN a.found THEN 'UPDATE_AFTER' ELSE 'DELETE' END AS _change_type, t.k1, t.k2, a.v, b.name
      FROM touched t LEFT JOIN (SELECT *, true AS found FROM a) a ON a.k1 IS NOT DISTINCT FROM t.k1 AND a.k2 IS NOT DISTINCT FROM t.k2
           LEFT JOIN b ON b.id = t.k1 $q$, '{k1,k2}', 'join');
  PERFORM run('versions', $q$ SELECT * FROM a_changelog(identifiers => '{k1,k2}', mode => 'all', consumer => 'history') $q$,
              '{k1,k2}', 'history', history => true);
  PERFORM run('named', $q$ SELECT * FROM b_changelog(identifiers => '{id}', mode => 'all', consumer => 'names') $q$,
              '{id}', 'names', filter => 'name IS NOT NULL', history => true);
  INSERT INTO seen SELECT snapshot FROM cdc.position('history');
END $$;

-- a full build in plain SQL against each target
CREATE FUNCTION differences() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  r record;
  n bigint;
BEGIN
  FOR r IN VALUES ('plain', 'SELECT k1, k2, v, w::text FROM plain', 'SELECT k1, k2, v, w::text FROM a'),
                  ('filtered', 'TABLE filtered', 'SELECT k2, k1, 2 * v FROM a WHERE 2 * v > 2'),
                  ('soft', 'SELECT k1, k2, v, w::text FROM soft WHERE NOT gone', 'SELECT k1, k2, v, w::text FROM a'),
                  ('joined', 'TABLE joined', 'SELECT k1, k2, v, name FROM a LEFT JOIN b ON id = k1'),
                  ('versions', 'SELECT k1, k2, v, w::text FROM versions WHERE valid_to IS NULL', 'SELECT k1, k2, v, w::text FROM a'),
                  ('named', 'SELECT id, name FROM named WHERE valid_to IS NULL', 'SELECT * FROM b WHERE name IS NOT NULL'),
                  ('overlaps', 'SELECT count(*) FROM versions x JOIN versions y ON x.k1 IS NOT DISTINCT FROM y.k1 AND x.k2 IS NOT DISTINCT FROM y.k2
                                   AND x.ctid <> y.ctid AND x.valid_from <= y.valid_from AND (x.valid_to > y.valid_from OR x.valid_to IS NULL)', 'SELECT 0')
  LOOP
    EXECUTE format('SELECT count(*) FROM ((%1$s EXCEPT ALL %2$s) UNION ALL (%2$s EXCEPT ALL %1$s)) x', r.column2, r.column3) INTO n;
    IF n > 0 THEN RETURN r.column1 || ' differs'; END IF;
  END LOOP;
  -- versions at the snapshots at which it was brought up to date
  FOR r IN SELECT DISTINCT at FROM seen WHERE at >= (SELECT oldest_snapshot FROM cdc.tracked_tables WHERE relation = 'a'::regclass) LOOP
    BEGIN
      SELECT count(*) INTO n FROM (
        (SELECT k1, k2, v, w::text FROM cdc.as_of(NULL::a, r.at)
         EXCEPT ALL SELECT k1, k2, v, w::text FROM versions WHERE valid_from <= r.at AND (valid_to > r.at OR valid_to IS NULL))
        UNION ALL
        (SELECT k1, k2, v, w::text FROM versions WHERE valid_from <= r.at AND (valid_to > r.at OR valid_to IS NULL)
         EXCEPT ALL SELECT k1, k2, v, w::text FROM cdc.as_of(NULL::a, r.at))) x;
      IF n > 0 THEN RETURN 'versions of an earlier snapshot differ'; END IF;
    EXCEPTION WHEN object_not_in_prerequisite_state THEN
      -- before a gap
      DELETE FROM seen WHERE at = r.at;
    END;
  END LOOP;
  RETURN NULL;
END $$;

CREATE PROCEDURE histories(first int, last int) LANGUAGE plpgsql AS $$
DECLARE
  message text;
BEGIN
  FOR h IN first .. last LOOP
    PERFORM setseed(h / 1000.0);
    DELETE FROM seen;
    FOR step IN 1 .. 2 + floor(random() * 4)::int LOOP
      FOR i IN 1 .. floor(random() * 4)::int LOOP
        PERFORM changes();
        IF random() < 0.15 THEN ROLLBACK; ELSE COMMIT; END IF;
      END LOOP;
      PERFORM disturb();
      COMMIT;
      message := NULL;
      BEGIN
        PERFORM bring_up_to_date();
        message := differences();
        IF random() < 0.1 THEN RAISE EXCEPTION 'undo'; END IF;
      EXCEPTION
        WHEN raise_exception THEN NULL;
        WHEN OTHERS THEN message := sqlstate || ' ' || sqlerrm;
      END;
      IF message IS NOT NULL THEN INSERT INTO problems VALUES (h, step, message); END IF;
      COMMIT;
    END LOOP;
  END LOOP;
END $$;

CALL histories(1, :histories);
SELECT problem, count(*), min(history) AS first_history FROM problems GROUP BY problem ORDER BY problem;
-- there was enough of everything
SELECT mode, count(*) > :histories AS many FROM runs GROUP BY mode ORDER BY mode;

SELECT count(cdc.drop_consumer(c)) FROM unnest(ARRAY['copies', 'join', 'history', 'names']) c;
SELECT cdc.untrack('a');
SELECT cdc.untrack('b');
DROP SCHEMA consumer_histories CASCADE;
