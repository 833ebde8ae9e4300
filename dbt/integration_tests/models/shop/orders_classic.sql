-- The strategy, in dbt's own materialization.
{{ config(materialized='incremental', incremental_strategy='changelog', unique_key='order_id') }}
select order_id, status
{% if is_incremental() %}
  , {{ cdc.keep_when("status = 'active'") }}
from {{ cdc.changes(source('app', 'orders')) }}
{% else %}
from {{ source('app', 'orders') }} where status = 'active'
{% endif %}
