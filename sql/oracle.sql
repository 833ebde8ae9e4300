-- Random histories against an independent oracle.
--
-- Every history is a handful of transactions on three tracked tables: one with
-- duplicates and no key, one with a primary key, one with a composite key that
-- may be NULL or be spelled in two ways.  Statements, savepoints, rollbacks,
-- TRUNCATE, no-op updates and key changes are drawn at random, the same ones
-- in every run.  After each commit a full copy of each table is put aside with
-- its snapshot number.
--
-- The oracle computes what every mode has to return for a range from these
-- copies alone, in plain SQL: bag differences of neighbouring copies, prefix
-- sums for the cancellation of whole rows, row counts for the uniqueness of
-- keys.  The results are compared in both directions.
--
-- CDC_ORACLE_HISTORIES in the environment changes the number of histories (and
-- with it the counts below); a mismatch is printed with its range and history,
-- and CALL block(n, n) repeats that one alone.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
\set histories 2000
\getenv histories CDC_ORACLE_HISTORIES
CREATE SCHEMA oracle;
SET search_path = oracle, public;
SET synchronous_commit = off;
SET jit = off;

CREATE TABLE bag (k int, v int);
CREATE TABLE keyed (id int PRIMARY KEY, v text, n numeric);
CREATE TABLE pair (k1 numeric, k2 text, v int);
INSERT INTO bag VALUES (1, 1), (1, 1), (2, 0);
INSERT INTO keyed VALUES (1, 'a', 1.0), (2, 'b', 2);
INSERT INTO pair VALUES (1.0, 'a', 1), (NULL, 'a', 1), (NULL, NULL, 0);


-- Histories come in blocks; tracking begins anew with each, and these tables
-- belong to the current one.
CREATE TABLE copies (tab text, s bigint, img text, key text);
CREATE INDEX ON copies (tab, s);
CREATE TABLE saved (tab text, s bigint, PRIMARY KEY (tab, s));
CREATE TABLE segments (h int, tab text, a bigint, b bigint);
CREATE TABLE ranges (rid int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, h int, part text, tab text, a bigint, b bigint);
CREATE TABLE delta (tab text, s bigint, img text, key text, n int);
CREATE INDEX ON delta (tab, s);
CREATE TABLE twins (tab text, s bigint, key text);
CREATE INDEX ON twins (tab, key, s);
CREATE TABLE changes (rid int, s bigint, img text, key text, n int);
CREATE INDEX ON changes (rid, key);
CREATE TABLE refused (rid int PRIMARY KEY, validated boolean, plain boolean);
CREATE TABLE by_key (rid int, s bigint, img text, key text, n int, paired boolean, is_last boolean);
CREATE TABLE expected (rid int, mode text, change_type text, ordinal bigint, img text);
CREATE TABLE actual (LIKE expected);
-- and these are what is printed in the end
CREATE TABLE totals (what text, mode text, n bigint, wrong bigint);
CREATE TABLE problems (h int, problem text);

--
-- Random numbers: a hash of a counter, the same on every version
--
CREATE SEQUENCE counter;
CREATE FUNCTION r(n int) RETURNS int LANGUAGE sql VOLATILE AS
$$ SELECT (hashint8extended(nextval('oracle.counter'), 42) & 1073741823)::int % n $$;

--
-- One random statement on one table
--
CREATE PROCEDURE change_bag() LANGUAGE plpgsql AS $$
DECLARE
  x int := r(4) + 1;
  y int := nullif(r(4), 0);
  z int := r(3);
