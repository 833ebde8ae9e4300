
# Copyright (c) 2026, the cdc_changelog authors

# One cut through several tables: every transaction that changes two tables
# leaves the sum over both at 0, so the sum over what consumers have made of
# them must be 0 whenever they have made it, under load and also while a
# prepared transaction that has changed both waits for its end.
#
# It needs TAP because it takes pgbench and background sessions.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = $ENV{CDC_CUT_SECONDS} || ($ENV{CDC_FULL} ? 120 : 10);

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;

# real flushes make commits long enough for the race
$node->append_conf(
	'postgresql.conf', q{
fsync = on
commit_delay = 500
commit_siblings = 2
max_prepared_transactions = 5
cdc_changelog.horizon_timeout = 20ms
});
$node->start;

$node->safe_psql(
	'postgres', q{
CREATE EXTENSION cdc_changelog;
CREATE TABLE a (id int PRIMARY KEY, v int);
CREATE TABLE b (id int PRIMARY KEY, v int);
INSERT INTO a SELECT i, 0 FROM generate_series(1, 1000) i;
INSERT INTO b TABLE a;
SELECT cdc.track('a'), cdc.track('b');
CREATE TABLE a_copy (id int PRIMARY KEY, v int);
CREATE TABLE b_copy (id int PRIMARY KEY, v int);
CREATE TABLE joint (side text, id int, v int, PRIMARY KEY (side, id));
});

# Transfers between the tables in both orders, and inside one of them
my $transfer = $node->basedir . '/transfer.sql';
append_to_file(
	$transfer, q{
\set x random(1, 100)
\set i random(1, 900)
\set j random(1, 900)
\set o random(1, 2)
BEGIN;
\if :o = 1
UPDATE a SET v = v - :x WHERE id = :i;
UPDATE b SET v = v + :x WHERE id = :j;
\else
UPDATE b SET v = v + :x WHERE id = :j;
UPDATE a SET v = v - :x WHERE id = :i;
\endif
COMMIT;
});
my $inside = $node->basedir . '/inside.sql';
append_to_file(
	$inside, q{
\set i random(1, 450)
BEGIN;
UPDATE b SET v = v + 1 WHERE id = :i * 2;
UPDATE b SET v = v - 1 WHERE id = :i * 2 - 1;
COMMIT;
});

my ($out, $err) = ('', '');
my $load = IPC::Run::start(
	[
		'pgbench', '-n', '-c', '6', '-j', '2', '-T', 36000,
		'--max-tries=1000', '-f', "$transfer\@3", '-f', "$inside\@1",
		$node->connstr('postgres')
	],
	'>', \$out, '2>', \$err);

# Two targets of one consumer in one transaction, and one of two tables
my %apply = (
	'a_copy' => q{SELECT * FROM a_changelog(identifiers => '{id}', consumer => 'pair')},
	'b_copy' => q{SELECT * FROM b_changelog(identifiers => '{id}', consumer => 'pair')},
	'joint' => q{
SELECT 'a' AS side, id, v, _change_type FROM a_changelog(identifiers => '{id}', consumer => 'joint')
UNION ALL
SELECT 'b', id, v, _change_type FROM b_changelog(identifiers => '{id}', consumer => 'joint')});

sub apply
{
	my ($target, $keys, $consumer) = @_;
	return "SELECT * FROM cdc.apply_changelog('$target', \$q\$$apply{$target}\$q\$, '$keys', consumer => '$consumer');";
}

my $round = join("\n",
	'SET client_min_messages = warning;',
	'BEGIN;',
	apply('a_copy', '{id}', 'pair'),
	apply('b_copy', '{id}', 'pair'),
	'COMMIT;',
	apply('joint', '{side, id}', 'joint'));
my $sums = q{
SELECT 'pair', sum(v) FROM (TABLE a_copy UNION ALL TABLE b_copy) x HAVING sum(v) <> 0
UNION ALL
SELECT 'joint', sum(v) FROM joint HAVING sum(v) <> 0};

# For so many seconds, and so many rounds that one prepared transaction is
# committed and one rolled back
my ($rounds, $pending, $wrong) = (0, 0, '');
my $end = time() + $seconds;
while ((time() < $end || $rounds < 20) && $wrong eq '')
{
	# half of the time a prepared transaction holds numbers of both tables
	if ($rounds % 20 == 5 || $rounds % 20 == 15)
	{
		my $order = $rounds % 20 == 5 ? [ 'a', 'b' ] : [ 'b', 'a' ];
		$node->safe_psql('postgres',
			"BEGIN; UPDATE $order->[0] SET v = v - 7 WHERE id = 950;
			UPDATE $order->[1] SET v = v + 7 WHERE id = 950;
			PREPARE TRANSACTION 'pending'");
		$pending = 1;
	}
	$node->safe_psql('postgres', $round);
	$wrong = $node->safe_psql('postgres', $sums);
	if ($pending && $rounds % 10 == 9)
	{
		$node->safe_psql('postgres',
			($rounds % 20 == 9 ? 'COMMIT' : 'ROLLBACK') . " PREPARED 'pending'");
		$pending = 0;
	}
	$rounds++;
}
$node->safe_psql('postgres', "COMMIT PREPARED 'pending'") if $pending;
is($wrong, '', "every one of $rounds cuts is consistent");

# pgbench takes this for the end of its time
$load->signal('ALRM');
$load->finish;
is($load->result(0), 0, 'the writers had no error') or diag($err);

# at rest, nothing is left behind
$node->safe_psql('postgres', $round);
is( $node->safe_psql(
		'postgres', q{
SELECT count(*) FROM (
  ((SELECT 'a' AS side, id, v FROM a UNION ALL SELECT 'b', id, v FROM b) EXCEPT TABLE joint)
  UNION ALL (SELECT 'a', * FROM (TABLE a EXCEPT TABLE a_copy) y)
  UNION ALL (SELECT 'b', * FROM (TABLE b EXCEPT TABLE b_copy) z)) x}),
	'0',
	'all changes have arrived');
is( $node->safe_psql('postgres',
		q{SELECT string_agg(last_mode, ' ' ORDER BY consumer) FROM cdc.consumer}),
	'incremental incremental',
	'without building anything anew');

$node->stop;
done_testing();
