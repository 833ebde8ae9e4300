-- Net changes by key, case by case: events of one key (value@snapshot) and
-- what is left of them
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cdc_changelog;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA net_by_key;
SET search_path = net_by_key, public;

CREATE TABLE n (id int PRIMARY KEY, v text);
INSERT INTO n VALUES (4, 'a'), (5, 'a'), (6, 'a'), (7, 'a'), (8, 'a'), (9, 'a');
SELECT cdc.track('n');
-- 1
UPDATE n SET v = 'b' WHERE id = 9;
-- 2
BEGIN;
INSERT INTO n VALUES (1, 'a'), (2, 'a'), (3, 'a');
UPDATE n SET v = 'b' WHERE id = 4;
DELETE FROM n WHERE id IN (5, 6, 8);
UPDATE n SET v = 'a' WHERE id = 9;
COMMIT;
-- 3
BEGIN;
DELETE FROM n WHERE id IN (2, 4);
INSERT INTO n VALUES (5, 'b'), (8, 'b');
UPDATE n SET v = 'b' WHERE id = 7;
COMMIT;
-- 4
INSERT INTO n VALUES (100, 'passing by');
-- 5
BEGIN;
DELETE FROM n WHERE id IN (1, 7, 8, 100);
INSERT INTO n VALUES (2, 'b'), (4, 'c'), (6, 'c');
UPDATE n SET v = 'b' WHERE id = 3;
UPDATE n SET v = 'c' WHERE id = 5;
COMMIT;
SELECT cdc.current_snapshot('n');

SELECT what, c.id, v, _change_type, _change_ordinal
  FROM (VALUES (1, 'I@2 D@5: none'),
               (2, 'I a@2, D@3, I b@5: I b@5'),
               (3, 'I a@2, U a->b@5: I b@5'),
               (4, 'U a->b@2, D b@3, I c@5: UB a@2, UA c@5'),
               (5, 'D a@2, I b@3, U b->c@5: UB a@2, UA c@5'),
               (6, 'D a@2, I c@5: UB a@2, UA c@5'),
               (7, 'U a->b@3, D b@5: D a@3'),
               (8, 'D a@2, I b@3, D b@5: D a@2'),
               (9, 'U a->b@1, U b->a@2: none'),
               (100, 'I@4 D@5: none')) c(id, what)
  LEFT JOIN n_changelog(0, 5, ARRAY['id'], 'net') USING (id)
 ORDER BY c.id, _change_ordinal, v;

-- the same without keys: whole rows
SELECT id, v, _change_type, _change_ordinal FROM n_changelog(0, 5) ORDER BY 1, 4, 2;
-- and the last change of each key, with its own before image
SELECT id, v, _change_type, _change_ordinal FROM n_changelog(0, 5, ARRAY['id'], 'latest_pair') ORDER BY 1, 4, 2;

-- content {1,2,3,4}; U 3 -> x@2; I 5,6@3; D 1,2@4; whole range from the start
CREATE TABLE w (id int PRIMARY KEY, v text);
SELECT cdc.track('w');
INSERT INTO w VALUES (1, '1'), (2, '2'), (3, '3'), (4, '4');
UPDATE w SET v = 'x' WHERE id = 3;
INSERT INTO w VALUES (5, '5'), (6, '6');
DELETE FROM w WHERE id IN (1, 2);
SELECT id, v, _change_type, _change_ordinal FROM w_changelog(NULL, NULL, ARRAY['id'], 'net') ORDER BY 1, 4;

-- an image that goes, comes back and goes again: the newest unmatched event stays
CREATE TABLE z (id int PRIMARY KEY, v text);
INSERT INTO z VALUES (1, 'a'), (2, 'a');
SELECT cdc.track('z');
UPDATE z SET v = 'b' WHERE id = 1;
UPDATE z SET v = 'a' WHERE id = 1;
UPDATE z SET v = 'b' WHERE id = 1;
DELETE FROM z WHERE id = 2;
INSERT INTO z VALUES (2, 'a');
DELETE FROM z WHERE id = 2;
SELECT id, v, _change_type, _change_ordinal FROM z_changelog(0, 6, ARRAY['id'], 'net') ORDER BY 1, 4, 2;
SELECT id, v, _change_type, _change_ordinal FROM z_changelog(0, 6) ORDER BY 1, 4, 2;
