{{ config(materialized='changelog', unique_key='order_id',
          pre_hook=[{'sql': 'select 1', 'transaction': false}], post_hook=["{{ shop.misbehave() }}"]) }}
select order_id, status, _change_type, _change_ordinal from {{ cdc.changes(source('app', 'orders')) }}
