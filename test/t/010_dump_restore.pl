
# Copyright (c) 2026, the cdc_changelog authors

# Dump and restore.  The changelog of every range is the same afterwards, in
# whatever way the dump was restored and although the transaction ids of the
# dumped server mean nothing on the other; new changes go on with new numbers;
# nothing is captured twice; and what cannot be restored properly is refused or
# a gap, never silent.
#
# It needs TAP because it needs two servers and pg_dump.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $old = PostgreSQL::Test::Cluster->new('old');
$old->init(auth_extra => [ '--create-role', 'regress_reader' ]);
$old->append_conf(
	'postgresql.conf', q{
max_prepared_transactions = 10
cdc_changelog.horizon_timeout = 10ms
});

# Far ahead of the server that the dump is restored on
command_ok([ 'pg_resetwal', '-f', '-e', '7', $old->data_dir ],
	'raise the transaction ids of the dumped server');
$old->start;

my $new = PostgreSQL::Test::Cluster->new('new');
$new->init;
$new->append_conf(
	'postgresql.conf', q{
max_prepared_transactions = 10
cdc_changelog.horizon_timeout = 10ms
});
$new->start;

my $dir = PostgreSQL::Test::Utils::tempdir;

foreach my $node ($old, $new)
{
	$node->safe_psql('postgres',
		'CREATE ROLE regress_owner; CREATE ROLE regress_writer; CREATE ROLE regress_admin SUPERUSER');
}

