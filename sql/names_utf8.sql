-- A name of 62 bytes in characters of two: cut between characters (BB-41)
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
SELECT getdatabaseencoding() <> 'UTF8' AS skip_test \gset
\if :skip_test
\echo 'the encoding of the database is not UTF8, tests skipped'
\quit
\endif
\pset format unaligned
CREATE SCHEMA names_utf8;
SET search_path = names_utf8, public;
CREATE TABLE "ééééééééééééééééééééééééééééééé" (id int PRIMARY KEY, "éééééééééééééééééééééééééééééééx" text);
SELECT cdc.track('"ééééééééééééééééééééééééééééééé"');
INSERT INTO "ééééééééééééééééééééééééééééééé" VALUES (1, 'in e');
SELECT v, _change_type FROM cdc.changelog('"ééééééééééééééééééééééééééééééé"', 0) AS t(id int, v text, _change_type text, _change_ordinal bigint, _commit_snapshot_id bigint, _commit_timestamp timestamptz);
SELECT _change_type FROM "éééééééééééééééééééééééééé_changelog"(0, NULL, ARRAY['id', 'éééééééééééééééééééééééééééééééx']);
SELECT proname, octet_length(proname::text) <= 63 AS fits FROM pg_proc WHERE pronamespace = 'names_utf8'::regnamespace;
CALL cdc.create_changelog_view('"ééééééééééééééééééééééééééééééé"');
SELECT _change_type FROM "ééééééééééééééééééééééééééé_changes";
SELECT cdc.untrack('"ééééééééééééééééééééééééééééééé"');
