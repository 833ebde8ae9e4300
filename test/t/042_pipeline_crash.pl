
# Copyright (c) 2026, the cdc_changelog authors

# Crashes while a pipeline runs under write load: its backend is killed at some
# moment of a run, or the server stops at once.  Afterwards, and after every
# run, the target must be the pipeline's query on the content at the position,
# and positions must neither go back nor skip anything.
#
# It needs TAP because it crashes and restarts the server.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my ($kills, $stops) = $ENV{CDC_FULL} ? (50, 10) : (6, 2);

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
restart_after_crash = on
log_statement = none
deadlock_timeout = 50ms
shared_buffers = 32MB
});
$node->start;

$node->safe_psql(
	'postgres', q{
CREATE EXTENSION cdc_changelog;
CREATE TABLE item (id bigint PRIMARY KEY, status text, v int);
CREATE TABLE kind (id int PRIMARY KEY, name text);
INSERT INTO kind SELECT i, 'kind ' || i FROM generate_series(0, 9) i;
INSERT INTO item SELECT i, 'active', 0 FROM generate_series(1, 500) i;
SELECT cdc.track('item');

-- filtered, with a renamed, a computed and a joined column
CREATE TABLE target (item bigint PRIMARY KEY, twice int, kind text);
SELECT cdc.create_pipeline('target', 'target', '{item}', $$
  SELECT i.id AS item, 2 * i.v AS twice, k.name AS kind,
         CASE i.status WHEN 'active' THEN i._change_type ELSE 'DELETE' END AS _change_type
    FROM item_changelog(identifiers => '{id}', consumer => 'target') i
    LEFT JOIN kind k ON k.id = i.v % 10 $$, keep_runs => 1000000);

CREATE FUNCTION differences() RETURNS bigint LANGUAGE sql AS $$
WITH q AS MATERIALIZED (
  SELECT i.id, 2 * i.v, k.name
    FROM cdc.as_of(NULL::item, (SELECT snapshot FROM cdc.position('target'))) i
    LEFT JOIN kind k ON k.id = i.v % 10
   WHERE i.status = 'active')
SELECT (SELECT count(*) FROM (TABLE q EXCEPT ALL TABLE target) d) +
       (SELECT count(*) FROM (TABLE target EXCEPT ALL TABLE q) d) $$;
SELECT FROM cdc.run('target');
});

my $dir = PostgreSQL::Test::Utils::tempdir;
append_to_file(
	"$dir/writer.sql", q{
\set a random(1, 500)
\set n random(1, 30)
BEGIN;
INSERT INTO item SELECT i, 'active', :n FROM generate_series(:a, :a + :n) i
  ON CONFLICT (id) DO UPDATE SET v = item.v + 1,
    status = CASE WHEN item.v % 3 = 0 THEN 'closed' ELSE 'active' END;
DELETE FROM item WHERE id BETWEEN :a + 1 AND :a + 3;
COMMIT;
});

# Starts writers in the background and waits until they have committed
# something.
sub start_writers
{
	my ($out) = @_;
	my $before =
	  $node->safe_psql('postgres', 'SELECT max(snapshot_id) FROM cdc.snapshot');
	my $writers = IPC::Run::start(
		[
			'pgbench', '-n', '-c', 3, '-j', 1, '-T', 600, '-R', 200,
			'--max-tries=1000', '-f', "$dir/writer.sql",
			'-h', $node->host, '-p', $node->port, 'postgres'
		],
		'<', \undef, '>', $out, '2>&1',
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));

	$node->poll_query_until('postgres',
		"SELECT max(snapshot_id) > $before + 10 FROM cdc.snapshot")
	  or die "the writers do not write";
	return $writers;
}

# Starts a session that does nothing but run the pipeline, one transaction a
# run.
sub start_runner
{
	my ($out) = @_;
	my $runner;

	append_to_file("$dir/run.sql", "SELECT mode FROM cdc.run('target');\n")
	  unless -e "$dir/run.sql";
	{
		local $ENV{PGAPPNAME} = 'runner';
		$runner = IPC::Run::start(
			[
				'pgbench', '-n', '-c', 1, '-T', 600, '-f', "$dir/run.sql",
				'-h', $node->host, '-p', $node->port, 'postgres'
			],
			'<', \undef, '>', $out, '2>&1',
			IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	}
	# not by that name, or this would find itself
	$node->poll_query_until('postgres',
		"SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'runner' AND query ~ 'cdc.run'"
	) or die "the pipeline does not run";
	return $runner;
}

my $position = 0;
my $checked = 0;
my $bad = '';

# The target is right, and the position is not behind the last one seen.
sub check
{
	my ($after) = @_;
	my ($differ, $now) = split /\|/, $node->safe_psql(
		'postgres', q{
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT differences(), (SELECT snapshot FROM cdc.position('target'));
COMMIT});

	$checked++;
	$bad .= "after $after: $differ rows differ\n" if $differ != 0;
	$bad .= "after $after: position $now is behind $position\n"
	  if $now < $position;
	$position = $now;
}

foreach my $round (1 .. $kills + $stops)
{
	my ($out1, $out2);
	my $writers = start_writers(\$out1);
	my $runner = start_runner(\$out2);

	if ($round <= $kills)
	{
		# not one of its parallel workers
		my $pid = $node->safe_psql(
			'postgres', q{
SELECT pid FROM pg_stat_activity
 WHERE application_name = 'runner' AND query ~ 'cdc.run' AND backend_type = 'client backend'});

		usleep(int(rand(200000)));
		kill('KILL', $pid) == 1 or die "could not kill the runner";
		$writers->finish;
		$runner->finish;
		$node->poll_query_until('postgres', 'SELECT true')
		  or die "the server did not come back";
	}
	else
	{
		usleep(int(rand(200000)));
		$node->stop('immediate');
		$writers->finish;
		$runner->finish;
		$node->start;
	}
	check("crash $round");
	$node->safe_psql('postgres', "SELECT FROM cdc.run('target')");
	check("the run after crash $round");
}
is($bad, '', "$checked checks after $kills kills and $stops stops");

# Each run of the history began where the one before it had ended, so nothing
# was skipped or read twice.
is( $node->safe_psql(
		'postgres', q{
SELECT count(*) FROM (
  SELECT (ranges -> 'public.item' ->> 0)::bigint AS a, (ranges -> 'public.item' ->> 1)::bigint AS b,
         lag((ranges -> 'public.item' ->> 1)::bigint) OVER (ORDER BY run_id) AS before, mode, run_id
    FROM cdc.pipeline_runs) r
 WHERE run_id > 1 AND (mode <> 'incremental' OR a <> before OR b <= a)}),
	0,
	'the ranges of all runs join end to end');
cmp_ok(
	$node->safe_psql('postgres', 'SELECT count(*) FROM cdc.pipeline_runs'),
	'>',
	$kills + $stops,
	'there were more runs than crashes');
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM target'),
	'>', 50, 'there is something left to compare');
is( $node->safe_psql('postgres', 'SELECT count(*) FROM cdc.verify(\'item\')'),
	0, 'the log is right');

$node->stop;
done_testing();