BEGIN
  IF (SELECT count(*) > 8 FROM bag) THEN
    DELETE FROM bag WHERE k > 1;
  END IF;
  CASE r(11)
    WHEN 0, 1 THEN INSERT INTO bag VALUES (x, z);
    WHEN 2 THEN INSERT INTO bag SELECT y, z FROM generate_series(1, x);
    WHEN 3, 4 THEN
      DELETE FROM bag WHERE ctid = (SELECT ctid FROM bag ORDER BY k, v OFFSET x LIMIT 1);
    WHEN 5 THEN UPDATE bag SET v = z WHERE k = x;
    WHEN 6 THEN
      UPDATE bag SET k = y WHERE ctid = (SELECT ctid FROM bag ORDER BY k, v OFFSET z LIMIT 1);
    WHEN 7 THEN UPDATE bag SET v = v;
    WHEN 8 THEN
      WITH gone AS (DELETE FROM bag WHERE k IS NOT DISTINCT FROM y RETURNING *)
      INSERT INTO bag SELECT * FROM gone;
    WHEN 9 THEN
      UPDATE bag SET v = v + 1;
      UPDATE bag SET v = v - 1;
    WHEN 10 THEN
      IF z = 0 THEN
        TRUNCATE bag;
        INSERT INTO bag VALUES (x, z), (y, z);
      ELSE
        DELETE FROM bag WHERE k IS NOT DISTINCT FROM y;
      END IF;
  END CASE;
END $$;

CREATE PROCEDURE change_keyed() LANGUAGE plpgsql AS $$
DECLARE
  x int := r(5) + 1;
  y int := r(5) + 1;
  z text := chr(97 + r(3));
BEGIN
  CASE r(12)
    WHEN 0, 1 THEN
      INSERT INTO keyed VALUES (x, z, 1.0) ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v;
    WHEN 2 THEN INSERT INTO keyed VALUES (x, z, 1.00) ON CONFLICT DO NOTHING;
    WHEN 3, 4 THEN UPDATE keyed SET v = z WHERE id IN (x, y);
    WHEN 5 THEN UPDATE keyed SET n = CASE WHEN n::text = '1.0' THEN 1.00 ELSE 1.0 END WHERE id = x;
    WHEN 6 THEN DELETE FROM keyed WHERE id = x;
    WHEN 7 THEN
      UPDATE keyed SET id = y WHERE id = x AND NOT EXISTS (SELECT FROM keyed WHERE id = y);
    WHEN 8 THEN
      MERGE INTO keyed USING (VALUES (x, z), (x + 1, 'm')) m(id, v) ON keyed.id = m.id
        WHEN MATCHED AND keyed.v = m.v THEN DELETE
        WHEN MATCHED THEN UPDATE SET v = m.v
        WHEN NOT MATCHED THEN INSERT VALUES (m.id, m.v, 2);
    WHEN 9 THEN
      DELETE FROM keyed WHERE id = x;
      INSERT INTO keyed VALUES (x, z, 3);
      UPDATE keyed SET n = 1.0 WHERE id = x;
    WHEN 10 THEN
      BEGIN
        INSERT INTO keyed VALUES (y, 'e', 5), (x, 'e', 5);
      EXCEPTION WHEN unique_violation THEN
        UPDATE keyed SET v = 'c' WHERE id = x;
      END;
    WHEN 11 THEN
      IF z = 'a' THEN
        TRUNCATE keyed;
        INSERT INTO keyed VALUES (x, z, 1.0);
      ELSE
        UPDATE keyed SET v = v, n = n;
      END IF;
  END CASE;
END $$;

CREATE PROCEDURE change_pair() LANGUAGE plpgsql AS $$
DECLARE
  x numeric := (ARRAY[NULL, 1.0, 1.00, 2, 3])[r(5) + 1];
  y text := (ARRAY[NULL, 'a', 'b'])[r(3) + 1];
  z int := r(3);
