CREATE EXTENSION cdc_changelog;
CREATE SCHEMA app;
CREATE TABLE app.customers (customer_id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE app.orders (order_id int PRIMARY KEY, customer_id int NOT NULL, status text, amount_cents int NOT NULL);
CREATE TABLE app.payments (payment_id int PRIMARY KEY, order_id int NOT NULL, paid_cents int NOT NULL);
INSERT INTO app.customers VALUES (1, 'Ada'), (2, 'Grace'), (3, 'Edsger');
INSERT INTO app.orders VALUES (10, 1, 'active', 1500), (11, 1, 'draft', 900), (12, 2, 'active', 4200), (13, 3, NULL, 100);
INSERT INTO app.payments VALUES (100, 10, 500), (101, 10, 1000), (102, 12, 4200);
