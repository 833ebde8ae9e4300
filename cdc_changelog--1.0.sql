/* cdc_changelog--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION cdc_changelog" to load this file. \quit

-- The functions here run with the extension owner's rights in places; a schema
-- that somebody else made beforehand, and still owns, must not hold them.  It
-- may be a superuser's: a dump has the schema with its owner at that time.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_namespace n
               JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) n.nspowner
              WHERE n.nspname OPERATOR(pg_catalog.=) 'cdc'
                AND r.rolname OPERATOR(pg_catalog.<>) CURRENT_USER
                AND NOT r.rolsuper) THEN
    RAISE EXCEPTION 'schema "cdc" exists and belongs to another role'
      USING ERRCODE = 'duplicate_schema',
            HINT = 'Drop or rename that schema, then create the extension again.';
  END IF;
END
$$;

--
-- Schema of the logs.  Nobody but the owner of a tracked table (through the
-- ownership of the log) and superusers get at what is in it.
--
CREATE SCHEMA cdc_log;
REVOKE ALL ON SCHEMA cdc_log FROM PUBLIC;
COMMENT ON SCHEMA cdc_log IS 'logs and snapshot sequences of the tables tracked by cdc_changelog';

GRANT USAGE ON SCHEMA cdc TO PUBLIC;
COMMENT ON SCHEMA cdc IS 'changelogs of tables: functions and catalog tables of cdc_changelog';

--
-- Catalog tables
--
CREATE SEQUENCE cdc.table_number AS int;
COMMENT ON SEQUENCE cdc.table_number IS 'numbers of tracked tables';

-- numbers only have to be unique: a session draws 32 of them at a time
CREATE SEQUENCE cdc.transaction_number INCREMENT BY 32;
COMMENT ON SEQUENCE cdc.transaction_number IS 'numbers that mark the rows of one transaction in the logs';

CREATE TABLE cdc.tracked_table (
  table_id int NOT NULL,
  segment int NOT NULL,
  oldest_snapshot bigint NOT NULL,
  tracked_at timestamptz NOT NULL,
  relation regclass NOT NULL,
  log_table regclass NOT NULL,
  snapshot_sequence regclass NOT NULL,
  notify boolean NOT NULL,
  CONSTRAINT tracked_table_pkey PRIMARY KEY (table_id),
  CONSTRAINT tracked_table_relation_key UNIQUE (relation)
);
COMMENT ON TABLE cdc.tracked_table IS 'one row a tracked table; see the view cdc.tracked_tables';

CREATE TABLE cdc.log_segment (
  table_id int NOT NULL,
  segment int NOT NULL,
  log_table regclass NOT NULL,
  last_snapshot bigint,
  rewritten_xid xid8,
  rewritten_next_xid xid8,
  CONSTRAINT log_segment_pkey PRIMARY KEY (table_id, segment)
);
COMMENT ON TABLE cdc.log_segment IS 'the tables that hold the log of a tracked table';

CREATE TABLE cdc.snapshot (
  table_id int NOT NULL,
  segment int NOT NULL,
  snapshot_id bigint NOT NULL,
  tx bigint NOT NULL,
  xid xid8 NOT NULL,
  next_xid xid8 NOT NULL,
  committed_at timestamptz NOT NULL,
  inserted bigint NOT NULL,
  deleted bigint NOT NULL,
  first_block bigint,
  last_block bigint,
  kind "char" NOT NULL,
  reason text,
  blocks bigint[],
  CONSTRAINT snapshot_pkey PRIMARY KEY (table_id, snapshot_id)
);
COMMENT ON TABLE cdc.snapshot IS 'one row a committed transaction that changed a tracked table; see the function cdc.snapshots';

CREATE TABLE cdc.unique_index (
  table_id int NOT NULL,
  since_snapshot bigint NOT NULL,
  index regclass NOT NULL,
  CONSTRAINT unique_index_pkey PRIMARY KEY (table_id, index)
);
COMMENT ON TABLE cdc.unique_index IS 'unique indexes of tracked tables and the snapshot since which they have held';

CREATE TABLE cdc.partition (
  table_id int NOT NULL,
  relation regclass NOT NULL,
  CONSTRAINT partition_pkey PRIMARY KEY (table_id, relation),
  CONSTRAINT partition_relation_key UNIQUE (relation)
);
COMMENT ON TABLE cdc.partition IS 'leaf partitions of tracked partitioned tables, whose rows are counted in the log';

CREATE TABLE cdc.consumer (
  consumer text COLLATE "C" NOT NULL,
  owner regrole NOT NULL,
  last_run bigint NOT NULL,
  last_run_at timestamptz,
  last_mode text,
  inserted bigint,
  updated bigint,
  deleted bigint,
  unchanged bigint,
  missing bigint,
  stale bigint,
  CONSTRAINT consumer_pkey PRIMARY KEY (consumer)
);
COMMENT ON TABLE cdc.consumer IS 'one row a consumer; see the view cdc.consumers';

CREATE TABLE cdc.consumer_position (
  consumer text COLLATE "C" NOT NULL,
  table_id int NOT NULL,
  position bigint NOT NULL,
  position_tx bigint NOT NULL,
  position_time timestamptz NOT NULL,
  CONSTRAINT consumer_position_pkey PRIMARY KEY (consumer, table_id)
);
COMMENT ON TABLE cdc.consumer_position IS 'the snapshot of each table up to which a consumer has read it';

CREATE TABLE cdc.consumer_target (
  consumer text COLLATE "C" NOT NULL,
  target regclass NOT NULL,
  fingerprint bigint NOT NULL,
  run bigint NOT NULL,
  -- tables it was made of; negative numbers: those that the run did not read
  sources int[] NOT NULL,
  -- what the query meant, to be compared on the same server only
  meaning bigint NOT NULL,
  -- the run has appended to it
  append boolean NOT NULL,
  -- numbers of the columns that the run wrote, if it did not append
  columns int[] NOT NULL,
  CONSTRAINT consumer_target_pkey PRIMARY KEY (consumer, target)
);
COMMENT ON TABLE cdc.consumer_target IS 'the tables that a consumer has been applied to, and when last';

-- names sort and compare as bytes, so that no locale has a say in what is
-- found in an index
CREATE TABLE cdc.pipeline (
  name text COLLATE "C" NOT NULL,
  created_at timestamptz NOT NULL,
  owner regrole NOT NULL,
  target regclass NOT NULL,
  keep_runs int NOT NULL,
  ignore_null_updates boolean NOT NULL,
  deduplicate boolean NOT NULL,
  append boolean NOT NULL,
  history boolean NOT NULL,
  target_name text NOT NULL,
  query text NOT NULL,
  search_path text NOT NULL,
  keys text[],
  filter text,
  sequence_by text,
  soft_delete text,
  history_exclude text[],
  max_deletes text,
  CONSTRAINT pipeline_pkey PRIMARY KEY (name)
);
COMMENT ON TABLE cdc.pipeline IS 'stored pipelines; see the view cdc.pipelines';

CREATE TABLE cdc.pipeline_run (
  name text COLLATE "C" NOT NULL,
  run_id bigint NOT NULL,
  started_at timestamptz NOT NULL,
  finished_at timestamptz NOT NULL,
  mode text NOT NULL,
  ranges jsonb NOT NULL,
  inserted bigint NOT NULL,
  updated bigint NOT NULL,
  deleted bigint NOT NULL,
  unchanged bigint NOT NULL,
  missing bigint NOT NULL,
  stale bigint NOT NULL,
  CONSTRAINT pipeline_run_pkey PRIMARY KEY (name, run_id)
);
COMMENT ON TABLE cdc.pipeline_run IS 'the last runs of pipelines; see the view cdc.pipeline_runs';

SELECT pg_catalog.pg_extension_config_dump('cdc.table_number', '');
SELECT pg_catalog.pg_extension_config_dump('cdc.transaction_number', '');
SELECT pg_catalog.pg_extension_config_dump('cdc.tracked_table', '');
SELECT pg_catalog.pg_extension_config_dump('cdc.log_segment', '');
SELECT pg_catalog.pg_extension_config_dump('cdc.snapshot', '');
SELECT pg_catalog.pg_extension_config_dump('cdc.partition', '');
SELECT pg_catalog.pg_extension_config_dump('cdc.consumer', '');
SELECT pg_catalog.pg_extension_config_dump('cdc.consumer_position', '');
SELECT pg_catalog.pg_extension_config_dump('cdc.consumer_target', '');
SELECT pg_catalog.pg_extension_config_dump('cdc.pipeline', '');
SELECT pg_catalog.pg_extension_config_dump('cdc.pipeline_run', '');
-- not cdc.unique_index: indexes are restored after the data of this table would
-- be; the event trigger notes them then, as holding since the restore

-- The extension itself does not insert into these tables through SQL, so what
-- comes that way comes out of a dump.
CREATE FUNCTION cdc.restore() RETURNS trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'cdc_restore';
REVOKE ALL ON FUNCTION cdc.restore() FROM PUBLIC;
COMMENT ON FUNCTION cdc.restore() IS
'trigger function that takes out of restored rows what holds on the dumped server only';

CREATE TRIGGER cdc_restore BEFORE INSERT ON cdc.log_segment
FOR EACH ROW EXECUTE FUNCTION cdc.restore();
ALTER TABLE cdc.log_segment ENABLE ALWAYS TRIGGER cdc_restore;
CREATE TRIGGER cdc_restore BEFORE INSERT ON cdc.snapshot
FOR EACH ROW EXECUTE FUNCTION cdc.restore();
ALTER TABLE cdc.snapshot ENABLE ALWAYS TRIGGER cdc_restore;
CREATE TRIGGER cdc_restore BEFORE INSERT ON cdc.consumer_target
FOR EACH ROW EXECUTE FUNCTION cdc.restore();
ALTER TABLE cdc.consumer_target ENABLE ALWAYS TRIGGER cdc_restore;

--
-- Capture
--
CREATE FUNCTION cdc.capture() RETURNS trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'cdc_capture';
COMMENT ON FUNCTION cdc.capture() IS
'trigger function that writes the changes of a tracked table to its log; set up by cdc.track';

--
-- Tracking
--
CREATE FUNCTION cdc.track(relation regclass) RETURNS bigint
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_track';
COMMENT ON FUNCTION cdc.track(regclass) IS
'starts a changelog for a table and returns the number of the baseline snapshot, 0';

CREATE FUNCTION cdc.untrack(relation regclass) RETURNS void
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_untrack';
COMMENT ON FUNCTION cdc.untrack(regclass) IS
'ends the changelog of a table and removes its log';

--
-- Reading
--
CREATE FUNCTION cdc.changelog_support(internal) RETURNS internal
LANGUAGE c STRICT
AS 'MODULE_PATHNAME', 'cdc_changelog_support';
COMMENT ON FUNCTION cdc.changelog_support(internal) IS
'planner support: row estimates of changelog functions';

CREATE FUNCTION cdc.changelog(relation regclass,
                              start_snapshot bigint DEFAULT NULL,
                              end_snapshot bigint DEFAULT NULL,
                              identifiers text[] DEFAULT NULL,
                              mode text DEFAULT NULL,
                              validate boolean DEFAULT true,
                              consumer text DEFAULT NULL,
                              nowait boolean DEFAULT false)
RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1000
SUPPORT cdc.changelog_support
AS 'MODULE_PATHNAME', 'cdc_changelog';
COMMENT ON FUNCTION cdc.changelog(regclass, bigint, bigint, text[], text, boolean, text, boolean) IS
'changes of a tracked table after start_snapshot up to and including end_snapshot, or after the position of a consumer; needs a column definition list';

-- what create_changelog_view puts in its views: ordinals count from the start
-- of the range
CREATE FUNCTION cdc.changelog_relative(relation regclass,
                              start_snapshot bigint DEFAULT NULL,
                              end_snapshot bigint DEFAULT NULL,
                              identifiers text[] DEFAULT NULL,
                              mode text DEFAULT NULL,
                              validate boolean DEFAULT true,
                              columns text[] DEFAULT NULL)
RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1000
SUPPORT cdc.changelog_support
AS 'MODULE_PATHNAME', 'cdc_changelog_relative';
COMMENT ON FUNCTION cdc.changelog_relative(regclass, bigint, bigint, text[], text, boolean, text[]) IS
'as cdc.changelog, with _change_ordinal counted from 0 at the first snapshot of the range; columns are those of the result, as the log names them';

--
-- Snapshots
--

-- Volatile, because they see snapshots that are newer than the calling query's
-- own view of the data; parallel unsafe, because they take that view anew.
CREATE FUNCTION cdc.current_snapshot(relation regclass) RETURNS bigint
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_current_snapshot';
COMMENT ON FUNCTION cdc.current_snapshot(regclass) IS
'number of the newest complete snapshot of a tracked table';

CREATE FUNCTION cdc.snapshot_at(relation regclass, at timestamptz) RETURNS bigint
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_snapshot_at';
COMMENT ON FUNCTION cdc.snapshot_at(regclass, timestamptz) IS
'number of the newest complete snapshot of a tracked table committed at or before a time';

CREATE FUNCTION cdc.snapshots(relation regclass,
                              OUT snapshot_id bigint,
                              OUT committed_at timestamptz,
                              OUT inserted bigint,
                              OUT deleted bigint,
                              OUT kind text,
                              OUT reason text)
RETURNS SETOF record
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE ROWS 1000
AS 'MODULE_PATHNAME', 'cdc_snapshots';
COMMENT ON FUNCTION cdc.snapshots(regclass) IS
'complete snapshots of a tracked table that can still be read';

-- not strict: a position that is NULL is before everything
CREATE FUNCTION cdc.wait_for_changes(relation regclass,
                              after bigint,
                              timeout interval DEFAULT NULL)
RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_wait_for_changes';
COMMENT ON FUNCTION cdc.wait_for_changes(regclass, bigint, interval) IS
'waits for a complete snapshot of a tracked table newer than "after", and returns the newest; NULL if there is none at the end of the time';

CREATE FUNCTION cdc.notify_changes(relation regclass, enabled boolean DEFAULT true) RETURNS boolean
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_notify_changes';
COMMENT ON FUNCTION cdc.notify_changes(regclass, boolean) IS
'sets whether transactions that change a tracked table notify the channel cdc_changelog; returns the former setting';

-- The tables of a view are read with the rights of its owner, its functions
-- run with those of the caller.  Here that means: anybody gets at the catalog
-- tables through the view, and the condition asks for the caller's privileges.
CREATE VIEW cdc.tracked_tables WITH (security_barrier) AS
SELECT t.relation,
       (SELECT pg_catalog.sum(pg_catalog.pg_total_relation_size(s.log_table))::pg_catalog.int8
          FROM cdc.log_segment s
         WHERE s.table_id OPERATOR(pg_catalog.=) t.table_id) AS log_bytes,
       n.log_rows,
       n.snapshots,
       t.oldest_snapshot,
       n.newest_snapshot,
       t.tracked_at,
       f.changelog_function
  FROM cdc.tracked_table t
  JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) t.relation
  -- only superusers make C functions; the owner may change the setting of one
  LEFT JOIN (SELECT p.proowner, a.setting,
                    pg_catalog.min(p.oid)::pg_catalog.regproc AS changelog_function
               FROM pg_catalog.pg_proc p
               JOIN pg_catalog.pg_language l ON l.oid OPERATOR(pg_catalog.=) p.prolang
              CROSS JOIN LATERAL pg_catalog.unnest(p.proconfig) a(setting)
              WHERE l.lanname OPERATOR(pg_catalog.=) 'c'
                AND p.prosrc OPERATOR(pg_catalog.=) 'cdc_changelog_typed'
              GROUP BY p.proowner, a.setting) f
         ON f.proowner OPERATOR(pg_catalog.=) c.relowner
        AND f.setting OPERATOR(pg_catalog.=)
            pg_catalog.format('cdc_changelog.table_id=%s.%s', t.table_id,
                              (pg_catalog.extract('epoch', t.tracked_at)
                               OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8)
 CROSS JOIN LATERAL
       (SELECT COALESCE(pg_catalog.sum(s.inserted OPERATOR(pg_catalog.+) s.deleted), 0)::pg_catalog.int8 AS log_rows,
               pg_catalog.count(*) AS snapshots,
               -- not the horizon, for which this view would have to wait
               pg_catalog.max(s.snapshot_id) AS newest_snapshot
          FROM cdc.snapshot s
         WHERE s.table_id OPERATOR(pg_catalog.=) t.table_id) n
 WHERE pg_catalog.pg_has_role(c.relowner, 'USAGE')
    OR pg_catalog.has_any_column_privilege(c.oid, 'SELECT');
GRANT SELECT ON cdc.tracked_tables TO PUBLIC;
COMMENT ON VIEW cdc.tracked_tables IS
'tracked tables that the current user owns or may read, with the size of their logs';

--
-- Changelog views
--
CREATE PROCEDURE cdc.create_changelog_view(source_table regclass,
                              INOUT changelog_view text DEFAULT NULL,
                              options jsonb DEFAULT '{}',
                              compute_updates boolean DEFAULT NULL,
                              identifier_columns text[] DEFAULT NULL,
                              net_changes boolean DEFAULT false,
                              temporary boolean DEFAULT true)
LANGUAGE c
AS 'MODULE_PATHNAME', 'cdc_create_changelog_view';
COMMENT ON PROCEDURE cdc.create_changelog_view(regclass, text, jsonb, boolean, text[], boolean, boolean) IS
'makes a view of the changes of a tracked table in a range of snapshots and returns its name';

--
-- Data definition
--
CREATE FUNCTION cdc.ddl_start() RETURNS event_trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'cdc_ddl_start';
COMMENT ON FUNCTION cdc.ddl_start() IS
'event trigger function that logs the rows of partitions that are going to be dropped';

CREATE FUNCTION cdc.ddl_end() RETURNS event_trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'cdc_ddl_end';
COMMENT ON FUNCTION cdc.ddl_end() IS
'event trigger function that lets the log of a tracked table follow its definition';

CREATE FUNCTION cdc.ddl_drop() RETURNS event_trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'cdc_ddl_drop';
COMMENT ON FUNCTION cdc.ddl_drop() IS
'event trigger function that removes the log of a tracked table that is dropped';

CREATE FUNCTION cdc.ddl_rewrite() RETURNS event_trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'cdc_ddl_rewrite';
COMMENT ON FUNCTION cdc.ddl_rewrite() IS
'event trigger function that records a gap where the rows of a tracked table get new values';

REVOKE ALL ON FUNCTION cdc.ddl_start(), cdc.ddl_end(), cdc.ddl_drop(), cdc.ddl_rewrite() FROM PUBLIC;

-- ALWAYS: also in sessions with session_replication_role = replica
CREATE EVENT TRIGGER cdc_changelog_ddl_start ON ddl_command_start
EXECUTE FUNCTION cdc.ddl_start();
ALTER EVENT TRIGGER cdc_changelog_ddl_start ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER cdc_changelog_ddl_start IS 'cdc_changelog: before a definition changes';

CREATE EVENT TRIGGER cdc_changelog_ddl_end ON ddl_command_end
EXECUTE FUNCTION cdc.ddl_end();
ALTER EVENT TRIGGER cdc_changelog_ddl_end ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER cdc_changelog_ddl_end IS 'cdc_changelog: after a definition has changed';

CREATE EVENT TRIGGER cdc_changelog_ddl_drop ON sql_drop
EXECUTE FUNCTION cdc.ddl_drop();
ALTER EVENT TRIGGER cdc_changelog_ddl_drop ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER cdc_changelog_ddl_drop IS 'cdc_changelog: after something was dropped';

CREATE EVENT TRIGGER cdc_changelog_ddl_rewrite ON table_rewrite
EXECUTE FUNCTION cdc.ddl_rewrite();
ALTER EVENT TRIGGER cdc_changelog_ddl_rewrite ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER cdc_changelog_ddl_rewrite IS 'cdc_changelog: before a table is rewritten';

--
-- Applying
--
-- are two values of one type different in any byte? for statements of
-- apply_changelog; the type's own operators say too often that they are equal
CREATE FUNCTION cdc.image_differs("any", "any") RETURNS boolean
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'cdc_image_differs';
COMMENT ON FUNCTION cdc.image_differs("any", "any") IS
'do two values of one type differ in any byte?';

CREATE FUNCTION cdc.apply_changelog(target regclass,
                              changelog text,
                              keys text[],
                              filter text DEFAULT NULL,
                              sequence_by text DEFAULT NULL,
                              soft_delete text DEFAULT NULL,
                              ignore_null_updates boolean DEFAULT false,
                              deduplicate boolean DEFAULT false,
                              consumer text DEFAULT NULL,
                              nowait boolean DEFAULT false,
                              complete boolean DEFAULT false,
                              append boolean DEFAULT false,
                              history boolean DEFAULT false,
                              history_exclude text[] DEFAULT NULL,
                              max_deletes text DEFAULT NULL,
                              OUT inserted bigint,
                              OUT updated bigint,
                              OUT deleted bigint,
                              OUT unchanged bigint,
                              OUT missing bigint,
                              OUT stale bigint)
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_apply_changelog';
COMMENT ON FUNCTION cdc.apply_changelog(regclass, text, text[], text, text, text, boolean, boolean, text, boolean, boolean, boolean, boolean, text[], text) IS
'makes the rows of a table follow a changelog, a table or view or SELECT, matching them by key columns; returns what became of the changes';

--
-- Consumers
--
CREATE FUNCTION cdc.is_incremental(consumer text, relation regclass) RETURNS boolean
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_is_incremental';
COMMENT ON FUNCTION cdc.is_incremental(text, regclass) IS
'would reading a table through a consumer give only the changes after its position?';

CREATE FUNCTION cdc.position(consumer text) RETURNS TABLE (relation regclass, snapshot bigint)
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'cdc_position';
COMMENT ON FUNCTION cdc.position(text) IS
'the snapshot of each table up to which a consumer has read it';

CREATE FUNCTION cdc.rewind(consumer text, relation regclass, snapshot bigint) RETURNS bigint
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_rewind';
COMMENT ON FUNCTION cdc.rewind(text, regclass, bigint) IS
'moves the position of a consumer in a table back to a snapshot and returns the one it had';

CREATE FUNCTION cdc.reset(consumer text) RETURNS boolean
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_reset';
COMMENT ON FUNCTION cdc.reset(text) IS
'forgets the positions of a consumer, so that its next run reads everything; returns whether it had any';

CREATE FUNCTION cdc.drop_consumer(consumer text) RETURNS boolean
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_drop_consumer';
COMMENT ON FUNCTION cdc.drop_consumer(text) IS
'removes a consumer; returns whether there was one';

-- As in cdc.tracked_tables, the condition asks for the caller's privileges.  The
-- lag in rows is that of the first 10,000 snapshots, and extrapolated from
-- there.
CREATE VIEW cdc.consumers WITH (security_barrier) AS
SELECT c.consumer,
       c.owner,
       t.relation,
       p.position,
       n.newest_snapshot,
       CASE WHEN n.newest_snapshot IS NOT NULL
            THEN GREATEST(n.newest_snapshot OPERATOR(pg_catalog.-) p.position, 0) END AS lag_snapshots,
       CASE WHEN n.newest_snapshot IS NULL THEN NULL
            WHEN r.counted OPERATOR(pg_catalog.<) 10000 THEN r.counted_rows
            ELSE (r.counted_rows::pg_catalog.float8
                  OPERATOR(pg_catalog.*) (n.newest_snapshot OPERATOR(pg_catalog.-) p.position)::pg_catalog.float8
                  OPERATOR(pg_catalog./) GREATEST(r.last_counted OPERATOR(pg_catalog.-) p.position, 1)::pg_catalog.float8)::pg_catalog.int8
       END AS lag_rows,
       CASE WHEN n.newest_snapshot IS NULL THEN NULL
            WHEN r.counted OPERATOR(pg_catalog.=) 0 THEN 0::pg_catalog.float8
            ELSE GREATEST(pg_catalog.extract('epoch',
                   pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) r.first_time)::pg_catalog.float8, 0)
       END AS lag_seconds,
       c.last_run_at,
       c.last_mode,
       CASE WHEN c.last_run_at IS NOT NULL
            THEN pg_catalog.jsonb_build_object('inserted', c.inserted, 'updated', c.updated,
                   'deleted', c.deleted, 'unchanged', c.unchanged,
                   'missing', c.missing, 'stale', c.stale) END AS last_result,
       -- are there snapshots that could expire if it were not for this one?
       COALESCE(p.position OPERATOR(pg_catalog.<) n.newest_snapshot, false) AS holds_history
  FROM cdc.consumer c
  LEFT JOIN cdc.consumer_position p ON p.consumer OPERATOR(pg_catalog.=) c.consumer
  LEFT JOIN cdc.tracked_table t ON t.table_id OPERATOR(pg_catalog.=) p.table_id
  LEFT JOIN LATERAL
       (SELECT pg_catalog.max(s.snapshot_id) AS newest_snapshot
          FROM cdc.snapshot s
         WHERE s.table_id OPERATOR(pg_catalog.=) p.table_id) n ON true
  LEFT JOIN LATERAL
       (SELECT COALESCE(pg_catalog.sum(f.inserted OPERATOR(pg_catalog.+) f.deleted), 0)::pg_catalog.int8 AS counted_rows,
               pg_catalog.count(*) AS counted,
               pg_catalog.min(f.committed_at) AS first_time,
               pg_catalog.max(f.snapshot_id) AS last_counted
          FROM (SELECT s.snapshot_id, s.inserted, s.deleted, s.committed_at
                  FROM cdc.snapshot s
                 WHERE s.table_id OPERATOR(pg_catalog.=) p.table_id
                   AND s.snapshot_id OPERATOR(pg_catalog.>) p.position
                 ORDER BY s.snapshot_id LIMIT 10000) f) r ON true
 WHERE pg_catalog.pg_has_role(c.owner, 'USAGE');
GRANT SELECT ON cdc.consumers TO PUBLIC;
COMMENT ON VIEW cdc.consumers IS
'consumers of which the current user is the owner or a member: positions, how far they are behind, and their last runs';

--
-- Pipelines
--
CREATE FUNCTION cdc.create_pipeline(name text,
                              target regclass,
                              keys text[],
                              changelog_query text,
                              filter text DEFAULT NULL,
                              sequence_by text DEFAULT NULL,
                              soft_delete text DEFAULT NULL,
                              ignore_null_updates boolean DEFAULT false,
                              deduplicate boolean DEFAULT false,
                              append boolean DEFAULT false,
                              history boolean DEFAULT false,
                              history_exclude text[] DEFAULT NULL,
                              max_deletes text DEFAULT NULL,
                              keep_runs int DEFAULT 100,
                              replace boolean DEFAULT false)
RETURNS text
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_create_pipeline';
COMMENT ON FUNCTION cdc.create_pipeline(text, regclass, text[], text, text, text, text, boolean, boolean, boolean, boolean, text[], text, int, boolean) IS
'stores under a name what it takes to bring a target up to date; returns the name';

CREATE FUNCTION cdc.drop_pipeline(name text) RETURNS boolean
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_drop_pipeline';
COMMENT ON FUNCTION cdc.drop_pipeline(text) IS
'removes a pipeline with its history and its consumer, and leaves the target as it is; returns whether there was one';

CREATE FUNCTION cdc.run(name text,
                        nowait boolean DEFAULT false,
                        OUT mode text,
                        OUT ranges jsonb,
                        OUT inserted bigint,
                        OUT updated bigint,
                        OUT deleted bigint,
                        OUT unchanged bigint,
                        OUT missing bigint,
                        OUT stale bigint,
                        OUT duration interval)
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_run';
COMMENT ON FUNCTION cdc.run(text, boolean) IS
'brings the target of a pipeline up to date';

CREATE FUNCTION cdc.run_group(names text[],
                        nowait boolean DEFAULT false,
                        OUT name text,
                        OUT mode text,
                        OUT ranges jsonb,
                        OUT inserted bigint,
                        OUT updated bigint,
                        OUT deleted bigint,
                        OUT unchanged bigint,
                        OUT missing bigint,
                        OUT stale bigint,
                        OUT duration interval)
RETURNS SETOF record
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'cdc_run_group';
COMMENT ON FUNCTION cdc.run_group(text[], boolean) IS
'brings the targets of several pipelines up to date at one cut; foreign keys between them are checked at the end';

CREATE FUNCTION cdc.dry_run(name text,
                        OUT mode text,
                        OUT ranges jsonb,
                        OUT inserted bigint,
                        OUT updated bigint,
                        OUT deleted bigint,
                        OUT unchanged bigint,
                        OUT missing bigint,
                        OUT stale bigint,
                        OUT duration interval)
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_dry_run';
COMMENT ON FUNCTION cdc.dry_run(text) IS
'what cdc.run would do, without doing it';

CREATE VIEW cdc.pipelines WITH (security_barrier) AS
SELECT p.name,
       p.owner,
       p.target,
       p.keys,
       p.query,
       p.filter,
       p.sequence_by,
       p.soft_delete,
       p.ignore_null_updates,
       p.deduplicate,
       p.append,
       p.history,
       p.history_exclude,
       p.max_deletes,
       p.keep_runs,
       p.search_path,
       p.created_at,
       r.started_at AS last_run_at,
       r.mode AS last_mode,
       r.inserted AS last_inserted,
       r.updated AS last_updated,
       r.deleted AS last_deleted,
       r.finished_at OPERATOR(pg_catalog.-) r.started_at AS last_duration,
       c.lag_snapshots,
       c.lag_rows,
       c.lag_seconds
  FROM cdc.pipeline p
  LEFT JOIN LATERAL
       (SELECT *
          FROM cdc.pipeline_run r
         WHERE r.name OPERATOR(pg_catalog.=) p.name
         ORDER BY r.run_id DESC
         LIMIT 1) r ON true
  LEFT JOIN LATERAL
       (SELECT pg_catalog.sum(c.lag_snapshots)::pg_catalog.int8 AS lag_snapshots,
               pg_catalog.sum(c.lag_rows)::pg_catalog.int8 AS lag_rows,
               pg_catalog.max(c.lag_seconds) AS lag_seconds
          FROM cdc.consumers c
         WHERE c.consumer OPERATOR(pg_catalog.=) p.name) c ON true
 WHERE pg_catalog.pg_has_role(p.owner, 'USAGE');
GRANT SELECT ON cdc.pipelines TO PUBLIC;
COMMENT ON VIEW cdc.pipelines IS
'pipelines of the current user: definition, last run, and how far they are behind';

CREATE VIEW cdc.pipeline_runs WITH (security_barrier) AS
SELECT r.name,
       r.run_id,
       r.started_at,
       r.finished_at OPERATOR(pg_catalog.-) r.started_at AS duration,
       r.mode,
       r.ranges,
       r.inserted,
       r.updated,
       r.deleted,
       r.unchanged,
       r.missing,
       r.stale
  FROM cdc.pipeline_run r
  JOIN cdc.pipeline p ON p.name OPERATOR(pg_catalog.=) r.name
 WHERE pg_catalog.pg_has_role(p.owner, 'USAGE');
GRANT SELECT ON cdc.pipeline_runs TO PUBLIC;
COMMENT ON VIEW cdc.pipeline_runs IS
'the last runs of pipelines of the current user that had something to do';

--
-- Verification
--

-- parallel unsafe and volatile for the same reasons as cdc.current_snapshot
CREATE FUNCTION cdc.as_of(row_type anyelement, snapshot bigint)
RETURNS SETOF anyelement
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1000
AS 'MODULE_PATHNAME', 'cdc_as_of';
COMMENT ON FUNCTION cdc.as_of(anyelement, bigint) IS
'rows that a tracked table had after a snapshot; the first argument is NULL::table_name';

CREATE FUNCTION cdc.verify(relation regclass,
                           OUT sign int,
                           OUT snapshot_id bigint,
                           OUT problem text,
                           OUT row_data text)
RETURNS SETOF record
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'cdc_verify';
COMMENT ON FUNCTION cdc.verify(regclass) IS
'what is wrong with the log of a tracked table; no rows if nothing is';

CREATE FUNCTION cdc.check(OUT level text,
                          OUT object text,
                          OUT problem text,
                          OUT fix text)
RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'cdc_check';
COMMENT ON FUNCTION cdc.check() IS
'what is not in order with the tracked tables that the current user owns, and how to mend it';

--
-- Retention
--
CREATE FUNCTION cdc.expire_snapshots(relation regclass,
                                     older_than timestamptz DEFAULT NULL,
                                     retain_last bigint DEFAULT NULL,
                                     dry_run boolean DEFAULT false,
                                     ignore_consumers boolean DEFAULT false,
                                     OUT oldest_snapshot bigint,
                                     OUT snapshots_removed bigint,
                                     OUT segments_dropped bigint,
                                     OUT bytes_freed bigint)
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_expire_snapshots';
COMMENT ON FUNCTION cdc.expire_snapshots(regclass, timestamptz, bigint, boolean, boolean) IS
'removes old snapshots of a tracked table and gives back the space of their log';

CREATE PROCEDURE cdc.expire_all(older_than timestamptz DEFAULT NULL,
                                retain_last bigint DEFAULT NULL,
                                ignore_consumers boolean DEFAULT false)
LANGUAGE c
AS 'MODULE_PATHNAME', 'cdc_expire_all';
COMMENT ON PROCEDURE cdc.expire_all(timestamptz, bigint, boolean) IS
'removes old snapshots of all tracked tables that the current user owns';