# Fills a database with tracked tables that have a history
sub make_history
{
	my ($dbname) = @_;

	$old->safe_psql('postgres', "CREATE DATABASE $dbname");
	$old->safe_psql(
		$dbname, q{
-- another superuser than the one that restores
SET ROLE regress_admin;
CREATE EXTENSION cdc_changelog;
RESET ROLE;
SET cdc_changelog.segment_size = '8kB';
CREATE SCHEMA app AUTHORIZATION regress_owner;
CREATE DOMAIN app.price AS numeric CHECK (VALUE >= 0);

-- a table with the hole of a dropped column, and values of many types
CREATE TABLE app."Orders" (id int PRIMARY KEY, gone text, v text, p app.price,
  f float8, b bytea, j json, a int[], t timestamptz, g int GENERATED ALWAYS AS (id * 2) STORED);
INSERT INTO app."Orders" SELECT i, 'gone', 'v' || i, i / 4.0, i / 3.0, '\\x00ff', '{"a" : 1}', ARRAY[i, NULL],
  '2026-01-01' FROM generate_series(1, 20) i;
ALTER TABLE app."Orders" DROP COLUMN gone;
ALTER TABLE app."Orders" ADD COLUMN n numeric DEFAULT 1.50;
ALTER TABLE app."Orders" OWNER TO regress_owner;
GRANT INSERT ON app."Orders" TO regress_writer;
GRANT USAGE ON SCHEMA app TO regress_writer;

-- one without a key, with rows that are too wide for the log's main fork
CREATE TABLE bag (v text, w text);
INSERT INTO bag VALUES ('a', 'x'), ('a', 'x'), (NULL, NULL);

CREATE TABLE nothing (id int PRIMARY KEY);
CREATE TABLE apart (id int PRIMARY KEY, v text);

-- one with partitions that differ from it
CREATE TABLE parts (id int, v text, k int) PARTITION BY LIST (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 (k int, gone int, v text, id int);
ALTER TABLE parts_2 DROP COLUMN gone;
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES IN (2);
INSERT INTO parts VALUES (1, 'a', 1), (2, 'b', 2);

SELECT cdc.track(r) FROM unnest(ARRAY['app."Orders"', 'bag', 'nothing', 'apart', 'parts']::regclass[]) r;

INSERT INTO parts VALUES (3, 'c', 1), (4, 'd', 2);
UPDATE parts SET k = 3 - k;
INSERT INTO parts_2 VALUES (2, 'e', 5);
DELETE FROM parts WHERE id = 1;

INSERT INTO app."Orders"(id, v, p) VALUES (21, 'new', 1.0);
UPDATE app."Orders" SET v = v || '!', f = f + 1, a = a || 7 WHERE id % 2 = 0;
BEGIN;
DELETE FROM app."Orders" WHERE id < 4;
INSERT INTO bag SELECT 'wide', string_agg(md5(i::text), '') FROM generate_series(1, 2000) i;
SAVEPOINT s;
INSERT INTO bag VALUES ('undone', '');
ROLLBACK TO s;
INSERT INTO bag VALUES ('a', 'x');
COMMIT;
BEGIN;
UPDATE bag SET w = 'never';
SAVEPOINT s;
ROLLBACK;
UPDATE app."Orders" SET id = id + 100 WHERE id > 18;
DELETE FROM bag WHERE ctid = (SELECT min(ctid) FROM bag WHERE v = 'a');
INSERT INTO app."Orders"(id, v, n) SELECT i, repeat('long', 100), i FROM generate_series(200, 300) i;
DELETE FROM app."Orders" WHERE id BETWEEN 250 AND 260;
UPDATE apart SET v = 'nothing to update';
INSERT INTO apart VALUES (1, 'one'), (2, 'two');
UPDATE apart SET v = upper(v);
TRUNCATE bag;
INSERT INTO bag VALUES ('after', 'truncate');

-- the changelog of every range in every mode, or why there is none
CREATE FUNCTION digests(rel regclass, keys text[]) RETURNS SETOF text
LANGUAGE plpgsql SET timezone = 'UTC' AS $$
DECLARE
  newest bigint := cdc.current_snapshot(rel);
  func text := (SELECT changelog_function FROM cdc.tracked_tables WHERE relation = rel);
  m text;
  k text[];
  d text;
BEGIN
  FOREACH m IN ARRAY ARRAY['net', 'all', 'knet', 'kall', 'klatest', 'klatest_pair'] LOOP
    CONTINUE WHEN m LIKE 'k%' AND keys IS NULL;
    k := CASE WHEN m LIKE 'k%' THEN keys END;
    FOR s IN -1 .. newest LOOP
      FOR e IN greatest(s, 0) .. newest LOOP
        BEGIN
          EXECUTE format('SELECT md5(string_agg(r::text, E''\n'' ORDER BY r::text)) FROM %s($1, $2, $3, $4) r', func)
            USING nullif(s, -1), e, k, ltrim(m, 'k') INTO d;
        EXCEPTION WHEN OTHERS THEN
          d := SQLSTATE || ' ' || SQLERRM;
        END;
        RETURN NEXT format('%s %s (%s, %s] %s', rel, m, s, e, d);
      END LOOP;
    END LOOP;
  END LOOP;
END $$;
});
	return;
}

# All that there is to know of the tracked tables of a database
sub digests
{
	my ($node, $dbname) = @_;

	return $node->safe_psql(
		$dbname, q{
SELECT digests('app."Orders"', '{id}');
SELECT digests('bag', '{v,w}');
SELECT digests('nothing', '{id}');
SELECT digests('apart', '{id}');
SELECT digests('parts', '{id}');
SELECT s.* FROM cdc.snapshots('app."Orders"') s;
SELECT s.* FROM cdc.snapshots('bag') s;
SELECT relation, log_rows, snapshots, oldest_snapshot, newest_snapshot, tracked_at, changelog_function
  FROM cdc.tracked_tables ORDER BY relation::text;
SELECT tgrelid::regclass, tgname, tgenabled, pg_get_triggerdef(oid) FROM pg_trigger
 WHERE tgname ~ 'cdc_changelog_' ORDER BY 1, 2;
SELECT relname, relowner::regrole, relacl FROM pg_class WHERE relnamespace = 'cdc_log'::regnamespace
   AND relkind IN ('r', 'S') ORDER BY 1;
SELECT nspname, replace(nspacl::text, nspowner::regrole::text, 'owner') FROM pg_namespace WHERE nspname ~ '^cdc' ORDER BY 1;
SELECT oid::regprocedure, proowner::regrole, proconfig FROM pg_proc WHERE prosrc = 'cdc_changelog_typed' ORDER BY 1;
});
}

# Compares the digests of a restored database with those of the dumped one, and
# shows no more than the lines that differ
sub same_digests
{
	my ($dbname, $expected, $name) = @_;
	my %lines;

	$lines{$_}++ foreach (split /\n/, $expected);
	$lines{$_}-- foreach (split /\n/, digests($new, $dbname));
	is( join("\n", map { ($lines{$_} > 0 ? '- ' : '+ ') . $_ }
			  sort grep { $lines{$_} != 0 } keys %lines),
		'', $name);
	return;
}

# The problems that cdc.verify and cdc.check have with a database
sub problems
{
	my ($node, $dbname) = @_;

	return $node->safe_psql(
		$dbname, q{
SELECT t.relation, v.* FROM cdc.tracked_tables t, cdc.verify(t.relation) v;
SELECT * FROM cdc.check();
});
}

sub sqlstate
{
	my ($node, $dbname, $sql) = @_;
	my ($stdout, $stderr);

	$node->psql($dbname, "\\set VERBOSITY sqlstate\n$sql",
		stdout => \$stdout, stderr => \$stderr);
	return $stderr =~ /ERROR:  (\w{5})/ ? $1 : "none, but $stdout";
}

make_history('history');

# Who can dump it
$old->safe_psql('postgres', 'CREATE ROLE regress_reader LOGIN; GRANT pg_read_all_data TO regress_reader');
$old->command_ok([ 'pg_dump', '-U', 'regress_reader', '-f', "$dir/reader", 'history' ],
	'a role that may read all data can dump everything');

# A transaction that is not finished is not in the dump, but its numbers are
# drawn.
$old->safe_psql(
	'history', q{
BEGIN;
INSERT INTO apart VALUES (3, 'prepared');
INSERT INTO app."Orders"(id) VALUES (3000);
PREPARE TRANSACTION 'pending';
INSERT INTO apart VALUES (4, 'behind it');
});
my @dumps = (
	[ 'plain', ['-Fp'], ],
	[ 'custom', ['-Fc'], [] ],
	[ 'directory, two jobs', [ '-Fd', '-j2' ], ['-j2'] ],
	[ 'plain, --inserts', [ '-Fp', '--inserts' ] ]);
my $count = 0;
foreach my $dump (@dumps)
{
	my ($name, $options, $restore) = @$dump;
	my $file = "$dir/dump$count";
	my $db = "db$count";

	$count++;
	$old->command_ok([ 'pg_dump', @$options, '-f', $file, 'history' ],
		"$name: dump");
	$new->safe_psql('postgres', "CREATE DATABASE $db");
	if ($restore)
	{
		$new->command_ok([ 'pg_restore', '-e', @$restore, '-d', $db, $file ],
			"$name: restore");
	}
	else
	{
		$new->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null',
				'-d', $db, '-f', $file ],
			"$name: restore");
	}
}

