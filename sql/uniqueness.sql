-- Identifiers have to be unique: what is checked, and what cannot be paired
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA uniqueness;
SET search_path = uniqueness, public;

-- duplicates that exist before the range and are never touched themselves:
-- key 1 has two rows in content(0), only one of them changes
CREATE TABLE d (id int, v text);
INSERT INTO d VALUES (1, 'a'), (1, 'untouched'), (2, 'b'), (3, 'c'), (3, 'c'), (4, 'd');
SELECT cdc.track('d');
UPDATE d SET v = 'A' WHERE v = 'a';
SELECT * FROM d_changelog(0, 1, ARRAY['id']);
\echo :SQLSTATE
SELECT * FROM d_changelog(0, 1, ARRAY['id'], 'all');
SELECT * FROM d_changelog(0, 1, ARRAY['id'], 'latest_pair');
SELECT * FROM d_changelog(0, 1, ARRAY['id'], 'net');
-- not validated it can be paired
SELECT id, v, _change_type, _change_ordinal FROM d_changelog(0, 1, ARRAY['id'], 'all', validate => false) ORDER BY 4, 1, 2;
SELECT id, v, _change_type, _change_ordinal FROM d_changelog(0, 1, ARRAY['id'], validate => false) ORDER BY 4, 1, 2;
SELECT id, v, _change_type, _change_ordinal FROM d_changelog(0, 1, ARRAY['id'], 'latest_pair', false) ORDER BY 4, 1, 2;
SELECT id, v, _change_type, _change_ordinal FROM d_changelog(0, 1, ARRAY['id'], 'net', false) ORDER BY 4, 1, 2;
-- keys that are duplicate but not touched in the range do not matter
UPDATE d SET v = 'B' WHERE id = 2;
SELECT id, v, _change_type, _change_ordinal FROM d_changelog(1, 2, ARRAY['id'], 'all') ORDER BY 4, 1, 2;
-- nor do those that a transaction touched and put back
BEGIN;
UPDATE d SET v = 'x' WHERE v = 'A';
UPDATE d SET v = 'A' WHERE v = 'x';
DELETE FROM d WHERE id = 3;
INSERT INTO d VALUES (3, 'c'), (3, 'c');
UPDATE d SET v = 'D' WHERE id = 4;
COMMIT;
SELECT id, v, _change_type, _change_ordinal FROM d_changelog(2, 3, ARRAY['id'], 'all') ORDER BY 4, 1, 2;
SELECT id, v, _change_type, _change_ordinal FROM d_changelog(2, 3, ARRAY['id'], 'all', false) ORDER BY 4, 1, 2;
-- the duplicate comes to an end inside the range: still refused, content(3) has it
DELETE FROM d WHERE v = 'untouched';
SELECT * FROM d_changelog(3, 4, ARRAY['id']);
SELECT * FROM d_changelog(0, 4, ARRAY['id']);
SELECT id, v, _change_type, _change_ordinal FROM d_changelog(3, 4, ARRAY['id'], validate => false) ORDER BY 4, 1, 2;
-- and is over after it
UPDATE d SET v = 'once more' WHERE id = 1;
SELECT id, v, _change_type, _change_ordinal FROM d_changelog(4, 5, ARRAY['id'], 'all') ORDER BY 4, 1, 2;
-- start NULL counts the baseline as touched
SELECT * FROM d_changelog(NULL, 5, ARRAY['id']);
SELECT id, v, _change_type, _change_ordinal FROM d_changelog(NULL, 5) ORDER BY 4, 1, 2;

-- a duplicate that comes and goes between the ends of the range
CREATE TABLE m (id int, v text);
INSERT INTO m VALUES (1, 'a');
SELECT cdc.track('m');
INSERT INTO m VALUES (1, 'twin');
DELETE FROM m WHERE v = 'twin';
UPDATE m SET v = 'b';
SELECT * FROM m_changelog(0, 3, ARRAY['id'], 'net');
SELECT * FROM m_changelog(1, 3, ARRAY['id'], 'net');
SELECT id, v, _change_type, _change_ordinal FROM m_changelog(2, 3, ARRAY['id'], 'net') ORDER BY 4, 1, 2;
SELECT id, v, _change_type, _change_ordinal FROM m_changelog(0, 3) ORDER BY 4, 1, 2;
SELECT id, v, _change_type, _change_ordinal FROM m_changelog(0, 3, ARRAY['id'], 'all', false) ORDER BY 4, 1, 2;
-- in one transaction it is nobody's business
BEGIN;
INSERT INTO m VALUES (1, 'twin');
UPDATE m SET v = 'c' WHERE v = 'b';
DELETE FROM m WHERE v = 'twin';
COMMIT;
SELECT id, v, _change_type, _change_ordinal FROM m_changelog(3, 4, ARRAY['id'], 'all') ORDER BY 4, 1, 2;

