
# Copyright (c) 2026, the cdc_changelog authors

# pg_partman manages the partitions of a tracked table: it makes new ones,
# moves rows out of the default partition, detaches and drops old ones, and at
# last takes all of them apart.  Whatever it does, the changelog tells what the
# table is.
#
# It needs TAP to be skipped where pg_partman is not installed, and because the
# procedures commit.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->start;

my $version = $node->safe_psql('postgres',
	"SELECT default_version FROM pg_available_extensions WHERE name = 'pg_partman'"
);
if ($version eq '')
{
	$node->stop;
	plan skip_all => 'pg_partman is not installed';
}

# Roles as pg_partman's documentation says: not superusers
$node->safe_psql(
	'postgres', q{
CREATE EXTENSION cdc_changelog;
CREATE SCHEMA partman;
CREATE EXTENSION pg_partman SCHEMA partman;
CREATE ROLE partman LOGIN;
GRANT ALL ON SCHEMA partman TO partman;
GRANT ALL ON ALL TABLES IN SCHEMA partman TO partman;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA partman TO partman;
GRANT EXECUTE ON ALL PROCEDURES IN SCHEMA partman TO partman;
GRANT CREATE ON DATABASE postgres TO partman;
CREATE SCHEMA app AUTHORIZATION partman;
});

sub partman
{
	my ($sql) = @_;
	return $node->safe_psql('postgres', $sql,
		extra_params => [ '-U', 'partman' ]);
}

# version 5 knows native partitioning only
my $native = $version =~ /^4\./ ? q{p_type := 'native',} : '';
partman(
	qq{
CREATE TABLE app.ev (id bigint NOT NULL, v text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
SELECT partman.create_parent('app.ev', 'id', $native p_interval := '100', p_premake := 2);
INSERT INTO app.ev SELECT i, 'before' FROM generate_series(1, 150) i;
SELECT cdc.track('app.ev');
CREATE TABLE app.copies (s bigint, e app.ev);
CREATE TABLE app.done (s bigint);
});

# Notes the content of the table; finds it again, as the content and as what
# the changes since the noted ones say.
sub check_content
{
	my ($what, $gap) = @_;

	partman(
		q{INSERT INTO app.copies SELECT cdc.current_snapshot('app.ev'), e FROM app.ev e;
		  INSERT INTO app.done SELECT cdc.current_snapshot('app.ev')});
	is( partman(
			q{
SELECT s1.s, s2.s, count(*) FROM app.done s1 CROSS JOIN app.done s2 CROSS JOIN LATERAL (
  (SELECT (e).id, (e).v FROM app.copies WHERE s = s1.s
   UNION ALL
   SELECT id, v FROM app.ev_changelog(s1.s, s2.s) WHERE _change_type = 'INSERT')
  EXCEPT ALL
  (SELECT (e).id, (e).v FROM app.copies WHERE s = s2.s
   UNION ALL
   SELECT id, v FROM app.ev_changelog(s1.s, s2.s) WHERE _change_type = 'DELETE')) d
WHERE s1.s <= s2.s
GROUP BY 1, 2}), '', "changes: $what");
	is( partman(
			q{
SELECT s, count(*) FROM app.done CROSS JOIN LATERAL (
  (SELECT (e).id, (e).v FROM app.copies c WHERE c.s = done.s
   EXCEPT ALL SELECT id, v FROM cdc.as_of(NULL::app.ev, done.s))
  UNION ALL
  (SELECT id, v FROM cdc.as_of(NULL::app.ev, done.s)
   EXCEPT ALL SELECT (e).id, (e).v FROM app.copies c WHERE c.s = done.s)) d
GROUP BY 1}), '', "contents: $what");
	is(partman(q{SELECT * FROM cdc.verify('app.ev')}), '', "proof: $what");
	is( partman(q{SELECT * FROM cdc.check() WHERE level <> 'info'}),
		'', "nothing is wrong: $what");
	return;
}

check_content('start');

partman(
	q{INSERT INTO app.ev SELECT i, 'more' FROM generate_series(151, 450) i;
	  UPDATE app.ev SET v = 'changed' WHERE id % 40 = 0});
check_content('rows in the default partition');

cmp_ok(partman('SELECT count(*) FROM ONLY app.ev_default'),
	'>', 0, 'there are some');
partman("SELECT partman.partition_data_id('app.ev', p_batch_count := 10)");
is(partman('SELECT count(*) FROM ONLY app.ev_default'),
	'0', 'rows were moved out of the default partition');
check_content('rows moved out of the default partition');

partman(
	q{INSERT INTO app.ev SELECT i, 'maintained' FROM generate_series(451, 490) i;
	  SELECT partman.run_maintenance('app.ev')});
check_content('new partitions');
partman(
	q{INSERT INTO app.ev SELECT i, 'next' FROM generate_series(491, 640) i;
	  DELETE FROM app.ev WHERE id % 33 = 0});
check_content('rows in new partitions');

# retention: first detached, then dropped
my $before = partman('SELECT count(*) FROM app.ev');
partman(
	q{UPDATE partman.part_config SET retention = '400', retention_keep_table = true WHERE parent_table = 'app.ev';
	  SELECT partman.run_maintenance('app.ev')});
my $after = partman('SELECT count(*) FROM app.ev');
cmp_ok($after, '<', $before, 'old partitions were detached');
check_content('old partitions detached');
partman(
	q{UPDATE partman.part_config SET retention = '200', retention_keep_table = false WHERE parent_table = 'app.ev';
	  INSERT INTO app.ev SELECT i, 'last' FROM generate_series(641, 700) i;
	  SELECT partman.run_maintenance('app.ev')});
cmp_ok(partman('SELECT count(*) FROM app.ev'),
	'<', $after + 60, 'old partitions were dropped');
check_content('old partitions dropped');

# all partitions are undone, by a procedure that commits
partman(
	q{CREATE TABLE app.target (LIKE app.ev);
	  CALL partman.undo_partition_proc('app.ev', p_target_table := 'app.target', p_keep_table := false, p_quiet := true)});
is(partman('SELECT count(*) FROM app.ev'), '0', 'all partitions were undone');
check_content('all partitions undone');
is( partman(
		q{SELECT count(*) FROM cdc.snapshots('app.ev') WHERE kind = 'gap'}),
	'0',
	'there was no gap');

$node->stop;

done_testing();