# On the old server the prepared transaction holds back what is behind it.
$old->safe_psql('history', "ROLLBACK PREPARED 'pending'");
my $expected = digests($old, 'history');
my $rows = $old->safe_psql('history',
	'SELECT count(*), sum(hashtext(t::text)::numeric) FROM app."Orders" t');
is(problems($old, 'history'), '', 'there is no problem before the dump');
cmp_ok($old->safe_psql('history', 'SELECT max(segment) FROM cdc.log_segment'),
	'>', 1, 'the history is in several segments');

for my $i (0 .. $count - 1)
{
	my $name = $dumps[$i][0];
	my $db = "db$i";

	is( $new->safe_psql($db,
			'SELECT count(*), sum(hashtext(t::text)::numeric) FROM app."Orders" t'),
		$rows,
		"$name: the table is the same");
	same_digests($db, $expected,
		"$name: the changelog of every range is the same");
	is(problems($new, $db), '', "$name: there is no problem");
}

is( $new->safe_psql(
		'db0',
		q{SELECT count(*) FROM cdc.snapshot WHERE xid <> '2' OR next_xid <> '3' OR first_block IS NOT NULL OR blocks IS NOT NULL}),
	'0', 'nothing of the other server is left in the restored rows');

# New changes in the restored database
my $newest = $old->safe_psql('history',
	q{SELECT last_value FROM cdc_log.t1_snapshot});
$new->safe_psql(
	'db0', q{
CREATE TABLE orders_then AS TABLE app."Orders";
SET ROLE regress_writer;
INSERT INTO app."Orders"(id, v) VALUES (1000, 'restored');
RESET ROLE;
UPDATE app."Orders" SET v = v || '+' WHERE id < 10;
INSERT INTO bag VALUES ('restored', 'restored');
UPDATE parts SET k = 3 - k WHERE id = 5;
});
is( $new->safe_psql(
		'db0', q{
SELECT snapshot_id, inserted, deleted FROM cdc.snapshots('app."Orders"') ORDER BY 1 DESC LIMIT 2}
	),
	($newest + 2) . "|6|6\n" . ($newest + 1) . '|1|0',
	'new snapshots go on with the numbers, each change is captured once');
