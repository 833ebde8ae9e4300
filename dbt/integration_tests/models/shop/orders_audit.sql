-- Every change as a row.
{{ config(mode='append') }}
select order_id, status, amount_cents, _change_type, _change_ordinal
from {{ cdc.changes(source('app', 'orders'), mode='all') }}