-- what cannot be paired fails without validation too
CREATE TABLE p (id int, v text);
INSERT INTO p VALUES (1, 'a'), (1, 'b'), (2, 'a');
SELECT cdc.track('p');
DELETE FROM p WHERE id = 1;
SELECT * FROM p_changelog(0, 1, ARRAY['id'], 'all', false);
\echo :SQLSTATE
SELECT * FROM p_changelog(0, 1, ARRAY['id'], 'latest', false);
INSERT INTO p VALUES (2, 'b'), (2, 'c');
SELECT * FROM p_changelog(1, 2, ARRAY['id'], 'all', false);
-- two copies of one image are two rows
INSERT INTO p VALUES (5, 'x'), (5, 'x');
SELECT * FROM p_changelog(2, 3, ARRAY['id'], 'all', false);
SELECT id, v, _change_type, _change_ordinal FROM p_changelog(0, 3) ORDER BY 4, 1, 2;
-- a later snapshot alone can be paired
DELETE FROM p WHERE ctid = (SELECT max(ctid) FROM p WHERE id = 5);
SELECT id, v, _change_type, _change_ordinal FROM p_changelog(3, 4, ARRAY['id'], 'all', false) ORDER BY 4, 1, 2;
SELECT * FROM p_changelog(3, 4, ARRAY['id'], 'all');

-- start NULL: the rows of the baseline are INSERTs of one snapshot like any other
CREATE TABLE q (id int, v text);
INSERT INTO q VALUES (1, 'a'), (1, 'b'), (2, 'c');
SELECT cdc.track('q');
UPDATE q SET v = 'C' WHERE id = 2;
SELECT * FROM q_changelog(NULL, NULL, ARRAY['id'], 'all', false);
\echo :SQLSTATE
SELECT * FROM q_changelog(NULL, NULL, ARRAY['id'], 'latest', false);
SELECT * FROM q_changelog(NULL, 0, ARRAY['id'], 'latest_pair', false);
SELECT id, v, _change_type, _change_ordinal FROM q_changelog(0, NULL, ARRAY['id'], 'all', false) ORDER BY 4, 1, 3 DESC;
UPDATE q SET v = 'B' WHERE v = 'b';
SELECT * FROM q_changelog(NULL, NULL, ARRAY['id'], 'all', false);
DELETE FROM q WHERE id = 1 AND v = 'a';
SELECT * FROM q_changelog(NULL, NULL, ARRAY['id'], 'all', false);
SELECT id, v, _change_type, _change_ordinal FROM q_changelog(NULL, NULL) ORDER BY 4, 1, 3 DESC;

-- NULL is equal to NULL
CREATE TABLE nk (id int, v text);
INSERT INTO nk VALUES (NULL, 'a');
SELECT cdc.track('nk');
UPDATE nk SET v = 'b';
SELECT id, v, _change_type, _change_ordinal FROM nk_changelog(0, 1, ARRAY['id'], 'all') ORDER BY 4, 1, 2;
INSERT INTO nk VALUES (NULL, 'second');
SELECT * FROM nk_changelog(1, 2, ARRAY['id'], 'all');
\echo :SQLSTATE
-- which a unique index does not promise
DELETE FROM nk WHERE v = 'second';
CREATE UNIQUE INDEX nk_id ON nk (id);
UPDATE nk SET v = 'c';
INSERT INTO nk VALUES (NULL, 'second');
UPDATE nk SET v = 'd' WHERE v = 'c';
SELECT * FROM nk_changelog(4, 6, ARRAY['id'], 'all');
\echo :SQLSTATE
SELECT * FROM nk_changelog(5, 6, ARRAY['id'], 'all');
\echo :SQLSTATE

-- composite keys; part of one is another key
CREATE TABLE ck (a int, b text, v text);
INSERT INTO ck VALUES (1, 'x', 'one'), (1, 'y', 'two'), (2, NULL, 'three'), (NULL, NULL, 'four');
SELECT cdc.track('ck');
BEGIN;
UPDATE ck SET v = v || '!' WHERE v <> 'two';
COMMIT;
SELECT a, b, v, _change_type, _change_ordinal FROM ck_changelog(0, 1, ARRAY['a', 'b'], 'all') ORDER BY 5, 1, 2, 3;
SELECT a, b, v, _change_type, _change_ordinal FROM ck_changelog(0, 1, ARRAY['b', 'a'], 'all') ORDER BY 5, 1, 2, 3;
SELECT * FROM ck_changelog(0, 1, ARRAY['a'], 'all');
SELECT * FROM ck_changelog(0, 1, ARRAY['b'], 'all');
-- all columns as the key: every change is DELETE and INSERT
SELECT a, b, v, _change_type, _change_ordinal FROM ck_changelog(0, 1, ARRAY['a', 'b', 'v'], 'all') ORDER BY 5, 1, 2, 3;