is( $new->safe_psql(
		'db0',
		'SELECT count(*) - count(DISTINCT (table_id, tx)) FROM cdc.snapshot WHERE snapshot_id > 0'),
	'0',
	'no transaction number is used again');
is( $new->safe_psql(
		'db0', qq{
WITH c AS (SELECT * FROM app."Orders_changelog"($newest)),
l AS (TABLE orders_then UNION ALL SELECT id, v, p, f, b, j, a, t, g, n FROM c WHERE _change_type = 'INSERT'),
r AS (TABLE app."Orders" UNION ALL SELECT id, v, p, f, b, j, a, t, g, n FROM c WHERE _change_type = 'DELETE')
SELECT (SELECT string_agg(md5(l::text), ' ' ORDER BY l::text) FROM l) =
       (SELECT string_agg(md5(r::text), ' ' ORDER BY r::text) FROM r)}),
	't', 'the restored content and the new changes give the new content');
is( $new->safe_psql(
		'db0', q{
SELECT id, v, k, _change_type FROM parts_changelog(cdc.current_snapshot('parts') - 1) ORDER BY k}
	),
	"5|e|1|INSERT\n5|e|2|DELETE", 'a change in restored partitions is captured once');
is(problems($new, 'db0'), '', 'there is still no problem');

# The holes of dropped columns are closed by the restore, in table and log.
$new->safe_psql(
	'db0', q{
ALTER TABLE app."Orders" ADD COLUMN extra int DEFAULT 3;
UPDATE app."Orders" SET extra = 4 WHERE id = 8;
ALTER TABLE app."Orders" DROP COLUMN f;
UPDATE app."Orders" SET v = 'changed' WHERE id = 8;
});
is( $new->safe_psql(
		'db0',
		q{SELECT id, v, extra, n, _change_type FROM app."Orders_changelog"(1, NULL, '{id}', 'latest_pair') WHERE id = 8 ORDER BY 5 DESC}),
	"8|v8!+|4|1.50|UPDATE_BEFORE\n8|changed|4|1.50|UPDATE_AFTER",
	'the definition of a restored table can be changed');
is( $new->safe_psql(
		'db0',
		q{SELECT count(*) FROM (SELECT id, v, n FROM orders_then EXCEPT ALL SELECT id, v, n FROM cdc.as_of(NULL::app."Orders", 6)) d}),
	'0', 'and its history is read with it');
is(problems($new, 'db0'), '', 'without a problem');

# The horizon among restored and new snapshots
$new->safe_psql(
	'db1', q{
BEGIN;
INSERT INTO apart VALUES (10, 'prepared');
PREPARE TRANSACTION 'pending';
INSERT INTO apart VALUES (11, 'behind it');
});
my $apart = $old->safe_psql('history', q{SELECT cdc.current_snapshot('apart')});
is($new->safe_psql('db1', q{SELECT cdc.current_snapshot('apart')}),
	$apart, 'a prepared transaction holds back what is behind it, and no restored snapshot');
is( $new->safe_psql(
		'db1', q{
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM apart_changelog(0);
COMMIT;
SELECT count(*) FROM apart_changelog(0)}),
	"3\n3", 'restored snapshots are read at every isolation level');
$new->safe_psql('db1', q{COMMIT PREPARED 'pending'});
is( $new->safe_psql('db1', "SELECT id FROM apart_changelog($apart)"),
	"10\n11", 'after that everything is there');

# Identifiers proven unique by an index need no look at the live table, as soon
# as the index was there before the range.
is( $new->safe_psql(
		'db1', q{
SELECT index, since_snapshot = (SELECT last_value FROM cdc_log.t4_snapshot) - 2
  FROM cdc.unique_index WHERE index = 'apart_pkey'::regclass}),
	'apart_pkey|t',
	'a restored index is known since the restore');

