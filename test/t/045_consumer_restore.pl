
# Copyright (c) 2026, the cdc_changelog authors

# A consumer that comes out of a dump, or meets a source that is older than its
# position, reads everything at its first run, and its target is right then.
#
# It needs TAP because it calls pg_dump.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->start;
$node->safe_psql(
	'postgres', q{
CREATE EXTENSION cdc_changelog;
CREATE TABLE item (id int PRIMARY KEY, v text);
CREATE TABLE copy (LIKE item INCLUDING ALL);
INSERT INTO item VALUES (1, 'one'), (2, 'two');
SELECT cdc.track('item');
});
my $run = q{
SELECT FROM cdc.apply_changelog('copy',
  $$ SELECT * FROM item_changelog(identifiers => '{id}', consumer => 'c') $$, '{id}', consumer => 'c');
SELECT last_mode FROM cdc.consumers;
};
my $differs = q{
SELECT count(*) FROM ((TABLE item EXCEPT ALL TABLE copy) UNION ALL (TABLE copy EXCEPT ALL TABLE item)) d};
my $archive = $node->basedir . '/dump';
my $source = $node->basedir . '/source';

# a run whose result is right
sub runs
{
	my ($db, $mode, $what) = @_;

	is($node->safe_psql($db, $run . $differs), "$mode\n0", $what);
}

runs('postgres', 'full', 'first run');
$node->safe_psql('postgres', q{UPDATE item SET v = 'uno' WHERE id = 1});
runs('postgres', 'incremental', 'second run');
$node->safe_psql('postgres', q{INSERT INTO item VALUES (3, 'three')});
$node->command_ok([ 'pg_dump', '-Fc', '-f', $archive, $node->connstr('postgres') ], 'dump');

# the whole database, elsewhere
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->command_ok([ 'pg_restore', '-e', '-d', $node->connstr('restored'), $archive ], 'restore');
is($node->safe_psql('restored', q{SELECT snapshot FROM cdc.position('c')}), '1', 'the position is there');
is($node->safe_psql('restored', 'SELECT fingerprint FROM cdc.consumer_target'),
	'0', 'the target is not taken for the one that was dumped');

# what the target has is not what the consumer has put there
$node->safe_psql('restored', q{DELETE FROM copy WHERE id = 1; INSERT INTO copy VALUES (9, 'nine')});
runs('restored', 'full', 'first run after the restore');
$node->safe_psql('restored', q{DELETE FROM item WHERE id = 2});
runs('restored', 'incremental', 'second run after the restore');

# only the data of the source, from an older dump, into the table that is tracked
$node->command_ok(
	[ 'pg_dump', '-Fc', '-t', 'item', '-f', $source, $node->connstr('postgres') ], 'dump of the source');
$node->safe_psql('postgres', q{UPDATE item SET v = v || '!'});
runs('postgres', 'incremental', 'run after the dump');
$node->safe_psql('postgres', 'TRUNCATE item');
$node->command_ok(
	[ 'pg_restore', '-e', '-a', '-t', 'item', '-d', $node->connstr('postgres'), $source ], 'restore of its data');
runs('postgres', 'incremental', 'run after the restore of data');

# the table is made anew by the restore
$node->safe_psql('postgres', q{INSERT INTO item VALUES (4, 'four')});
runs('postgres', 'incremental', 'run before the next restore');
$node->safe_psql('postgres', 'DROP TABLE item');
$node->command_ok(
	[ 'pg_restore', '-e', '-t', 'item', '-d', $node->connstr('postgres'), $source ], 'restore of the table');
isnt($node->psql('postgres', $run), 0, 'no run while it is not tracked');
$node->safe_psql('postgres', q{SELECT cdc.track('item')});
runs('postgres', 'full', 'run after the restore of the table');

# an older state of the whole database over the newer one
$node->safe_psql('postgres', q{UPDATE item SET v = 'x'});
runs('postgres', 'incremental', 'newer');
$node->command_ok(
	[ 'pg_restore', '-e', '--clean', '--if-exists', '-d', $node->connstr('postgres'), $archive ],
	'restore over it');
runs('postgres', 'full', 'first run');
$node->safe_psql('postgres', q{UPDATE item SET v = 'y' WHERE id = 3});
runs('postgres', 'incremental', 'second run');

$node->stop;
done_testing();
