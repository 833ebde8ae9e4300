
# Copyright (c) 2026, the cdc_changelog authors

# pg_upgrade.  It moves the files of all tables, and so the log is the same to
# the byte; but the definitions go through pg_dump, and lose what pg_dump does
# not know.  History, new changes and the cleaning up work as before.
#
# It needs TAP because it needs two servers.  The new one is of the same major
# version, which pg_upgrade does not mind.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $old = PostgreSQL::Test::Cluster->new('old');
$old->init;
$old->start;
$old->safe_psql(
	'postgres', q{
CREATE EXTENSION cdc_changelog;
CREATE TABLE t (id int PRIMARY KEY, gone int, v text);
INSERT INTO t SELECT i, i, 'v' || i FROM generate_series(1, 10) i;
ALTER TABLE t DROP COLUMN gone;
CREATE TABLE bag (v text);
CREATE TABLE parts (id int, k int, v text) PARTITION BY LIST (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 (k int, v text, id int);
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES IN (2);
SELECT cdc.track('t'), cdc.track('bag'), cdc.track('parts');
INSERT INTO t VALUES (11, 'eleven');
INSERT INTO bag VALUES ('a'), ('a'), (NULL);
BEGIN;
UPDATE t SET v = v || '!' WHERE id < 5;
DELETE FROM bag WHERE v IS NULL;
COMMIT;
BEGIN;
DELETE FROM t;
ROLLBACK;
ALTER TABLE t ADD COLUMN w int DEFAULT 7;
UPDATE t SET w = id WHERE id > 8;
INSERT INTO t SELECT 100, string_agg(md5(i::text), ''), 0 FROM generate_series(1, 2000) i;
INSERT INTO parts VALUES (1, 1, 'a'), (2, 2, 'b');
UPDATE parts SET k = 3 - k;
});

sub everything
{
	my ($node) = @_;

	return $node->safe_psql(
		'postgres', q{
SELECT m, s, e, c.* FROM generate_series(0, 4) s, generate_series(s, 4) e, (VALUES ('net'), ('all')) m(m),
  LATERAL t_changelog(s, e, NULL, m) c ORDER BY c::text;
SELECT m, c.* FROM (VALUES ('net'), ('all'), ('latest'), ('latest_pair')) m(m), LATERAL t_changelog(0, NULL, '{id}', m) c
 ORDER BY c::text;
SELECT * FROM t_changelog() ORDER BY id;
SELECT * FROM bag_changelog(0, NULL, NULL, 'all') c ORDER BY c::text;
SELECT * FROM parts_changelog(0, NULL, NULL, 'all') c ORDER BY c::text;
SELECT s.* FROM cdc.tracked_tables t, cdc.snapshots(t.relation) s ORDER BY s::text;
SELECT relation, log_rows, snapshots, oldest_snapshot, newest_snapshot, tracked_at, changelog_function
  FROM cdc.tracked_tables ORDER BY relation::text;
SELECT tgrelid::regclass::text, tgname, tgenabled FROM pg_trigger WHERE tgname ~ 'cdc_changelog_' ORDER BY 1, 2;
SELECT v.* FROM cdc.tracked_tables t, cdc.verify(t.relation) v;
SELECT * FROM cdc.check();
});
}

my $before = everything($old);
my $newest = $old->safe_psql('postgres', q{SELECT cdc.current_snapshot('t')});
$old->stop;

my $new = PostgreSQL::Test::Cluster->new('new');
$new->init;

# it writes files where it is started
my $bindir = $old->config_data('--bindir');
chdir PostgreSQL::Test::Utils::tempdir;
command_ok(
	[
		'pg_upgrade', '--no-sync',
		'-d', $old->data_dir, '-D', $new->data_dir,
		'-b', $bindir, '-B', $bindir,
		'-s', $new->host, '-p', $old->port, '-P', $new->port
	],
	'pg_upgrade');
$new->start;

is(everything($new), $before, 'everything is read as before');
$new->safe_psql(
	'postgres', q{
INSERT INTO t VALUES (200, 'new', 1);
UPDATE t SET v = v || '+' WHERE id = 1;
UPDATE parts SET k = 3 - k WHERE id = 1;
});
is( $new->safe_psql(
		'postgres',
		"SELECT id, v, _change_type, _change_ordinal - $newest FROM t_changelog($newest) ORDER BY 4, 3"),
	"200|new|INSERT|1\n1|v1!|DELETE|2\n1|v1!+|INSERT|2",
	'new changes are captured once, under new numbers');
is( $new->safe_psql(
		'postgres', q{
SELECT count(*) - count(DISTINCT (table_id, tx)) FROM cdc.snapshot WHERE snapshot_id > 0;
SELECT v.* FROM cdc.tracked_tables t, cdc.verify(t.relation) v;
SELECT * FROM cdc.check()}),
	'0', 'there is no problem');
is( $new->safe_psql(
		'postgres', q{
ALTER TABLE t ADD COLUMN x int, DROP COLUMN w;
UPDATE t SET x = 1 WHERE id = 1;
SELECT id, v, x, _change_type FROM t_changelog(1, NULL, '{id}') WHERE id = 1}),
	'1|v1!+|1|UPDATE_AFTER', 'the table can be changed');
$new->safe_psql('postgres', 'DROP TABLE t, bag, parts');
is( $new->safe_psql(
		'postgres', q{
SELECT relname FROM pg_class WHERE relnamespace = 'cdc_log'::regnamespace;
SELECT proname FROM pg_proc WHERE prosrc = 'cdc_changelog_typed';
SELECT table_id FROM cdc.snapshot}),
	'', 'DROP TABLE takes everything along');
$new->safe_psql('postgres', 'DROP EXTENSION cdc_changelog');
is($new->safe_psql('postgres', q{SELECT nspname FROM pg_namespace WHERE nspname = 'cdc_log'}),
	'', 'so does DROP EXTENSION');

$new->stop;
done_testing();
