-- Replication.
{{ config(unique_key='order_id') }}
select * from {{ cdc.changes(source('app', 'orders')) }}