BEGIN
  IF (SELECT count(*) > 10 FROM pair) THEN
    DELETE FROM pair WHERE k2 = 'a' OR k2 IS NULL;
  END IF;
  CASE r(10)
    WHEN 0, 1, 2 THEN
      INSERT INTO pair SELECT x, y, z
       WHERE NOT EXISTS (SELECT FROM pair WHERE k1 IS NOT DISTINCT FROM x AND k2 IS NOT DISTINCT FROM y);
    WHEN 3 THEN INSERT INTO pair VALUES (x, y, z);
    WHEN 4, 5 THEN
      UPDATE pair SET v = z WHERE k1 IS NOT DISTINCT FROM x AND k2 IS NOT DISTINCT FROM y;
    WHEN 6 THEN UPDATE pair SET k1 = x WHERE k1 = x;
    WHEN 7 THEN DELETE FROM pair WHERE k1 IS NOT DISTINCT FROM x AND k2 IS NOT DISTINCT FROM y;
    WHEN 8 THEN
      DELETE FROM pair WHERE k1 IS NOT DISTINCT FROM x;
      IF z > 0 THEN INSERT INTO pair VALUES (x, y, z); END IF;
    WHEN 9 THEN
      UPDATE pair SET k2 = y, v = z WHERE ctid = (SELECT ctid FROM pair ORDER BY k1, k2, v, k1::text LIMIT 1);
  END CASE;
END $$;

CREATE PROCEDURE change() LANGUAGE plpgsql AS $$
BEGIN
  CASE r(3)
    WHEN 0 THEN CALL change_bag();
    WHEN 1 THEN CALL change_keyed();
    WHEN 2 THEN CALL change_pair();
  END CASE;
END $$;

--
-- Put a copy of each table aside, under the number of its newest snapshot.
-- The number goes up by one where the content has changed, and by one or not
-- at all where a transaction has put back what it changed.
--
CREATE FUNCTION content(what text) RETURNS TABLE (img text, key text) LANGUAGE plpgsql AS $$
BEGIN
  IF what = 'bag' THEN
    RETURN QUERY SELECT b::text, coalesce(k::text, 'N') FROM bag b;
  ELSIF what = 'keyed' THEN
    RETURN QUERY SELECT b::text, id::text FROM keyed b;
  ELSE
    RETURN QUERY SELECT b::text, coalesce(trim_scale(k1)::text, 'N') || '/' || coalesce(k2, 'N') FROM pair b;
  END IF;
END $$;
CREATE PROCEDURE save(h int, what text) LANGUAGE plpgsql AS $$
DECLARE
  now_at bigint := cdc.current_snapshot(what::regclass);
  was_at bigint := (SELECT max(s) FROM saved WHERE tab = what);
BEGIN
  IF now_at IS NOT DISTINCT FROM was_at THEN
    IF EXISTS (SELECT FROM ((SELECT img FROM content(what) EXCEPT ALL SELECT img FROM copies WHERE tab = what AND s = was_at)
                            UNION ALL
                            (SELECT img FROM copies WHERE tab = what AND s = was_at EXCEPT ALL SELECT img FROM content(what))) x) THEN
      INSERT INTO problems VALUES (h, what || ' changed without a snapshot after ' || was_at);
    END IF;
    RETURN;
  END IF;
  IF now_at <> coalesce(was_at + 1, 0) THEN
    INSERT INTO problems VALUES (h, what || ' went from snapshot ' || was_at || ' to ' || now_at);
  END IF;
  INSERT INTO saved VALUES (what, now_at);
  INSERT INTO copies SELECT what, now_at, c.* FROM content(what) c;
END $$;

--
-- One history
--
CREATE PROCEDURE history(h int) LANGUAGE plpgsql AS $$
DECLARE
  tabs text[] := ARRAY['bag', 'keyed', 'pair'];
  first bigint[];
