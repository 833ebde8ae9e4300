
# Copyright (c) 2026, the cdc_changelog authors

# Changelogs applied to foreign tables, and to a partitioned table with a
# foreign partition.  There is no index to rely on, no ON CONFLICT and no MERGE.
#
# It needs TAP because postgres_fdw needs a server that lets it in.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->start;

$node->safe_psql('postgres', 'CREATE DATABASE remote');
$node->safe_psql(
	'remote', q{
CREATE TABLE t (id int PRIMARY KEY, v text, amount numeric(10, 2), changes int NOT NULL DEFAULT 0);
INSERT INTO t SELECT i, 'v' || i, i FROM generate_series(1, 1000) i;
CREATE TABLE part (id int, v text, region text);
INSERT INTO part VALUES (1, 'one', 'us'), (2, 'two', 'us');
CREATE FUNCTION count_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.changes := OLD.changes + 1;
  RETURN NEW;
END $$;
CREATE TRIGGER count_changes BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION count_changes();
});
my ($host, $port) = ($node->host, $node->port);
$node->safe_psql(
	'postgres', qq{
CREATE EXTENSION cdc_changelog;
CREATE EXTENSION postgres_fdw;
CREATE SERVER remote FOREIGN DATA WRAPPER postgres_fdw
  OPTIONS (host '$host', port '$port', dbname 'remote');
CREATE USER MAPPING FOR CURRENT_USER SERVER remote;
CREATE FOREIGN TABLE t (id int, v text, amount numeric(10, 2)) SERVER remote;
CREATE TABLE part (id int, v text, region text) PARTITION BY LIST (region);
CREATE TABLE part_eu PARTITION OF part FOR VALUES IN ('eu');
CREATE FOREIGN TABLE part_us PARTITION OF part FOR VALUES IN ('us') SERVER remote OPTIONS (table_name 'part');
INSERT INTO part VALUES (3, 'three', 'eu');
CREATE TABLE changes AS
SELECT CASE i % 3 WHEN 0 THEN 'DELETE' ELSE 'UPDATE_AFTER' END AS _change_type,
       i AS id, 'v' || i AS v, (i + i % 2)::numeric(10, 2) AS amount
  FROM generate_series(901, 1200) i;
});

my $apply = q{SELECT cdc.apply_changelog('t', 'changes', ARRAY['id'])};

# 901 to 1000: 34 deletes, 33 odd ones that change and 33 even ones that do not
my ($updated, $unchanged, $deleted) = split /\|/, $node->safe_psql(
	'postgres', q{
SELECT count(*) FILTER (WHERE _change_type <> 'DELETE' AND amount <> id),
       count(*) FILTER (WHERE _change_type <> 'DELETE' AND amount = id),
       count(*) FILTER (WHERE _change_type = 'DELETE')
  FROM changes WHERE id <= 1000});
my ($inserted, $missing) = split /\|/, $node->safe_psql(
	'postgres', q{
SELECT count(*) FILTER (WHERE _change_type <> 'DELETE'),
       count(*) FILTER (WHERE _change_type = 'DELETE')
  FROM changes WHERE id > 1000});
is($node->safe_psql('postgres', $apply),
	"($inserted,$updated,$deleted,$unchanged,$missing,0)",
	'counts of changes to a foreign table');

my $differences = q{
SELECT count(*) FROM (
  SELECT id, v, amount FROM t
  EXCEPT ALL
  (SELECT i, 'v' || i, i FROM generate_series(1, 900) i
   UNION ALL SELECT id, v, amount FROM changes WHERE _change_type <> 'DELETE')) x};
is($node->safe_psql('postgres', $differences), 0, 'rows of the foreign table');
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'),
	$node->safe_psql('postgres', q{SELECT 900 + count(*) FROM changes WHERE _change_type <> 'DELETE'}),
	'number of rows of the foreign table');
is( $node->safe_psql('remote', 'SELECT sum(changes), max(changes) FROM t'),
	"$updated|1",
	'rows that do not change are not written');

my $again = $updated + $unchanged + $inserted;
my $gone = $deleted + $missing;
is($node->safe_psql('postgres', $apply),
	"(0,0,0,$again,$gone,0)", 'the same once more');

