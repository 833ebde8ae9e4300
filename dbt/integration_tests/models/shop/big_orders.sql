-- On another model that keeps its table.
{{ config(unique_key='order_id') }}
select order_id, amount, {{ cdc.keep_when('amount >= 50') }}
from {{ cdc.changes(ref('active_orders'), keys='order_id') }}
