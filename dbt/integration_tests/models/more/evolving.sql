{{ config(materialized='changelog', unique_key='order_id', on_schema_change=var('on_schema_change', 'ignore')) }}
select order_id, status {% if var('new_column', false) %}, amount_cents{% endif %}, _change_type, _change_ordinal
  from {{ cdc.changes(source('app', 'orders')) }}
