
# Copyright (c) 2026, the cdc_changelog authors

# Random changes of definition and data: after every step, what changelogs say
# about random ranges is compared with full copies of the table, to which the
# same changes of definition were made; or the range is refused.  At last the
# database is dumped and restored, and must say the same.
#
# Run with CDC_DDL_SEED=n to repeat one history.  It needs TAP for the dump.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $steps = $ENV{CDC_DDL_STEPS} || ($ENV{CDC_FULL} ? 200 : 40);
my @seeds = $ENV{CDC_DDL_SEED} || (1 .. ($ENV{CDC_FULL} ? 20 : 3));

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf',
	"fsync = off\nlog_statement = none\nlog_min_messages = fatal");
$node->start;

my $sql = <<'SQL';
CREATE EXTENSION cdc_changelog;
CREATE SCHEMA f;
SET search_path = f;
CREATE DOMAIN dom AS int;
CREATE DOMAIN domc AS int CHECK (VALUE IS NULL OR VALUE > -100000);
CREATE TYPE en AS ENUM ('a', 'b', 'c');
CREATE SEQUENCE colno;
-- what was done, for a look at a failure
CREATE TABLE note (n serial, what text);

CREATE FUNCTION r(n int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT floor(random() * n)::int';
CREATE FUNCTION pick(VARIADIC a text[]) RETURNS text LANGUAGE sql VOLATILE AS 'SELECT a[1 + f.r(cardinality(a))]';

-- any column but the key
CREATE FUNCTION a_column() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT attname FROM pg_attribute WHERE attrelid = 'f.t'::regclass AND attnum > 0
             AND NOT attisdropped AND attname <> 'id' ORDER BY random() LIMIT 1);
