-- A join of two sources: the keys that were touched on either side.
{{ config(unique_key='order_id') }}
with order_changes as (
    select order_id from {{ cdc.changes(source('app', 'orders')) }}
),
customer_changes as (
    select customer_id from {{ cdc.changes(source('app', 'customers')) }}
),
touched as (
    select order_id from order_changes
    union
    select o.order_id
    from {{ source('app', 'orders') }} as o
    join customer_changes using (customer_id)
)
select t.order_id, o.amount_cents, c.name,
       {{ cdc.keep_when('o.order_id is not null', from_state=true) }}
from touched as t
left join {{ source('app', 'orders') }} as o using (order_id)
left join {{ source('app', 'customers') }} as c using (customer_id)
