{{ config(materialized='changelog', unique_key='order_id') }}

select order_id, customer_id, amount_cents / 100.0 as amount,
       {{ cdc.keep_when("status = 'active'") }}
  from {{ cdc.changes(source('app', 'orders')) }}
