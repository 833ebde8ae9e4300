{{ config(unique_key='customer_id', on_schema_change='append_new_columns') }}
select * from {{ cdc.changes(source('app', 'customers')) }}
