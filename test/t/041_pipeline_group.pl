
# Copyright (c) 2026, the cdc_changelog authors

# Groups of pipelines under load: parent and child tables with a foreign key
# between them are written by several sessions, in transactions that move
# children from parents that go to parents that come.  Every run of the group
# must work, and leave targets that are the sources at one cut.
#
# It needs TAP because of the load beside it.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $runs = $ENV{CDC_GROUP_RUNS} || ($ENV{CDC_FULL} ? 300 : 40);

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "deadlock_timeout = 50ms\nfsync = off\n");
$node->start;

$node->safe_psql(
	'postgres', q{
CREATE EXTENSION cdc_changelog;
CREATE SEQUENCE new_parent START 1001;
CREATE SEQUENCE new_child START 10001;
CREATE TABLE parent (id bigint PRIMARY KEY, v int);
CREATE TABLE child (id bigint PRIMARY KEY, parent_id bigint NOT NULL REFERENCES parent, v int);
CREATE INDEX ON child (parent_id);
INSERT INTO parent SELECT i, 0 FROM generate_series(1, 50) i;
INSERT INTO child SELECT i, 1 + i % 50, 0 FROM generate_series(1, 500) i;
SELECT cdc.track('parent'), cdc.track('child');

CREATE TABLE parent_target (id bigint PRIMARY KEY, v int);
CREATE TABLE child_target (id bigint PRIMARY KEY,
  parent_id bigint NOT NULL REFERENCES parent_target, v int);
CREATE INDEX ON child_target (parent_id);
SELECT cdc.create_pipeline('parent', 'parent_target', '{id}',
         $$ SELECT * FROM parent_changelog(identifiers => '{id}', consumer => 'parent') $$),
       cdc.create_pipeline('child', 'child_target', '{id}',
         $$ SELECT * FROM child_changelog(identifiers => '{id}', consumer => 'child') $$);

-- a parent goes, its children move to a new one, some of them go and come
CREATE PROCEDURE move(n int) LANGUAGE plpgsql AS $$
DECLARE
  old bigint;
  new bigint := nextval('new_parent');
BEGIN
  SELECT id INTO old FROM parent ORDER BY id OFFSET n LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF old IS NULL THEN RETURN; END IF;
  INSERT INTO parent VALUES (new, n);
  UPDATE child SET parent_id = new, v = v + 1 WHERE parent_id = old;
  DELETE FROM child WHERE parent_id = new AND id % 7 = n % 7;
  INSERT INTO child SELECT nextval('new_child'), new, n FROM generate_series(1, n % 4);
  DELETE FROM parent WHERE id = old;
END $$;

-- number of rows that only one of target and source has at the position
CREATE FUNCTION differences() RETURNS bigint LANGUAGE sql AS $$
WITH p AS MATERIALIZED (SELECT * FROM cdc.as_of(NULL::parent, (SELECT snapshot FROM cdc.position('parent')))),
     c AS MATERIALIZED (SELECT * FROM cdc.as_of(NULL::child, (SELECT snapshot FROM cdc.position('child'))))
SELECT (SELECT count(*) FROM (TABLE p EXCEPT ALL TABLE parent_target) d) +
       (SELECT count(*) FROM (TABLE parent_target EXCEPT ALL TABLE p) d) +
       (SELECT count(*) FROM (TABLE c EXCEPT ALL TABLE child_target) d) +
       (SELECT count(*) FROM (TABLE child_target EXCEPT ALL TABLE c) d) $$;
});

my $dir = PostgreSQL::Test::Utils::tempdir;
append_to_file("$dir/writer.sql", "\\set n random(0, 40)\nCALL move(:n);\n");
my $out;
my $writers = IPC::Run::start(
	[
		'pgbench', '-n', '-c', 4, '-j', 2, '-T', 3000, '-R', 150,
		'--max-tries=1000', '-f', "$dir/writer.sql",
		'-h', $node->host, '-p', $node->port, 'postgres'
	],
	'<', \undef, '>', \$out, '2>&1',
	IPC::Run::timeout(10 * $PostgreSQL::Test::Utils::timeout_default));
$node->poll_query_until('postgres', 'SELECT count(*) > 50 FROM cdc.snapshot')
  or die "the writers do not write";

my ($failed, $broken, $different, $moved) = (0, 0, 0, 0);
my $newest = 'SELECT max(newest_snapshot) FROM cdc.tracked_tables';
foreach my $run (1 .. $runs)
{
	my $group = $run % 2 ? 'parent,child' : 'child,parent';
	my ($rc, $stdout, $stderr) = $node->psql('postgres',
		"SELECT sum(inserted + updated + deleted) FROM cdc.run_group('{$group}')"
	);

	if ($rc != 0)
	{
		$failed++;
		diag("run $run: $stderr");
	}
	$moved++ if $stdout ne '' && $stdout > 0;
	$broken += $node->safe_psql('postgres', q{
SELECT count(*) FROM child_target c LEFT JOIN parent_target p ON p.id = c.parent_id
 WHERE p.id IS NULL});
	$different += $node->safe_psql('postgres', 'SELECT differences()')
	  if $run % 10 == 0 || $run == $runs;

	# for the next one to have something to do
	my $seen = $node->safe_psql('postgres', $newest);
	$node->poll_query_until('postgres', "SELECT ($newest) > $seen")
	  or die "the writers do not write";
}
$writers->kill_kill;

is($failed, 0, "$runs runs of the group work");
cmp_ok($moved, '>', $runs / 2, 'most of them had something to do');
is($broken, 0, 'no broken reference');
is($different, 0, 'the targets are the sources at their positions');

$node->poll_query_until('postgres',
	"SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench'"
) or die "the writers do not end";
$node->safe_psql('postgres', "SELECT FROM cdc.run_group('{child,parent}')");
is( $node->safe_psql(
		'postgres', q{
SELECT (SELECT count(*) FROM (TABLE parent EXCEPT ALL TABLE parent_target) d) +
       (SELECT count(*) FROM (TABLE parent_target EXCEPT ALL TABLE parent) d) +
       (SELECT count(*) FROM (TABLE child EXCEPT ALL TABLE child_target) d) +
       (SELECT count(*) FROM (TABLE child_target EXCEPT ALL TABLE child) d)}),
	0,
	'in the end they are equal');

$node->stop;
done_testing();
