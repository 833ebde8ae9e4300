{#
  Is the target what a full recomputation gives?  "query" is that
  recomputation, a SELECT with the same columns:

    data_tests:
      - cdc.in_sync:
          query: "select order_id, amount from {{ source('app', 'orders') }} where status = 'active'"

  Fails with the rows that are too many or missing.
#}
{% test in_sync(model, query, columns=none) %}
  {% set names = cdc.as_list(columns) or (cdc.query_columns(query) if execute else []) %}
  {% set list = cdc.select_list(names) if names | length > 0 else '*' %}
  with target as (
    select {{ list }} from {{ model }}
  ),
  recomputed as (
    select {{ list }} from (
      {{ query }}
    ) as __cdc_query
  )
  (select 'too many' as problem, * from (select * from target except all select * from recomputed) as a)
  union all
  (select 'missing' as problem, * from (select * from recomputed except all select * from target) as b)
{% endtest %}

{#
  Is the model's consumer not further behind its sources than this?

    data_tests:
      - cdc.lag_below: {seconds: 900}
#}
{% test lag_below(model, seconds=none, rows=none, snapshots=none) %}
  {% set node = cdc.node_of(model) if execute else none %}
  {% set name = cdc.consumer(node.unique_id, node.schema) if node is not none else '' %}
  select consumer, relation::text, lag_seconds, lag_rows, lag_snapshots
  from cdc.consumers
  where consumer = {{ cdc.literal(name) }}
    and (false
    {% if seconds is not none %} or lag_seconds > {{ seconds }} {% endif %}
    {% if rows is not none %} or lag_rows > {{ rows }} {% endif %}
    {% if snapshots is not none %} or lag_snapshots > {{ snapshots }} {% endif %})
  union all
  select {{ cdc.literal(name) }}, 'no such consumer', null, null, null
  where not exists (select from cdc.consumers where consumer = {{ cdc.literal(name) }})
{% endtest %}