# What belongs to a table goes with it, although pg_depend does not know.
$new->safe_psql('db1', 'DROP TABLE apart; DROP TABLE app."Orders" CASCADE');
is( $new->safe_psql(
		'db1', q{
SELECT relname FROM pg_class WHERE relnamespace = 'cdc_log'::regnamespace AND relkind IN ('r', 'S') AND relname !~ '^t[235]_';
SELECT proname FROM pg_proc WHERE proname IN ('apart_changelog', 'Orders_changelog');
SELECT table_id FROM cdc.snapshot WHERE table_id IN (1, 4);
SELECT table_id FROM cdc.log_segment WHERE table_id IN (1, 4)}),
	'', 'DROP TABLE takes everything along');
$new->safe_psql(
	'db1', q{
SELECT cdc.untrack('bag');
INSERT INTO bag VALUES ('not', 'tracked');
SELECT cdc.track('bag');
INSERT INTO bag VALUES ('is', 'tracked');
});
is($new->safe_psql('db1', 'SELECT v FROM bag_changelog(0)'),
	'is', 'a restored table can be untracked, and tracked anew');
$new->safe_psql('db1', 'DROP EXTENSION cdc_changelog CASCADE');
is( $new->safe_psql(
		'db1', q{
SELECT nspname FROM pg_namespace WHERE nspname = 'cdc_log';
SELECT proname FROM pg_proc WHERE prosrc ~ 'cdc_';
SELECT tgname FROM pg_trigger WHERE tgname ~ 'cdc_'}),
	'', 'DROP EXTENSION takes everything along');

# Over a database that has the tables already
$new->command_ok([ 'pg_restore', '-e', '--clean', '--if-exists', '-d', 'db2', "$dir/dump1" ],
	'restore with --clean over a tracked database');
same_digests('db2', $expected, 'the same again');
is(problems($new, 'db2'), '', 'and no problem');

# Data only, into a tracked table: ordinary changes
$old->command_ok([ 'pg_dump', '-Fc', '-a', '-t', 'apart', '-f', "$dir/apart", 'history' ],
	'dump the data of one table');
$newest = $new->safe_psql('db2', q{SELECT cdc.current_snapshot('apart')});
$new->safe_psql('db2', 'DELETE FROM apart');
$new->command_ok([ 'pg_restore', '-e', '-a', '-d', 'db2', "$dir/apart" ],
	'restore it into the tracked table');
is( $new->safe_psql(
		'db2',
		"SELECT id, v, _change_type FROM apart_changelog($newest + 1) ORDER BY 1"),
	"1|ONE|INSERT\n2|TWO|INSERT\n4|behind it|INSERT",
	'the restored rows are in the changelog, once');
is(problems($new, 'db2'), '', 'and no problem');

# The same without triggers: nobody sees the rows, so it must be a gap.
$newest = $new->safe_psql('db2', q{SELECT cdc.current_snapshot('apart')});
$new->safe_psql('db2', 'DELETE FROM apart');
$new->command_ok(
	[ 'pg_restore', '-e', '-a', '--disable-triggers', '-d', 'db2', "$dir/apart" ],
	'restore it with --disable-triggers');
is(sqlstate($new, 'db2', "SELECT * FROM apart_changelog($newest)"),
	'55000', 'a range over that is refused');
is( $new->safe_psql('db2', 'SELECT id, v FROM apart_changelog()'),
	"1|ONE\n2|TWO\n4|behind it", 'but the present content is told');
$newest = $new->safe_psql('db2', q{SELECT cdc.current_snapshot('apart')});
$new->safe_psql(
	'db2', q{
INSERT INTO apart VALUES (20, 'after');
SET session_replication_role = replica;
INSERT INTO apart VALUES (21, 'replica');
TRUNCATE apart;
});
is( $new->safe_psql(
		'db2',
		"SELECT id, _change_type FROM apart_changelog($newest, NULL, NULL, 'all') ORDER BY 1, 2 DESC"),
	"1|DELETE\n2|DELETE\n4|DELETE\n20|INSERT\n20|DELETE\n21|INSERT\n21|DELETE",
	'what comes after is captured once, in every role');

# One table alone, into a database without the extension, and with it
$old->command_ok([ 'pg_dump', '-Fc', '-t', 'apart', '-f', "$dir/single", 'history' ],
	'dump one table');
$new->safe_psql('postgres', 'CREATE DATABASE single');
$new->safe_psql('single', 'CREATE EXTENSION cdc_changelog; CREATE TABLE other (id int, v text)');
$new->safe_psql('single', q{SELECT cdc.track('other')});
$new->command_ok([ 'pg_restore', '-e', '-d', 'single', "$dir/single" ],
	'restore one table');
