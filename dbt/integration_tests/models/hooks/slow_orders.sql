-- Sleeps while app.control has a row "sleep".
{{ config(unique_key='order_id') }}
select order_id, status, amount_cents, _change_type, _change_ordinal
from {{ cdc.changes(source('app', 'orders')) }}
where (select app.pause())