BEGIN
  PERFORM setval('oracle.counter', h * 1000);
  SELECT array_agg((SELECT max(s) FROM saved WHERE tab = t) ORDER BY o) INTO first
    FROM unnest(tabs) WITH ORDINALITY u(t, o);
  FOR transactions IN 1 .. 3 + r(4) LOOP
    FOR statements IN 1 .. 1 + r(6) LOOP
      CASE r(8)
        WHEN 0 THEN               -- undone
          BEGIN
            CALL change();
            CALL change();
            RAISE EXCEPTION 'undo';
          EXCEPTION WHEN raise_exception THEN
            NULL;
          END;
        WHEN 1 THEN               -- kept, with something undone inside
          BEGIN
            CALL change();
            BEGIN
              CALL change();
              RAISE EXCEPTION 'undo';
            EXCEPTION WHEN raise_exception THEN
              CALL change();
            END;
          EXCEPTION WHEN unique_violation THEN
            NULL;
          END;
        WHEN 2 THEN               -- the outer one undone, the inner one not
          BEGIN
            BEGIN
              CALL change();
            EXCEPTION WHEN division_by_zero THEN
              NULL;
            END;
            RAISE EXCEPTION 'undo';
          EXCEPTION WHEN raise_exception THEN
            NULL;
          END;
        ELSE
          CALL change();
      END CASE;
    END LOOP;
    IF r(8) = 0 THEN
      ROLLBACK;
    ELSE
      COMMIT;
    END IF;
    CALL save(h, 'bag');
    CALL save(h, 'keyed');
    CALL save(h, 'pair');
  END LOOP;
  INSERT INTO segments
    SELECT h, t, first[o], (SELECT max(s) FROM saved WHERE tab = t) FROM unnest(tabs) WITH ORDINALITY u(t, o);
  COMMIT;
END $$;
--
-- The ranges: every history, two parts of every second, across histories now
-- and then, and some from the very start.  The start is -1 where the argument
-- is NULL: as if there had been an empty table before the baseline.
--
CREATE PROCEDURE choose_ranges() LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO ranges (h, part, tab, a, b)
    SELECT h, p.part, tab, p.a, p.b
      FROM segments s,
           LATERAL (SELECT a + (b - a) * (h % 4) / 3 AS m) x,
           LATERAL (VALUES ('whole', a, b), ('first', a, m), ('second', m, b)) p(part, a, b)
     WHERE p.part = 'whole' OR h % 2 = 0;
  INSERT INTO ranges (h, part, tab, a, b)
    SELECT s2.h, 'long', tab, s1.a, s2.b
      FROM segments s2 JOIN segments s1 USING (tab)
     WHERE s2.h % 4 = 0 AND s1.h = s2.h - 1 - s2.h % 5;
  INSERT INTO ranges (h, part, tab, a, b)
    SELECT h, 'start', tab, -1, b FROM segments WHERE h % 10 = 1;
END $$;

