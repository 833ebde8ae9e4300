{{ config(materialized='changelog', unique_key='order_id') }}
select order_id, amount, _change_type, _change_ordinal from {{ cdc.changes(ref('leader')) }}
