UPDATE app.orders SET status = 'cancelled' WHERE order_id = 10;
UPDATE app.orders SET amount_cents = 4500 WHERE order_id = 12;
UPDATE app.orders SET status = 'active' WHERE order_id = 11;
DELETE FROM app.orders WHERE order_id = 13;
INSERT INTO app.orders VALUES (14, 2, 'active', 700);
UPDATE app.customers SET name = 'Grace H.' WHERE customer_id = 2;
DELETE FROM app.payments WHERE payment_id = 101;
