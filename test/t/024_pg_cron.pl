
# Copyright (c) 2026, the cdc_changelog authors

# A scheduled pipeline: pg_cron runs it, and the target follows its sources.
# And how a session waits for changes: it is woken by a commit, not by a
# transaction that is rolled back, and told where the table goes away.
#
# It needs TAP because pg_cron has to be loaded at the start of the server, and
# for a session that waits while others write.  pg_cron starts jobs at full
# minutes, so this takes up to one.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->start;

my $has_cron = $node->safe_psql('postgres',
	"SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_cron'");

$node->safe_psql(
	'postgres', q{
CREATE EXTENSION cdc_changelog;
CREATE TABLE customers (customer_id int PRIMARY KEY, name text);
CREATE TABLE orders (order_id int PRIMARY KEY, customer_id int, amount numeric);
INSERT INTO customers SELECT i, 'customer ' || i FROM generate_series(1, 10) i;
INSERT INTO orders SELECT i, 1 + i % 10, i FROM generate_series(1, 100) i;
SELECT cdc.track('customers'), cdc.track('orders');
CREATE TABLE orders_named (order_id int PRIMARY KEY, name text, amount numeric);
SELECT cdc.create_pipeline('orders_named', 'orders_named', '{order_id}',
  $$SELECT o._change_type, o._change_ordinal, o.order_id, c.name, o.amount
      FROM orders_changelog(identifiers => '{order_id}', consumer => 'orders_named') o
      LEFT JOIN customers c USING (customer_id)$$);
});

# Sessions that wait
sub waiter
{
	my ($sql) = @_;
	my $w = { out => '', err => '' };

	$w->{psql} = IPC::Run::start(
		[
			'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1',
			'-d', $node->connstr('postgres'), '-c', $sql
		],
		'>', \$w->{out}, '2>', \$w->{err},
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Extension'"
		  . " AND query LIKE '%wait_for_changes%' AND pid <> pg_backend_pid()")
	  or die 'nobody waits';
	return $w;
}

sub told
{
	my ($w) = @_;

	$w->{psql}->finish;
	return "$w->{out}$w->{err}";
}

my $w = waiter("SELECT cdc.wait_for_changes('orders', 0, '1 hour')");
$node->safe_psql('postgres',
	'BEGIN; UPDATE orders SET amount = 0; ROLLBACK; UPDATE customers SET name = upper(name)');
is($node->safe_psql('postgres',
		"SELECT state FROM pg_stat_activity WHERE query LIKE '%wait_for_changes%' AND pid <> pg_backend_pid()"),
	'active', 'a session goes on waiting while its table does not change');
$node->safe_psql('postgres', 'UPDATE orders SET amount = amount + 1 WHERE order_id = 1');
is(told($w), "1\n", 'it is told of a change');

$node->safe_psql('postgres', "CREATE TABLE short (id int); SELECT cdc.track('short')");
$w = waiter("SELECT cdc.wait_for_changes('short', 0)");
$node->safe_psql('postgres', "SELECT cdc.untrack('short')");
like(told($w), qr/table "short" is not tracked/, 'it is told that the table is not tracked any more');

SKIP:
{
	skip 'pg_cron is not installed', 2 if !$has_cron;

	$node->append_conf(
		'postgresql.conf', q{
shared_preload_libraries = 'pg_cron'
cron.database_name = 'postgres'
cron.use_background_workers = on
});
	$node->restart;
	$node->safe_psql(
		'postgres', q{
CREATE EXTENSION pg_cron;
SELECT cron.schedule('orders', '* * * * *', $$SELECT cdc.run('orders_named')$$);
INSERT INTO orders SELECT i, 1 + i % 10, i FROM generate_series(101, 200) i;
DELETE FROM orders WHERE order_id % 7 = 0;
UPDATE orders SET amount = amount + 1 WHERE order_id % 5 = 0;
});
	ok( $node->poll_query_until(
			'postgres', q{
SELECT EXISTS (SELECT FROM cron.job_run_details WHERE status = 'succeeded')
   AND NOT EXISTS (
     (SELECT order_id, name, amount FROM orders JOIN customers USING (customer_id) EXCEPT ALL TABLE orders_named)
     UNION ALL
     (TABLE orders_named EXCEPT ALL SELECT order_id, name, amount FROM orders JOIN customers USING (customer_id)))}),
		'a job of pg_cron brings the target up to date');
	is( $node->safe_psql('postgres',
			"SELECT count(*) FROM cron.job_run_details WHERE status = 'failed'"),
		'0', 'without an error');
	$node->safe_psql('postgres', "SELECT cron.unschedule('orders')");
}

$node->stop;
done_testing();
