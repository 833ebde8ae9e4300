-- With a contract, indexes, grants and descriptions; see shop.yml.
{{ config(
    unique_key='payment_id',
    indexes=[{'columns': ['payment_id'], 'unique': true}, {'columns': ['customer_id']}],
    grants={'select': ['reporting']},
    persist_docs={'relation': true, 'columns': true},
    on_schema_change='append_new_columns',
    sql_header="select set_config('application_name', 'customer_payments', true);"
) }}
select p.payment_id, p.customer_id, p.paid_cents, p._change_type, p._change_ordinal
from {{ cdc.changes(source('app', 'payments')) }} as p
