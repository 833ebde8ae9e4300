--
-- Random histories, and random moments at which a target is brought up to
-- date: it always equals what a full build makes of the table.
--
CREATE SCHEMA apply_consumer_random;
SET search_path = apply_consumer_random;
SET client_min_messages = warning;

CREATE TABLE source (k1 int, k2 text, v int);
SELECT cdc.track('source');
CREATE TABLE target (k1 int, k2 text, v int);
CREATE UNIQUE INDEX ON target (k1, k2) NULLS NOT DISTINCT;
CREATE TABLE open_only (k1 int, k2 text, doubled int);
CREATE TABLE versions (k1 int, k2 text, v int, valid_from bigint, valid_to bigint);
CREATE TABLE outcomes (history int, step int, what text);

CREATE FUNCTION change() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  dice double precision := random();
BEGIN
  IF dice < 0.4 THEN
    INSERT INTO source SELECT k1, k2, floor(random() * 4)
      FROM (SELECT k1, k2 FROM unnest(ARRAY[1, 2, 3, NULL]) k1, unnest(ARRAY['a', 'b', NULL]) k2) x
     WHERE random() < 0.2 AND NOT EXISTS (SELECT FROM source s
       WHERE s.k1 IS NOT DISTINCT FROM x.k1 AND s.k2 IS NOT DISTINCT FROM x.k2);
  ELSIF dice < 0.7 THEN
    UPDATE source SET v = floor(random() * 4) WHERE random() < 0.4;
  ELSIF dice < 0.9 THEN
    DELETE FROM source WHERE random() < 0.4;
  ELSIF dice < 0.95 THEN
    UPDATE source SET k2 = CASE k2 WHEN 'a' THEN 'b' WHEN 'b' THEN 'a' END;
  ELSE
    TRUNCATE source;
  END IF;
END $$;

-- what disturbs a consumer or its targets
CREATE FUNCTION disturb() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  dice double precision := random();
  at bigint;
BEGIN
  IF dice < 0.03 THEN
    TRUNCATE target;
  ELSIF dice < 0.06 THEN
    PERFORM cdc.reset('c');
  ELSIF dice < 0.09 THEN
    TRUNCATE open_only;
  ELSIF dice < 0.14 THEN
    -- back to where it was some time ago
    SELECT snapshot INTO at FROM cdc.position('c');
    IF at > 5 THEN
      PERFORM cdc.rewind('c', 'source', at - 1 - floor(random() * 4)::int);
    END IF;
  END IF;
END $$;

CREATE FUNCTION bring_up_to_date() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM cdc.apply_changelog('target',
    $q$ SELECT * FROM source_changelog(identifiers => ARRAY['k1', 'k2'], consumer => 'c') $q$,
    ARRAY['k1', 'k2'], consumer => 'c');
  -- with a filter and a transform
  PERFORM cdc.apply_changelog('open_only',
    $q$ SELECT _change_type, k1, k2, 2 * v AS doubled FROM source_changelog(identifiers => ARRAY['k1', 'k2'], consumer => 'c') $q$,
    ARRAY['k1', 'k2'], filter => 'doubled > 2', consumer => 'c');
  PERFORM cdc.apply_changelog('versions',
    $q$ SELECT * FROM source_changelog(identifiers => ARRAY['k1', 'k2'], mode => 'all', consumer => 'v') $q$,
    ARRAY['k1', 'k2'], history => true, consumer => 'v');
END $$;

CREATE FUNCTION differences() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS ((TABLE source EXCEPT ALL TABLE target) UNION ALL (TABLE target EXCEPT ALL TABLE source)) THEN
    RETURN 'target differs';
  ELSIF EXISTS ((SELECT k1, k2, 2 * v FROM source WHERE v > 1 EXCEPT ALL TABLE open_only) UNION ALL
                (TABLE open_only EXCEPT ALL SELECT k1, k2, 2 * v FROM source WHERE v > 1)) THEN
    RETURN 'filtered target differs';
  ELSIF EXISTS ((TABLE source EXCEPT ALL SELECT k1, k2, v FROM versions WHERE valid_to IS NULL) UNION ALL
                (SELECT k1, k2, v FROM versions WHERE valid_to IS NULL EXCEPT ALL TABLE source)) THEN
    RETURN 'current versions differ';
  END IF;
  RETURN NULL;
END $$;

CREATE PROCEDURE histories(n int) LANGUAGE plpgsql AS $$
DECLARE
  problem text;
BEGIN
  FOR history IN 1..n LOOP
    PERFORM setseed(history / 1000.0);
    FOR step IN 1..(3 + floor(random() * 6)::int) LOOP
      FOR i IN 1..floor(random() * 4)::int LOOP
        PERFORM change();
        COMMIT;
      END LOOP;
      PERFORM disturb();
      COMMIT;
      BEGIN
        PERFORM bring_up_to_date();
        problem := differences();
        IF random() < 0.1 THEN
          RAISE EXCEPTION 'rolled back';
        END IF;
      EXCEPTION WHEN OTHERS THEN
        IF sqlerrm <> 'rolled back' THEN
          problem := sqlerrm;
        END IF;
      END;
      IF problem IS NOT NULL THEN
        INSERT INTO outcomes VALUES (history, step, problem);
      END IF;
      COMMIT;
    END LOOP;
  END LOOP;
END $$;
CALL histories(40);
SELECT what, count(*), min(history) FROM outcomes GROUP BY what;
-- it was not all full builds, nor all nothing
SELECT count(*) > 100 AS many_snapshots FROM cdc.snapshots('source');

SELECT count(cdc.drop_consumer(c)) FROM unnest(ARRAY['c', 'v']) c;
DROP SCHEMA apply_consumer_random CASCADE;
