
# Copyright (c) 2026, the cdc_changelog authors

# Writers and a consumer at work together, for a while: nothing may be lost,
# doubled or changed between what the consumer got range by range, one reading
# of the whole afterwards, and the tables.
#
# A second consumer does the same with the largest snapshot number it sees in
# place of the horizon.  It must lose rows, or else this test could not find
# the fault that the horizon is there to prevent.  For certainty one writer is
# held inside its commit, after it has drawn its number and before others see
# its changes: by waiting for a synchronous standby that does not exist.
#
# It needs TAP because it takes pgbench, background sessions and a server with
# settings of its own.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = $ENV{CDC_SOAK_SECONDS} || ($ENV{CDC_FULL} ? 600 : 30);
my $clients = 12;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;

# Real flushes, and a pause before them, make commits long enough for the race.
# Waiting for a standby takes a server that could have one.
$node->append_conf(
	'postgresql.conf', q{
fsync = on
commit_delay = 1000
commit_siblings = 2
synchronous_commit = local
synchronous_standby_names = 'nobody'
wal_level = replica
max_wal_senders = 2
shared_buffers = 64MB
max_wal_size = 1GB
log_statement = none
deadlock_timeout = 50ms
cdc_changelog.horizon_timeout = 100ms
});
$node->start;

$node->safe_psql(
	'postgres', q{
CREATE EXTENSION cdc_changelog;

CREATE TABLE item (id bigint PRIMARY KEY, v int, note text);
CREATE TABLE bag (k int, v int);
CREATE SEQUENCE new_id START 1000001;
INSERT INTO item SELECT i, 0, 'start' FROM generate_series(1, 1000) i;
INSERT INTO bag SELECT i % 10, i % 3 FROM generate_series(1, 100) i;
CREATE TABLE item_start AS TABLE item;
CREATE TABLE bag_start AS TABLE bag;
CREATE TABLE item_copy (LIKE item INCLUDING ALL);
INSERT INTO item_copy TABLE item;

SELECT cdc.track('item');
SELECT cdc.track('bag');

CREATE TABLE item_seen AS SELECT * FROM item_changelog(0, 0);
CREATE TABLE bag_seen AS SELECT * FROM bag_changelog(0, 0);
CREATE TABLE progress (consumer text, upto bigint, rounds bigint);
INSERT INTO progress VALUES ('horizon', 0, 0), ('max', 0, 0);
CREATE TABLE control (stop boolean);
INSERT INTO control VALUES (false);

-- What a consumer gets that knows nothing of the horizon: log rows by snapshot
DO $do$
BEGIN
  EXECUTE (SELECT format(
    'CREATE VIEW item_log AS
       SELECT s.snapshot_id, sign(l._cdc_tx) AS sign, l.c1, l.c2, l.c3
         FROM %s l JOIN cdc.snapshot s ON s.table_id = %s AND s.tx = abs(l._cdc_tx)',
    log_table, table_id)
    FROM cdc.tracked_table WHERE relation = 'item'::regclass);
END $do$;
CREATE TABLE item_log_seen AS SELECT * FROM item_log LIMIT 0;

-- A consumer: reads from where it was to where the watermark says, again and
-- again until it is told to stop, and once more then.
CREATE PROCEDURE consume(watermark text) LANGUAGE plpgsql AS $$
DECLARE
  item_a bigint := 0;
  item_b bigint;
  bag_a bigint := 0;
  bag_b bigint;
  stop boolean;
BEGIN
  LOOP
    stop := (SELECT control.stop FROM control);
    IF watermark = 'horizon' THEN
      item_b := cdc.current_snapshot('item');
      bag_b := cdc.current_snapshot('bag');
      INSERT INTO item_seen SELECT * FROM item_changelog(item_a, item_b, ARRAY['id'], 'all');
      INSERT INTO bag_seen SELECT * FROM bag_changelog(bag_a, bag_b, NULL, 'all');
      PERFORM cdc.apply_changelog('item_copy',
        format('SELECT * FROM item_changelog(%s, %s, ARRAY[''id''])', item_a, item_b),
        ARRAY['id']);
    ELSE
      SELECT max(snapshot_id) INTO item_b
        FROM cdc.snapshot JOIN cdc.tracked_table USING (table_id)
       WHERE relation = 'item'::regclass;
      INSERT INTO item_log_seen
        SELECT * FROM item_log WHERE snapshot_id > item_a AND snapshot_id <= item_b;
    END IF;
    UPDATE progress SET upto = item_b, rounds = rounds + 1 WHERE consumer = watermark;
    COMMIT;
    item_a := item_b;
    bag_a := bag_b;
    EXIT WHEN stop;
  END LOOP;
END $$;
});

