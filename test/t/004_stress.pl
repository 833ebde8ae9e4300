
# Copyright (c) 2026, the cdc_changelog authors

# Many writers of single rows: tracking must not make them fail, wait for each
# other or share a snapshot.
#
# It needs TAP for pgbench.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = $ENV{CDC_STRESS_SECONDS} || ($ENV{CDC_FULL} ? 120 : 10);

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', 'log_statement = none');
$node->start;

$node->safe_psql(
	'postgres', q{
CREATE EXTENSION cdc_changelog;
CREATE TABLE t (id int PRIMARY KEY, v int);
INSERT INTO t SELECT i, 0 FROM generate_series(0, 99) i;
CREATE TABLE r (id bigserial PRIMARY KEY, v int);
SELECT cdc.track('t');
SELECT cdc.track('r');
});

# Each client updates a row of its own.
$node->pgbench(
	"--no-vacuum --client=8 --jobs=2 --time=$seconds",
	0,
	[
		qr/number of failed transactions: 0/,
		qr/number of transactions actually processed: [1-9]/
	],
	[qr/^$/],
	'8 writers of single rows',
	{ '004_update' => 'UPDATE t SET v = v + 1 WHERE id = :client_id;' });

is( $node->safe_psql(
		'postgres', q{
SELECT count(*) = (SELECT sum(v) FROM t), count(*) = count(DISTINCT snapshot_id)
  FROM cdc.snapshots('t') WHERE kind = 'changes' AND inserted = 1 AND deleted = 1}
	),
	't|t',
	'each transaction has a snapshot of its own');

is( $node->safe_psql(
		'postgres', q{
SELECT count(*), count(*) FILTER (WHERE f.v IS DISTINCT FROM t.v)
  FROM t JOIN t_changelog(0, NULL, ARRAY['id']) f USING (id)}),
	'8|0',
	'the last changes are what the table says');

# Serializable writers that have nothing to do with each other
$node->pgbench(
	'--no-vacuum --client=8 --jobs=2 --time=' . int($seconds / 2),
	0,
	[
		qr/number of failed transactions: 0/,
		qr/number of transactions actually processed: [1-9]/
	],
	[qr/^$/],
	'8 serializable writers of single rows',
	{
		'004_serializable' => q{
BEGIN ISOLATION LEVEL SERIALIZABLE;
INSERT INTO r (v) VALUES (:client_id);
COMMIT;
}
	});

is( $node->safe_psql(
		'postgres', q{
SELECT (SELECT count(*) FROM r) = (SELECT count(*) FROM r_changelog(0)),
       (SELECT count(*) FROM r) = (SELECT count(DISTINCT _change_ordinal) FROM r_changelog(0))}
	),
	't|t',
	'each of them has a snapshot of its own, too');

$node->stop;
done_testing();
