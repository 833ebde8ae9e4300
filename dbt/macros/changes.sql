{#
  The changes of a tracked table since the model's last build, for FROM:

    select * from {{ cdc.changes(source('app', 'orders')) }}

  Where there was none, or going on is not possible, these are all its rows as
  INSERT.  So one SELECT serves first and later builds.

  keys: columns that identify a row; by default those of meta.cdc.keys of the
  source, seed or model, or else the primary key.  Columns of the model's
  unique_key that the table has are added to them, see identifiers below.
  mode: a mode of the changelog function, such as 'all'; by default 'latest', and
  'all' for a model with "history".
  Without any keys, or with an empty list of them, the mode is 'net'.
#}
{% macro changes(relation, keys=none, mode=none) %}
  {{ return(adapter.dispatch('changes', 'cdc')(relation, keys, mode)) }}
{% endmacro %}

{% macro default__changes(relation, keys=none, mode=none) %}
  {% if not execute %}
    {{ return(relation) }}
  {% endif %}

  {% do cdc.refuse_reader() %}
  {% do cdc.refuse_rebuilt(relation) %}
  {% set function = cdc.changelog_function(relation) %}
  {% if mode is none and cdc.option('history') %}
    {% set mode = 'all' %}
  {% endif %}
  {% set keys = cdc.identifiers(relation, keys, mode) %}
  {% set arguments = [] %}
  {% if keys | length > 0 %}
    {% do arguments.append('identifiers => ' ~ cdc.literal_array(keys)) %}
  {% endif %}
  {% if mode is not none %}
    {% do arguments.append('mode => ' ~ cdc.literal(mode)) %}
  {% endif %}
  {% if flags.EMPTY %}
    {# a range without any snapshot in it #}
    {% set now = run_query('select cdc.current_snapshot(' ~ cdc.regclass(relation) ~ ')').rows[0][0] %}
    {% do arguments.append('start_snapshot => ' ~ now) %}
    {% do arguments.append('end_snapshot => ' ~ now) %}
  {% else %}
    {% do arguments.append('consumer => ' ~ cdc.literal(cdc.consumer())) %}
  {% endif %}
  {{ return(function ~ '(' ~ arguments | join(', ') ~ ')') }}
{% endmacro %}

{#
  The last column of a model with a filter: what becomes of the row in the
  target.  Rows that do not meet the condition, or do not any more, leave it; so
  do rows for which it is null.

  from_state: the condition alone tells, and the change of a source does not; for
  models that look up the present state of the keys that were touched.
#}
{% macro keep_when(condition, from_state=false) %}
  {{ return(adapter.dispatch('keep_when', 'cdc')(condition, from_state)) }}
{% endmacro %}

{% macro default__keep_when(condition, from_state=false) %}
  {%- if from_state -%}
    {{ return("case when (" ~ condition ~ ") then 'INSERT' else 'DELETE' end as _change_type") }}
  {%- endif -%}
  {{ return("case when _change_type = 'UPDATE_BEFORE' then _change_type when _change_type <> 'DELETE' and (" ~ condition ~ ") then 'INSERT' else 'DELETE' end as _change_type, _change_ordinal") }}
{% endmacro %}

{# Is there a target that changes can be applied to?  The built-in macro of that
   name knows its own materialization only. #}
{% macro is_incremental() %}
  {% if not execute %}
    {{ return(false) }}
  {% endif %}
  {% set relation = load_cached_relation(this) %}
  {{ return(relation is not none and relation.type == 'table' and not should_full_refresh()) }}
{% endmacro %}

{# The changelog function of a tracked table, quoted and qualified. #}
{% macro changelog_function(relation) %}
  {% set found = run_query("select n.nspname, p.proname
    from cdc.tracked_tables t
    join pg_catalog.pg_proc p on p.oid = t.changelog_function
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace
    where t.relation = pg_catalog.to_regclass(" ~ cdc.literal(cdc.plain(relation)) ~ ")") %}
  {% if found.rows | length == 0 and flags.WHICH in ('compile', 'generate', 'docs') %}
    {# nothing is run, and the database may not be prepared #}
    {{ return(adapter.quote(relation.schema) ~ '.' ~ adapter.quote(relation.identifier ~ '_changelog')) }}
  {% elif found.rows | length == 0 %}
    {{ exceptions.raise_compiler_error("Table " ~ cdc.plain(relation) ~ " is not tracked, or may not be read. Set meta.cdc.track for it and run: dbt run-operation cdc.track_sources") }}
  {% endif %}
  {{ return(adapter.quote(found.rows[0][0]) ~ '.' ~ adapter.quote(found.rows[0][1])) }}
{% endmacro %}

{# The source, seed or model of a relation, as a dictionary; none if there is
   none. #}
{% macro node_of(relation) %}
  {% for node in (graph.sources.values() | list) + (graph.nodes.values() | list) %}
    {% if node.resource_type in ('source', 'seed', 'model', 'snapshot')
        and (node.get('identifier') or node.get('alias') or node.name) == relation.identifier
        and node.schema == relation.schema %}
      {{ return(node) }}
    {% endif %}
  {% endfor %}
  {{ return(none) }}
{% endmacro %}

{# The columns that identify a row of a tracked table. #}
{% macro keys_of(relation) %}
  {% set node = cdc.node_of(relation) %}
  {% if node is not none %}
    {% set keys = cdc.as_list(cdc.node_settings(node).get('keys')) %}
    {% if keys | length == 0 and node.resource_type == 'model' %}
      {% set keys = cdc.as_list((node.get('config') or {}).get('unique_key')) %}
    {% endif %}
    {% if keys | length > 0 %}
      {{ return(keys) }}
    {% endif %}
  {% endif %}
  {% set found = run_query("select a.attname
    from pg_catalog.pg_index i
    cross join lateral pg_catalog.unnest(i.indkey::int2[]) with ordinality k(attnum, position)
    join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
    where i.indisprimary and k.position <= i.indnkeyatts
      and i.indrelid = pg_catalog.to_regclass(" ~ cdc.literal(cdc.plain(relation)) ~ ")
    order by k.position") %}
  {{ return(found.columns[0].values() | list) }}
{% endmacro %}

{#
  The identifiers that a table's changes are read with.

  A row of the table that gets other values in columns of the model's key has to
  leave one row of the target and come to another one.  The changelog tells both
  (DELETE and INSERT) if these columns are among the identifiers, and only the
  new one (UPDATE_AFTER) if not.
#}
{% macro identifiers(relation, keys, mode) %}
  {% if mode == 'append_only' or (keys is not none and cdc.as_list(keys) | length == 0) %}
    {{ return([]) }}
  {% endif %}
  {% set result = cdc.as_list(keys) or cdc.keys_of(relation) %}
  {% set wanted = cdc.as_list(config.get('unique_key')) %}
  {% if wanted | length > 0 %}
    {% set found = run_query("select attname
      from pg_catalog.pg_attribute
      where attrelid = pg_catalog.to_regclass(" ~ cdc.literal(cdc.plain(relation)) ~ ")
        and attnum > 0 and not attisdropped") %}
    {% set have = found.columns[0].values() | list %}
    {% set common = [] %}
    {% for name in wanted if name in have %}
      {% do common.append(name) %}
    {% endfor %}
    {% if result | length > 0 or common | length == wanted | length %}
      {% set result = result + (common | reject('in', result) | list) %}
    {% endif %}
  {% endif %}
  {{ return(result) }}
{% endmacro %}

{# Who reads changes has to move the position as well.  Others would read
   everything each time, and never see a delete. #}
{% macro refuse_reader() %}
  {% if model is not defined or model.resource_type not in ('model', 'snapshot') %}
    {{ return('') }}
  {% endif %}
  {% set kind = model.config.materialized %}
  {% if kind in ('view', 'table', 'materialized_view', 'ephemeral', 'snapshot')
      or (kind == 'incremental' and model.config.incremental_strategy != 'changelog') %}
    {{ exceptions.raise_compiler_error("Model " ~ model.name ~ " cannot use cdc.changes: it is materialized as " ~ kind
      ~ (" without incremental_strategy='changelog'" if kind == 'incremental' else '')
      ~ ", which does not remember how far it has read. Use the materialization changelog, and write cdc.changes into the model itself, not into one that it selects from.") }}
  {% endif %}
  {% if kind == 'incremental' and not is_incremental() %}
    {# dbt makes the table of all rows, those marked DELETE among them #}
    {{ exceptions.raise_compiler_error("Model " ~ model.name ~ " uses cdc.changes where it builds its whole table: write it into the branch of is_incremental(), and a query of the whole table into the other one; or use the materialization changelog, which needs one query only.") }}
  {% endif %}
{% endmacro %}

{# Models that are built by renaming a new table lose their log each time. #}
{% macro refuse_rebuilt(relation) %}
  {% set node = cdc.node_of(relation) %}
  {% if node is not none and node.resource_type == 'model'
      and node.config.materialized not in ('incremental', 'changelog') %}
    {{ exceptions.raise_compiler_error("Changes of model " ~ node.name ~ " cannot be read: it is materialized as " ~ node.config.materialized ~ " and made anew by every build. Use the materialization changelog or incremental for it.") }}
  {% endif %}
{% endmacro %}
