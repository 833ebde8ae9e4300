
# Copyright (c) 2026, the cdc_changelog authors

# Reading on a hot standby: every mode gives what it gives on the primary; a
# number that was drawn but is not replayed is never skipped; what would have
# to write says so; and after a promotion the numbers go on.
#
# It needs TAP because it needs two servers and replication.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf(
	'postgresql.conf', q{
max_prepared_transactions = 10
cdc_changelog.horizon_timeout = 10ms
autovacuum = off
});
$primary->start;
$primary->backup('backup');

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'max_standby_streaming_delay = -1');
$standby->start;

sub catchup
{
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	return;
}

sub sqlstate
{
	my ($sql) = @_;
	my ($stdout, $stderr);

	$standby->psql('postgres', "\\set VERBOSITY verbose\n$sql",
		stdout => \$stdout, stderr => \$stderr);
	return $stderr =~ /ERROR:  (\w{5}: .*)/ ? $1 : "none, but $stdout";
}

# The changelog of every range in every mode, and what else can be read
sub everything
{
	my ($node) = @_;

	return $node->safe_psql(
		'postgres', q{
SELECT digests('t', '{id}');
SELECT s.* FROM cdc.snapshots('t') s;
SELECT cdc.current_snapshot('t'), cdc.snapshot_at('t', now()), cdc.snapshot_at('t', '2000-01-01');
SELECT relation, log_rows, snapshots, oldest_snapshot, newest_snapshot FROM cdc.tracked_tables ORDER BY 1;
SELECT * FROM t_view ORDER BY id, _change_ordinal, _change_type DESC;
SELECT * FROM cdc.as_of(NULL::t, 1) ORDER BY id;
SELECT * FROM cdc.verify('t');
});
}

$primary->safe_psql(
	'postgres', q{
CREATE EXTENSION cdc_changelog;
CREATE TABLE t (id int PRIMARY KEY, v text);
CREATE TABLE log (x int);
CREATE TABLE copy (LIKE t);
INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 10) i;
SELECT cdc.track('t');
SELECT cdc.track('log');
INSERT INTO t VALUES (11, 'eleven');
UPDATE t SET v = v || '!' WHERE id < 5;
BEGIN;
INSERT INTO t VALUES (12, 'never');
ROLLBACK;
DELETE FROM t WHERE id = 7;
INSERT INTO t SELECT 100, string_agg(md5(i::text), '') FROM generate_series(1, 2000) i;
UPDATE t SET id = -id WHERE id < 3;
CALL cdc.create_changelog_view('t', 'public.t_view', '{"start-snapshot-id": 0}',
  identifier_columns => '{id}', temporary => false);

CREATE FUNCTION digests(rel regclass, keys text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  newest bigint := cdc.current_snapshot(rel);
  m text;
  d text;
BEGIN
  FOREACH m IN ARRAY ARRAY['net', 'all', 'knet', 'kall', 'klatest', 'klatest_pair'] LOOP
    FOR s IN -1 .. newest LOOP
      FOR e IN greatest(s, 0) .. newest LOOP
        SELECT md5(string_agg(r::text, E'\n' ORDER BY r::text)) INTO d
          FROM t_changelog(nullif(s, -1), e, CASE WHEN m LIKE 'k%' THEN keys END, ltrim(m, 'k')) r;
        RETURN NEXT format('%s (%s, %s] %s', m, s, e, d);
      END LOOP;
    END LOOP;
  END LOOP;
END $$;
});
catchup();
is(everything($standby), everything($primary),
	'everything is read on the standby as on the primary');
is( $standby->safe_psql(
		'postgres', q{
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT cdc.current_snapshot('t');
SELECT count(*) FROM t_changelog(0, NULL, NULL, 'all');
COMMIT}),
	"5\n15", 'also in REPEATABLE READ');

# What has to write
like(sqlstate(q{SELECT cdc.track('copy')}),
	qr/25006: cannot execute cdc.track\(\) /, 'no tracking');
like(sqlstate(q{SELECT cdc.untrack('t')}),
	qr/25006: cannot execute cdc.untrack\(\) /, 'no untracking');
like(sqlstate(q{SELECT cdc.expire_snapshots('t', retain_last => 1)}),
	qr/25006: cannot execute cdc.expire_snapshots\(\) /, 'no expiry');
like(sqlstate(q{CALL cdc.create_changelog_view('t')}),
	qr/25006: cannot /, 'no views');
like(sqlstate(q{CALL cdc.create_changelog_view('t', 'public.v', temporary => false)}),
	qr/25006: cannot execute /, 'neither permanent ones');
