-- Writes under session_replication_role = replica are captured too, and none
-- twice (BB-28)
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA replica_role;
SET search_path = replica_role, public;

CREATE TABLE rr (id int PRIMARY KEY, v text);
INSERT INTO rr VALUES (1, 'a'), (2, 'b');
SELECT cdc.track('rr');
SET session_replication_role = replica;
BEGIN;
INSERT INTO rr VALUES (3, 'c');
UPDATE rr SET v = 'A' WHERE id = 1;
DELETE FROM rr WHERE id = 2;
COMMIT;
RESET session_replication_role;
SELECT id, v, _change_type, _change_ordinal FROM rr_changelog(0, 1, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;
SELECT snapshot_id, inserted, deleted FROM cdc.snapshots('rr') WHERE snapshot_id > 0;
SET session_replication_role = replica;
TRUNCATE rr;
RESET session_replication_role;
SELECT id, v, _change_type, _change_ordinal FROM rr_changelog(1, 2, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;
-- no-op updates, key changes, many rows, savepoints, ON CONFLICT
SET session_replication_role = replica;
INSERT INTO rr SELECT i, 'x' FROM generate_series(1, 300) i;
UPDATE rr SET v = v;
BEGIN;
SAVEPOINT a;
DELETE FROM rr;
ROLLBACK TO a;
UPDATE rr SET id = -id WHERE id > 298;
INSERT INTO rr VALUES (1, 'y'), (6000, 'y') ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v;
DELETE FROM rr WHERE id BETWEEN 10 AND 290;
COMMIT;
RESET session_replication_role;
SELECT snapshot_id, inserted, deleted FROM cdc.snapshots('rr') WHERE snapshot_id > 2 ORDER BY 1;
SELECT _change_type, _change_ordinal, count(*) FROM rr_changelog(2, NULL, mode => 'all') GROUP BY 1, 2 ORDER BY 2, 1;
SELECT id, v, _change_type, _change_ordinal FROM rr_changelog(3, 4, ARRAY['id'], 'all') WHERE id NOT BETWEEN 10 AND 290 ORDER BY 4, 1, 3 DESC;
-- both roles in one transaction
BEGIN;
UPDATE rr SET v = 'origin' WHERE id = 2;
SET LOCAL session_replication_role = replica;
UPDATE rr SET v = 'replica' WHERE id = 3;
SET LOCAL session_replication_role = origin;
UPDATE rr SET v = 'origin' WHERE id = 4;
SET LOCAL session_replication_role = local;
UPDATE rr SET v = 'local' WHERE id = 5;
COMMIT;
SELECT id, v, _change_type, _change_ordinal FROM rr_changelog(4, 5, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;
SELECT count(*) FROM (
  (SELECT id, v FROM rr_changelog(NULL, NULL) EXCEPT ALL TABLE rr)
  UNION ALL
  (TABLE rr EXCEPT ALL SELECT id, v FROM rr_changelog(NULL, NULL))) x;
