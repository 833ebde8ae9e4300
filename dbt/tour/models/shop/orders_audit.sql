{{ config(materialized='changelog', mode='append') }}

select *, now() as loaded_at
  from {{ cdc.changes(source('app', 'orders'), mode='all') }}
