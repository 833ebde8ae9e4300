-- Two-phase commit: a prepared transaction has its number, the reader holds its
-- horizon back until it is over (BB-34)
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
SELECT current_setting('max_prepared_transactions')::int < 2 AS skip_test \gset
\if :skip_test
\echo 'max_prepared_transactions is too low, tests skipped'
\quit
\endif
CREATE SCHEMA prepared;
SET search_path = prepared, public;

CREATE TABLE tpc (id int PRIMARY KEY, v text);
SELECT cdc.track('tpc');
SET cdc_changelog.horizon_timeout = '50ms';
BEGIN;
INSERT INTO tpc VALUES (1, 'prepared');
PREPARE TRANSACTION 'regress_cdc_34';
INSERT INTO tpc VALUES (2, 'plain');
-- nothing newer than the pending number can be read yet
SELECT cdc.current_snapshot('tpc') AS s1;
SELECT cdc.current_snapshot('tpc') AS s1 \gset
SELECT count(*) FROM tpc_changelog(0);
COMMIT PREPARED 'regress_cdc_34';
SELECT cdc.current_snapshot('tpc') AS s2 \gset
SELECT :s2 AS s2;
-- each row once
SELECT id, v, _change_type FROM tpc_changelog(0, :s1, ARRAY['id'], 'all') ORDER BY 1;
SELECT id, v, _change_type FROM tpc_changelog(:s1, :s2, ARRAY['id'], 'all') ORDER BY 1;
SELECT id, v, _change_type, _change_ordinal FROM tpc_changelog(0, NULL, mode => 'all') ORDER BY 4;

-- rolled back: the number is a hole that nobody sees
BEGIN;
INSERT INTO tpc VALUES (3, 'never');
PREPARE TRANSACTION 'regress_cdc_34b';
INSERT INTO tpc VALUES (4, 'plain');
SELECT cdc.current_snapshot('tpc') = :s2 AS held_back;
ROLLBACK PREPARED 'regress_cdc_34b';
SELECT cdc.current_snapshot('tpc') > :s2 AS goes_on;
SELECT id, v, _change_type FROM tpc_changelog(:s2, NULL, ARRAY['id'], 'all') ORDER BY 1;
SELECT count(*) FROM cdc.snapshots('tpc') WHERE snapshot_id > :s2;
-- a range that starts or ends in the hole
SELECT cdc.current_snapshot('tpc') AS s3 \gset
SELECT count(*) FROM tpc_changelog(:s2 + 1, :s3);
SELECT count(*) FROM tpc_changelog(:s2, :s2 + 1);

-- a prepared transaction that only touches another table holds nobody back
CREATE TABLE other (id int);
SELECT cdc.track('other');
BEGIN;
INSERT INTO other VALUES (1);
PREPARE TRANSACTION 'regress_cdc_34c';
INSERT INTO tpc VALUES (5, 'free');
SELECT cdc.current_snapshot('tpc') > :s3 AS free;
COMMIT PREPARED 'regress_cdc_34c';
SELECT id, _change_type, _change_ordinal FROM other_changelog(0);

-- savepoints and TRUNCATE in a prepared transaction; one that changed nothing
BEGIN;
SAVEPOINT a;
INSERT INTO tpc VALUES (6, 'undone');
ROLLBACK TO a;
SAVEPOINT b;
DELETE FROM tpc WHERE id = 5;
RELEASE b;
INSERT INTO tpc VALUES (7, 'kept');
PREPARE TRANSACTION 'regress_cdc_34d';
COMMIT PREPARED 'regress_cdc_34d';
SELECT cdc.current_snapshot('tpc') AS s4 \gset
SELECT id, v, _change_type FROM tpc_changelog(:s4 - 1, :s4, ARRAY['id'], 'all') ORDER BY 1;
BEGIN;
SAVEPOINT a;
INSERT INTO tpc VALUES (8, 'undone');
ROLLBACK TO a;
UPDATE tpc SET v = v;
PREPARE TRANSACTION 'regress_cdc_34e';
SELECT cdc.current_snapshot('tpc') = :s4 AS same;
INSERT INTO tpc VALUES (9, 'not held back');
SELECT cdc.current_snapshot('tpc') > :s4 AS free;
COMMIT PREPARED 'regress_cdc_34e';
BEGIN;
TRUNCATE tpc;
PREPARE TRANSACTION 'regress_cdc_34f';
COMMIT PREPARED 'regress_cdc_34f';
SELECT count(*) FROM tpc_changelog();
-- the session that prepared goes on with a clean state
BEGIN;
INSERT INTO tpc VALUES (10, 'x');
PREPARE TRANSACTION 'regress_cdc_34g';
INSERT INTO other VALUES (2);
ROLLBACK PREPARED 'regress_cdc_34g';
INSERT INTO tpc VALUES (11, 'y');
SELECT id, v, _change_type FROM tpc_changelog() ORDER BY 1;
SELECT id, _change_type, _change_ordinal FROM other_changelog(0) ORDER BY 1;