$new->safe_psql('single', q{INSERT INTO apart VALUES (30, 'not tracked')});
is(sqlstate($new, 'single', q{SELECT cdc.current_snapshot('apart')}),
	'55000', 'its triggers do nothing, it is just not tracked');
is($new->safe_psql('single', 'SELECT count(*) FROM other_changelog(0)'),
	'0', 'nor does anything get into the log of another table');
$new->safe_psql('single', q{SELECT cdc.track('apart'); INSERT INTO apart VALUES (31, 'tracked')});
is($new->safe_psql('single', 'SELECT id FROM apart_changelog(0)'),
	'31', 'it can be tracked, and each change is captured once');

# A column that has become shorter than what is in the log
$old->safe_psql('postgres', 'CREATE DATABASE shorter');
$old->safe_psql('shorter', 'CREATE EXTENSION cdc_changelog;
	CREATE TABLE short (id int, v varchar(20), w text)');
$old->safe_psql('shorter', "SELECT cdc.track('short')");
$old->safe_psql('shorter', "INSERT INTO short VALUES (1, 'much too long', 'likewise')");
$old->safe_psql('shorter', 'DELETE FROM short');
$old->safe_psql('shorter', 'ALTER TABLE short ALTER v TYPE varchar(3), ALTER w TYPE varchar(3)');
$old->safe_psql('shorter', "INSERT INTO short VALUES (2, 'abc', 'abc')");
$old->command_ok([ 'pg_dump', '-f', "$dir/shorter", 'shorter' ],
	'dump a log with values that do not fit in the table any more');
$new->safe_psql('postgres', 'CREATE DATABASE shorter');
$new->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null',
		'-d', 'shorter', '-f', "$dir/shorter" ],
	'restore it');
is($new->safe_psql('shorter', 'SELECT id, v, w FROM short_changelog() UNION ALL SELECT count(*), NULL, NULL FROM cdc.verify(\'short\')'),
	"2|abc|abc\n0||", 'the changes since are there');

# Definitions first
$old->command_ok([ 'pg_dump', '-s', '-f', "$dir/schema", 'history' ],
	'dump the definitions');
$old->command_ok([ 'pg_dump', '-a', '-f', "$dir/data", 'history' ],
	'dump the data');
foreach my $db ('schema', 'two_steps')
{
	$new->safe_psql('postgres', "CREATE DATABASE $db");
	$new->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null',
			'-d', $db, '-f', "$dir/schema" ],
		"$db: restore the definitions");
}
$new->safe_psql('schema', q{INSERT INTO apart VALUES (1, 'x')});
is(sqlstate($new, 'schema', q{SELECT cdc.current_snapshot('apart')}),
	'55000', 'without the catalog rows a table is not tracked');
is(sqlstate($new, 'schema', 'SELECT * FROM apart_changelog()'),
	'55000', 'and its function has nothing to read');

# another table gets the number that it had
$new->safe_psql(
	'schema', q{
CREATE TABLE same_layout (LIKE apart);
SELECT setval('cdc.table_number', 4, false);
DROP TABLE cdc_log.t4_1;
DROP SEQUENCE cdc_log.t4_snapshot;
SELECT cdc.track('same_layout');
INSERT INTO same_layout VALUES (1, 'secret');
});
is($new->safe_psql('schema', q{SELECT table_id FROM cdc.tracked_table}),
	'4', 'another table has the number now');
is(sqlstate($new, 'schema', 'SELECT * FROM apart_changelog()'),
	'55000', 'the function does not take it for its own');
$new->safe_psql(
	'schema', q{
SELECT cdc.track('app."Orders"'), cdc.track('apart');
INSERT INTO apart VALUES (2, 'y');
UPDATE apart SET v = v || '!';
});
is( $new->safe_psql(
		'schema',
		'SELECT id, v, _change_type FROM apart_changelog(0, NULL, NULL, $$all$$) ORDER BY _change_ordinal, id, 3 DESC'),
	"2|y|INSERT\n1|x!|INSERT\n1|x|DELETE\n2|y!|INSERT\n2|y|DELETE",
	'it can be tracked, under the same function');
is($new->safe_psql('schema', q{SELECT count(*) FROM pg_trigger WHERE tgrelid = 'apart'::regclass}),
	'5', 'with one set of triggers');

