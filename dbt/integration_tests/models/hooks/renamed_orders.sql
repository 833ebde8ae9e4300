{{ config(unique_key='order_id', alias=env_var('SHOP_ALIAS', 'orders_a')) }}
select order_id, status, amount_cents, _change_type, _change_ordinal
from {{ cdc.changes(source('app', 'orders')) }}
