
# Copyright (c) 2026, the cdc_changelog authors

# Crashes while tracked tables are written: a backend is killed, the server
# stops without a checkpoint, the server is killed.  After recovery the
# changelog must say what the table says, and a consumer goes on from where it
# was.
#
# The oracle is an ordinary table in which a row trigger notes each row version
# that comes and goes.  It is written by the same transactions, so what has
# survived of one has survived of the other.
#
# It needs TAP because it crashes and restarts the server.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $rounds = $ENV{CDC_CRASH_ROUNDS} || ($ENV{CDC_FULL} ? 20 : 1);

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

CREATE TABLE item (id bigint PRIMARY KEY, v int, note text);
CREATE SEQUENCE new_id START 1001;
INSERT INTO item SELECT i, 0, 'start' FROM generate_series(1, 500) i;
CREATE TABLE item_start AS TABLE item;
CREATE TABLE item_copy (LIKE item INCLUDING ALL);
INSERT INTO item_copy TABLE item;
CREATE TABLE consumer AS SELECT 0::bigint AS upto;
SELECT cdc.track('item');

CREATE TABLE journal (xid xid8, sign int, id bigint, v int, note text);
CREATE FUNCTION note_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    INSERT INTO journal VALUES (pg_current_xact_id(), -1, OLD.id, OLD.v, OLD.note);
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO journal VALUES (pg_current_xact_id(), 1, NEW.id, NEW.v, NEW.note);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER note_row AFTER INSERT OR UPDATE OR DELETE ON item
  FOR EACH ROW EXECUTE FUNCTION note_row();

-- net effect of each transaction, as the journal and as the changelog have it
CREATE VIEW by_journal AS
  SELECT s.snapshot_id, j.id, j.v, j.note, sum(j.sign) AS n
    FROM journal j LEFT JOIN (cdc.snapshot s JOIN cdc.tracked_table t USING (table_id))
      ON s.xid = j.xid AND t.relation = 'item'::regclass
   GROUP BY 1, 2, 3, 4 HAVING sum(j.sign) <> 0;
CREATE FUNCTION by_changelog()
RETURNS TABLE (snapshot_id bigint, id bigint, v int, note text, n bigint)
LANGUAGE sql AS $$
  SELECT _commit_snapshot_id, id, v, note,
         sum(CASE _change_type WHEN 'INSERT' THEN 1 ELSE -1 END)
    FROM item_changelog(0, NULL, NULL, 'all') GROUP BY 1, 2, 3, 4;
$$;

CREATE PROCEDURE consume() LANGUAGE plpgsql AS $$
DECLARE
  a bigint := (SELECT upto FROM consumer);
  b bigint := cdc.current_snapshot('item');
BEGIN
  PERFORM cdc.apply_changelog('item_copy',
    format('SELECT * FROM item_changelog(%s, %s, ARRAY[''id''])', a, b), ARRAY['id']);
  UPDATE consumer SET upto = b;
END $$;
});

my $dir = PostgreSQL::Test::Utils::tempdir;
append_to_file(
	"$dir/writer.sql", q{
\set a random(1, 500)
\set b random(1, 500)
\set n random(1, 30)
BEGIN;
INSERT INTO item SELECT i, :n, 'upsert' FROM generate_series(:a, :a + :n) i
  ON CONFLICT (id) DO UPDATE SET v = item.v + 1;
SAVEPOINT one;
DELETE FROM item WHERE id BETWEEN :b AND :b + 5;
ROLLBACK TO SAVEPOINT one;
UPDATE item SET id = nextval('new_id') WHERE id = :b;
DELETE FROM item WHERE id IN
  (SELECT id FROM item WHERE id > 1000 ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED);
COMMIT;
});

# Starts writers in the background and waits until they have committed
# something.
sub start_writers
{
	my ($out, $synchronous_commit) = @_;
	my $before = snapshots();
	my $writers;

	{
		local $ENV{PGAPPNAME} = 'writer';
		local $ENV{PGOPTIONS} = "-c synchronous_commit=$synchronous_commit";
		$writers = IPC::Run::start(
			[
				'pgbench', '-n', '-c', 6, '-j', 2, '-T', 600,
				'--max-tries=1000', '-f', "$dir/writer.sql",
				'-h', $node->host, '-p', $node->port, 'postgres'
			],
			'<', \undef, '>', $out, '2>&1',
			IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	}
	$node->poll_query_until('postgres',
		"SELECT count(*) > $before + 50 FROM cdc.snapshot")
	  or die "the writers do not write";
	return $writers;
}

sub snapshots
{
	return $node->safe_psql('postgres', 'SELECT count(*) FROM cdc.snapshot');
}

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

sub check
{
	my ($after) = @_;

	is(differences('TABLE by_journal', 'SELECT * FROM by_changelog()'),
		'0|0', "after $after: every snapshot has what its transaction did");
	is( differences(
			q{TABLE item_start UNION ALL
SELECT id, v, note FROM item_changelog(0) WHERE _change_type = 'INSERT'},
			q{TABLE item UNION ALL
SELECT id, v, note FROM item_changelog(0) WHERE _change_type = 'DELETE'}),
		'0|0',
		"after $after: start content and net changes give the content");
	$node->safe_psql('postgres', 'CALL consume()');
	is(differences('TABLE item', 'TABLE item_copy'),
		'0|0', "after $after: the consumer goes on and has the content");
}

foreach my $round (1 .. $rounds)
{
	my ($writers, $out);

	# A backend is killed in the middle of something; the server ends all
	# others and recovers by itself.
	$writers = start_writers(\$out, 'on');
	$node->safe_psql('postgres', 'CALL consume()');
	my $started = $node->safe_psql('postgres',
		'SELECT pg_postmaster_start_time()');
	my $pid = $node->safe_psql(
		'postgres', q{
SELECT pid FROM pg_stat_activity
 WHERE application_name = 'writer' AND query <> '' AND backend_type = 'client backend'
 LIMIT 1});
	is(kill('KILL', $pid), 1, 'a backend was killed');
	$writers->finish;
	like(
		$out,
		qr/server closed the connection|terminating connection/,
		'the server went down with it');
	$node->poll_query_until('postgres', 'SELECT true')
	  or die "the server did not come back";
	is( $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'),
		$started,
		'the server came back by itself');
	check('the kill of a backend');

	# The server stops without a checkpoint.
	$writers = start_writers(\$out, 'on');
	$node->stop('immediate');
	$writers->finish;
	$node->start;
	check('an immediate stop');

	# The same with transactions that do not wait for their commit record.
	$writers = start_writers(\$out, 'off');
	$node->safe_psql('postgres', 'CALL consume()');
	$node->stop('immediate');
	$writers->finish;
	$node->start;
	check('an immediate stop with asynchronous commits');
}

# A crash loses numbers that were drawn ahead; the next ones are still larger.
$node->safe_psql('postgres', "UPDATE item SET v = v + 1 WHERE id <= 5");
is( $node->safe_psql(
		'postgres', q{
SELECT count(*) > 100, count(*) = count(DISTINCT xid), max(snapshot_id) > count(*)
  FROM cdc.snapshot WHERE kind = 'c'}),
	't|t|t',
	'the snapshots are those of as many transactions, with holes');
check('all of it');

$node->stop;
done_testing();
