
# Copyright (c) 2026, the cdc_changelog authors

# Partitions that are foreign tables.  What this server changes in them is in
# the log.  Their content is not told, as it may be changed elsewhere; and
# where they come, go or are truncated there is a gap.
#
# It needs TAP because a second database stands for the other server.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->start;

if ($node->safe_psql('postgres',
		"SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'")
	eq '0')
{
	$node->stop;
	plan skip_all => 'postgres_fdw is not installed';
}

my ($host, $port) = ($node->host, $node->port);

$node->safe_psql('postgres', 'CREATE DATABASE elsewhere');
$node->safe_psql(
	'elsewhere', q{
CREATE TABLE remote (v text, id int NOT NULL);
INSERT INTO remote VALUES ('remote', 100);
});
my ($result, $stdout, $stderr);
$node->psql(
	'postgres', qq{
CREATE EXTENSION cdc_changelog;
CREATE EXTENSION postgres_fdw;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw
OPTIONS (host '$host', port '$port', dbname 'elsewhere');
CREATE USER MAPPING FOR CURRENT_USER SERVER elsewhere;
CREATE TABLE f (id int NOT NULL, v text) PARTITION BY RANGE (id);
CREATE TABLE f_local PARTITION OF f FOR VALUES FROM (0) TO (100);
CREATE FOREIGN TABLE f_remote PARTITION OF f FOR VALUES FROM (100) TO (200)
SERVER elsewhere OPTIONS (table_name 'remote');
INSERT INTO f VALUES (1, 'local');
SELECT cdc.track('f');
}, stderr => \$stderr, on_error_die => 1);
like(
	$stderr,
	qr/WARNING:  partition "f_remote" of table "f" is a foreign table/,
	'the user is warned');

# The last snapshot of the table
sub last_snapshot
{
	return $node->safe_psql('postgres',
		"SELECT concat_ws(' ', kind, inserted, deleted, reason) FROM cdc.snapshots('f') ORDER BY snapshot_id DESC LIMIT 1"
	);
}

# Changes since a snapshot
sub changes
{
	my ($since, $options) = @_;

	return $node->safe_psql(
		'postgres', qq{
SELECT string_agg(format('%s %s %s@%s', _change_type, id, v, _change_ordinal), ', '
                  ORDER BY _change_ordinal, id, _change_type)
FROM f_changelog($since, NULL, $options)});
}

# Statements raise the error
sub fails_like
{
	my ($sql, $pattern, $name) = @_;

	$result = $node->psql('postgres', $sql, stderr => \$stderr);
	isnt($result, 0, "$name: fails");
	like($stderr, $pattern, $name);
	return;
}

$node->safe_psql(
	'postgres', q{
INSERT INTO f VALUES (2, 'new'), (101, 'routed');
INSERT INTO f_remote VALUES (102, 'direct');
UPDATE f SET v = v || '!' WHERE id IN (1, 101);
UPDATE f SET id = id + 100 WHERE id = 2;	-- moves to the other server
DELETE FROM f WHERE id = 100;
COPY f FROM PROGRAM 'printf "3\\tcopy\\n103\\tcopy\\n"';
});
is( changes(0, "NULL, 'all'"),
	'INSERT 2 new@1, INSERT 101 routed@1, INSERT 102 direct@2, '
	  . 'DELETE 1 local@3, INSERT 1 local!@3, DELETE 101 routed@3, INSERT 101 routed!@3, '
	  . 'DELETE 2 new@4, INSERT 102 new@4, DELETE 100 remote@5, '
	  . 'INSERT 3 copy@6, INSERT 103 copy@6',
	'changes of either partition are logged');
is( $node->safe_psql('elsewhere', "SELECT count(*) FROM remote"),
	'4', 'and are made');
like(
	changes(0, "ARRAY['id'], validate => false"),
	qr/^UPDATE_AFTER 1 local!\@3, UPDATE_AFTER 101 routed!\@3, DELETE 2/,
	'changes by key');
fails_like(
	'SELECT * FROM f_changelog()',
	qr/content of table "f" cannot be told\nDETAIL:  Partition "f_remote" is a foreign table/,
	'content');
fails_like(
	"SELECT * FROM f_changelog(0, NULL, ARRAY['id'])",
	qr/content of table "f" cannot be told/,
	'validation of keys');
fails_like("SELECT * FROM cdc.as_of(NULL::f, 0)",
	qr/content of table "f" cannot be told/, 'as of');

# Gaps
$node->safe_psql('postgres', 'TRUNCATE f');
is( last_snapshot(),
	'gap 0 2 foreign table "f_remote" was truncated',
	'TRUNCATE');
$node->safe_psql('postgres', "INSERT INTO f VALUES (104, 'after')");
is(changes(7, 'NULL'), 'INSERT 104 after@8', 'the changelog goes on');
$node->safe_psql('postgres', 'ALTER TABLE f DETACH PARTITION f_remote');
is( last_snapshot(), 'gap 0 0 foreign table "f_remote" was detached',
	'DETACH');
$node->safe_psql('postgres', "INSERT INTO f VALUES (4, 'local')");
is( changes('NULL', 'NULL'), 'INSERT 4 local@10',
	'without foreign tables the content is known again');
$node->safe_psql('postgres',
	'ALTER TABLE f ATTACH PARTITION f_remote FOR VALUES FROM (100) TO (200)');
is( last_snapshot(),
	'gap 0 0 foreign table "f_remote" was attached as a partition',
	'ATTACH');
$node->safe_psql('postgres',
	"CREATE FOREIGN TABLE f_new PARTITION OF f FOR VALUES FROM (200) TO (300) SERVER elsewhere OPTIONS (table_name 'remote')"
);
is( last_snapshot(),
	'gap 0 0 foreign table "f_new" was attached as a partition',
	'CREATE');
$node->safe_psql('postgres', 'DROP FOREIGN TABLE f_new');
is(last_snapshot(), 'gap 0 0 foreign table "f_new" was detached', 'DROP');
$node->safe_psql('postgres', 'DROP SERVER elsewhere CASCADE');
is( last_snapshot(),
	'gap 0 0 a partition was dropped together with other objects',
	'DROP SERVER');
$node->safe_psql('postgres', "INSERT INTO f VALUES (5, 'five')");
is( changes('NULL', 'NULL'),
	'INSERT 4 local@14, INSERT 5 five@15',
	'content after it');
$node->safe_psql('postgres', "SELECT cdc.untrack('f'); DROP TABLE f");

$node->stop;

done_testing();