-- keys are compared with =, rows byte for byte
CREATE TABLE num (n numeric, v text);
INSERT INTO num VALUES (1.0, 'a'), (2, 'b'), ('NaN', 'c');
SELECT cdc.track('num');
BEGIN;
UPDATE num SET n = 1.00 WHERE n = 1;
UPDATE num SET v = 'B', n = 2.000 WHERE n = 2;
UPDATE num SET v = 'C' WHERE n = 'NaN';
COMMIT;
SELECT n, v, _change_type, _change_ordinal FROM num_changelog(0, 1, ARRAY['n'], 'all') ORDER BY 4, n, 3 DESC;
INSERT INTO num VALUES (1.000, 'twin of 1.00');
SELECT * FROM num_changelog(1, 2, ARRAY['n'], 'all');
CREATE TABLE fl (f float8, v text);
INSERT INTO fl VALUES (0, 'a'), ('NaN', 'b');
SELECT cdc.track('fl');
BEGIN;
UPDATE fl SET f = '-0' WHERE v = 'a';
UPDATE fl SET v = 'B' WHERE v = 'b';
COMMIT;
SELECT f, v, _change_type, _change_ordinal FROM fl_changelog(0, 1, ARRAY['f'], 'all') ORDER BY 4, lower(v), 3 DESC;
INSERT INTO fl VALUES (0, 'positive');
SELECT * FROM fl_changelog(1, 2, ARRAY['f'], 'all');
-- char(n) ignores trailing blanks, text does not
CREATE TABLE ch (c char(5), t text, v int);
INSERT INTO ch VALUES ('ab', 'ab', 1), ('ab', 'ab ', 2);
SELECT cdc.track('ch');
UPDATE ch SET v = 3 WHERE v = 1;
SELECT * FROM ch_changelog(0, 1, ARRAY['c'], 'all');
SELECT c, t, v, _change_type, _change_ordinal FROM ch_changelog(0, 1, ARRAY['t'], 'all') ORDER BY 5, 3;

-- a type without equality cannot be a key
CREATE TABLE js (j json, p point, v int);
INSERT INTO js VALUES ('{}', '(0,0)', 1);
SELECT cdc.track('js');
UPDATE js SET v = 2;
SELECT * FROM js_changelog(0, 1, ARRAY['j']);
\echo :SQLSTATE
SELECT * FROM js_changelog(0, 1, ARRAY['p']);
\echo :SQLSTATE
SELECT j, p, v, _change_type, _change_ordinal FROM js_changelog(0, 1, ARRAY['v'], 'all') ORDER BY 5, 3;

