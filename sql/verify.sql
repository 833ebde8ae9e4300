-- cdc.verify finds what was changed by hand, and readers refuse it
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA verify;
SET search_path = verify, public;

CREATE TABLE t (id int, gone int, v text, w text);
INSERT INTO t SELECT i, 0, 'base', NULL FROM generate_series(1, 5) i;
ALTER TABLE t DROP COLUMN gone;
SELECT cdc.track('t');
INSERT INTO t SELECT i, 'new', 'w' FROM generate_series(6, 9) i;
UPDATE t SET v = 'updated' WHERE id IN (1, 6);
DELETE FROM t WHERE id IN (2, 7);
-- savepoints give rows of several subtransactions
BEGIN;
INSERT INTO t VALUES (20, 'top', NULL);
SAVEPOINT a;
INSERT INTO t VALUES (21, 'sub', NULL);
SAVEPOINT b;
INSERT INTO t VALUES (22, 'undone', NULL);
ROLLBACK TO b;
INSERT INTO t VALUES (23, repeat('sub', 3000), NULL);
RELEASE a;
INSERT INTO t VALUES (24, 'top', NULL);
COMMIT;
UPDATE t SET w = 'x' WHERE id = 20;
BEGIN;
INSERT INTO t VALUES (30, 'rolled back', NULL);
ROLLBACK;