like(sqlstate(q{SELECT cdc.apply_changelog('copy', $$SELECT * FROM t_changelog(0, NULL, '{id}')$$, '{id}')}),
	qr/25006: cannot execute /, 'no applying');

# A prepared transaction holds a number: nothing behind it is shown, whatever
# the standby has replayed.
my $before = $primary->safe_psql('postgres', q{SELECT cdc.current_snapshot('t')});
$primary->safe_psql(
	'postgres', q{
BEGIN;
INSERT INTO t VALUES (20, 'prepared');
PREPARE TRANSACTION 'keep';
INSERT INTO t VALUES (21, 'between');
BEGIN;
INSERT INTO t VALUES (22, 'prepared, then rolled back');
PREPARE TRANSACTION 'drop';
INSERT INTO t VALUES (23, 'behind');
INSERT INTO t VALUES (24, 'behind');
});
catchup();
is( $standby->safe_psql(
		'postgres', q{SELECT max(snapshot_id), cdc.current_snapshot('t') FROM cdc.snapshot WHERE table_id = 1}),
	($before + 5) . "|$before",
	'a reader on the standby stops before a prepared transaction');
is($standby->safe_psql('postgres', "SELECT count(*) FROM t_changelog($before)"),
	'0', 'its changelog does, too');
$primary->safe_psql('postgres', q{COMMIT PREPARED 'keep'});
catchup();
is( $standby->safe_psql('postgres', "SELECT id FROM t_changelog($before) ORDER BY 1"),
	"20\n21", 'once it is committed the reader gets to the next one');
$primary->safe_psql('postgres', q{ROLLBACK PREPARED 'drop'});
catchup();
is( $standby->safe_psql('postgres', "SELECT id FROM t_changelog($before + 2) ORDER BY 1"),
	"23\n24", 'one that is rolled back is not waited for');