--
-- The oracle
--
CREATE PROCEDURE expect() LANGUAGE plpgsql AS $$
BEGIN
  -- bag difference of neighbouring copies
  INSERT INTO delta
    SELECT tab, s, img, key, sum(n)
      FROM (SELECT tab, s, img, key, 1 AS n FROM copies
            UNION ALL
            SELECT tab, s + 1, img, key, -1
              FROM copies JOIN (SELECT tab, max(s) AS last FROM saved GROUP BY tab) l USING (tab)
             WHERE s < last) x
     GROUP BY 1, 2, 3, 4 HAVING sum(n) <> 0;
  -- keys that are not unique in a copy
  INSERT INTO twins SELECT tab, s, key FROM copies GROUP BY 1, 2, 3 HAVING count(*) > 1;
  ANALYZE copies, delta, twins, ranges;
  INSERT INTO changes
    SELECT rid, s, img, key, n FROM ranges JOIN delta USING (tab) WHERE s > a AND s <= b;
  ANALYZE changes;

  INSERT INTO expected
    SELECT rid, 'all', CASE WHEN n > 0 THEN 'INSERT' ELSE 'DELETE' END, s, img
      FROM changes, generate_series(1, abs(n));

  -- An event is cancelled by the first later one of the opposite sign that
  -- finds it newest.  So what is left of a sum that ends at N is, for each
  -- level from 1 to N, the last event that crossed that level upwards.
  INSERT INTO expected
    SELECT rid, 'net', CASE WHEN total > 0 THEN 'INSERT' ELSE 'DELETE' END, max(s), img
      FROM (SELECT rid, img, s,
                   sum(n) OVER (PARTITION BY rid, img ORDER BY s) AS after,
                   sum(n) OVER (PARTITION BY rid, img ORDER BY s) - n AS before,
                   sum(n) OVER (PARTITION BY rid, img) AS total
              FROM changes) x,
           generate_series(1, abs(total)) level
     WHERE after * sign(total) >= level AND before * sign(total) < level
     GROUP BY rid, img, total, level;

  -- ranges that have to be refused: validated, and not validated
  INSERT INTO refused
    SELECT rid,
           rid IN (SELECT c.rid FROM (SELECT DISTINCT rid, tab, key, a, b FROM changes JOIN ranges USING (rid)) c
                     JOIN twins t ON t.tab = c.tab AND t.key = c.key AND t.s BETWEEN c.a AND c.b),
           rid IN (SELECT rid FROM changes GROUP BY rid, s, key, n > 0 HAVING sum(abs(n)) > 1)
      FROM ranges;
  ANALYZE refused;

  -- DELETE and INSERT of one key in one snapshot are an update
  INSERT INTO by_key
    SELECT rid, s, img, key, n, count(*) OVER (PARTITION BY rid, s, key) = 2,
           s = max(s) OVER (PARTITION BY rid, key)
      FROM changes JOIN refused USING (rid) WHERE NOT plain;
  INSERT INTO expected
    SELECT rid, mode,
           CASE WHEN paired AND n > 0 THEN 'UPDATE_AFTER' WHEN paired THEN 'UPDATE_BEFORE'
                WHEN n > 0 THEN 'INSERT' ELSE 'DELETE' END, s, img
      FROM by_key JOIN refused USING (rid),
           (VALUES ('id all', true), ('id latest', true), ('id latest_pair', true),
                   ('plain all', false), ('plain latest', false), ('plain latest_pair', false)) m(mode, validate)
     WHERE NOT (validate AND validated)
       AND (is_last OR mode LIKE '% all')
       AND NOT (mode LIKE '% latest' AND paired AND n < 0);
  INSERT INTO expected
    SELECT rid, 'id net',
           CASE WHEN count(*) OVER (PARTITION BY rid, key) = 1 THEN change_type
                WHEN change_type = 'INSERT' THEN 'UPDATE_AFTER' ELSE 'UPDATE_BEFORE' END,
           ordinal, img
      FROM expected e JOIN refused USING (rid) JOIN (SELECT DISTINCT rid, img, key FROM changes) k USING (rid, img)
     WHERE mode = 'net' AND NOT validated;
  ANALYZE expected;
END $$;

-- the cancellation once more, as it is defined: a stack
CREATE FUNCTION stack_walk(range int) RETURNS TABLE (change_type text, ordinal bigint, image text) LANGUAGE plpgsql AS $$
DECLARE
  c record;
  stack bigint[] := '{}';
  up boolean;
BEGIN
  FOR c IN SELECT img, s, n, lead(img) OVER (ORDER BY img, s) AS next_img FROM changes, generate_series(1, abs(n))
            WHERE rid = range ORDER BY img, s LOOP
    IF cardinality(stack) > 0 AND up <> (c.n > 0) THEN
      stack := trim_array(stack, 1);
    ELSE
      stack := stack || c.s;
      up := c.n > 0;
    END IF;
    IF c.next_img IS DISTINCT FROM c.img THEN
      RETURN QUERY SELECT CASE WHEN up THEN 'INSERT' ELSE 'DELETE' END, o, c.img FROM unnest(stack) o;
      stack := '{}';
    END IF;
  END LOOP;