# a key twice in the foreign table
$node->safe_psql('remote', q{
ALTER TABLE t DROP CONSTRAINT t_pkey;
INSERT INTO t SELECT * FROM t WHERE id = 1000});
my ($result, $stdout, $stderr) = $node->psql('postgres', $apply);
like(
	$stderr,
	qr/multiple rows in destination table match key \[id\]\nDETAIL:  Key \(id\)=\(1000\)/,
	'a key that a foreign table has twice');

is( $node->safe_psql(
		'postgres', q{
SELECT cdc.apply_changelog('part',
  $$ SELECT 'U' AS _change_type, 1 AS id, 'ONE' AS v, 'us' AS region
     UNION ALL SELECT 'D', 2, 'two', 'us' UNION ALL SELECT 'U', 3, 'THREE', 'eu'
     UNION ALL SELECT 'I', 4, 'four', 'us' $$, ARRAY['id', 'region'])}),
	'(1,2,1,0,0,0)',
	'counts of changes to a partitioned table with a foreign partition');
is( $node->safe_psql('postgres', 'SELECT tableoid::regclass, * FROM part ORDER BY id'),
	"part_us|1|ONE|us\npart_eu|3|THREE|eu\npart_us|4|four|us",
	'rows of a partitioned table with a foreign partition');

# the whole content, with rows that are right and NULL where no one forbids it
$node->safe_psql('remote', 'DELETE FROM t WHERE id > 900');
my $changes = $node->safe_psql('remote', 'SELECT sum(changes) FROM t WHERE id <= 800');
$node->safe_psql('remote',
	q{ALTER TABLE t ALTER id DROP NOT NULL; INSERT INTO t VALUES (NULL, 'nobody', 0)});
is( $node->safe_psql(
		'postgres', q{
SELECT cdc.apply_changelog('t',
  $$ SELECT 'INSERT' AS _change_type, i AS id, 'v' || i AS v, CASE i WHEN 5 THEN 0 ELSE i END AS amount
       FROM generate_series(1, 800) i UNION ALL SELECT 'INSERT', 5000, 'new', 1 $$,
  ARRAY['id'], complete => true)}),
	'(1,1,101,799,0,0)',
	'counts of the whole content of a foreign table');
is( $node->safe_psql('remote',
		'SELECT count(*), max(id), sum(changes), count(*) FILTER (WHERE id IS NULL) FROM t'),
	'801|5000|' . ($changes + 1) . '|0',
	'the whole content of a foreign table');
is( $node->safe_psql(
		'postgres', q{
SELECT cdc.apply_changelog('part',
  $$ SELECT 'U' AS _change_type, 4 AS id, 'FOUR' AS v, 'us' AS region
     UNION ALL SELECT 'U', 1, 'ONE', 'us' $$, ARRAY['id', 'region'], complete => true)}),
	'(0,1,1,1,0,0)',
	'whole content of a partitioned table with a foreign partition');
is( $node->safe_psql(
		'postgres', q{
SELECT cdc.apply_changelog('t', $$ SELECT 6000 + i AS id FROM generate_series(1, 10) i $$, NULL, append => true)}),
	'(10,0,0,0,0,0)',
	'rows appended to a foreign table');
my ($guarded, $out, $guard_error) = $node->psql('postgres',
	q{SELECT cdc.apply_changelog('t', $$ SELECT 'D' AS _change_type, i AS id FROM generate_series(1, 100) i $$,
  ARRAY['id'], max_deletes => '10%')});
like(
	$guard_error,
	qr/changelog deletes 100 rows of "t", more than the limit of 10%\nDETAIL:  The target had 811 rows/,
	'limit for deletes in a foreign table');
is($node->safe_psql('remote', 'SELECT count(*) FROM t WHERE id <= 100'),
	100, 'nothing is deleted beyond the limit');

# the row of an aborted transaction is not there, either
$node->psql(
	'postgres', q{
BEGIN;
SELECT cdc.apply_changelog('part', $$ SELECT 'D' AS _change_type, 1 AS id, 'us' AS region $$, ARRAY['id', 'region']);
SELECT 1 / 0;
COMMIT});
is($node->safe_psql('remote', 'SELECT v FROM part WHERE id = 1'),
	'ONE', 'rolled back with the transaction');

$node->stop;
done_testing();