# A transaction that is open on the primary does not hold anything back as long
# as no number is missing; where one is, it might be the one that has it.
my $open = IPC::Run::start(
	[ 'psql', '-X', '-q', '-A', '-t', '-d', $primary->connstr('postgres') ],
	'<', \my $open_in, '>', \my $open_out,
	IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
$open_in = "BEGIN; INSERT INTO copy VALUES (1, 'open'); SELECT 'done';\n";
$open->pump until $open_out =~ /done/;
$before = $primary->safe_psql('postgres', q{
INSERT INTO t VALUES (30, 'not behind');
SELECT cdc.current_snapshot('t')});
catchup();
is($standby->safe_psql('postgres', q{SELECT cdc.current_snapshot('t')}),
	$before, 'an open transaction that has no number holds nothing back');
$primary->safe_psql(
	'postgres', q{
BEGIN;
INSERT INTO t VALUES (31, 'hole');
PREPARE TRANSACTION 'hole';
ROLLBACK PREPARED 'hole';
INSERT INTO t VALUES (32, 'behind the hole');
});
catchup();
is($standby->safe_psql('postgres', q{SELECT cdc.current_snapshot('t')}),
	$before, 'where a number is missing, it might have it');
is($standby->safe_psql('postgres', "SELECT count(*) FROM t_changelog(NULL, $before)"),
	$standby->safe_psql('postgres', 'SELECT count(*) - 1 FROM t'),
	'the content is told as of there');
$open_in = "COMMIT;\n\\q\n";
$open->finish;
catchup();
is($standby->safe_psql('postgres', q{SELECT cdc.current_snapshot('t')}),
	$before + 2, 'until it has ended');

# The transaction ids of another server, as rows out of a dump may have them,
# mean nothing: the holes among them are old.
$primary->safe_psql(
	'postgres', q{
CREATE TABLE restored (id int);
SELECT cdc.track('restored');
INSERT INTO restored VALUES (1);
BEGIN;
INSERT INTO restored VALUES (2);
PREPARE TRANSACTION 'hole';
ROLLBACK PREPARED 'hole';
INSERT INTO restored VALUES (3);
UPDATE cdc.snapshot SET xid = '99999999', next_xid = '99999999'
 WHERE table_id = (SELECT table_id FROM cdc.tracked_table WHERE relation = 'restored'::regclass);
});
catchup();
is($standby->safe_psql('postgres', q{SELECT cdc.current_snapshot('restored')}),
	'3', 'a hole in a restored history holds nothing back');

# Writers on the primary, and a reader on the standby that reads range after
# range, so often that it has met a number that it must not go beyond.  What it
# got must be what one read of the whole range gives.
my $script = PostgreSQL::Test::Utils::tempdir . '/writers.sql';
append_to_file(
	$script, q{
\set a random(1, 10000)
\set b random(1, 10000)
\set what random(1, 6)
BEGIN;
INSERT INTO t VALUES (1000 + :a, 'w') ON CONFLICT (id) DO UPDATE SET v = t.v || 'u';
\if :what = 1
ROLLBACK;
\else
DELETE FROM t WHERE id = 1000 + :b;
UPDATE t SET v = :client_id WHERE id = 1000 + :client_id;
\if :what = 2
-- draws its number long before it is committed
PREPARE TRANSACTION 'p_:client_id';
\sleep 5 ms
COMMIT PREPARED 'p_:client_id';
\else
COMMIT;
\endif
\endif
});
my $start = $primary->safe_psql('postgres', q{SELECT cdc.current_snapshot('t')});
my $upto = $start;
my $min_polls = $ENV{CDC_FULL} ? 300 : 20;
my $polls = 0;
my $held_back = 0;
my @seen;
my $writers = IPC::Run::start(
	[
		'pgbench', '-n', '-c', '8', '-j', '2', '-T', 36000,
		'-f', $script, '-d', $primary->connstr('postgres')
	],
	'>', \my $bench_out, '2>', \my $bench_err,
	IPC::Run::timeout(10 * $PostgreSQL::Test::Utils::timeout_default));

sub poll
{
	my ($first, @rows) = split /\n/, $standby->safe_psql(
		'postgres', qq{
SELECT cdc.current_snapshot('t') AS upto \\gset
SELECT :upto, max(snapshot_id) > :upto FROM cdc.snapshot WHERE table_id = 1;
SELECT _commit_snapshot_id, id, _change_type, v FROM t_changelog($upto, :upto, NULL, 'all')});

	($upto, my $behind) = split /\|/, $first;
	$held_back++ if $behind eq 't';
	$polls++;
	push @seen, @rows;
	return;
}
while ($writers->pumpable
	&& ($polls < $min_polls || $held_back == 0 || @seen < 500))
{
	$writers->pump_nb;
	poll();
}

# pgbench takes this for the end of its time
$writers->signal('ALRM');
$writers->finish;
is($writers->result(0), 0, 'the writers met no error') or diag($bench_err);
catchup();
poll();
note("$polls polls, of which $held_back stopped before something visible");
cmp_ok($held_back, '>', 0, 'the reader had to stop before what it could have seen');
is($upto, $primary->safe_psql('postgres', q{SELECT cdc.current_snapshot('t')}),
	'the reader has got to the end');
my @whole = split /\n/, $primary->safe_psql(
	'postgres', qq{
SELECT _commit_snapshot_id, id, _change_type, v FROM t_changelog($start, NULL, NULL, 'all')});
cmp_ok(scalar(@whole), '>', 500, 'there was something to read');
is( join("\n", sort @seen),
	join("\n", sort @whole),
	'its ranges together are the whole, nothing lost and nothing twice');

# Promotion.  Numbers go on, also those that were drawn and never seen; and a
# transaction that is still prepared keeps its place.
$primary->safe_psql(
	'postgres', q{
BEGIN;
INSERT INTO t VALUES (50, 'prepared');
PREPARE TRANSACTION 'over';
INSERT INTO t VALUES (51, 'behind');
INSERT INTO log VALUES (1);
});
catchup();
my $content = $primary->safe_psql('postgres',
	qq{SELECT * FROM t_changelog(0, $upto, NULL, 'all') ORDER BY _change_ordinal, id, _change_type, v});
$primary->stop('immediate');
$standby->promote;
is( $standby->safe_psql('postgres',
	qq{SELECT * FROM t_changelog(0, $upto, NULL, 'all') ORDER BY _change_ordinal, id, _change_type, v}),
	$content, 'after the promotion the changelog is the same');
is($standby->safe_psql('postgres', q{SELECT cdc.current_snapshot('t')}),
	$upto, 'what was prepared still holds back what is behind it');
$standby->safe_psql(
	'postgres', q{
INSERT INTO t VALUES (52, 'promoted');
INSERT INTO log VALUES (2);
COMMIT PREPARED 'over';
});
is( $standby->safe_psql('postgres', "SELECT id, _change_ordinal > $upto FROM t_changelog($upto) ORDER BY _change_ordinal"),
	"50|t\n51|t\n52|t", 'all of it comes in its order');
is( $standby->safe_psql(
		'postgres', q{
SELECT count(*) - count(DISTINCT (table_id, snapshot_id)), count(*) - count(DISTINCT (table_id, tx))
  FROM cdc.snapshot WHERE snapshot_id > 0}),
	'0|0', 'no number is used twice');
is($standby->safe_psql('postgres', q{SELECT * FROM cdc.verify('t')}),
	'', 'and the log is sound');

$standby->stop;
done_testing();
