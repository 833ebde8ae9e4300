{{ config(unique_key='customer_id', on_schema_change='ignore') }}
select * from {{ cdc.changes(source('app', 'customers')) }}
