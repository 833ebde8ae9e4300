{{ config(unique_key='customer_id', on_schema_change='fail') }}
select * from {{ cdc.changes(source('app', 'customers')) }}