END
$$;
CREATE FUNCTION type_of(name text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'f.t'::regclass AND attname = name);
END
$$;
CREATE FUNCTION a_value(type text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN CASE WHEN r(5) = 0 THEN 'NULL'
              WHEN type ~ 'en$' THEN quote_literal(pick('a', 'b', 'c'))
              WHEN type ~ 'int|numeric|dom|double' THEN r(100)::text
              WHEN type ~ 'timestamp' THEN quote_literal('2026-01-0' || (1 + r(9)))
              WHEN r(12) = 0 THEN quote_literal(repeat(r(1000)::text, 3000))
              ELSE quote_literal(r(100)) END;
END
$$;

-- a few statements that change data
CREATE PROCEDURE dml() LANGUAGE plpgsql AS $$
DECLARE
  c text;
  x int;
BEGIN
  FOR i IN 1 .. 1 + r(3) LOOP
    x := r(20);
    BEGIN
      IF x < 8 THEN
        INSERT INTO t (id) SELECT COALESCE(max(id), 0) + 1 + g FROM generate_series(0, r(3)) g LEFT JOIN t ON true GROUP BY g;
      ELSIF x < 15 THEN
        c := a_column();
        CONTINUE WHEN c IS NULL;
        EXECUTE format('UPDATE t SET %I = %s WHERE id %% %s = 0', c, a_value(type_of(c)), 1 + r(4));
      ELSIF x < 18 THEN
        DELETE FROM t WHERE id % 5 = r(5);
      ELSIF x < 19 THEN
        TRUNCATE t;
      ELSE
        INSERT INTO t (id) VALUES (-1);
        RAISE division_by_zero;
      END IF;
    EXCEPTION WHEN division_by_zero OR data_exception OR integrity_constraint_violation OR syntax_error_or_access_rule_violation THEN
      NULL;
    END;
  END LOOP;
END
$$;

-- A change of the definition, and the same for copies, which cannot be told
-- from what the table was: where values are not known to the log, they have
-- NULL; '?' where there is nothing that corresponds.
CREATE FUNCTION ddl(OUT cmd text, OUT forcopy text) LANGUAGE plpgsql AS $$
DECLARE
  c text := a_column();
  n text := 'x' || nextval('colno');
  type text;
  x int := r(20);
BEGIN
  IF x < 2 THEN
    cmd := format('ADD COLUMN %I %s', n, pick('int', 'text', 'bigint', 'numeric(10,2)', 'dom', 'domc', 'en', 'varchar(40)', 'smallint[]'));
  ELSIF x < 5 THEN
    type := pick('int', 'text', 'bigint', 'numeric(10,2)', 'dom', 'en', 'varchar(4000)', 'char(5)', 'timestamptz');
    cmd := format('ADD COLUMN %I %s DEFAULT %L', n, type,
                  CASE WHEN type = 'en' THEN 'b' WHEN type = 'timestamptz' THEN '2026-05-05'
                       WHEN type = 'text' AND r(2) = 0 THEN repeat('long', 2000) ELSE '7' END);
  ELSIF x < 6 THEN
    cmd := format('ADD COLUMN %I %s', n, pick('float8 DEFAULT random()', 'domc DEFAULT 3', 'serial', 'int GENERATED ALWAYS AS (1) STORED'));
    forcopy := format('ADD COLUMN %I %s', n, CASE WHEN cmd ~ 'float8' THEN 'float8' ELSE 'int' END);
  ELSIF x < 7 THEN
    cmd := pick('SET LOGGED', 'SET (fillfactor = 70)', 'ENABLE TRIGGER ALL', 'ENABLE TRIGGER USER', 'ALTER id SET DEFAULT 5', 'REPLICA IDENTITY FULL');
    forcopy := '';
  ELSIF c IS NULL THEN
    NULL;
  ELSIF x < 9 THEN
    cmd := format('DROP COLUMN %I', c);
  ELSIF x < 11 THEN
    cmd := format('RENAME %I TO %I', c, n);
  ELSIF x < 15 THEN
    cmd := format('ALTER %I TYPE %s', c, pick('int', 'bigint', 'numeric', 'text', 'varchar', 'varchar(30)', 'dom', 'numeric(12,3)', 'char(8)', 'timestamp', 'float8'));
  ELSIF x < 16 THEN
    IF type_of(c) ~ '^(int|big|numeric)' THEN
      cmd := format('ALTER %I TYPE %s USING %I + %s', c, pick('int', 'bigint', 'numeric', 'smallint', 'text'), c, pick('1', 'id', 'r(1)'));
      forcopy := '?';
    END IF;
  ELSIF x < 17 THEN
    cmd := format('DROP COLUMN %I, ADD COLUMN %I int DEFAULT 4', c, c);
  ELSIF x < 18 THEN
    cmd := format('ADD COLUMN %I int DEFAULT 11, ALTER %I TYPE text', n, c);
    forcopy := '?';
  ELSIF x < 19 THEN
    cmd := format('ALTER %I SET DEFAULT NULL, ALTER %I TYPE text COLLATE "C"', c, c);
  ELSE
    cmd := format('DROP COLUMN %I, ADD COLUMN %I text, ADD COLUMN %I int DEFAULT 2', c, n, n || 'y');
  END IF;
  forcopy := COALESCE(forcopy, cmd);
END
$$;

CREATE FUNCTION copies() RETURNS SETOF bigint LANGUAGE sql AS $$
SELECT substr(relname, 6)::bigint FROM pg_class WHERE relnamespace = 'f'::regnamespace AND relname ~ '^copy_\d+$' ORDER BY 1
$$;

-- keep what the table is now
CREATE PROCEDURE save() LANGUAGE plpgsql AS $$
DECLARE
  s bigint := cdc.current_snapshot('t');
BEGIN
  EXECUTE format('DROP TABLE IF EXISTS copy_%s', s);
  EXECUTE format('CREATE TABLE copy_%s AS TABLE t', s);
END
$$;

-- compare a few ranges with the copies at their ends
CREATE PROCEDURE compare(n int, INOUT good int, INOUT refused int) LANGUAGE plpgsql AS $$
DECLARE
  saved bigint[] := ARRAY(SELECT copies());
  a bigint;
  b bigint;
  bad bigint;
  cols text;
BEGIN
  SELECT string_agg(quote_ident(attname), ',' ORDER BY attnum) INTO cols
    FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 AND NOT attisdropped;
  FOR i IN 1 .. n LOOP
    a := saved[1 + r(cardinality(saved))];
    b := saved[1 + r(cardinality(saved))];
    IF i = 1 THEN
      a := saved[greatest(1, cardinality(saved) - 1)];
      b := saved[cardinality(saved)];
    END IF;
    BEGIN
      EXECUTE format('CREATE TEMP TABLE changes AS SELECT ROW(%s)::text AS image, _change_type AS type FROM t_changelog(%s, %s, %s, %L)',
                     cols, least(a, b), greatest(a, b), pick('NULL', 'ARRAY[''id'']'), pick('net', 'all'));
      EXECUTE format($q$
        SELECT count(*) FROM (
          (SELECT ROW(%1$s)::text FROM copy_%2$s UNION ALL SELECT image FROM changes WHERE type IN ('INSERT', 'UPDATE_AFTER')
           EXCEPT ALL
           (SELECT ROW(%1$s)::text FROM copy_%3$s UNION ALL SELECT image FROM changes WHERE type IN ('DELETE', 'UPDATE_BEFORE')))
          UNION ALL
          (SELECT ROW(%1$s)::text FROM copy_%3$s UNION ALL SELECT image FROM changes WHERE type IN ('DELETE', 'UPDATE_BEFORE')
           EXCEPT ALL
           (SELECT ROW(%1$s)::text FROM copy_%2$s UNION ALL SELECT image FROM changes WHERE type IN ('INSERT', 'UPDATE_AFTER')))) d
        $q$, cols, least(a, b), greatest(a, b)) INTO bad;
      DROP TABLE changes;
      IF bad > 0 THEN
        RAISE EXCEPTION '% rows differ in (%, %]', bad, least(a, b), greatest(a, b);
      END IF;
      good := good + 1;
    EXCEPTION WHEN object_not_in_prerequisite_state THEN
      refused := refused + 1;
    END;
  END LOOP;
  SELECT count(*) INTO bad FROM cdc.verify('t');
  IF bad > 0 THEN
    RAISE EXCEPTION 'the log has % problems', bad;
  END IF;
END
$$;

CREATE PROCEDURE run(steps int, seed float) LANGUAGE plpgsql AS $$
DECLARE
  good int := 0;
  refused int := 0;
  c record;
  k text;
  s bigint;
  done text[];
  stopped boolean := false;
BEGIN
  PERFORM setseed(seed);
  CREATE TABLE t (id int PRIMARY KEY, a int, b text, c numeric);
  INSERT INTO t SELECT i, i, i::text, i FROM generate_series(1, 10) i;
  PERFORM cdc.track('t');
  COMMIT;
  CALL save();
  CREATE VIEW watcher AS SELECT id, _change_type, _change_ordinal FROM t_changelog();
  COMMIT;

  FOR i IN 1 .. steps LOOP
    done := '{}';
    IF r(2) = 0 THEN
      CALL dml();
    END IF;
    IF r(10) < 6 THEN
      IF r(12) = 0 THEN
        EXECUTE pick('CLUSTER t USING t_pkey', 'CREATE UNIQUE INDEX ON t (id)', 'CREATE INDEX ON t (id)',
                     'DROP VIEW IF EXISTS watcher');
      END IF;
      IF r(25) = 0 THEN
        EXECUTE CASE WHEN stopped THEN 'ALTER TABLE t ENABLE TRIGGER USER'
                     ELSE 'ALTER TABLE t DISABLE TRIGGER cdc_changelog_insert' END;
        stopped := NOT stopped;
      END IF;
      FOR j IN 1 .. 1 + r(2) LOOP
        SELECT * INTO c FROM ddl();
        CONTINUE WHEN c.cmd IS NULL;
        BEGIN
          IF r(2) = 0 THEN
            CALL dml();
          END IF;
          EXECUTE 'ALTER TABLE t ' || c.cmd;
          IF r(3) = 0 THEN
            CALL dml();
          END IF;
          IF r(4) = 0 THEN
            RAISE division_by_zero;
          END IF;
          INSERT INTO note (what) VALUES (c.cmd);
          IF c.forcopy <> '' THEN
            done := done || c.forcopy;
          END IF;
        EXCEPTION WHEN division_by_zero OR data_exception OR datatype_mismatch OR check_violation OR undefined_function
                    OR cannot_coerce OR feature_not_supported OR undefined_column OR collation_mismatch OR duplicate_column
                    OR dependent_objects_still_exist OR invalid_column_definition OR syntax_error THEN
          INSERT INTO note (what) VALUES (format('%s failed or was rolled back: %s', c.cmd, SQLERRM));
        END;
      END LOOP;
      IF r(2) = 0 THEN
        CALL dml();
      END IF;
    END IF;
    COMMIT;

    FOREACH k IN ARRAY done LOOP
      FOR s IN SELECT copies() LOOP
        BEGIN
          EXECUTE CASE WHEN k = '?' THEN format('DROP TABLE copy_%s', s)
                       ELSE format('ALTER TABLE copy_%s %s', s, k) END;
        EXCEPTION WHEN data_exception OR check_violation THEN
          EXECUTE format('DROP TABLE copy_%s', s);
        END;
      END LOOP;
    END LOOP;
    COMMIT;
    IF NOT stopped THEN
      CALL save();
      CALL compare(3, good, refused);
      COMMIT;
    END IF;
    FOR s IN SELECT copies() ORDER BY random() OFFSET 15 LOOP
      EXECUTE format('DROP TABLE copy_%s', s);
    END LOOP;
    COMMIT;
  END LOOP;
  IF stopped THEN
    ALTER TABLE t ENABLE TRIGGER USER;
  END IF;
  RAISE WARNING 'seed %: % ranges compared, % refused', seed, good, refused;
END
$$;
SQL

# What a database says about all pairs of its snapshots.
my $digest = q{
CREATE FUNCTION pg_temp.said(a bigint, b bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
BEGIN
  SELECT md5(string_agg(c::text, ' ' ORDER BY c::text)) INTO result FROM f.t_changelog(a, b, NULL, 'all') c;
  RETURN result;
EXCEPTION WHEN OTHERS THEN
  RETURN SQLERRM;
END
$$;
SELECT a.snapshot_id, b.snapshot_id, pg_temp.said(a.snapshot_id, b.snapshot_id)
  FROM cdc.snapshots('f.t') a JOIN cdc.snapshots('f.t') b ON a.snapshot_id < b.snapshot_id
 ORDER BY 1, 2;
SELECT md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM f.t;
SELECT count(*) FROM cdc.verify('f.t');
};

foreach my $seed (@seeds)
{
	my $db = "seed$seed";
	my ($stdout, $stderr);

	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql($db, $sql);
	my $status = $node->psql(
		$db,
		sprintf('SET search_path = f; SET client_min_messages = warning; CALL run(%d, %s)', $steps, $seed / 1000),
		stdout => \$stdout,
		stderr => \$stderr);
	is($status, 0, "$steps steps with CDC_DDL_SEED=$seed");
	diag $stderr if $status != 0;
	note $stderr;
	diag $node->safe_psql($db, 'SELECT n, left(what, 200) FROM f.note ORDER BY n DESC LIMIT 15')
	  if $status != 0;

	my $dump = $node->basedir . "/$db.sql";
	$node->command_ok([ 'pg_dump', '-f', $dump, $db ], "dump of $db");
	$node->safe_psql('postgres', "CREATE DATABASE ${db}r");
	$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-d', "${db}r", '-f', $dump ],
		"restore of $db");
	is($node->safe_psql("${db}r", $digest), $node->safe_psql($db, $digest), "the restored database says the same");
}

$node->stop;
done_testing();
