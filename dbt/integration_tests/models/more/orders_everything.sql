{{ config(
    materialized='changelog', unique_key='order_id', alias='Orders Copy', schema='mart',
    contract={'enforced': true},
    indexes=[{'columns': ['order_id'], 'unique': true}],
    grants={'select': ['shop_reader']},
    persist_docs={'relation': true, 'columns': true},
    sql_header="set local timezone = 'Asia/Tokyo';",
    pre_hook="select 1", post_hook=["{{ shop.misbehave() }}"]
) }}
select order_id, "status", amount_cents, current_setting('timezone') as zone, _change_type, _change_ordinal
  from {{ cdc.changes(source('app', 'orders')) }}
