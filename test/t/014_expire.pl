
# Copyright (c) 2026, the cdc_changelog authors

# Expiry at full speed beside writers and a consumer, with segments so small
# that many are started and dropped.  Nothing may be lost, and nobody may fail.
#
# The expirer keeps what the consumer has not read yet.  It needs TAP because it
# takes pgbench, background sessions and settings of its own.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = $ENV{CDC_FULL} ? 120 : 10;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
max_prepared_transactions = 10
shared_buffers = 64MB
log_statement = none
deadlock_timeout = 50ms
cdc_changelog.segment_size = 64kB
});
$node->start;

$node->safe_psql(
	'postgres', q{
CREATE EXTENSION cdc_changelog;
CREATE TABLE item (id int PRIMARY KEY, v int, note text);
INSERT INTO item SELECT i, 0, 'start' FROM generate_series(1, 5000) i;
CREATE TABLE item_copy (LIKE item INCLUDING ALL);
INSERT INTO item_copy TABLE item;
SELECT cdc.track('item');
CREATE TABLE progress (upto bigint, rounds bigint);
INSERT INTO progress VALUES (0, 0);
CREATE TABLE expired (removed bigint, dropped bigint, freed bigint, rounds bigint);
INSERT INTO expired VALUES (0, 0, 0, 0);
CREATE TABLE control (stop boolean);
INSERT INTO control VALUES (false);

CREATE PROCEDURE consume() LANGUAGE plpgsql AS $$
DECLARE
  a bigint := 0;
  b bigint;
  stop boolean;
BEGIN
  LOOP
    stop := (SELECT control.stop FROM control);
    b := cdc.current_snapshot('item');
    PERFORM cdc.apply_changelog('item_copy',
      format('SELECT * FROM item_changelog(%s, %s, ARRAY[''id''])', a, b), ARRAY['id']);
    UPDATE progress SET upto = b, rounds = rounds + 1;
    COMMIT;
    a := b;
    EXIT WHEN stop;
  END LOOP;
END $$;

-- keeps the position of the consumer
CREATE PROCEDURE expire() LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN
  WHILE NOT (SELECT stop FROM control) LOOP
    SELECT * INTO r FROM cdc.expire_snapshots('item', older_than =>
      (SELECT s.committed_at FROM cdc.snapshots('item') s JOIN progress ON snapshot_id = upto));
    COMMIT;
    UPDATE expired SET removed = removed + r.snapshots_removed, dropped = dropped + r.segments_dropped,
      freed = freed + r.bytes_freed, rounds = rounds + 1;
    COMMIT;
  END LOOP;
END $$;
});

# Rows are taken in the order of their keys, so there are no deadlocks.
my %scripts = (
	one => [
		6, q{
\set a random(1, 5000)
UPDATE item SET v = v + 1 WHERE id = :a;
}
	],
	bulk => [
		1, q{
\set a random(1, 3000)
BEGIN;
SELECT id FROM item WHERE id BETWEEN :a AND :a + 1500 ORDER BY id FOR UPDATE;
UPDATE item SET v = v + 1, note = 'bulk' WHERE id BETWEEN :a AND :a + 1500;
COMMIT;
}
	],
	savepoint => [
		2, q{
\set a random(1, 3000)
BEGIN;
UPDATE item SET note = 'top' WHERE id = :a;
SAVEPOINT one;
INSERT INTO item SELECT 100000 + :client_id * 10000 + i, :a, 'undone' FROM generate_series(1, 1200) i;
ROLLBACK TO SAVEPOINT one;
INSERT INTO item VALUES (200000 + :client_id, :a, 'sub') ON CONFLICT (id) DO UPDATE SET v = :a;
COMMIT;
}
	],
	undo => [
		1, q{
BEGIN;
INSERT INTO item SELECT 300000 + :client_id * 10000 + i, 0, 'undone' FROM generate_series(1, 1200) i;
ROLLBACK;
}
	],
	prepared => [
		1,
		"\\set a random(1, 5000)\n" . join(
			'',
			# pgbench replaces no variables within quotes
			map {
				qq{\\if :client_id = $_
BEGIN;
UPDATE item SET v = v + 1, note = 'prepared' WHERE id = :a;
PREPARE TRANSACTION 'p$_';
COMMIT PREPARED 'p$_';
\\endif
}
			} 0 .. 5)
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
my @psql = ('psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-c');
my $consumer = start_program(\$output{consumer}, @psql, 'CALL consume()');
my $expirer = start_program(\$output{expirer}, @psql, 'CALL expire()');
my $writers =
  start_program(\$output{writers}, 'pgbench', '-n', '-c', 6, '-j', 2, '-T',
	36000, @files);

# For so many seconds, and until enough was dropped; pgbench takes the signal for
# the end of its time.
ok( $node->poll_query_until(
		'postgres',
		"SELECT clock_timestamp() > pg_postmaster_start_time() + interval '$seconds s' AND dropped > 3 FROM expired"
	),
	'segments are dropped meanwhile');
$writers->signal('ALRM');
ok($writers->finish, 'the writers met no error') or diag($output{writers});
like(
	$output{writers},
	qr/number of failed transactions: 0/,
	'no transaction failed');
note $1 if $output{writers} =~ /^(tps = .*)$/m;
$node->safe_psql('postgres', 'UPDATE control SET stop = true');
ok($consumer->finish, 'the consumer met no error') or diag($output{consumer});
ok($expirer->finish, 'the expirer met no error') or diag($output{expirer});

my ($rounds, $removed, $dropped, $freed) = split(/\|/,
	$node->safe_psql('postgres', 'SELECT rounds, removed, dropped, freed FROM expired'));
note "$rounds calls removed $removed snapshots and $dropped segments of $freed bytes";
is( $node->safe_psql(
		'postgres', q{
SELECT (SELECT count(*) FROM (TABLE item EXCEPT TABLE item_copy) d),
       (SELECT count(*) FROM (TABLE item_copy EXCEPT TABLE item) d)}),
	'0|0',
	'the target equals the source');
is($node->safe_psql('postgres', q{SELECT * FROM cdc.verify('item')}),
	'', 'the log is proven');
is( $node->safe_psql(
		'postgres', q{
WITH c AS MATERIALIZED (SELECT id, v, note FROM item_changelog())
SELECT (SELECT count(*) FROM (TABLE item EXCEPT TABLE c) d),
       (SELECT count(*) FROM (TABLE c EXCEPT TABLE item) d)}),
	'0|0',
	'the oldest content and the changes give the table');

# What is left can be given back, too.  A segment that autovacuum is just looking
# at is left to the next call.
my $left = '';
for (my $try = 0; $try < 100 && $left ne '1|1|1'; $try++)
{
	$node->safe_psql('postgres', 'CALL cdc.expire_all(retain_last => 1)');
	$left = $node->safe_psql(
		'postgres', q{
SELECT (SELECT count(*) FROM cdc.log_segment),
       (SELECT count(*) FROM cdc.snapshot),
       (SELECT count(*) FROM pg_class
         WHERE relnamespace = 'cdc_log'::regnamespace AND relkind = 'r')});
}
is($left, '1|1|1', 'one segment and one snapshot are left');
is($node->safe_psql('postgres', q{SELECT * FROM cdc.verify('item')}),
	'', 'the log is still proven');
is($node->safe_psql('postgres', 'SELECT * FROM cdc.check()'),
	'', 'nothing is left behind');

$node->stop;
done_testing();
