{# dbt run-operation cdc.track_sources
   Tracks the sources, seeds and models that have meta.cdc.track. #}
{% macro track_sources() %}
  {% if execute %}
    {% do cdc.require_extension() %}
    {% for node in (graph.sources.values() | list) + (graph.nodes.values() | list) %}
      {% if cdc.node_settings(node).get('track') and node.resource_type in ('source', 'seed', 'model', 'snapshot') %}
        {# what is not said follows the project's settings, as in source() and ref() #}
        {% set quoting = {} %}
        {% for part, value in (node.get('quoting') or {}).items() if part != 'column' and value is not none %}
          {% do quoting.update({part: value}) %}
        {% endfor %}
        {% set relation = api.Relation.create(database=node.database, schema=node.schema,
          identifier=node.get('identifier') or node.get('alias') or node.name,
          quote_policy=quoting) %}
        {% if node.resource_type == 'model' %}
          {% do cdc.refuse_rebuilt(relation) %}
        {% endif %}
        {% set name = relation.schema ~ '.' ~ relation.identifier %}
        {% set found = run_query('select pg_catalog.to_regclass(' ~ cdc.literal(cdc.plain(relation)) ~ ') is not null') %}
        {% if not found.rows[0][0] %}
          {% do log('cdc: ' ~ name ~ ' does not exist', info=true) %}
        {% elif cdc.is_tracked(relation) %}
          {% do log('cdc: ' ~ name ~ ' is tracked already', info=true) %}
        {% else %}
          {% do run_query('select cdc.track(' ~ cdc.regclass(relation) ~ ')') %}
          {% do log('cdc: ' ~ name ~ ' is tracked now', info=true) %}
        {% endif %}
      {% endif %}
    {% endfor %}
  {% endif %}
{% endmacro %}

{# dbt run-operation cdc.untrack --args '{table: app.orders}'
   Ends the changelog of a table and removes its log. #}
{% macro untrack(table) %}
  {% if execute %}
    {% do run_query('select cdc.untrack(' ~ cdc.literal(table) ~ '::regclass)') %}
    {% do log('cdc: ' ~ table ~ ' is not tracked any more', info=true) %}
  {% endif %}
{% endmacro %}

{# dbt run-operation cdc.status
   Prints how far each consumer is behind. #}
{% macro status() %}
  {% if execute %}
    {% set found = run_query("select consumer, relation::text, position, lag_snapshots, lag_rows,
      pg_catalog.round(lag_seconds::numeric, 1) as lag_seconds, last_run_at::text, last_mode
      from cdc.consumers order by consumer, relation::text") %}
    {% for row in found.rows %}
      {% do log('cdc: ' ~ row[0] ~ ' | ' ~ (row[1] or '-') ~ ' | position ' ~ row[2] ~ ' | behind '
        ~ row[3] ~ ' snapshots, ' ~ row[4] ~ ' rows, ' ~ row[5] ~ ' s | last run '
        ~ (row[6] or 'never') ~ ' ' ~ (row[7] or ''), info=true) %}
    {% else %}
      {% do log('cdc: there are no consumers', info=true) %}
    {% endfor %}
  {% endif %}
{% endmacro %}

{# dbt run-operation cdc.prune_consumers [--args '{dry_run: true}']
   Removes consumers of models of this project that are not there any more:
   they would keep the history of their sources for ever. #}
{% macro prune_consumers(dry_run=false) %}
  {% if execute %}
    {% set known = [] %}
    {% for node in graph.nodes.values() if node.resource_type == 'model' %}
      {% do known.append(cdc.consumer(node.unique_id, node.schema)) %}
    {% endfor %}
    {% set found = run_query("select distinct consumer from cdc.consumers
      where pg_catalog.starts_with(consumer, " ~ cdc.literal('dbt:model.' ~ project_name ~ '.') ~ ")
      order by consumer") %}
    {% set schemas = [] %}
    {% for name in known %}
      {% do schemas.append(name.split('@')[-1]) %}
    {% endfor %}
    {% for row in found.rows if row[0] not in known and row[0].split('@')[-1] in schemas + [target.schema] %}
      {% if not dry_run %}
        {% do run_query('select cdc.drop_consumer(' ~ cdc.literal(row[0]) ~ ')') %}
      {% endif %}
      {% do log('cdc: ' ~ row[0] ~ (' would be removed' if dry_run else ' is removed'), info=true) %}
    {% endfor %}
  {% endif %}
{% endmacro %}

{# dbt run-operation cdc.rewind --args '{model: active_orders, table: app.orders, to: 12}'
   Moves a model's position in a source back, so that its next build reads these
   changes once more. #}
{% macro rewind(model, table, to) %}
  {% if execute %}
    {% for node in graph.nodes.values() if node.resource_type == 'model' and node.name == model %}
      {% set before = run_query('select cdc.rewind(' ~ cdc.literal(cdc.consumer(node.unique_id, node.schema)) ~ ', '
        ~ cdc.literal(table) ~ '::regclass, ' ~ to ~ ')') %}
      {% do log('cdc: ' ~ model ~ ' was at snapshot ' ~ before.rows[0][0] ~ ' of ' ~ table ~ ' and is at ' ~ to ~ ' now', info=true) %}
    {% else %}
      {{ exceptions.raise_compiler_error("There is no model \"" ~ model ~ "\"") }}
    {% endfor %}
  {% endif %}
{% endmacro %}
