-- The last change of every order in the audit is its present state.
with last_change as (
    select distinct on (order_id) order_id, status, amount_cents, _change_type
    from {{ ref('orders_audit') }}
    where _change_type <> 'UPDATE_BEFORE'
    order by order_id, _change_ordinal desc
),
replayed as (
    select order_id, status, amount_cents from last_change where _change_type <> 'DELETE'
),
present as (
    select order_id, status, amount_cents from {{ source('app', 'orders') }}
)
(select * from replayed except all select * from present)
union all
(select * from present except all select * from replayed)
