
# Copyright (c) 2026, the cdc_changelog authors

# Pipelines come out of a dump with their definition and history, and their
# first run after that is full.
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
CREATE ROLE app;
GRANT CREATE ON SCHEMA public TO app;
SET ROLE app;
CREATE TABLE item (id int PRIMARY KEY, v text);
CREATE TABLE copy (LIKE item INCLUDING ALL);
INSERT INTO item VALUES (1, 'one'), (2, 'two');
SELECT cdc.track('item');
SELECT cdc.create_pipeline('it''s "mine"', 'copy', ARRAY['id', 'id'],
  $$ SELECT * FROM item_changelog(identifiers => '{id}', consumer => 'it''s "mine"') $$,
  filter => $$ v <> 'no' $$, max_deletes => '10', keep_runs => 7);
SELECT FROM cdc.run('it''s "mine"');
UPDATE item SET v = 'no' WHERE id = 1;
});
my $definition = 'TABLE cdc.pipeline';
my $history = 'TABLE cdc.pipeline_run';
my ($d, $h) = map { $node->safe_psql('postgres', $_) } $definition, $history;

foreach my $format ('plain', 'custom')
{
	my $file = $node->basedir . "/dump.$format";
	my $db = "restored_$format";

	$node->command_ok(
		[ 'pg_dump', '-F', $format, '-f', $file, $node->connstr('postgres') ],
		"$format dump");
	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->command_ok(
		$format eq 'plain'
		? [ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $file, $node->connstr($db) ]
		: [ 'pg_restore', '-e', '-d', $node->connstr($db), $file ],
		"$format restore");
	is($node->safe_psql($db, $definition), $d, 'the definition is there');
	is($node->safe_psql($db, $history), $h, 'the history is there');
	is( $node->safe_psql(
			$db, q{
SET ROLE app;
SELECT mode, deleted FROM cdc.run('it''s "mine"');
TABLE copy;
UPDATE item SET v = 'deux' WHERE id = 2;
SELECT mode, updated FROM cdc.run('it''s "mine"')}),
		"full|1\n2|two\nincremental|1",
		'the first run is full, the next one is not');
}
$node->stop;
done_testing();
