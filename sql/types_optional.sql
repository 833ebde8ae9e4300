-- As types.sql, for what a server may be built without: nondeterministic
-- collations (ICU) and xml.  The alternative output is that of such a server.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
SELECT getdatabaseencoding() <> 'UTF8'
    OR NOT EXISTS (SELECT FROM pg_collation WHERE collprovider = 'i')
    OR NOT EXISTS (SELECT FROM pg_settings WHERE name = 'xmloption') AS skip_test \gset
SELECT NOT EXISTS (SELECT FROM pg_config WHERE name = 'CONFIGURE' AND setting LIKE '%--with-libxml%') OR :'skip_test' AS skip_test \gset
\if :skip_test
\echo 'built without ICU or libxml, tests skipped'
\quit
\endif
CREATE SCHEMA types_optional;
SET search_path = types_optional, public;

CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE c (id int, b text COLLATE ci);
INSERT INTO c VALUES (1, 'Zoe'), (2, 'q');
SELECT cdc.track('c');
UPDATE c SET b = 'Q' WHERE id = 2;
SELECT id, b, _change_type, _change_ordinal FROM c_changelog(0, NULL, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;
SELECT id, b, _change_type, _change_ordinal FROM c_changelog(0) ORDER BY 4, 1, 3;
-- the key is compared with the column's collation
SELECT id, b, _change_type, _change_ordinal FROM c_changelog(0, NULL, ARRAY['b'], 'all') ORDER BY 4, 1, 3 DESC;
INSERT INTO c VALUES (3, 'ZOE');
SELECT * FROM c_changelog(1, NULL, ARRAY['b'], 'all');
-- a unique index of another collation proves nothing
CREATE TABLE u (b text COLLATE ci NOT NULL, v int);
CREATE UNIQUE INDEX ON u (b COLLATE "C");
INSERT INTO u VALUES ('a', 1), ('A', 2);
SELECT cdc.track('u');
UPDATE u SET v = 3 WHERE v = 1;
SELECT * FROM u_changelog(0, NULL, ARRAY['b'], 'all');

CREATE TABLE x (id int PRIMARY KEY, doc xml);
INSERT INTO x VALUES (1, '<r/>'), (2, '<s/>');
SELECT cdc.track('x');
BEGIN;
UPDATE x SET doc = doc;
UPDATE x SET doc = '<r />' WHERE id = 1;
COMMIT;
SELECT id, doc, _change_type, _change_ordinal FROM x_changelog(0, NULL, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;
SELECT id, doc, _change_type, _change_ordinal FROM x_changelog(0) ORDER BY 4, 1, 3;
SELECT * FROM x_changelog(0, NULL, ARRAY['doc']);