# Definitions first, then the data: that would be captured as new changes.
my ($stdout, $stderr);
$new->psql('two_steps', "\\i $dir/data", stdout => \$stdout, stderr => \$stderr);
like($stderr, qr/WARNING:  table "apart" is not tracked any more/,
	'data that comes through the triggers ends the tracking');
is($new->safe_psql('two_steps', q{SELECT relation FROM cdc.tracked_tables}),
	'app."Orders"', 'except where it came before the catalog rows');
is( $new->safe_psql('two_steps', q{SELECT digests('app."Orders"', '{id}')}),
	$old->safe_psql('history', q{SELECT digests('app."Orders"', '{id}')}),
	'there the history is the same');
is(sqlstate($new, 'two_steps', q{SELECT cdc.current_snapshot('apart')}),
	'55000', 'the others are not tracked');
is($new->safe_psql('two_steps', 'SELECT count(*) FROM apart'),
	'3', 'but have their data');
$new->safe_psql('two_steps', q{SELECT cdc.track('apart'); INSERT INTO apart VALUES (40, 'x')});
is($new->safe_psql('two_steps', 'SELECT id FROM apart_changelog(0)'),
	'40', 'and can be tracked anew');

# The same with --disable-triggers
$old->command_ok([ 'pg_dump', '-a', '--disable-triggers', '-f', "$dir/disable", 'history' ],
	'dump the data with --disable-triggers');
$new->safe_psql('postgres', 'CREATE DATABASE disable');
$new->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null',
		'-d', 'disable', '-f', "$dir/schema" ],
	'restore the definitions once more');
$new->psql('disable', "\\i $dir/disable", stdout => \$stdout, stderr => \$stderr, on_error_stop => 0);
like($stderr, qr/cannot disable triggers of "snapshot"/,
	'the triggers of the catalog tables cannot be disabled');
like($stderr, qr/WARNING:  table "apart" is not tracked any more/,
	'data over disabled triggers ends the tracking');
is($new->safe_psql('disable', 'SELECT count(*) FROM apart; SELECT relation FROM cdc.tracked_table'),
	qq{3\napp."Orders"}, 'the data is there');

# Without the last section
$new->safe_psql('postgres', 'CREATE DATABASE sections');
$new->command_ok([ 'pg_restore', '-e', '--section=pre-data', '--section=data', '-d', 'sections', "$dir/dump1" ],
	'restore without the section post-data');
is(sqlstate($new, 'sections', 'SELECT * FROM apart_changelog()'),
	'55000', 'as long as the triggers are missing nothing is told');
$new->safe_psql('sections', q{SELECT setval('cdc_log.t4_snapshot', 0, false)});
is(sqlstate($new, 'sections', 'SELECT * FROM apart_changelog()'),
	'55000', 'nor while the sequence is not set');
$new->safe_psql('sections', q{SELECT setval('cdc_log.t4_snapshot', 4)});
$new->command_ok([ 'pg_restore', '-e', '--section=post-data', '-d', 'sections', "$dir/dump1" ],
	'restore the last section');
same_digests('sections', $expected, 'then everything is as it was');

# A table that is older than its log
$old->safe_psql('history', q{CREATE TABLE apart_then AS TABLE apart; DELETE FROM apart; INSERT INTO apart VALUES (50, 'late')});
$old->command_ok([ 'pg_dump', '-Fc', '-f', "$dir/late", 'history' ], 'dump once more');
$new->safe_psql('postgres', 'CREATE DATABASE mixed');
$new->command_ok([ 'pg_restore', '-e', '-d', 'mixed', "$dir/late" ], 'restore that');
$new->safe_psql(
	'mixed', q{
ALTER TABLE apart DISABLE TRIGGER ALL;
TRUNCATE apart;
INSERT INTO apart TABLE apart_then;
DELETE FROM cdc.snapshot WHERE kind = 'g';
ALTER TABLE apart ENABLE TRIGGER ALL;
DELETE FROM cdc.snapshot WHERE kind = 'g';
});
is(sqlstate($new, 'mixed', 'SELECT * FROM apart_changelog()'),
	'XX001', 'a log that does not match its table is refused');
isnt($new->safe_psql('mixed', q{SELECT count(*) FROM cdc.verify('apart')}),
	'0', 'and cdc.verify tells the rows');

$old->stop;
$new->stop;
done_testing();
