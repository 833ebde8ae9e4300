{{ config(materialized='changelog', unique_key='order_id') }}

with touched as (
    select order_id from {{ cdc.changes(source('app', 'orders')) }}
    union
    select order_id from {{ cdc.changes(source('app', 'payments'), keys=['payment_id', 'order_id']) }}
    union
    select o.order_id
      from {{ source('app', 'orders') }} o
      join {{ cdc.changes(source('app', 'customers')) }} c using (customer_id)
)
select t.order_id, c.name, o.amount_cents,
       (select coalesce(sum(p.paid_cents), 0) from {{ source('app', 'payments') }} p
         where p.order_id = t.order_id) as paid_cents,
       {{ cdc.keep_when('o.order_id is not null', from_state=true) }}
  from touched t
  left join {{ source('app', 'orders') }} o using (order_id)
  left join {{ source('app', 'customers') }} c using (customer_id)
