-- A filter: rows that do not meet it any more leave the table.
{{ config(unique_key='order_id', post_hook=fail_on_demand()) }}
select order_id, customer_id, amount_cents / 100.0 as amount,
       {{ cdc.keep_when("status = 'active'") }}
from {{ cdc.changes(source('app', 'orders')) }}