-- the log by a name that does not depend on what was tracked before
CREATE FUNCTION log() RETURNS text LANGUAGE sql AS
'SELECT log_table::text FROM cdc.tracked_table WHERE relation = ''verify.t''::regclass';
CREATE FUNCTION tx(snapshot bigint) RETURNS bigint LANGUAGE sql AS
'SELECT s.tx FROM cdc.snapshot s JOIN cdc.tracked_table t USING (table_id) WHERE t.relation = ''verify.t''::regclass AND s.snapshot_id = snapshot';
-- runs a command on the log, shows what is found, and undoes it
CREATE FUNCTION damage(command text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  line text;
  message text;
  detail text;
BEGIN
  BEGIN
    EXECUTE replace(command, '$log', log());
    FOR line IN SELECT format('%s|%s|%s|%s', v.sign, v.snapshot_id, v.problem, left(v.row_data, 40))
                  FROM cdc.verify('verify.t') v ORDER BY v.problem, v.snapshot_id, v.sign, v.row_data LOOP
      RETURN NEXT line;
    END LOOP;
    BEGIN
      PERFORM 1 FROM verify.t_changelog(0);
      RETURN NEXT 'changelog: answers';
    EXCEPTION WHEN data_corrupted OR object_not_in_prerequisite_state THEN
      GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
      RETURN NEXT format('changelog: %s (%s)', message, detail);
    END;
    BEGIN
      PERFORM 1 FROM cdc.as_of(NULL::verify.t, 0);
      RETURN NEXT 'as_of: answers';
    EXCEPTION WHEN data_corrupted OR object_not_in_prerequisite_state THEN
      GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
      RETURN NEXT format('as_of: %s (%s)', message, detail);
    END;
    RAISE EXCEPTION USING ERRCODE = 'P9999';
  EXCEPTION WHEN SQLSTATE 'P9999' THEN
    NULL;
  END;
END $$;

-- healthy
SELECT * FROM cdc.verify('t');
SELECT * FROM damage('SELECT 1');

-- deleted: a row that came, one that went, one whose partner is in the log
SELECT * FROM damage('DELETE FROM $log WHERE c1 = 8');
SELECT * FROM damage('DELETE FROM $log WHERE c1 = 2');
SELECT * FROM damage('DELETE FROM $log WHERE c1 = 7 AND _cdc_tx < 0');
SELECT * FROM damage('DELETE FROM $log WHERE c1 = 7 AND _cdc_tx > 0');
SELECT * FROM damage('DELETE FROM $log');
SELECT * FROM damage('TRUNCATE $log');

-- changed: of the baseline, of one that is still there, of one that came and went
SELECT * FROM damage('UPDATE $log SET c3 = ''by hand'' WHERE c1 = 2');
SELECT * FROM damage('UPDATE $log SET c3 = ''by hand'' WHERE c1 = 8');
SELECT * FROM damage('UPDATE $log SET c3 = ''by hand'' WHERE c1 = 7 AND _cdc_tx > 0');
SELECT * FROM damage('UPDATE $log SET c3 = ''by hand'' WHERE c1 = 7');
SELECT * FROM damage('UPDATE $log SET c3 = c3 WHERE c1 = 21');
-- ... its sign, its snapshot
SELECT * FROM damage('UPDATE $log SET _cdc_tx = -_cdc_tx WHERE c1 = 8');
SELECT * FROM damage('UPDATE $log SET _cdc_tx = sign(_cdc_tx) * verify.tx(4) WHERE c1 = 8');
SELECT * FROM damage('UPDATE $log SET _cdc_tx = 9000000000 WHERE c1 = 8');
SELECT * FROM damage('UPDATE $log SET _cdc_tx = NULL WHERE c1 = 8');

-- added: to a snapshot, to none, with a partner that makes up for it
SELECT * FROM damage('INSERT INTO $log SELECT verify.tx(3), 99, ''by hand'', NULL');
SELECT * FROM damage('INSERT INTO $log SELECT -verify.tx(3), 8, ''new'', ''w''');
SELECT * FROM damage('INSERT INTO $log SELECT 9000000000, 99, ''by hand'', NULL');
SELECT * FROM damage('INSERT INTO $log SELECT * FROM $log WHERE c1 = 8; DELETE FROM $log WHERE c1 = 8 AND ctid = (SELECT min(ctid) FROM $log WHERE c1 = 8)');
SELECT * FROM damage('INSERT INTO $log SELECT -verify.tx(2), 99, ''by hand'', NULL UNION ALL SELECT verify.tx(3), 99, ''by hand'', NULL');

-- the snapshots' own rows
SELECT * FROM damage('UPDATE cdc.snapshot SET inserted = inserted + 1 WHERE tx = verify.tx(3)');
SELECT * FROM damage('DELETE FROM cdc.snapshot WHERE tx = verify.tx(3)');

-- the table changed behind the log's back
CREATE TABLE keep AS TABLE t;
ALTER EVENT TRIGGER cdc_changelog_ddl_end DISABLE;
ALTER TABLE t DISABLE TRIGGER ALL;
DELETE FROM t WHERE id = 8;
UPDATE t SET v = 'unseen' WHERE id = 9;
ALTER TABLE t ENABLE TRIGGER cdc_changelog_insert, ENABLE TRIGGER cdc_changelog_update, ENABLE TRIGGER cdc_changelog_delete,
  ENABLE REPLICA TRIGGER cdc_changelog_replica, ENABLE ALWAYS TRIGGER "~cdc_changelog_truncate";
ALTER EVENT TRIGGER cdc_changelog_ddl_end ENABLE ALWAYS;
SELECT sign, snapshot_id, problem, (row_data::t).* FROM cdc.verify('t') ORDER BY id;
SELECT * FROM cdc.as_of(NULL::t, 0);
-- the answers that do not depend on it are still given
SELECT count(*) FROM t_changelog(0);
SELECT cdc.untrack('t');
TRUNCATE t;
INSERT INTO t TABLE keep;
SELECT cdc.track('t');
SELECT * FROM cdc.verify('t');

-- a log that was rewritten, and frozen, is as good as before
INSERT INTO t VALUES (40, 'a', 'b');
UPDATE t SET w = 'again';
SELECT log() \gset
VACUUM (FULL, FREEZE) :log;
SELECT * FROM cdc.verify('t');
SELECT count(*) FROM t_changelog(0);
VACUUM FULL cdc.snapshot;
SELECT * FROM cdc.verify('t');
SELECT * FROM damage('UPDATE $log SET c3 = ''by hand'' WHERE c1 = 40 AND _cdc_tx < 0');

-- before a gap only the log itself is proven, after it also against the table
UPDATE cdc.snapshot SET kind = 'g', reason = 'of this test' WHERE tx = tx(1);
SELECT * FROM cdc.verify('t');
SELECT * FROM damage('DELETE FROM $log WHERE _cdc_tx > 0 AND c1 = 40 AND c4 = ''b''');
SELECT * FROM damage('DELETE FROM $log WHERE _cdc_tx < 0 AND c1 = 40');

-- in the transaction that makes the changes
BEGIN;
INSERT INTO t VALUES (50, 'own', NULL);
SELECT * FROM cdc.verify('t');
SAVEPOINT a;
DELETE FROM t;
SELECT * FROM cdc.verify('t');
TRUNCATE t;
SELECT * FROM cdc.verify('t');
COMMIT;
SELECT * FROM cdc.verify('t');

-- who may: whoever may read the changelog
CREATE ROLE regress_cdc_verify;
GRANT USAGE ON SCHEMA verify TO regress_cdc_verify;
GRANT SELECT (id) ON t TO regress_cdc_verify;
SET ROLE regress_cdc_verify;
SELECT * FROM cdc.verify('t');
\echo :SQLSTATE
RESET ROLE;
GRANT SELECT ON t TO regress_cdc_verify;
SET ROLE regress_cdc_verify;
SELECT * FROM cdc.verify('t');
RESET ROLE;
SELECT * FROM cdc.verify(NULL);
SELECT * FROM cdc.verify('keep');
\echo :SQLSTATE

SELECT cdc.untrack('t');
SET client_min_messages = warning;
DROP SCHEMA verify CASCADE;
DROP ROLE regress_cdc_verify;
