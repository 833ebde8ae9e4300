-- The installed packages as a tracked table, changed into what the package
-- index offers, and a copy that follows.
--
-- Variables: installed, index (files of tab-separated columns)

\set ON_ERROR_STOP on
\pset footer off

CREATE TABLE packages (
  name text,
  arch text,
  version text NOT NULL,
  section text,
  priority text,
  installed_size bigint,
  maintainer text,
  summary text,
  PRIMARY KEY (name, arch)
);
CREATE TABLE package_index (LIKE packages INCLUDING ALL);
COPY packages FROM :'installed' (NULL '');
COPY package_index FROM :'index' (NULL '');
ANALYZE packages, package_index;

\set ECHO queries
\echo
\echo 'The packages that dpkg has installed, and a copy of them; the index of apt.'
\echo

SELECT (SELECT count(*) FROM packages) AS installed, (SELECT count(*) FROM package_index) AS index;
CREATE TABLE packages_copy (LIKE packages INCLUDING ALL);
INSERT INTO packages_copy TABLE packages;
CREATE TABLE packages_copy2 (LIKE packages INCLUDING ALL);
INSERT INTO packages_copy2 TABLE packages;
SELECT cdc.track('packages');

\echo
\echo 'Upgrade: each package for which the index has another version'
\echo

\timing on
UPDATE packages p SET version = i.version, installed_size = i.installed_size
  FROM package_index i WHERE (i.name, i.arch) = (p.name, p.arch) AND i.version <> p.version;

\echo
\echo 'What the archive says otherwise differently'
\echo

UPDATE packages p
   SET (section, priority, installed_size, maintainer, summary) =
       (i.section, i.priority, i.installed_size, i.maintainer, i.summary)
  FROM package_index i
 WHERE (i.name, i.arch) = (p.name, p.arch)
   AND (p.section, p.priority, p.installed_size, p.maintainer, p.summary)
       IS DISTINCT FROM (i.section, i.priority, i.installed_size, i.maintainer, i.summary);

\echo
\echo 'Install 5,000 packages, and every library for development in one more transaction;'
\echo 'what is there already only gets a newer version'
\echo

INSERT INTO packages
  SELECT i.* FROM package_index i LEFT JOIN packages p USING (name, arch)
   WHERE p.name IS NULL ORDER BY name, arch LIMIT 5000;
INSERT INTO packages
  SELECT * FROM package_index WHERE section = 'libdevel'
  ON CONFLICT (name, arch) DO UPDATE SET version = EXCLUDED.version;

\echo
\echo 'Remove what the index does not know, all documentation, and the libraries again'
\echo 'that nobody wanted'
\echo

BEGIN;
DELETE FROM packages p
 WHERE NOT EXISTS (SELECT FROM package_index i WHERE (i.name, i.arch) = (p.name, p.arch));
DELETE FROM packages WHERE section = 'doc';
COMMIT;
DELETE FROM packages p
 WHERE section = 'libdevel' AND name > 'libm'
   AND NOT EXISTS (SELECT FROM packages_copy c WHERE (c.name, c.arch) = (p.name, p.arch));
\timing off

\echo
\echo 'The snapshots of it'
\echo

SELECT snapshot_id, inserted, deleted, kind FROM cdc.snapshots('packages') ORDER BY snapshot_id;

\echo
\echo 'What changed, counted: every change, the last of each package, and net'
\echo

\timing on
SELECT _change_type, count(*) FROM packages_changelog(0, NULL, ARRAY['name', 'arch'], 'all') GROUP BY 1 ORDER BY 1;
SELECT _change_type, count(*) FROM packages_changelog(0, NULL, ARRAY['name', 'arch']) GROUP BY 1 ORDER BY 1;
SELECT _change_type, count(*) FROM packages_changelog(0, NULL, ARRAY['name', 'arch'], 'net') GROUP BY 1 ORDER BY 1;
\timing off

\echo
\echo 'Some of the updates'
\echo

SELECT name, version, left(summary, 30) AS summary, _change_type, _change_ordinal AS ordinal
  FROM packages_changelog(0, NULL, ARRAY['name', 'arch'], 'net')
 WHERE _change_type LIKE 'UPDATE%'
 ORDER BY name, arch, _change_type DESC LIMIT 8;

\echo
\echo 'The copy, as of snapshot 0, is brought up to date.'
\echo

\timing on
SELECT * FROM cdc.apply_changelog('packages_copy',
  $$SELECT * FROM packages_changelog(0, NULL, ARRAY['name', 'arch'])$$, ARRAY['name', 'arch']);
\timing off

\echo
\echo 'The same by way of a changelog view that holds every change, of which the last of'
\echo 'each key is taken'
\echo

\timing on
CALL cdc.create_changelog_view('packages', options => '{"start-snapshot-id": "0"}',
                               identifier_columns => ARRAY['name', 'arch']);
SELECT * FROM cdc.apply_changelog('packages_copy2', 'packages_changes', ARRAY['name', 'arch'],
                                  deduplicate => true);
\timing off

\echo
\echo 'Proof: no row that only one of them has'
\echo

SELECT (SELECT count(*) FROM packages) AS packages,
       (SELECT count(*) FROM (TABLE packages EXCEPT ALL TABLE packages_copy) d) AS missing,
       (SELECT count(*) FROM (TABLE packages_copy EXCEPT ALL TABLE packages) d) AS surplus,
       (SELECT count(*) FROM (TABLE packages EXCEPT ALL TABLE packages_copy2) d) AS missing2,
       (SELECT count(*) FROM (TABLE packages_copy2 EXCEPT ALL TABLE packages) d) AS surplus2;

\set ECHO none
DO $$
BEGIN
  IF EXISTS (TABLE packages EXCEPT ALL TABLE packages_copy) OR
     EXISTS (TABLE packages_copy EXCEPT ALL TABLE packages) OR
     EXISTS (TABLE packages EXCEPT ALL TABLE packages_copy2) OR
     EXISTS (TABLE packages_copy2 EXCEPT ALL TABLE packages) THEN
    RAISE EXCEPTION 'the copies are not equal to the source';
  END IF;
  IF NOT EXISTS (SELECT FROM packages_changelog(0)) THEN
    RAISE EXCEPTION 'nothing has changed';
  END IF;
END $$;
\echo
\echo 'The copies are equal to the source.'