END $$;
CREATE PROCEDURE compare_oracles() LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO totals
    WITH walked AS (SELECT rid, w.* FROM ranges, stack_walk(rid) w WHERE h % 5 = 0),
         summed AS (SELECT rid, change_type, ordinal, img FROM expected JOIN ranges USING (rid) WHERE mode = 'net' AND h % 5 = 0)
    SELECT '1 two oracles', 'net', (SELECT count(*) FROM walked),
           (SELECT count(*) FROM (TABLE walked EXCEPT ALL TABLE summed) x)
         + (SELECT count(*) FROM (TABLE summed EXCEPT ALL TABLE walked) x);
END $$;

--
-- What the extension says: the same rows, and errors exactly where keys are
-- not unique
--
CREATE PROCEDURE read_all(what text, row_of text, ids text[]) LANGUAGE plpgsql AS $$
DECLARE
  m record;
BEGIN
  FOR m IN SELECT * FROM (VALUES ('net', NULL::text[], 'net', true), ('all', NULL, 'all', true),
                                 ('id all', ids, 'all', true), ('id latest', ids, 'latest', true),
                                 ('id latest_pair', ids, 'latest_pair', true), ('id net', ids, 'net', true),
                                 ('plain all', ids, 'all', false), ('plain latest', ids, 'latest', false),
                                 ('plain latest_pair', ids, 'latest_pair', false)) v(name, ids, mode, validate) LOOP
    EXECUTE format($q$
      INSERT INTO actual
        SELECT rid, %L, _change_type, _change_ordinal, %s::text
          FROM (SELECT rid, nullif(a, -1) AS a, b FROM ranges JOIN refused USING (rid)
                 WHERE tab = %L AND NOT %s OFFSET 0) r,
               LATERAL %I(r.a, r.b, %L, %L, %L) x $q$,
      m.name, row_of, what,
      CASE WHEN m.ids IS NULL THEN 'false' WHEN m.validate THEN 'validated' ELSE 'plain' END,
      what || '_changelog', m.ids, m.mode, m.validate);
  END LOOP;
END $$;
CREATE PROCEDURE compare_rows() LANGUAGE plpgsql AS $$
BEGIN
  CALL read_all('bag', 'ROW(x.k, x.v)', '{k}');
  CALL read_all('keyed', 'ROW(x.id, x.v, x.n)', '{id}');
  CALL read_all('pair', 'ROW(x.k1, x.k2, x.v)', '{k1,k2}');
  ANALYZE actual;
  CREATE TEMP TABLE mismatches ON COMMIT DROP AS
    SELECT 'missing' AS what, * FROM (TABLE expected EXCEPT ALL TABLE actual) x
    UNION ALL
    SELECT 'surplus', * FROM (TABLE actual EXCEPT ALL TABLE expected) x;
  INSERT INTO totals
    SELECT '2 rows', mode, count(*), (SELECT count(*) FROM mismatches m WHERE m.mode = e.mode)
      FROM expected e GROUP BY mode;
  INSERT INTO problems
    SELECT h, format('%s row: %s %s %s (%s,%s] %s %s@%s', what, tab, part, mode, a, b, img, change_type, ordinal)
      FROM mismatches JOIN ranges USING (rid);
  DROP TABLE mismatches;
END $$;

