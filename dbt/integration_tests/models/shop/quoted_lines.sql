-- Names that need quotes, in a schema of their own.
{{ config(unique_key=['Order Id', 'line'], schema='Mart', alias='Order Lines') }}
select * from {{ cdc.changes(source('app', 'line_items')) }}
