
# Copyright (c) 2026, the cdc_changelog authors

# Torture: everything that can happen to tracked tables, in random order, from
# several sessions whose transactions are open at the same time.  After each
# step, ranges of snapshots taken at random must be told exactly, or be refused
# for a reason that the test has given itself.
#
# The oracle is a copy of the table, taken from the table itself after each
# transaction that committed, with the number of its snapshot.  Where a command
# changes the table's columns, it does the same to the copies, in the same
# transaction, so they too are in the table's present shape.  A snapshot has no
# copy where a prepared transaction that has drawn a smaller number is pending,
# because the table does not contain its changes yet.
#
# The steps are drawn from a generator of its own, so that a seed gives the same
# ones everywhere, and run one after the other: what overlaps are transactions.
# A lock that another transaction holds is not waited for, it fails the step.
#
# Settings: CDC_TORTURE_SEED, the first run's seed; CDC_TORTURE_RUNS;
# CDC_TORTURE_STEPS; CDC_TORTURE_TRACE, if set, all commands are shown.
#
# At the end of a run, and now and then within it when no transaction is open,
# the database is dumped and restored into another one, where the same ranges
# must be told the same way and changes go on being captured.
#
# Every run has at least one kill -9 of a session and one immediate stop of the
# server.
#
# Not in here: standbys, logical replication and foreign tables have tests of
# their own; so have types other than the common ones.
#
# With wal_level = minimal, the default of this server, some of the state that
# crashes must not lose is written in other ways than usual.
#
# It needs TAP because of its sessions, prepared transactions and crashes.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $runs = $ENV{CDC_TORTURE_RUNS} || ($ENV{CDC_FULL} ? 20 : 2);
my $steps = $ENV{CDC_TORTURE_STEPS} || ($ENV{CDC_FULL} ? 1000 : 150);
my $first_seed = $ENV{CDC_TORTURE_SEED} || 20260801;
my $nsessions = 3;
my $dir = PostgreSQL::Test::Utils::tempdir;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
max_prepared_transactions = 10
restart_after_crash = on
autovacuum = off
jit = off
log_statement = none
log_min_error_statement = panic
lock_timeout = 30ms
cdc_changelog.horizon_timeout = 20ms
shared_buffers = 32MB
});
$node->start;

# What may go wrong with a command of the user without anything being wrong:
# a unique key, a value that does not fit, a lock that is held
my %harmless = map { $_ => 1 }
  qw(23505 23502 23514 22001 22003 22P02 22007 55P03 55006);

# State of the run: the generator, sessions, tables and prepared
# transactions, and what was done, for the report of a failure
my ($random, $step, @sessions, $checker, @tables, @prepared, @history,
	$failure, $serial, %done);

# A number from 0 to n - 1
sub draw
{
	my ($n) = @_;

	$random = ($random * 1103515245 + 12345) % 2147483648;
	return int($random / 65536) % $n;
}

# One of a list, or undef if it is empty
sub pick
{
	return scalar(@_) ? $_[ draw(scalar @_) ] : undef;
}

sub failed
{
	my ($what) = @_;

	$failure //= "step $step: $what";
	return;
}

#
# Sessions
#

sub connect_session
{
	my ($name) = @_;
	my $s = { name => $name, in => '', out => '', err => '' };

	$s->{psql} = IPC::Run::start(
		[
			'psql', '-XAtq', '-d', $node->connstr('postgres'), '-f', '-',
			'-v', 'VERBOSITY=verbose'
		],
		'<', \$s->{in}, '>', \$s->{out}, '2>', \$s->{err},
		IPC::Run::timeout(20 * $PostgreSQL::Test::Utils::timeout_default));
	forget($s);
	$s->{pid} = ask($s, 'SELECT pg_backend_pid()');
	return $s;
}

# Takes a session out of its transaction.
sub forget
{
	my ($s) = @_;

	@$s{qw(tx dirty gap lost lock)} = (0, {}, {}, {}, {});
	return;
}