CREATE FUNCTION outcome(range int, m text, validate boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN
  SELECT tab, nullif(a, -1) AS a, b INTO r FROM ranges WHERE rid = range;
  IF r.tab = 'bag' THEN
    PERFORM FROM bag_changelog(r.a, r.b, '{k}', m, validate);
  ELSIF r.tab = 'keyed' THEN
    PERFORM FROM keyed_changelog(r.a, r.b, '{id}', m, validate);
  ELSE
    PERFORM FROM pair_changelog(r.a, r.b, '{k1,k2}', m, validate);
  END IF;
  RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE;
END $$;
CREATE PROCEDURE compare_errors() LANGUAGE plpgsql AS $$
BEGIN
  CREATE TEMP TABLE errors ON COMMIT DROP AS
    SELECT rid, CASE WHEN validate THEN 'id ' ELSE 'plain ' END || mode AS mode, outcome(rid, mode, validate) AS state
      FROM refused JOIN ranges USING (rid),
           (VALUES ('all'), ('latest'), ('latest_pair'), ('net')) m(mode), (VALUES (true), (false)) v(validate)
     WHERE CASE WHEN validate THEN validated ELSE plain AND mode <> 'net' END
       AND (mode = 'all' OR h % 4 = 1);
  INSERT INTO totals
    SELECT '3 errors', mode, count(*), count(*) FILTER (WHERE state <> '21000') FROM errors GROUP BY mode;
  INSERT INTO problems
    SELECT h, format('no error: %s %s %s (%s,%s] %s', tab, part, mode, a, b, state)
      FROM errors JOIN ranges USING (rid) WHERE state <> '21000';
  DROP TABLE errors;
END $$;

--
-- Invariants
--
CREATE PROCEDURE check_invariants() LANGUAGE plpgsql AS $$
BEGIN
  -- content(a) + net changelog = content(b)
  INSERT INTO totals
    SELECT '4 content(a) + changes = content(b)', 'net', (SELECT count(*) FROM ranges), count(*) FROM (
      SELECT rid, img FROM (
        SELECT rid, img, 1 AS n FROM ranges JOIN copies USING (tab) WHERE s = a
        UNION ALL
        SELECT rid, img, CASE change_type WHEN 'INSERT' THEN 1 ELSE -1 END FROM actual WHERE mode = 'net'
        UNION ALL
        SELECT rid, img, -1 FROM ranges JOIN copies USING (tab) WHERE s = b) x
       GROUP BY rid, img HAVING sum(n) <> 0) y;
  -- two ranges end to end give the rows of the one that spans them
  INSERT INTO totals
    WITH spans AS (
      SELECT rid, max(rid) FILTER (WHERE part = 'whole') OVER (PARTITION BY h, tab) AS whole,
             CASE part WHEN 'whole' THEN -1 ELSE 1 END AS sign
        FROM ranges WHERE part IN ('whole', 'first', 'second') AND h % 2 = 0)
    SELECT '5 (a,m] and (m,b] = (a,b]', 'all', (SELECT count(DISTINCT whole) FROM spans), count(*) FROM (
      SELECT whole, mode, change_type, ordinal, img FROM spans JOIN actual USING (rid)
       WHERE mode = 'all' OR mode = 'plain all' AND whole IN (SELECT rid FROM refused WHERE NOT plain)
       GROUP BY 1, 2, 3, 4, 5 HAVING sum(sign) <> 0) y;
END $$;

-- a copy of content(a) after apply_changelog is content(b)
CREATE TABLE bag_target (LIKE bag);
CREATE TABLE keyed_target (LIKE keyed INCLUDING ALL);
CREATE TABLE pair_target (LIKE pair);
CREATE FUNCTION applied(range int) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  r record;
  ids text[];
BEGIN
  SELECT tab, a, coalesce(nullif(a, -1)::text, 'NULL') AS arg, b INTO r FROM ranges WHERE rid = range;
  CASE r.tab
    WHEN 'bag' THEN
      ids := '{k}';
      DELETE FROM bag_target;
      INSERT INTO bag_target SELECT (img::bag).* FROM copies WHERE tab = r.tab AND s = r.a;
    WHEN 'keyed' THEN
      ids := '{id}';
      DELETE FROM keyed_target;
      INSERT INTO keyed_target SELECT (img::keyed).* FROM copies WHERE tab = r.tab AND s = r.a;
    WHEN 'pair' THEN
      ids := '{k1,k2}';
      DELETE FROM pair_target;
      INSERT INTO pair_target SELECT (img::pair).* FROM copies WHERE tab = r.tab AND s = r.a;
  END CASE;
  PERFORM cdc.apply_changelog((r.tab || '_target')::regclass,
                              format('SELECT * FROM oracle.%s_changelog(%s, %s, %L)', r.tab, r.arg, r.b, ids), ids);
  RETURN NOT EXISTS (
    SELECT FROM (
      SELECT img, 1 AS n FROM copies WHERE tab = r.tab AND s = r.b
      UNION ALL SELECT t::text, -1 FROM bag_target t WHERE r.tab = 'bag'
      UNION ALL SELECT t::text, -1 FROM keyed_target t WHERE r.tab = 'keyed'
      UNION ALL SELECT t::text, -1 FROM pair_target t WHERE r.tab = 'pair') x
     GROUP BY img HAVING sum(n) <> 0);
END $$;
CREATE PROCEDURE apply_all() LANGUAGE plpgsql AS $$
BEGIN
  CREATE TEMP TABLE applies ON COMMIT DROP AS
    SELECT rid, applied(rid) AS equal FROM ranges JOIN refused USING (rid)
     WHERE NOT validated AND (part = 'start' OR part IN ('whole', 'long') AND h % 3 = 0);
  INSERT INTO totals SELECT '6 applied to content(a) = content(b)', 'id latest', count(*), count(*) FILTER (WHERE NOT equal) FROM applies;
  INSERT INTO problems
    SELECT h, format('applied: %s %s (%s,%s]', tab, part, a, b) FROM applies JOIN ranges USING (rid) WHERE NOT equal;
  DROP TABLE applies;
END $$;

--
-- A block of histories, from tracking to the last comparison
--
CREATE PROCEDURE block(first int, last int) LANGUAGE plpgsql AS $$
BEGIN
  TRUNCATE copies, saved, segments, ranges, delta, twins, changes, refused, by_key, expected, actual,
           bag_target, keyed_target, pair_target;
  PERFORM cdc.track('bag'), cdc.track('keyed'), cdc.track('pair');
  COMMIT;
  CALL save(0, 'bag');
  CALL save(0, 'keyed');
  CALL save(0, 'pair');
  FOR h IN first .. last LOOP
    CALL history(h);
  END LOOP;
  ANALYZE segments, saved;
  CALL choose_ranges();
  CALL expect();
  CALL compare_oracles();
  CALL compare_rows();
  CALL compare_errors();
  CALL check_invariants();
  CALL apply_all();
  INSERT INTO totals
    SELECT '7 histories', NULL, count(DISTINCT h), 0 FROM segments
    UNION ALL SELECT '8 snapshots of ' || tab, NULL, count(*), max(s) + 1 - count(*) FROM saved GROUP BY tab
    UNION ALL SELECT '9 ranges, ' || part, NULL, count(*), 0 FROM ranges GROUP BY part
    UNION ALL SELECT '9 ranges of keyed that were refused', NULL, 0, count(*) FROM ranges JOIN refused USING (rid)
               WHERE tab = 'keyed' AND (validated OR plain);
  PERFORM cdc.untrack('bag'), cdc.untrack('keyed'), cdc.untrack('pair');
  COMMIT;
END $$;
CREATE PROCEDURE blocks(n int) LANGUAGE plpgsql AS $$
BEGIN
  FOR b IN 0 .. (n - 1) / 100 LOOP
    CALL block(b * 100 + 1, least(b * 100 + 100, n));
  END LOOP;
END $$;

CALL blocks(:histories);
SELECT what, mode, sum(n) AS checked, sum(wrong) AS mismatches FROM totals GROUP BY what, mode ORDER BY what COLLATE "C", mode COLLATE "C";
SELECT count(*) AS problems FROM problems;
SELECT h, problem FROM problems ORDER BY 1, 2 LIMIT 20;