# The writers.  Transactions take several rows in any order, so deadlocks are
# to be expected; pgbench tries again.
my %scripts = (
	upsert => [
		5, q{
\set a random(1, 1000)
\set b random(1, 1000)
\set n random(0, 6)
BEGIN;
INSERT INTO item SELECT i, :n, 'upsert' FROM generate_series(:a, :a + :n) i
  ON CONFLICT (id) DO UPDATE SET v = item.v + 1, note = 'conflict';
UPDATE item SET v = v + 1 WHERE id BETWEEN :b AND :b + :n;
INSERT INTO bag SELECT :a % 10, :n FROM generate_series(1, :n);
COMMIT;
}
	],
	move => [
		3, q{
\set a random(1, 1000)
\set k random(0, 9)
\set n random(1, 5)
BEGIN;
UPDATE item SET id = nextval('new_id'), note = 'moved' WHERE id BETWEEN :a AND :a + 1;
DELETE FROM item WHERE id IN
  (SELECT id FROM item WHERE id > 1000000 ORDER BY id LIMIT :n FOR UPDATE SKIP LOCKED);
DELETE FROM bag WHERE ctid = ANY (ARRAY
  (SELECT ctid FROM bag WHERE k = :k LIMIT :n FOR UPDATE SKIP LOCKED));
COMMIT;
}
	],
	savepoint => [
		3, q{
\set a random(1, 1000)
\set b random(1, 1000)
\set n random(1, 5)
BEGIN;
UPDATE item SET v = v + 10 WHERE id = :a;
SAVEPOINT one;
DELETE FROM item WHERE id BETWEEN :b AND :b + :n;
INSERT INTO bag VALUES (:a % 10, -1);
ROLLBACK TO SAVEPOINT one;
UPDATE bag SET v = v + 1 WHERE ctid = ANY (ARRAY
  (SELECT ctid FROM bag WHERE k = :a % 10 LIMIT :n FOR UPDATE SKIP LOCKED));
SAVEPOINT two;
DELETE FROM item WHERE id = :b;
INSERT INTO item VALUES (:b, :n, 'again') ON CONFLICT DO NOTHING;
RELEASE SAVEPOINT two;
COMMIT;
}
	],
	undo => [
		1, q{
\set a random(1, 1000)
BEGIN;
DELETE FROM item WHERE id BETWEEN :a AND :a + 10;
INSERT INTO bag SELECT 1, 1 FROM generate_series(1, 20);
ROLLBACK;
}
	],
	one => [
		3, q{
\set a random(1, 1000)
UPDATE item SET v = v + 1 WHERE id = :a;
}
	]);

my $dir = PostgreSQL::Test::Utils::tempdir;
my @files;
foreach my $name (sort keys %scripts)
{
	my ($weight, $script) = @{ $scripts{$name} };
	append_to_file("$dir/$name.sql", $script);
	push @files, '-f', "$dir/$name.sql\@$weight";
}

sub start_program
{
	my ($out, @cmd) = @_;
	my $timeout =
	  IPC::Run::timeout($seconds + $PostgreSQL::Test::Utils::timeout_default);

	return IPC::Run::start(
		[ @cmd, '-h', $node->host, '-p', $node->port, 'postgres' ],
		'<', \undef, '>', $out, '2>&1', $timeout);
}

my %output;
my $consumer = start_program(\$output{horizon}, 'psql', '-XqAt', '-v',
	'ON_ERROR_STOP=1', '-c', "CALL consume('horizon')");
my $max_consumer = start_program(\$output{max}, 'psql', '-XqAt', '-v',
	'ON_ERROR_STOP=1', '-c', "CALL consume('max')");
my $writers =
  start_program(\$output{writers}, 'pgbench', '-n', '-c', $clients, '-j', 2,
	'-T', $seconds, '--max-tries=1000', @files);

# Hold a writer inside its commit until the consumer without horizon has gone
# past it.
ok( $node->poll_query_until(
		'postgres', "SELECT min(rounds) > 0 AND min(upto) > 0 FROM progress"),
	'both consumers are at work');