-- a unique index proves uniqueness, but only from when it was there
CREATE TABLE u (id int NOT NULL, v text);
INSERT INTO u VALUES (1, 'a'), (1, 'twin'), (2, 'b');
SELECT cdc.track('u');
UPDATE u SET v = 'A' WHERE v = 'a';
DELETE FROM u WHERE v = 'twin';
ALTER TABLE u ADD PRIMARY KEY (id);
UPDATE u SET v = 'AA' WHERE id = 1;
UPDATE u SET v = 'B' WHERE id = 2;
SELECT * FROM u_changelog(0, 4, ARRAY['id']);
\echo :SQLSTATE
SELECT * FROM u_changelog(0, 1, ARRAY['id']);
SELECT * FROM u_changelog(1, 4, ARRAY['id']);
SELECT id, v, _change_type, _change_ordinal FROM u_changelog(2, 4, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;
SELECT id, v, _change_type, _change_ordinal FROM u_changelog(2, 4, ARRAY['id', 'v'], 'all') ORDER BY 4, 1, 3 DESC;
-- and not any more when it was dropped
ALTER TABLE u DROP CONSTRAINT u_pkey;
INSERT INTO u VALUES (2, 'twin');
UPDATE u SET v = 'BB' WHERE v = 'B';
SELECT * FROM u_changelog(4, 6, ARRAY['id']);
SELECT * FROM u_changelog(5, 6, ARRAY['id']);
DELETE FROM u WHERE v = 'twin';
CREATE UNIQUE INDEX u_new ON u (id);
SELECT * FROM u_changelog(2, 7, ARRAY['id']);
-- dropped, used, and made again under the same name between two reads
CREATE TABLE w (id int NOT NULL, v text);
CREATE UNIQUE INDEX w_id ON w (id);
INSERT INTO w VALUES (1, 'a');
SELECT cdc.track('w');
UPDATE w SET v = 'b';
SELECT id, v, _change_type, _change_ordinal FROM w_changelog(0, 1, ARRAY['id'], 'all') ORDER BY 4, 1, 2;
DROP INDEX w_id;
INSERT INTO w VALUES (1, 'twin');
DELETE FROM w WHERE v = 'twin';
CREATE UNIQUE INDEX w_id ON w (id);
UPDATE w SET v = 'c';
SELECT * FROM w_changelog(0, 4, ARRAY['id'], 'net');
SELECT * FROM w_changelog(1, 2, ARRAY['id'], 'all');
SELECT id, v, _change_type, _change_ordinal FROM w_changelog(3, 4, ARRAY['id'], 'all') ORDER BY 4, 1, 2;

-- indexes that do not prove it: partial, on an expression, of another
-- equality, on more columns than the key
CREATE TABLE x (id int NOT NULL, b int NOT NULL, t text NOT NULL);
CREATE UNIQUE INDEX ON x (id) WHERE b > 0;
CREATE UNIQUE INDEX ON x ((id + b));
CREATE UNIQUE INDEX ON x (id, b);
CREATE UNIQUE INDEX ON x (b) INCLUDE (id);
INSERT INTO x VALUES (1, -1, 'a'), (1, -2, 'b'), (2, 3, 'c');
SELECT cdc.track('x');
UPDATE x SET t = 'A' WHERE t = 'a';
SELECT * FROM x_changelog(0, 1, ARRAY['id'], 'all');
SELECT id, b, t, _change_type, _change_ordinal FROM x_changelog(0, 1, ARRAY['b'], 'all') ORDER BY 5, t COLLATE "C" DESC;
SELECT id, b, t, _change_type, _change_ordinal FROM x_changelog(0, 1, ARRAY['t', 'id', 'b'], 'all') ORDER BY 5, t COLLATE "C" DESC;
-- NULLs in one column of a unique key, and a unique index of PostgreSQL 15's NULLS NOT DISTINCT
CREATE TABLE y (id int, v text);
CREATE UNIQUE INDEX ON y (id) NULLS NOT DISTINCT;
INSERT INTO y VALUES (NULL, 'a'), (1, 'b');
SELECT cdc.track('y');
UPDATE y SET v = upper(v);
SELECT id, v, _change_type, _change_ordinal FROM y_changelog(0, 1, ARRAY['id'], 'all') ORDER BY 4, 1, v COLLATE "C" DESC;
-- a deferrable key may be violated in between, not at the end of a transaction
CREATE TABLE df (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, v text);
INSERT INTO df VALUES (1, 'a'), (2, 'b');
SELECT cdc.track('df');
BEGIN;
UPDATE df SET id = 2 WHERE v = 'a';
UPDATE df SET id = 1 WHERE v = 'b';
COMMIT;
SELECT id, v, _change_type, _change_ordinal FROM df_changelog(0, 1, ARRAY['id'], 'all') ORDER BY 4, 1, 3 DESC;

-- the message of the primer's history (BB-11)
CREATE TABLE e (id text, val text);
INSERT INTO e VALUES ('id1', 'val1');
SELECT cdc.track('e');
UPDATE e SET val = 'val2';
BEGIN;
UPDATE e SET val = 'val3';
INSERT INTO e VALUES ('id2', 'val2');
COMMIT;
UPDATE e SET id = 'id1', val = 'val3' WHERE id = 'id2';
SELECT id, val, _change_type, _change_ordinal FROM e_changelog(0, 1, ARRAY['id'], 'all') ORDER BY 4, 1, 2;
SELECT * FROM e_changelog(0, 3, ARRAY['id']);
\echo :SQLSTATE
SELECT id, val, _change_type, _change_ordinal FROM e_changelog(0, 3) ORDER BY 4, 1, 2;
SELECT * FROM e_changelog(0, 1, ARRAY['ID']);
\echo :SQLSTATE
SELECT id, val, _change_type, _change_ordinal FROM e_changelog(0, 1, ARRAY['id', 'id'], 'all') ORDER BY 4, 1, 2;
-- long keys and NULL keys in the detail
INSERT INTO e VALUES (NULL, 'n1'), (NULL, 'n2');
SELECT id, val, _change_type, _change_ordinal FROM e_changelog(3, 4, ARRAY['id', 'val'], 'latest') ORDER BY 2;
SELECT * FROM e_changelog(3, 4, ARRAY['id'], 'latest');
INSERT INTO e VALUES (repeat('long ', 30), '1'), (repeat('long ', 30), '2');
SELECT * FROM e_changelog(4, 5, ARRAY['id'], 'latest');