# Sends a command.  Returns its output and the SQLSTATE of its first error.
sub run
{
	my ($s, $sql) = @_;
	my $end = '~' . ++$serial . '~';

	if ($s->{name} ne 'checker')
	{
		push @history, "$step $s->{name}: $sql";
		diag("$step $s->{name}: $sql") if $ENV{CDC_TORTURE_TRACE};
	}
	$s->{out} = $s->{err} = '';
	$s->{in} .= "$sql\n;\n\\echo $end\n\\warn $end\n";
	$s->{psql}->pump
	  until $s->{out} =~ /^\Q$end\E$/m && $s->{err} =~ /\Q$end\E$/m;
	$s->{out} =~ s/^\Q$end\E\n//m;
	chomp $s->{out};
	my ($state, $text) = $s->{err} =~ /(?:ERROR|FATAL):\s+(\w{5}): (.*)/;
	push @history, "    -> $state $text" if $state && $s->{name} ne 'checker';
	diag("    -> $state $text")
	  if $ENV{CDC_TORTURE_TRACE} && $state && $s->{name} ne 'checker';
	return ($s->{out}, $state // '');
}

# As run, for a question that cannot fail
sub ask
{
	my ($s, $sql) = @_;
	my ($out, $state) = run($s, $sql);

	failed("$sql: $s->{err}") if $state;
	return $out;
}

#
# Tables
#

# The table's name as the session sees it; it may be renamed at any time.
sub table_name
{
	my ($s, $t) = @_;
	my $sql = "SELECT format('%I.%I', relnamespace::regnamespace, relname)"
	  . " FROM pg_class WHERE oid = $t->{oid}";

	return quiet($s, $sql);
}

# Columns as [name, type, generated]
sub columns
{
	my ($s, $t) = @_;
	my $sql = "SELECT attname, format_type(atttypid, atttypmod), attgenerated"
	  . " FROM pg_attribute WHERE attrelid = $t->{oid} AND attnum > 0"
	  . " AND NOT attisdropped ORDER BY attnum";

	return map { [ split(/\|/, $_, -1) ] } split(/\n/, quiet($s, $sql));
}

# A question of the generator, which is not shown
sub quiet
{
	my ($s, $sql) = @_;
	local $s->{name} = 'checker';

	return ask($s, $sql);
}

# Columns whose values and definitions change: all but the keys
sub free_columns
{
	my ($s, $t) = @_;

	return grep { $_->[0] !~ /^(id|part)$/ } columns($s, $t);
}

# A value of a type, depending on the expression g
sub value
{
	my ($type, $g) = @_;
	my $n = draw(50);
	my $value;

	if (draw(10) == 0)
	{
		$value = 'NULL';
	}
	elsif ($type =~ /^(integer|bigint)$/)
	{
		$value = "(($g + $n) % 5)";
	}
	elsif ($type =~ /^numeric/)
	{
		$value = "(($g + $n) % 4)::" . pick('numeric', 'numeric(9,2)');
	}
	elsif ($type eq 'boolean')
	{
		$value = "(($g + $n) % 2 = 0)";
	}
	elsif ($type =~ /^jsonb?$/)
	{
		$value = "to_jsonb(($g + $n) % 3)";
	}
	elsif ($type eq 'text' && draw(12) == 0)
	{
		$value = "repeat(md5((($g + $n) % 3)::text), 150)";
	}
	else
	{
		$value = "(($g + $n) % 4)::text";
	}
	return "$value\::$type";
}

sub partitions
{
	my ($s, $t) = @_;

	return split(
		/\n/,
		quiet(
			$s,
			"SELECT relname FROM pg_inherits JOIN pg_class ON oid = inhrelid"
			  . " WHERE inhparent = $t->{oid} ORDER BY relname"));
}

#
# Operations.  Each returns SQL for the session and table it is given, or
# nothing if it cannot do anything.  It notes in the session what the command
# may do: {gap} a gap, {lost} the end of older history, {lock} keep others from
# reading the table.
#

sub part_value
{
	my ($s, $t) = @_;
	my ($partition) = pick(partitions($s, $t)) // return;

	return $partition =~ /p_(\d+)$/ ? $1 : ();
}

sub op_insert
{
	my ($s, $t, $as_copy) = @_;
	my $name = table_name($s, $t);
	my @columns = grep { $_->[2] eq '' } columns($s, $t);
	my ($from, $count) = (draw(200), 1 + draw(draw(4) ? 4 : 40));
	my $part;
	my @values;

	if ($t->{partitioned})
	{
		$part = part_value($s, $t) // return;
		$name = "part.p_$part" if draw(4) == 0;
	}
	@columns = grep { $_->[0] =~ /^(id|part)$/ || draw(5) } @columns;
	@values = map {
		    $_->[0] eq 'id' ? 'g'
		  : $_->[0] eq 'part' ? $part
		  : value($_->[1], 'g')
	} @columns;
	my $list = join(', ', map { $_->[0] } @columns);
	my $select =
	  'SELECT ' . join(', ', @values)
	  . " FROM generate_series($from, $from + $count - 1) g";

	if ($as_copy)
	{
		quiet($checker, "COPY ($select) TO '$dir/rows'");
		return "COPY $name ($list) FROM '$dir/rows'";
	}
	my $sql = "INSERT INTO $name ($list) $select";
	if ($t->{keys} && draw(2))
	{
		my @set = grep { $_->[0] !~ /^(id|part)$/ } @columns;
		$sql .=
		  ' ON CONFLICT (' . join(', ', @{ $t->{keys} }) . ') '
		  . (
			@set
			? "DO UPDATE SET $set[0][0] = EXCLUDED.$set[0][0]"
			: 'DO NOTHING');
	}
	return $sql;
}

sub op_copy
{
	return op_insert(@_[ 0, 1 ], 1);
}

# A condition that a few rows meet
sub condition
{
	my $m = pick(3, 5, 11);
	my $r = draw($m);

	return "id % $m = $r";
}

sub op_update
{
	my ($s, $t) = @_;
	my $name = table_name($s, $t);
	my @columns = grep { $_->[2] eq '' } free_columns($s, $t);

	return if !@columns;
	my $c = pick(@columns);
	my $value = draw(6) ? value($c->[1], 'id') : $c->[0];
	return "UPDATE $name SET $c->[0] = $value WHERE " . condition();
}

sub op_update_key
{
	my ($s, $t) = @_;
	my $name = table_name($s, $t);

	if ($t->{partitioned} && draw(2))
	{
		my $part = part_value($s, $t) // return;
		return "UPDATE $name SET part = $part WHERE " . condition();
	}
	return "UPDATE $name SET id = "
	  . pick('id + 1000', '-id', 'id % 300', 'id + 7')
	  . ' WHERE '
	  . condition();
}

sub op_delete
{
	my ($s, $t) = @_;

	return 'DELETE FROM ' . table_name($s, $t) . ' WHERE ' . condition();
}

sub op_delete_and_reinsert
{
	my ($s, $t) = @_;
	my $name = table_name($s, $t);
	my $list = join(', ',
		map { $_->[0] } grep { $_->[2] eq '' } columns($s, $t));
	my $condition = condition();

	return "CREATE TABLE scratch.moved AS SELECT $list FROM $name WHERE $condition;\n"
	  . "DELETE FROM $name WHERE $condition;\n"
	  . "INSERT INTO $name ($list) SELECT $list FROM scratch.moved;\n"
	  . 'DROP TABLE scratch.moved';
}

sub op_merge
{
	my ($s, $t) = @_;
	my $name = table_name($s, $t);
	my @columns = grep { $_->[2] eq '' } free_columns($s, $t);
	my ($from, $count) = (draw(200), 1 + draw(20));
	my ($part, $part_value) = ('', '');

	return if $node->pg_version < 15 || !@columns;
	if ($t->{partitioned})
	{
		$part_value = ', ' . (part_value($s, $t) // return);
		$part = ', part';
	}
	my $c = pick(@columns);
	return
	  "MERGE INTO $name t USING (SELECT g, "
	  . value($c->[1], 'g')
	  . " AS new FROM generate_series($from, $from + $count - 1) g) s ON t.id = s.g"
	  . ' WHEN MATCHED AND s.g % 3 = 0 THEN DELETE'
	  . " WHEN MATCHED THEN UPDATE SET $c->[0] = s.new"
	  . " WHEN NOT MATCHED THEN INSERT (id$part, $c->[0]) VALUES (s.g$part_value, s.new)";
}

sub op_truncate
{
	my ($s, $t) = @_;

	$s->{lock}{ $t->{k} } = 1;
	return 'TRUNCATE ' . table_name($s, $t);
}

# The table's columns change, and those of its copies.  What is not told of older
# history must be a gap, or history given up.
sub alter
{
	my ($s, $t, $change, $change_copy, %may) = @_;

	$s->{lock}{ $t->{k} } = 1;
	$s->{gap}{ $t->{k} } = 1 if $may{gap};
	$s->{lost}{ $t->{k} } = 1 if $may{lost};
	return
	    'ALTER TABLE '
	  . table_name($s, $t)
	  . " $change;\nALTER TABLE copy.c_$t->{k} $change_copy";
}

sub free_name
{
	my ($s, $t) = @_;
	my %taken = map { $_->[0] => 1 } columns($s, $t);

	return pick(grep { !$taken{$_} } map { "x$_" } 0 .. 9);
}

sub op_add_column
{
	my ($s, $t) = @_;
	my $name = free_name($s, $t);
	my $type = pick(qw(integer bigint text numeric boolean jsonb varchar(40)));
	my $how = draw(8);

	return if columns($s, $t) > 8;
	if ($how == 0)
	{
		return alter($s, $t,
			"ADD COLUMN $name bigint DEFAULT nextval('test.seq')",
			"ADD COLUMN $name bigint", gap => 1);
	}
	if ($how == 1)
	{
		return alter($s, $t,
			"ADD COLUMN $name bigint GENERATED ALWAYS AS (id * 2) STORED",
			"ADD COLUMN $name bigint", gap => 1);
	}
	my $column = "ADD COLUMN $name $type";
	if ($how < 5)
	{
		$column .= ' DEFAULT ' . value($type, '7');
		$column .= ' NOT NULL' if $column !~ /NULL/ && draw(2);
	}
	my $of_copy = $column;
	$of_copy =~ s/ NOT NULL//;
	return alter($s, $t, $column, $of_copy);
}

sub op_drop_column
{
	my ($s, $t) = @_;
	my @columns = free_columns($s, $t);

	return if !@columns;
	my $change = 'DROP COLUMN ' . pick(@columns)->[0];
	return alter($s, $t, $change, $change);
}

sub op_rename_column
{
	my ($s, $t) = @_;
	my @columns = free_columns($s, $t);

	return if !@columns;
	my $one = pick(@columns)->[0];
	my $two = pick(@columns)->[0];
	my @changes;
	if ($one ne $two)
	{
		@changes = (
			"RENAME COLUMN $one TO x_",
			"RENAME COLUMN $two TO $one",
			"RENAME COLUMN x_ TO $two");
	}
	else
	{
		@changes = ("RENAME COLUMN $one TO " . free_name($s, $t));
	}
	return join(";\n", map { alter($s, $t, $_, $_) } @changes);
}

sub op_alter_type
{
	my ($s, $t) = @_;
	my ($c) = pick(grep { $_->[2] eq '' } free_columns($s, $t)) // return;
	my ($name, $type) = @$c;
	my %casts = (
		'integer' => [qw(bigint numeric text)],
		'bigint' => [qw(integer numeric text)],
		'numeric' => [ "numeric(12,3)", "bigint", "text" ],
		'text' => [qw(varchar(60) text varchar(2))],
		'boolean' => [qw(text)],
		'jsonb' => [qw(text json)],);
	my $to = $type =~ /^character/ ? pick(qw(text varchar(80)))
	  : $type =~ /^numeric/ ? pick(@{ $casts{numeric} })
	  : pick(@{ $casts{$type} // return });
	my $using = '';

	if (draw(3) == 0)
	{
		$to = pick(qw(text numeric)) if draw(2);
		$using = $to eq 'text' ? " USING $name\::text || '!'" : " USING length($name\::text)::text::$to"
		  if $to =~ /^(text|numeric|bigint|integer)$/;
	}
	my $table = table_name($s, $t);
	my $change = "ALTER COLUMN $name DROP DEFAULT, ALTER COLUMN $name TYPE $to";
	my $of_copy = $change;
	my $forget = "DELETE FROM copy.c_$t->{k}; DELETE FROM test.saved WHERE k = $t->{k}";
	my $before = '';
	$change .= $using;
	@{$s}{qw(gap lost lock)} = map {
		{ %{ $s->{$_} }, $t->{k} => 1 }
	} qw(gap lost lock);

	# What a USING makes of older history is the log's affair.  It keeps the
	# values where the bytes of both types are the same.
	if ($using ne '' && ($to ne 'text' || $type !~ /^(text|character)/))
	{
		$before = "$forget; ";
		$of_copy = $change;
	}

	# copies of long ago need not have values that the table could have now
	return "ALTER TABLE $table $change;\n"
	  . "DO \$x\$ BEGIN ${before}ALTER TABLE copy.c_$t->{k} $of_copy;"
	  . " EXCEPTION WHEN data_exception THEN $forget; ALTER TABLE copy.c_$t->{k} $of_copy; END \$x\$";
}

sub op_column_setting
{
	my ($s, $t) = @_;
	my @columns = grep { $_->[2] eq '' } free_columns($s, $t);

	return if !@columns;
	my $c = pick(@columns);
	$s->{lock}{ $t->{k} } = 1;
	return
	  'ALTER TABLE ' . table_name($s, $t) . ' ALTER COLUMN ' . $c->[0] . ' '
	  . pick('SET NOT NULL', 'DROP NOT NULL', 'DROP DEFAULT',
		'SET DEFAULT ' . value($c->[1], '3'));
}

sub op_move_table
{
	my ($s, $t) = @_;

	$s->{lock}{ $t->{k} } = 1;
	return 'ALTER TABLE ' . table_name($s, $t)
	  . (
		draw(2)
		? ' SET SCHEMA ' . pick(qw(public other))
		: " RENAME TO $t->{name}_" . ++$serial);
}

# Storage and ownership: nothing is captured, and nothing lost
sub op_storage
{
	my ($s, $t) = @_;
	my $name = table_name($s, $t);
	my $how = draw(4);

	$s->{lock}{ $t->{k} } = 1;
	return "ALTER TABLE $name OWNER TO " . pick(qw(postgres torture)) if $how == 0;
	return "ALTER TABLE $name SET TABLESPACE " . pick(qw(pg_default torture)) if $how == 1;
	return if $t->{partitioned};
	if ($how == 2)
	{
		my $index = quiet($s,
			"SELECT min(quote_ident(relname)) FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE indrelid = $t->{oid}");
		return $index eq '' ? () : "CLUSTER $name USING $index";
	}
	return "ALTER TABLE $name SET " . pick('LOGGED', '(fillfactor = 50)');
}

# Refused, and all is as before
sub op_unlogged
{
	my ($s, $t) = @_;
	my $name = table_name($s, $t);

	$s->{lock}{ $t->{k} } = 1;
	return if $t->{partitioned};
	return "DO \$x\$ BEGIN ALTER TABLE $name SET UNLOGGED; RAISE EXCEPTION 'made unlogged';"
	  . ' EXCEPTION WHEN feature_not_supported OR object_not_in_prerequisite_state THEN NULL; END $x$';
}

# Another table takes the name, and has it for a while or for good; the tracking
# stays with the table that was tracked.
sub op_swap
{
	my ($s, $t) = @_;
	my $name = table_name($s, $t);
	my ($schema, $rel) = split(/\./, $name);
	my $n = ++$serial;

	$s->{lock}{ $t->{k} } = 1;
	my $swap = "ALTER TABLE $name RENAME TO swapped_$n;\n"
	  . "CREATE TABLE $name (LIKE $schema.swapped_$n);\n"
	  . "INSERT INTO $name SELECT * FROM $schema.swapped_$n";
	$swap = "ALTER TABLE $name RENAME TO swapped_$n;\nCREATE TABLE $name (id int);\nINSERT INTO $name VALUES (1)"
	  if grep { $_->[2] ne '' } columns($s, $t);
	return "$swap;\nDROP TABLE $name" if draw(2);
	return "$swap;\nDROP TABLE $name;\nALTER TABLE $schema.swapped_$n RENAME TO $rel";
}

# A tracked table that lives for one command only, and goes with its schema or
# by itself; its columns have types that are altered and dropped
sub op_short_life
{
	my ($s, $t) = @_;
	my $n = ++$serial;
	my $verify = "DO \$x\$ BEGIN IF EXISTS (SELECT FROM cdc.verify('short_$n.t'))"
	  . " THEN RAISE EXCEPTION 'verify'; END IF; END \$x\$;\n";
	my $make = "CREATE SCHEMA short_$n;\n"
	  . "CREATE TYPE short_$n.e AS ENUM ('a', 'b');\n"
	  . "CREATE TYPE short_$n.c AS (x int, y text);\n"
	  . "CREATE DOMAIN short_$n.d AS int CHECK (VALUE > 0);\n"
	  . "CREATE TABLE short_$n.t (id int PRIMARY KEY, e short_$n.e, c short_$n.c, d short_$n.d);\n"
	  . "DO \$x\$ BEGIN PERFORM cdc.track('short_$n.t'); END \$x\$;\n"
	  . "INSERT INTO short_$n.t SELECT g, 'a', ROW(g, 'y'::text)::short_$n.c, g FROM generate_series(1, 5) g;\n"
	  . "ALTER DOMAIN short_$n.d DROP CONSTRAINT d_check;\n"
	  . "UPDATE short_$n.t SET d = -d, e = 'b' WHERE id < 3;\n"
	  . $verify
	  . pick(
		"DROP TYPE short_$n.c CASCADE",
		"DROP DOMAIN short_$n.d CASCADE",
		"ALTER TABLE short_$n.t DROP COLUMN e;\nDROP TYPE short_$n.e",
		"ALTER TYPE short_$n.e RENAME VALUE 'b' TO 'bb'")
	  . ";\nINSERT INTO short_$n.t (id) VALUES (100);\n"
	  . $verify;

	return $make
	  . pick(
		"DROP SCHEMA short_$n CASCADE",
		"DROP TABLE short_$n.t;\nDROP SCHEMA short_$n CASCADE");
}

sub op_partition
{
	my ($s, $t) = @_;
	my @partitions;
	my $n = ++$t->{partitions_made};
	my $how = draw(7);

	return if !$t->{partitioned};
	my $root = table_name($s, $t);
	@partitions = partitions($s, $t);
	my $p = pick(@partitions);
	$s->{lock}{ $t->{k} } = 1;
	if ($how == 0 && @partitions < 6)
	{
		return "CREATE TABLE part.p_$n PARTITION OF $root FOR VALUES IN ($n)" if draw(2);
		return "CREATE TABLE part.p_$n PARTITION OF $root FOR VALUES IN ($n) PARTITION BY HASH (id);\n"
		  . "CREATE TABLE part.p_${n}_0 PARTITION OF part.p_$n FOR VALUES WITH (MODULUS 2, REMAINDER 0);\n"
		  . "CREATE TABLE part.p_${n}_1 PARTITION OF part.p_$n FOR VALUES WITH (MODULUS 2, REMAINDER 1)";
	}
	if ($how <= 2 && @partitions < 6)
	{
		# its columns in another order, and a hole
		my @columns = reverse columns($s, $t);
		return if grep { $_->[2] ne '' } @columns;
		my $of = quiet($s,
			"SELECT string_agg(quote_ident(attname) || CASE WHEN attnotnull THEN ' SET NOT NULL' END, ', ALTER COLUMN ')"
			  . " FROM pg_attribute WHERE attrelid = $t->{oid} AND attnum > 0 AND NOT attisdropped AND attnotnull");
		my @filled = grep { $_->[0] !~ /^(id|part)$/ } @columns;
		return "CREATE TABLE part.p_$n (hole int, "
		  . join(', ', map { "$_->[0] $_->[1]" } @columns)
		  . ");\nALTER TABLE part.p_$n DROP COLUMN hole, ALTER COLUMN $of;\n"
		  . "INSERT INTO part.p_$n (id, part"
		  . join('', map { ", $_->[0]" } @filled)
		  . ") SELECT g, $n"
		  . join('', map { ', ' . value($_->[1], 'g') } @filled)
		  . ' FROM generate_series(1, ' . draw(20) . ") g;\n"
		  . "ALTER TABLE $root ATTACH PARTITION part.p_$n FOR VALUES IN ($n)";
	}
	return if !defined $p;
	return "TRUNCATE part.$p" if $how == 3;
	return if @partitions < 3;
	return "DROP TABLE part.$p" if $how == 4;
	return "ALTER TABLE $root DETACH PARTITION part.$p" if $how == 5;
	my ($value) = $p =~ /(\d+)$/;
	return "ALTER TABLE $root DETACH PARTITION part.$p;\n"
	  . "UPDATE part.$p SET id = id + 500 WHERE " . condition() . ";\n"
	  . "ALTER TABLE $root ATTACH PARTITION part.$p FOR VALUES IN ($value)";
}

#
# Operations that are no part of a transaction of a session
#

sub op_vacuum_full
{
	my ($t) = @_;
	my $log = quiet($checker,
		"SELECT l.log_table FROM cdc.log_segment l JOIN cdc.tracked_table USING (table_id)"
		  . " WHERE relation = $t->{oid} ORDER BY 1 DESC LIMIT 1");
	$log =~ s/\n.*//s;

	return 'VACUUM FULL ' . pick(table_name($checker, $t), $log)
	  if draw(4);
	return 'REINDEX TABLE ' . table_name($checker, $t);
}

sub op_expire
{
	my ($t) = @_;

	$t->{lost} = 1;
	return "SELECT cdc.expire_snapshots($t->{oid}::oid::regclass, retain_last => "
	  . (5 + draw(40)) . ')';
}

# Switches capture off, changes the table, and switches it on again.
sub stop_capture
{
	my ($t) = @_;
	my $name = table_name($checker, $t);
	my @triggers = split(/\n/,
		quiet($checker,
			"SELECT CASE tgenabled WHEN 'A' THEN 'ALWAYS' ELSE '' END || ' TRIGGER ' || quote_ident(tgname) FROM pg_trigger"
			  . " WHERE tgrelid = $t->{oid} AND NOT tgisinternal AND tgenabled IN ('O', 'A') ORDER BY tgname"));

	# each partition has a trigger of its own for TRUNCATE
	@triggers = grep { !/truncate/ } @triggers if $t->{partitioned};
	my $enable = pick(@triggers);
	my ($disable) = $enable =~ /(TRIGGER .*)/;
	my ($out, $state) = run_shown($checker, "ALTER TABLE $name DISABLE $disable");

	return if $state;
	my $fn = quiet($checker, "SELECT changelog_function FROM cdc.tracked_tables WHERE relation = $t->{oid}");
	run_shown($checker, op_delete($checker, $t)) if draw(2);
	run_shown($checker, op_update($checker, $t) // 'SELECT') if draw(2);
	(undef, $state) = run_shown($checker, "SELECT count(*) FROM $fn()");
	failed("$t->{name}: '$state' when capture is off") if $state ne '55000';
	(undef, $state) = run_shown($checker, "ALTER TABLE $name ENABLE $enable");
	failed("ENABLE: $state") if $state;
	$t->{gap} = $t->{changed} = 1;
	return;
}

# Waits for other transactions, so there must be none.
sub detach_concurrently
{
	my ($t) = @_;
	my @partitions = partitions($checker, $t);

	return if @partitions < 3 || @prepared || grep { $_->{tx} } @sessions;
	my $name = table_name($checker, $t);
	my ($out, $state) = run_shown($checker,
		"ALTER TABLE $name DETACH PARTITION part." . pick(@partitions) . ' CONCURRENTLY');
	failed("DETACH CONCURRENTLY: $checker->{err}") if $state && !$harmless{$state};
	$done{detached}++ if !$state;
	$t->{changed} = 1;
	return;
}

# Dumps the database and restores it into another: there, all tables are as here,
# ranges are told or refused as here, and changes are captured.
sub dump_and_restore
{
	return if @prepared || grep { $_->{tx} } @sessions;
	push @history, "$step dump and restore";
	my $from = $node->connstr('postgres');
	my $to = $node->connstr('restored');
	$node->safe_psql('postgres', 'DROP DATABASE IF EXISTS restored');
	$node->safe_psql('postgres', 'CREATE DATABASE restored');
	my $ok = PostgreSQL::Test::Utils::run_log(
		[
			'bash', '-c',
			"set -o pipefail; pg_dump -d \"\$1\" | psql -Xqb -v ON_ERROR_STOP=1 -d \"\$2\" > \"\$3/restore.log\" 2>&1",
			'bash', $from, $to, $dir
		]);
	failed('restore: ' . slurp_file("$dir/restore.log")) if !$ok;
	return if $failure;
	$done{dumps}++;
	foreach my $t (@tables)
	{
		my $name = table_name($checker, $t);
		my $result = '';

		# the name leads to the table there
		my @saved = split(/\n/,
			quiet($checker, "SELECT snapshot_id FROM test.saved WHERE k = $t->{k} ORDER BY 1"));
		next if !@saved;
		$node->safe_psql('restored',
			"UPDATE test.tab SET rel = '$name'::regclass::oid WHERE k = $t->{k}");
		foreach (1 .. 3)
		{
			my $last = $#saved - draw(3);
			my $first = $last - draw(20);
			my ($a, $b) = @saved[ $first < 0 ? 0 : $first, $last < 0 ? 0 : $last ];
			($a, $b) = ($b, $a) if $a > $b;
			$result = $node->safe_psql('restored', "SELECT test.check_range($t->{k}, $a, $b, true)");
			failed("$name ($a, $b] after a restore: $result") if $result !~ /^(ok|refused)$/;
			$done{restored}++;
		}
		# nothing is captured twice, and what comes is
		$result = $node->safe_psql('restored',
			"DELETE FROM $name WHERE id % 3 = 0; SELECT test.save($t->{k}, false, false)");
		failed("$name changed after a restore: $result") if $result ne '';
		$result = $node->safe_psql('restored',
			"SELECT test.check_range($t->{k}, $saved[-1], cdc.current_snapshot('$name'), true)");
		failed("$name after a restore and a change: $result") if $result !~ /^(ok|refused)$/;
	}
	$node->safe_psql('postgres', 'DROP DATABASE restored');
	return;
}

sub run_shown
{
	my ($s, $sql) = @_;
	local $s->{name} = 'alone';

	return run($s, $sql);
}

sub crash
{
	my ($how) = @_;

	if ($how eq 'kill')
	{
		my $s = pick(@sessions);
		push @history, "$step kill -9 of $s->{name}";
		kill 'KILL', $s->{pid};

		# the others are told to leave
		$node->poll_query_until('postgres',
			"SELECT count(*) = 0 FROM pg_stat_activity WHERE pid IN ("
			  . join(', ', map { $_->{pid} } @sessions)
			  . ')');
	}
	else
	{
		push @history, "$step immediate stop";
		$node->stop('immediate');
		$node->start;
	}
	reconnect();
	$_->{changed} = 1 foreach @tables;
	$done{ $how eq 'kill' ? 'kills' : 'stops' }++;
	return;
}

my @operations = (
	[ 12, \&op_insert ],
	[ 4, \&op_copy ],
	[ 12, \&op_update ],
	[ 5, \&op_update_key ],
	[ 7, \&op_delete ],
	[ 2, \&op_delete_and_reinsert ],
	[ 5, \&op_merge ],
	[ 1, \&op_truncate ],
	[ 2, \&op_add_column ],
	[ 1, \&op_drop_column ],
	[ 2, \&op_rename_column ],
	[ 2, \&op_alter_type ],
	[ 1, \&op_column_setting ],
	[ 2, \&op_move_table ],
	[ 10, \&op_partition ],
	[ 3, \&op_storage ],
	[ 1, \&op_unlogged ],
	[ 1, \&op_swap ],
	[ 1, \&op_short_life ],);

sub operation
{
	my ($s, $t) = @_;
	my $sum = 0;

	$sum += $_->[0] foreach @operations;
	my $n = draw($sum);
	foreach my $operation (@operations)
	{
		$n -= $operation->[0];
		return $operation->[1]->($s, $t) if $n < 0;
	}
	return;
}

#
# Checks
#

# Is the table locked by a transaction other than that of the session?
sub is_locked
{
	my ($t, $s) = @_;

	foreach my $other (@sessions, @prepared)
	{
		return 1 if $other->{lock}{ $t->{k} } && $other != $s;
	}
	return 0;
}

# Saves a copy if the table has a new snapshot; otherwise it must be what it was.
sub save
{
	my ($t) = @_;

	return if is_locked($t, $checker);
	return if grep { $_->{dirty}{ $t->{k} } } @prepared;
	my $problem = ask($checker,
		"SELECT test.save($t->{k}, "
		  . ($t->{gap} ? 'true' : 'false') . ', '
		  . ($t->{lost} ? 'true' : 'false')
		  . ')');
	failed("$t->{name}: $problem") if $problem ne '';
	$t->{gap} = $t->{lost} = $t->{changed} = 0;
	return;
}

sub check_ranges
{
	my ($t, $count) = @_;
	my $s = $checker;

	# also from within a transaction that has changes of its own
	$s = pick(@sessions) if draw(4) == 0;
	$s = $checker if $s->{gap}{ $t->{k} } || $s->{lost}{ $t->{k} };
	return if is_locked($t, $s);
	my @snapshots = split(/\n/,
		quiet($s, "SELECT snapshot_id FROM test.saved WHERE k = $t->{k} ORDER BY 1"));
	return if !@snapshots;
	foreach (1 .. $count)
	{
		my $last = draw(3) ? $#snapshots : draw(scalar @snapshots);
		my $first = $last - draw(draw(3) ? 6 : 30);
		$first = 0 if $first < 0;
		my ($a, $b) = @snapshots[ $first, $last ];
		my $problem = quiet($s,
			"SELECT test.check_range($t->{k}, $a, $b, "
			  . ($s == $checker ? 'true' : 'false')
			  . ')');
		$done{ $problem =~ /^refused/ ? 'refused' : 'told' }++;
		failed("$t->{name} ($a, $b] in $s->{name}: $problem")
		  if $problem !~ /^(ok|refused)$/;
		return if $failure;
	}
	return;
}

# Ends the transaction of a session or a prepared one that was committed.
sub committed
{
	my ($s) = @_;

	foreach my $t (@tables)
	{
		$t->{gap} ||= $s->{gap}{ $t->{k} };
		$t->{lost} ||= $s->{lost}{ $t->{k} };
		$t->{changed} ||= $s->{dirty}{ $t->{k} };
	}
	return;
}

#
# Steps
#

# Starts a new server process for a session's place after a crash.
sub reconnect
{
	foreach my $s (@sessions, $checker)
	{
		eval { $s->{in} .= "\\q\n"; $s->{psql}->finish; };
	}
	$node->poll_query_until('postgres', 'SELECT true')
	  or die 'the server does not come back';
	@sessions = map { connect_session("s$_") } 1 .. $nsessions;
	$checker = connect_session('checker');
	return;
}

# Runs one command in a session, in whatever way.
sub command
{
	my ($s) = @_;
	my $t = pick(@tables);
	my $how = draw(10);
	my %before = map { $_ => { %{ $s->{$_} } } } qw(gap lost lock);
	my $sql = operation($s, $t) // return;
	my $state;

	$s->{dirty}{ $t->{k} } = 1;
	if ($how == 0)
	{
		# all of it, or only the first half, is undone by an exception
		my $second = op_update($s, $t) // 'NULL';
		(undef, $state) = run($s,
			"DO \$do\$ BEGIN $second; BEGIN $sql; RAISE division_by_zero;"
			  . ' EXCEPTION WHEN division_by_zero THEN NULL; END; END $do$');
		$s->{$_} = $before{$_} foreach qw(gap lost);
	}
	elsif ($how == 1 && !$s->{tx})
	{
		(undef, $state) = run($s, "BEGIN;\n$sql;\nROLLBACK");
		$s->{$_} = $before{$_} foreach qw(gap lost);
	}
	elsif ($how == 2 && !$s->{tx} && $sql !~ /TABLE/)
	{
		# as rows of logical replication come
		(undef, $state) = run($s, "BEGIN;\nSET LOCAL session_replication_role = replica;\n$sql;\nCOMMIT");
	}
	elsif ($s->{tx} && $how < 6)
	{
		run($s, 'SAVEPOINT one');
		(undef, $state) = run($s, $sql);
		if ($state || draw(3) == 0)
		{
			run($s, 'ROLLBACK TO one');
			$s->{$_} = $before{$_} foreach qw(gap lost);
			failed("$sql: $s->{err}") if $state && !$harmless{$state};
			$state = '';
		}
		else
		{
			run($s, 'RELEASE one') if draw(2);
		}
	}
	elsif (!$s->{tx} && $sql =~ /;\n/)
	{
		(undef, $state) = run($s, "BEGIN;\n$sql;\nCOMMIT");
	}
	else
	{
		(undef, $state) = run($s, $sql);
	}
	failed("$sql: $state $s->{err}") if $state && !$harmless{$state};
	if ($s->{tx})
	{
		if ($state)
		{
			run($s, 'ROLLBACK');
			forget($s);
		}
	}
	else
	{
		committed($s) if !$state;
		forget($s);
	}
	return;
}

sub one_step
{
	my $s = pick(@sessions);
	my $what = draw(100);

	if (@prepared && $what < 12)
	{
		my $p = splice(@prepared, draw(scalar @prepared), 1);
		my $verb = draw(3) ? 'COMMIT' : 'ROLLBACK';
		ask($checker, "$verb PREPARED '$p->{gid}'");
		push @history, "$step checker: $verb PREPARED '$p->{gid}'";
		committed($p) if $verb eq 'COMMIT';
	}
	elsif ($what == 99 && draw(2))
	{
		crash(pick(qw(kill stop)));
	}
	elsif ($what >= 95)
	{
		my $t = pick(@tables);
		my $how = draw(10);

		if ($how == 0)
		{
			stop_capture($t);
		}
		elsif ($how == 8)
		{
			detach_concurrently($tables[2]);
		}
		elsif ($how == 9)
		{
			dump_and_restore() if draw(4) == 0;
		}
		else
		{
			my $sql = $how < 4 ? op_vacuum_full($t) : op_expire($t);
			my ($out, $state) = run_shown($checker, $sql);
			failed("$sql: $checker->{err}") if $state && !$harmless{$state};
			$t->{changed} = 1;
		}
	}
	elsif (!$s->{tx} && $what < 45)
	{
		run($s, 'BEGIN');
		$s->{tx} = 1;
		command($s);
	}
	elsif ($s->{tx} && $what < 35)
	{
		my $state;

		(undef, $state) = run($s, 'COMMIT');
		failed("COMMIT: $s->{err}") if $state;
		committed($s);
		forget($s);
	}
	elsif ($s->{tx} && $what < 43)
	{
		run($s, 'ROLLBACK');
		forget($s);
	}
	elsif ($s->{tx} && $what < 52 && @prepared < 3)
	{
		my $gid = 'p' . ++$serial;
		my ($out, $state) = run($s, "PREPARE TRANSACTION '$gid'");

		failed("PREPARE: $s->{err}") if $state;
		push @prepared,
		  {
			gid => $gid,
			map { $_ => $s->{$_} } qw(dirty gap lost lock)
		  };
		forget($s);
	}
	else
	{
		command($s);
	}
	return;
}

# What must outlive the databases
$node->safe_psql('postgres', 'CREATE ROLE torture SUPERUSER');
$node->safe_psql('postgres',
	"SET allow_in_place_tablespaces = on; CREATE TABLESPACE torture LOCATION ''");
$node->safe_psql(
	'postgres', q{
CREATE EXTENSION cdc_changelog;
CREATE SCHEMA test;
CREATE SCHEMA copy;
CREATE SCHEMA part;
CREATE SCHEMA scratch;
CREATE SCHEMA other;

-- the tables: their keys, and what is known of their snapshots
CREATE TABLE test.tab (k int PRIMARY KEY, rel oid, keys text[],
  newest bigint DEFAULT 0, oldest bigint DEFAULT 0);
CREATE TABLE test.saved (k int, snapshot_id bigint, PRIMARY KEY (k, snapshot_id));
CREATE SEQUENCE test.seq;

CREATE FUNCTION test.cols(rel oid) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog AS $$
  SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum)
    FROM pg_attribute WHERE attrelid = rel AND attnum > 0 AND NOT attisdropped;
$$;

-- compares two queries that give a column r, as bags
CREATE FUNCTION test.differences(what text, one text, two text, extra text DEFAULT '') RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
  result text;
BEGIN
  EXECUTE format($q$
    WITH %s one AS MATERIALIZED (%s), two AS MATERIALIZED (%s)
    SELECT string_agg(left(d, 200), '; ') FROM
      ((SELECT '+' || r AS d FROM (TABLE one EXCEPT ALL TABLE two) x LIMIT 4) UNION ALL
       (SELECT '-' || r FROM (TABLE two EXCEPT ALL TABLE one) x LIMIT 4)) d $q$, extra, one, two)
    INTO result;
  RETURN what || ': ' || result;
END $$;

CREATE FUNCTION test.save(k int, gap_allowed boolean, loss_allowed boolean) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
  t test.tab;
  track cdc.tracked_table;
  cols text;
  n bigint;
  result text;
BEGIN
  SELECT * INTO t FROM test.tab WHERE tab.k = save.k;
  SELECT * INTO track FROM cdc.tracked_table WHERE relation = t.rel;
  cols := test.cols(t.rel);
  SELECT max(snapshot_id) INTO n FROM cdc.snapshot WHERE table_id = track.table_id;
  IF cdc.current_snapshot(t.rel) <> n THEN
    RETURN format('the newest snapshot is %s, not %s', n, cdc.current_snapshot(t.rel));
  END IF;
  IF track.oldest_snapshot <> t.oldest AND NOT loss_allowed THEN
    RETURN format('lost the snapshots before %s', track.oldest_snapshot);
  END IF;
  IF NOT gap_allowed THEN
    SELECT format('gap at %s: %s', snapshot_id, reason) INTO result
      FROM cdc.snapshot WHERE table_id = track.table_id AND kind = 'g' AND snapshot_id > t.newest;
    IF FOUND THEN
      RETURN result;
    END IF;
  END IF;
  SELECT string_agg(problem || ' ' || coalesce(row_data, ''), '; ') INTO result FROM cdc.verify(t.rel);
  IF result IS NOT NULL THEN
    RETURN 'verify: ' || left(result, 1000);
  END IF;
  IF n > t.newest OR NOT EXISTS (SELECT FROM test.saved WHERE saved.k = save.k) THEN
    EXECUTE format('INSERT INTO copy.c_%s (_snap, %s) SELECT %s, %s FROM %s', k, cols, n, cols, t.rel::regclass);
    INSERT INTO test.saved VALUES (k, n);
    UPDATE test.tab SET newest = n WHERE tab.k = save.k;
    EXECUTE format('DELETE FROM copy.c_%s WHERE _snap < %s', k, n - 60);
    DELETE FROM test.saved WHERE saved.k = save.k AND snapshot_id < n - 60;
  ELSE
    result := test.differences('changed without a snapshot',
      format('SELECT ROW(%s)::text AS r FROM %s', cols, t.rel::regclass),
      format('SELECT ROW(%s)::text AS r FROM copy.c_%s WHERE _snap = %s', cols, k, n));
  END IF;
  UPDATE test.tab SET oldest = track.oldest_snapshot
   WHERE tab.k = save.k AND oldest <> track.oldest_snapshot;
  RETURN result;
END $$;

-- the range (a, b] in all modes; returns 'ok', 'refused', or what is wrong
CREATE FUNCTION test.check_range(k int, a bigint, b bigint, apply boolean) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
  t test.tab;
  track cdc.tracked_table;
  fn text;
  cols text;
  row_a text;
  row_b text;
  refused_range boolean;
  refused_a boolean;
  refused_b boolean;
  refused boolean;
  mode text[];
  changes text;
  result text;
  s bigint;
BEGIN
  SELECT * INTO t FROM test.tab WHERE tab.k = check_range.k;
  SELECT * INTO track FROM cdc.tracked_table WHERE relation = t.rel;
  fn := (SELECT changelog_function FROM cdc.tracked_tables WHERE relation = t.rel);
  cols := test.cols(t.rel);
  row_a := format('SELECT ROW(%s)::text AS r FROM copy.c_%s WHERE _snap = %s', cols, k, a);
  row_b := format('SELECT ROW(%s)::text AS r FROM copy.c_%s WHERE _snap = %s', cols, k, b);
  refused_a := a < track.oldest_snapshot OR EXISTS (SELECT FROM cdc.snapshot
    WHERE table_id = track.table_id AND kind = 'g' AND snapshot_id > a);
  refused_b := b < track.oldest_snapshot OR EXISTS (SELECT FROM cdc.snapshot
    WHERE table_id = track.table_id AND kind = 'g' AND snapshot_id > b);
  refused_range := a < track.oldest_snapshot OR EXISTS (SELECT FROM cdc.snapshot
    WHERE table_id = track.table_id AND kind = 'g' AND snapshot_id > a AND snapshot_id <= b);

  FOREACH mode SLICE 1 IN ARRAY ARRAY[['', 'net'], ['', 'all'], ['k', 'all'], ['k', 'net'], ['k', 'latest']]
  LOOP
    CONTINUE WHEN mode[1] = 'k' AND t.keys IS NULL;
    CONTINUE WHEN mode[2] = 'latest' AND NOT apply;
    refused := false;
    result := NULL;
    BEGIN
      IF mode[2] = 'latest' THEN
        EXECUTE format('CREATE TEMP TABLE target AS SELECT %s FROM copy.c_%s WHERE _snap = %s', cols, k, a);
        PERFORM cdc.apply_changelog('pg_temp.target',
          format('SELECT * FROM %s(%s, %s, %L)', fn, a, b, t.keys), t.keys);
        result := test.differences('apply',
          format('SELECT ROW(%s)::text AS r FROM pg_temp.target', cols), row_b);
        DROP TABLE pg_temp.target;
      ELSE
        changes := format('SELECT ROW(%s)::text AS r, _change_type IN (''INSERT'', ''UPDATE_AFTER'') AS came FROM %s(%s, %s, %L, %L)',
          cols, fn, a, b, CASE mode[1] WHEN 'k' THEN t.keys END, mode[2]);
        result := test.differences(array_to_string(mode, ' '),
          format('%s UNION ALL SELECT r FROM changes WHERE came', row_a),
          format('%s UNION ALL SELECT r FROM changes WHERE NOT came', row_b),
          format('changes AS MATERIALIZED (%s),', changes));
      END IF;
    EXCEPTION WHEN object_not_in_prerequisite_state THEN
      refused := true;
    END;
    IF result IS NOT NULL THEN
      RETURN result;
    END IF;
    -- a restored index is not known to have held before, so keys are looked up
    -- in the content, which cannot be told from before a gap
    IF refused <> refused_range AND
       NOT (refused AND refused_a AND mode[1] = 'k' AND current_database() = 'restored') THEN
      RETURN format('%s: %s', array_to_string(mode, ' '),
        CASE WHEN refused THEN 'refused' ELSE 'not refused' END);
    END IF;
  END LOOP;

  FOREACH s IN ARRAY ARRAY[a, b]
  LOOP
    result := NULL;
    refused := false;
    BEGIN
      result := test.differences('as_of ' || s,
        format('SELECT ROW(%s)::text AS r FROM cdc.as_of(NULL::%s, %s)', cols, t.rel::regclass, s),
        CASE s WHEN a THEN row_a ELSE row_b END);
    EXCEPTION WHEN object_not_in_prerequisite_state THEN
      refused := true;
    END;
    IF result IS NOT NULL THEN
      RETURN result;
    END IF;
    IF refused <> (CASE s WHEN a THEN refused_a ELSE refused_b END) THEN
      RETURN format('as_of %s: %s', s, CASE WHEN refused THEN 'refused' ELSE 'not refused' END);
    END IF;
  END LOOP;
  RETURN CASE WHEN refused_range THEN 'refused' ELSE 'ok' END;
END $$;
});

# The tables of one run, as they are at its start
sub create_tables
{
	$node->safe_psql(
		'postgres', q{
DO $do$
DECLARE
  r record;
BEGIN
  FOR r IN SELECT relation FROM cdc.tracked_table LOOP PERFORM cdc.untrack(r.relation); END LOOP;
  FOR r IN SELECT oid::regclass AS rel FROM pg_class
            WHERE relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname IN ('public', 'copy', 'part', 'scratch', 'other'))
              AND relkind IN ('r', 'p') AND NOT relispartition LOOP
    EXECUTE format('DROP TABLE %s', r.rel);
  END LOOP;
END $do$;
TRUNCATE test.tab, test.saved;

CREATE TABLE keyed (id int PRIMARY KEY, v int, s text, n numeric);
CREATE TABLE bag (id int, v int, s text);
CREATE TABLE root (id int, v int, part int, s text, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE part.p_1 PARTITION OF root FOR VALUES IN (1);
CREATE TABLE part.p_2 PARTITION OF root FOR VALUES IN (2) PARTITION BY HASH (id);
CREATE TABLE part.p_2_0 PARTITION OF part.p_2 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE part.p_2_1 PARTITION OF part.p_2 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO keyed SELECT i, i % 5, i % 4, i % 3 FROM generate_series(1, 60) i;
INSERT INTO bag SELECT i % 20, i % 5, i % 4 FROM generate_series(1, 60) i;
INSERT INTO root SELECT i, i % 5, 1 + i % 2, i % 4 FROM generate_series(1, 60) i;
CREATE TABLE copy.c_0 AS SELECT 0::bigint AS _snap, * FROM keyed LIMIT 0;
CREATE TABLE copy.c_1 AS SELECT 0::bigint AS _snap, * FROM bag LIMIT 0;
CREATE TABLE copy.c_2 AS SELECT 0::bigint AS _snap, * FROM root LIMIT 0;
INSERT INTO test.tab VALUES (0, 'keyed'::regclass, '{id}'), (1, 'bag'::regclass, NULL), (2, 'root'::regclass, '{id,part}');
SELECT cdc.track(rel) FROM test.tab ORDER BY k;
});
	@tables = ();
	foreach my $name (qw(keyed bag root))
	{
		push @tables,
		  {
			k => scalar @tables,
			name => $name,
			oid => $node->safe_psql('postgres', "SELECT '$name'::regclass::oid"),
			partitioned => $name eq 'root',
			keys => $name eq 'bag' ? undef : $name eq 'root' ? [qw(id part)] : ['id'],
			gap => 0,
			lost => 0,
			partitions_made => 10
		  };
	}
	return;
}

sub torture
{
	my ($seed) = @_;
	$random = $seed;
	$serial = 0;
	$step = 0;
	$failure = undef;
	@history = ();
	@prepared = ();
	create_tables();
	@sessions = map { connect_session("s$_") } 1 .. $nsessions;
	$checker = connect_session('checker');
	save($_) foreach @tables;
	while (!$failure && $step < $steps)
	{
		$step++;
		if ($step == int($steps / 3))
		{
			crash('kill');
		}
		elsif ($step == int($steps * 2 / 3))
		{
			crash('stop');
		}
		else
		{
			one_step();
		}
		save($_) foreach grep { $_->{changed} || $step % 10 == 0 } @tables;
		check_ranges(pick(@tables), 1) if !$failure;
	}

	# at last everything, with nothing in flight
	foreach my $s (@sessions)
	{
		run($s, 'ROLLBACK') if $s->{tx};
		forget($s);
	}
	while (!$failure && (my $p = shift @prepared))
	{
		ask($checker, "COMMIT PREPARED '$p->{gid}'");
		committed($p);
	}
	foreach my $t (@tables)
	{
		save($t) if !$failure;
		check_ranges($t, 5) if !$failure;
	}
	detach_concurrently($tables[2]) if !$failure;
	foreach my $t (@tables)
	{
		save($t) if !$failure;
		check_ranges($t, 2) if !$failure;
	}
	dump_and_restore() if !$failure;
	foreach my $p (@prepared)
	{
		run($checker, "ROLLBACK PREPARED '$p->{gid}'");
	}
	foreach my $s (@sessions, $checker)
	{
		$s->{in} .= "\\q\n";
		$s->{psql}->finish;
	}
	ok(!$failure, "$steps steps with seed $seed");
	if ($failure)
	{
		my $from = @history > 400 ? @history - 400 : 0;
		diag("seed $seed, $failure");
		diag($_) foreach @history[ $from .. $#history ];
	}
	return;
}

torture($first_seed + $_) foreach 0 .. $runs - 1;
note(join(', ', map { "$_: $done{$_}" } sort keys %done));

$node->stop;
done_testing();