my $held = $node->background_psql('postgres', on_error_stop => 0);
$held->query_until(
	qr/start/, q{\echo start
SET synchronous_commit = on;
INSERT INTO item SELECT -i, 0, 'held' FROM generate_series(1, 3) i;
});
ok( $node->poll_query_until(
		'postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"),
	'a writer is held inside its commit');
my $drawn = $node->safe_psql(
	'postgres', q{
SELECT pg_sequence_last_value(snapshot_sequence) FROM cdc.tracked_table
 WHERE relation = 'item'::regclass});
ok( $node->poll_query_until(
		'postgres',
		"SELECT upto > $drawn FROM progress WHERE consumer = 'max'"),
	'the consumer without horizon has gone past it');
# The second round to end from here on began when the writer was held already.
my $round = $node->safe_psql('postgres',
	"SELECT rounds FROM progress WHERE consumer = 'horizon'");
ok( $node->poll_query_until(
		'postgres',
		"SELECT rounds >= $round + 2 FROM progress WHERE consumer = 'horizon'"),
	'the consumer with horizon goes on');
is( $node->safe_psql(
		'postgres',
		"SELECT upto < $drawn FROM progress WHERE consumer = 'horizon'"),
	't',
	'it has not gone past the held writer');
$node->safe_psql('postgres',
	"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
);
$held->quit;

# Until the writers are done
ok($writers->finish, 'the writers met no error') or diag($output{writers});
like(
	$output{writers},
	qr/number of failed transactions: 0/,
	'no transaction failed');
note $1 if $output{writers} =~ /^(tps = .*)$/m;

$node->safe_psql('postgres', 'UPDATE control SET stop = true');
ok($consumer->finish, 'the consumer met no error') or diag($output{horizon});
ok($max_consumer->finish, 'the consumer without horizon met no error')
  or diag($output{max});
like($output{horizon}, qr/held back/,
	'the consumer was told that it is held back');

note $node->safe_psql('postgres',
	"SELECT format('%s: %s rounds up to snapshot %s', consumer, rounds, upto) FROM progress"
);
note $node->safe_psql(
	'postgres', q{
SELECT format('%s changes of item, %s of bag',
  (SELECT count(*) FROM item_seen), (SELECT count(*) FROM bag_seen))});

# Number of rows that only one of two relations has
sub differences
{
	my ($left, $right) = @_;

	return $node->safe_psql(
		'postgres', qq{
WITH l AS MATERIALIZED ($left), r AS MATERIALIZED ($right)
SELECT (SELECT count(*) FROM (TABLE l EXCEPT ALL TABLE r) d),
       (SELECT count(*) FROM (TABLE r EXCEPT ALL TABLE l) d)});
}

is(differences('TABLE item', 'TABLE item_copy'),
	'0|0', 'the target equals the source');
is( differences(
		q{SELECT * FROM item_changelog(0, NULL, ARRAY['id'], 'all')},
		'TABLE item_seen'),
	'0|0',
	'table with a key: no change lost, none doubled');
is( differences(
		q{SELECT * FROM bag_changelog(0, NULL, NULL, 'all')},
		'TABLE bag_seen'),
	'0|0',
	'table without a key: no change lost, none doubled');
foreach my $mode ('net', 'all')
{
	is( differences(
			qq{TABLE item_start UNION ALL
SELECT id, v, note FROM item_changelog(0, NULL, NULL, '$mode') WHERE _change_type = 'INSERT'},
			qq{TABLE item UNION ALL
SELECT id, v, note FROM item_changelog(0, NULL, NULL, '$mode') WHERE _change_type = 'DELETE'}
		),
		'0|0',
		"table with a key: start content and $mode changes give the content");
	is( differences(
			qq{TABLE bag_start UNION ALL
SELECT k, v FROM bag_changelog(0, NULL, NULL, '$mode') WHERE _change_type = 'INSERT'},
			qq{TABLE bag UNION ALL
SELECT k, v FROM bag_changelog(0, NULL, NULL, '$mode') WHERE _change_type = 'DELETE'}
		),
		'0|0',
		"table without a key: start content and $mode changes give the content"
	);
}

# The counter-proof
my ($lost, $doubled) =
  split(/\|/, differences('TABLE item_log', 'TABLE item_log_seen'));
cmp_ok($lost, '>=', 3, 'without the horizon, rows are lost');
note "without the horizon, $lost log rows were lost";
is($doubled, 0, 'without the horizon, none is doubled');

$node->stop;
done_testing();
