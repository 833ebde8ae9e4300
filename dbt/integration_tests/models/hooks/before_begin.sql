-- dbt commits before such a hook, and begins no transaction afterwards.
{{ config(
    unique_key='order_id',
    pre_hook=[{'sql': 'select 1', 'transaction': false}],
    post_hook=fail_on_demand()
) }}
select order_id, status, amount_cents, _change_type, _change_ordinal
from {{ cdc.changes(source('app', 'orders')) }}
