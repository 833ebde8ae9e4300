
# Copyright (c) 2026, the cdc_changelog authors

# Prepared transactions that outlive the server.  Their snapshot numbers are
# drawn when they are prepared, so until somebody ends them a reader stops
# before them, and it must still do so after a restart and after a crash.
#
# It needs TAP because it restarts the server.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
max_prepared_transactions = 10
cdc_changelog.horizon_timeout = 10ms
});
$node->start;

$node->safe_psql(
	'postgres', q{
CREATE EXTENSION cdc_changelog;
CREATE TABLE t (id int PRIMARY KEY, v text);
CREATE TABLE u (v text);
INSERT INTO t VALUES (1, 'start');
CREATE TABLE t_start AS TABLE t;
SELECT cdc.track('t');
SELECT cdc.track('u');
CREATE TABLE seen AS SELECT * FROM t_changelog(0, 0);
CREATE TABLE consumer AS SELECT 0::bigint AS upto;

CREATE PROCEDURE consume() LANGUAGE plpgsql AS $$
DECLARE
  a bigint := (SELECT upto FROM consumer);
  b bigint := cdc.current_snapshot('t');
BEGIN
  INSERT INTO seen SELECT * FROM t_changelog(a, b, ARRAY['id'], 'all');
  UPDATE consumer SET upto = b;
END $$;
});

# What the consumer has got so far, after one more look
sub consumed
{
	my ($result, $stdout, $stderr);

	$result = $node->psql(
		'postgres', q{
CALL consume();
SELECT string_agg(format('%s %s %s', _change_type, id, v), ', '
                  ORDER BY _change_ordinal, id, _change_type DESC) FROM seen},
		stdout => \$stdout,
		stderr => \$stderr);
	is($result, 0, 'the consumer meets no error') or diag($stderr);
	return ($stdout, $stderr);
}

my ($stdout, $stderr);

$node->safe_psql(
	'postgres', q{
INSERT INTO t VALUES (2, 'before');
BEGIN;
INSERT INTO t VALUES (3, 'prepared');
UPDATE t SET v = 'by prepared' WHERE id = 1;
SAVEPOINT s;
INSERT INTO t VALUES (99, 'undone');
ROLLBACK TO s;
INSERT INTO u VALUES ('prepared');
PREPARE TRANSACTION 'keep';
BEGIN;
INSERT INTO t VALUES (4, 'never');
PREPARE TRANSACTION 'drop';
INSERT INTO t VALUES (5, 'after');
});

my $before = 'INSERT 2 before';
($stdout, $stderr) = consumed();
is($stdout, $before, 'a reader stops before a prepared transaction');
like($stderr, qr/held back/, 'and says so');

foreach my $how ('fast', 'immediate')
{
	$node->stop($how);
	$node->start;
	($stdout, $stderr) = consumed();
	is($stdout, $before, "the same after a restart, mode $how");
	like($stderr, qr/held back/, 'and says so');
	$node->safe_psql('postgres', "UPDATE t SET v = v || '+' WHERE id = 5");
}

$node->safe_psql('postgres', "COMMIT PREPARED 'keep'");
($stdout, $stderr) = consumed();
is( $stdout,
	"$before, UPDATE_BEFORE 1 start, UPDATE_AFTER 1 by prepared, INSERT 3 prepared",
	'once it is committed its changes are there, up to the next one');
like($stderr, qr/held back/, 'which holds the reader back');

$node->safe_psql('postgres', "ROLLBACK PREPARED 'drop'");
($stdout, $stderr) = consumed();
is( $stdout,
	"$before, UPDATE_BEFORE 1 start, UPDATE_AFTER 1 by prepared, INSERT 3 prepared, "
	  . 'INSERT 5 after, UPDATE_BEFORE 5 after, UPDATE_AFTER 5 after+, '
	  . 'UPDATE_BEFORE 5 after+, UPDATE_AFTER 5 after++',
	'one that is rolled back is not waited for');
unlike($stderr, qr/held back/, 'and there is nothing more to say');

is( $node->safe_psql(
		'postgres', q{
WITH l AS (TABLE t_start UNION ALL
  SELECT id, v FROM t_changelog(0) WHERE _change_type = 'INSERT'),
r AS (TABLE t UNION ALL
  SELECT id, v FROM t_changelog(0) WHERE _change_type = 'DELETE')
SELECT count(*) FROM ((TABLE l EXCEPT ALL TABLE r) UNION ALL (TABLE r EXCEPT ALL TABLE l)) d}
	),
	'0',
	'start content and changes give the content');
is( $node->safe_psql('postgres', 'SELECT v, _change_type FROM u_changelog(0)'),
	'prepared|INSERT',
	'both tables of the transaction have its changes');

# A table that a prepared transaction has written cannot vanish under it; once
# it is finished, everything goes.
$node->safe_psql('postgres', "SELECT cdc.untrack('t'); DROP TABLE t");
is( $node->safe_psql(
		'postgres', q{
SELECT (SELECT count(*) FROM cdc.tracked_table), (SELECT count(DISTINCT table_id) FROM cdc.snapshot)}
	),
	'1|1',
	'untracked and gone');

$node->stop;
done_testing();
