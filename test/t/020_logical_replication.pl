
# Copyright (c) 2026, the cdc_changelog authors

# Tracked tables of a logical replication subscriber.  Whatever the apply and
# table synchronisation workers do to them is in their logs exactly once: the
# initial copy, changes, TRUNCATE, for ordinary and partitioned tables.  So is
# what sessions of the subscriber do, at the same time and after promotion.
#
# It needs TAP because it takes two servers.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical');
$publisher->append_conf('postgresql.conf',
	"max_prepared_transactions = 10\nlogical_decoding_work_mem = 64kB");
$publisher->start;

my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init(allows_streaming => 'logical');
$subscriber->append_conf('postgresql.conf',
	"max_prepared_transactions = 10\nwal_retrieve_retry_interval = 100ms");
$subscriber->start;

my $connstr = $publisher->connstr . ' dbname=postgres';

# The tables: with a primary key and a large column; without a key and with
# duplicate rows; two that are partitioned, once in another way on each side,
# and one that is so on the publisher only.
my $parted_same = q{
CREATE TABLE p_same (id int NOT NULL, v text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE p_same_1 PARTITION OF p_same FOR VALUES FROM (0) TO (100);
CREATE TABLE p_same_2 (v text, id int NOT NULL);
ALTER TABLE p_same ATTACH PARTITION p_same_2 FOR VALUES FROM (100) TO (200);
};

$publisher->safe_psql(
	'postgres', qq{
CREATE TABLE t (id int PRIMARY KEY, v text, big text);
ALTER TABLE t ALTER big SET STORAGE EXTERNAL;
CREATE TABLE nokey (v text, w int);
ALTER TABLE nokey REPLICA IDENTITY FULL;
CREATE TABLE child (id int PRIMARY KEY REFERENCES t ON DELETE CASCADE);
$parted_same
CREATE TABLE p_root (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE p_root_1 PARTITION OF p_root FOR VALUES FROM (0) TO (50);
CREATE TABLE p_root_2 PARTITION OF p_root FOR VALUES FROM (50) TO (200);
CREATE TABLE p_flat (id int PRIMARY KEY, v text) PARTITION BY HASH (id);
CREATE TABLE p_flat_1 PARTITION OF p_flat FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE p_flat_2 PARTITION OF p_flat FOR VALUES WITH (MODULUS 2, REMAINDER 1);

INSERT INTO t SELECT i, 'row ' || i, CASE WHEN i % 10 = 0 THEN repeat(md5(i::text), 300) END
FROM generate_series(1, 1000) i;
INSERT INTO nokey SELECT 'dup', i % 3 FROM generate_series(1, 9) i;
INSERT INTO child SELECT generate_series(1, 10);
INSERT INTO p_same SELECT i, 'copied' FROM generate_series(1, 199) i;
INSERT INTO p_root SELECT i, 'copied' FROM generate_series(1, 199) i;
INSERT INTO p_flat SELECT i, 'copied' FROM generate_series(1, 199) i;

CREATE PUBLICATION pub FOR TABLE t, nokey, child, p_same;
CREATE PUBLICATION pub_root FOR TABLE p_root, p_flat
WITH (publish_via_partition_root = true);
});

my @tables = qw(t nokey child p_same p_root p_flat);

$subscriber->safe_psql(
	'postgres', qq{
CREATE EXTENSION cdc_changelog;
-- another order of columns, a hole, a column of its own
CREATE TABLE t (gone int, big text, id int PRIMARY KEY, v text, here timestamptz DEFAULT 'epoch');
ALTER TABLE t DROP COLUMN gone;
CREATE TABLE nokey (w int, v text);
CREATE TABLE child (id int PRIMARY KEY REFERENCES t ON DELETE CASCADE);
$parted_same
CREATE TABLE p_root (v text, id int PRIMARY KEY) PARTITION BY HASH (id);
CREATE TABLE p_root_a (id int PRIMARY KEY, v text);
ALTER TABLE p_root ATTACH PARTITION p_root_a FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE p_root_b PARTITION OF p_root FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE p_flat (id int PRIMARY KEY, v text);

-- rows of the subscriber's own from before
INSERT INTO p_same VALUES (0, 'own');
});
foreach my $table (@tables)
{
	$subscriber->safe_psql('postgres',
		"CREATE TABLE start_$table AS TABLE $table; SELECT cdc.track('$table')");
}

# The start content and the changelog of each table give what it is now; and
# the log says nothing else.
sub check_tables
{
	my ($when) = @_;

	foreach my $table (@tables)
	{
		is( $subscriber->safe_psql(
				'postgres', qq{
WITH c AS MATERIALIZED (SELECT * FROM ${table}_changelog(0)),
a AS MATERIALIZED (SELECT * FROM ${table}_changelog(0, NULL, NULL, 'all')),
plus AS (SELECT (to_jsonb(c) - '_change_type' - '_change_ordinal' - '_commit_snapshot_id' - '_commit_timestamp') j
         FROM c WHERE _change_type = 'INSERT'),
minus AS (SELECT (to_jsonb(c) - '_change_type' - '_change_ordinal' - '_commit_snapshot_id' - '_commit_timestamp') j
          FROM c WHERE _change_type = 'DELETE'),
l AS (SELECT to_jsonb(s) j FROM start_$table s UNION ALL TABLE plus),
r AS (SELECT to_jsonb(s) j FROM $table s UNION ALL TABLE minus)
SELECT 'missing', j FROM (TABLE r EXCEPT ALL TABLE l) d
UNION ALL SELECT 'too many', j FROM (TABLE l EXCEPT ALL TABLE r) d
UNION ALL SELECT 'count', to_jsonb(sum(CASE _change_type WHEN 'INSERT' THEN 1 ELSE -1 END)) FROM a
HAVING COALESCE(sum(CASE _change_type WHEN 'INSERT' THEN 1 ELSE -1 END), 0)
       <> (SELECT count(*) FROM $table) - (SELECT count(*) FROM start_$table)
UNION ALL SELECT 'verify', to_jsonb(v) FROM cdc.verify('$table') v}),
			'', "$table $when");
	}
	return;
}

# Both sides have the same rows
sub check_replica
{
	my ($when) = @_;

	foreach my $table (grep { $_ ne 'nokey' } @tables)
	{
		my $columns = $table eq 't' ? 'id, v, md5(big)' :
		  $table eq 'child' ? 'id' : 'id, v';
		my $query = "SELECT string_agg(r::text, '|' ORDER BY r) FROM (SELECT $columns FROM $table WHERE id > 0) r";

		is($subscriber->safe_psql('postgres', $query),
			$publisher->safe_psql('postgres', $query),
			"$table is replicated $when");
	}
	return;
}

# What the log of a table has got since the last call
my %position = map { $_ => 0 } @tables;
sub changes
{
	my ($table, $columns) = @_;
	my $upto =
	  $subscriber->safe_psql('postgres', "SELECT cdc.current_snapshot('$table')");
	my $result = $subscriber->safe_psql(
		'postgres', qq{
SELECT string_agg(format('%s %s', left(_change_type, 1), ($columns)::text), ' ' ORDER BY _change_ordinal, $columns, _change_type)
FROM ${table}_changelog($position{$table}, $upto, NULL, 'all')});

	my $snapshots = $upto - $position{$table};
	$position{$table} = $upto;
	return "$snapshots: $result";
}

# Initial copy
$subscriber->safe_psql('postgres',
	"CREATE SUBSCRIPTION sub CONNECTION '$connstr' PUBLICATION pub, pub_root WITH (streaming = on, two_phase = on)"
);
$subscriber->wait_for_subscription_sync($publisher, 'sub');
check_replica('after the initial copy');
check_tables('after the initial copy');
is( $subscriber->safe_psql(
		'postgres',
		"SELECT count(*), min(_change_type), max(_change_type), max(_change_ordinal) FROM t_changelog(0)"
	),
	'1000|INSERT|INSERT|1',
	'the copy was logged once');
is( $subscriber->safe_psql(
		'postgres',
		"SELECT count(*), min(_change_type), max(_change_type) FROM p_same_changelog(0, NULL, NULL, 'all')"
	),
	'199|INSERT|INSERT',
	'the copy of the partitions was logged once');
changes($_, $_ eq 'nokey' ? 'v' : 'id') foreach @tables;

# Changes, one snapshot for one transaction of the publisher
$publisher->safe_psql(
	'postgres', q{
BEGIN;
INSERT INTO t VALUES (2001, 'new', 'small'), (2002, 'new', NULL);
UPDATE t SET v = 'changed' WHERE id IN (10, 11);
UPDATE t SET id = 2003 WHERE id = 20;
DELETE FROM t WHERE id IN (1, 30);
SAVEPOINT s;
DELETE FROM t;
ROLLBACK TO s;
COMMIT;
BEGIN; UPDATE t SET v = 'never'; ROLLBACK;
UPDATE t SET v = v WHERE id < 100;
UPDATE nokey SET w = 7 WHERE w = 1;
DELETE FROM nokey WHERE ctid = (SELECT ctid FROM nokey WHERE w = 2 LIMIT 1);
DELETE FROM p_same WHERE id IN (100, 101);
UPDATE p_same SET id = id + 99 WHERE id IN (1, 2);
DELETE FROM p_same WHERE id IN (3, 150);
UPDATE p_root SET id = 0 WHERE id = 77;
UPDATE p_root_2 SET v = 'leaf' WHERE id = 78;
DELETE FROM p_flat WHERE id = 9;
UPDATE p_flat SET v = 'flat' WHERE id IN (10, 11);
});
$publisher->wait_for_catchup('sub');
check_replica('after changes');
check_tables('after changes');
is( changes('t', 'id, v'),
	'1: D (1,"row 1") I (10,changed) D (10,"row 10") I (11,changed) D (11,"row 11") D (20,"row 20") D (30,"row 30") I (2001,new) I (2002,new) I (2003,"row 20")',
	'changes of t');
is(changes('child', 'id'), '1: D 1', 'a delete that cascaded');
is(changes('nokey', 'v, w'),
	'2: D (dup,1) D (dup,1) D (dup,1) I (dup,7) I (dup,7) I (dup,7) D (dup,2)',
	'changes of a table without a key');
is( changes('p_same', 'id, v'),
	'3: D (100,copied) D (101,copied) D (1,copied) D (2,copied) I (100,copied) I (101,copied) D (3,copied) D (150,copied)',
	'changes of a partitioned table');
is( changes('p_root', 'id, v'),
	'2: I (0,copied) D (77,copied) D (78,copied) I (78,leaf)',
	'changes that were published through the root');
is( changes('p_flat', 'id, v'),
	'2: D (9,copied) D (10,copied) I (10,flat) D (11,copied) I (11,flat)',
	'changes of partitions in an ordinary table');

# A large transaction, which is streamed, and one that is prepared
$publisher->safe_psql(
	'postgres', q{
BEGIN;
INSERT INTO t SELECT i, repeat('s', 100) FROM generate_series(3000, 7999) i;
SAVEPOINT a;
UPDATE t SET v = 'streamed' WHERE id < 500;
ROLLBACK TO a;
UPDATE t SET v = 'streamed' WHERE id >= 7000;
DELETE FROM t WHERE id BETWEEN 3000 AND 3999;
COMMIT;
BEGIN;
UPDATE t SET v = 'prepared' WHERE id = 2001;
UPDATE p_same SET v = 'prepared' WHERE id = 4;
PREPARE TRANSACTION 'a';
BEGIN;
UPDATE t SET v = 'aborted' WHERE id = 2002;
PREPARE TRANSACTION 'b';
});
$publisher->wait_for_catchup('sub');
$publisher->safe_psql('postgres',
	"COMMIT PREPARED 'a'; ROLLBACK PREPARED 'b'");
$publisher->wait_for_catchup('sub');
check_replica('after large and prepared transactions');
check_tables('after large and prepared transactions');
is( $subscriber->safe_psql(
		'postgres',
		"SELECT count(*), count(*) FILTER (WHERE v = 'prepared'), count(*) FILTER (WHERE v = 'aborted') FROM t_changelog($position{t}, NULL, ARRAY['id'])"
	),
	'4001|1|0',
	'what the large transaction did in the end was logged');
changes($_, 'id') foreach qw(t p_same);

# TRUNCATE
$publisher->safe_psql(
	'postgres', q{
TRUNCATE nokey;
TRUNCATE p_same_2;
TRUNCATE p_root;
BEGIN;
TRUNCATE t CASCADE;
INSERT INTO t VALUES (1, 'after');
INSERT INTO child VALUES (1);
COMMIT;
TRUNCATE p_flat;
INSERT INTO p_flat VALUES (1, 'after');
});
$publisher->wait_for_catchup('sub');
check_replica('after TRUNCATE');
check_tables('after TRUNCATE');
is( $subscriber->safe_psql(
		'postgres',
		"SELECT string_agg(n::text, ' ') FROM (SELECT count(*) FROM t_changelog($position{t}, NULL, NULL, 'all') WHERE _change_type = 'DELETE') c(n)"
	),
	'5000',
	'each row went once');

# The subscriber's own sessions, whatever their role
$subscriber->safe_psql(
	'postgres', q{
INSERT INTO t (id, v) VALUES (-1, 'local');
SET session_replication_role = replica;
INSERT INTO t (id, v) VALUES (-2, 'replica');
UPDATE t SET v = v || '!' WHERE id < 0;
INSERT INTO p_same VALUES (-0, 'x') ON CONFLICT DO NOTHING;
UPDATE p_same SET v = 'replica' WHERE id = 0;
SET session_replication_role = local;
DELETE FROM t WHERE id = -2;
});
$publisher->safe_psql('postgres', "INSERT INTO t VALUES (2, 'both')");
$publisher->wait_for_catchup('sub');
check_tables('after changes on the subscriber');

# A table that is added later, tracked before it is copied
$publisher->safe_psql(
	'postgres', q{
CREATE TABLE late (id int PRIMARY KEY, v text);
INSERT INTO late SELECT i, 'late' FROM generate_series(1, 100) i;
CREATE PUBLICATION pub_late FOR TABLE late;
});
$subscriber->safe_psql(
	'postgres', q{
CREATE TABLE late (id int PRIMARY KEY, v text);
CREATE TABLE start_late AS TABLE late;
SELECT cdc.track('late');
});
$subscriber->safe_psql('postgres',
	"CREATE SUBSCRIPTION sub2 CONNECTION '$connstr' PUBLICATION pub_late WITH (binary = on)"
);
$subscriber->wait_for_subscription_sync($publisher, 'sub2');
@tables = (@tables, 'late');
$publisher->safe_psql('postgres', "DELETE FROM late WHERE id > 90");
$publisher->wait_for_catchup('sub2');
check_replica('after a table was added');
check_tables('after a table was added');

# The subscriber becomes a primary of its own
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION sub');
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION sub2');
$subscriber->safe_psql(
	'postgres', q{
BEGIN;
INSERT INTO t (id, v) SELECT i, 'promoted' FROM generate_series(100, 199) i;
UPDATE t SET v = v || '!' WHERE id >= 150;
DELETE FROM t WHERE id < 120;
COMMIT;
UPDATE p_same SET id = id + 100 WHERE id BETWEEN 10 AND 20;
TRUNCATE p_root, late;
INSERT INTO late VALUES (1, 'own');
});
check_tables('after promotion');
is( $subscriber->safe_psql(
		'postgres', 'SELECT count(*) FROM cdc.check() WHERE level = \'error\''),
	'0', 'nothing is wrong with the triggers');

$subscriber->stop;
$publisher->stop;

done_testing();
