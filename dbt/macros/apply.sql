{# The columns of a query, by name.  It is planned, but not run. #}
{% macro query_columns(sql) %}
  {{ return(adapter.get_columns_in_query(sql) if adapter.get_columns_in_query is defined else get_columns_in_query(sql)) }}
{% endmacro %}

{# The same without those that a changelog adds. #}
{% macro data_columns(names) %}
  {% set result = [] %}
  {% for name in names if name not in cdc.change_columns() %}
    {% do result.append(name) %}
  {% endfor %}
  {{ return(result) }}
{% endmacro %}

{# Quoted names for a select list. #}
{% macro select_list(names) %}
  {% set result = [] %}
  {% for name in names %}
    {% do result.append(adapter.quote(name)) %}
  {% endfor %}
  {{ return(result | join(', ')) }}
{% endmacro %}

{# A query with the columns of the target that returns no row: those of the model,
   and with "history" those that tell when a version was valid. #}
{% macro no_rows(sql, columns, names) %}
  {% set list = [cdc.select_list(columns)] %}
  {% if cdc.option('history') and not cdc.is_append() %}
    {% set sequence = cdc.option('sequence_by') %}
    {% set at = adapter.quote(sequence) if sequence is not none else 'null::bigint' %}
    {% do list.append(at ~ ' as valid_from, ' ~ at ~ ' as valid_to') %}
    {% if '_commit_timestamp' in names %}
      {% do list.append('null::timestamptz as valid_from_time, null::timestamptz as valid_to_time') %}
    {% endif %}
  {% endif %}
  {{ return('select ' ~ list | join(', ') ~ ' from (\n' ~ sql ~ '\n) as __cdc_query where false') }}
{% endmacro %}

{#
  The statement that makes a table follow the model's query: one statement, so
  that whatever transactions dbt makes, the target and the consumer's positions
  change together or not at all.

  reset: the consumer starts anew, whatever it has read before.
#}
{% macro apply_sql(relation, sql, columns, keys, reset=false) %}
  {% set query = 'select ' ~ cdc.select_list(columns) ~ ' from (\n' ~ sql ~ '\n) as __cdc_query' %}
  {% set arguments = [cdc.regclass(relation), cdc.literal(query)] %}
  {% if cdc.is_append() %}
    {% do arguments.append('keys => null') %}
    {% do arguments.append('append => true') %}
  {% else %}
    {% do arguments.append('keys => ' ~ cdc.literal_array(keys)) %}
    {% for name in ('sequence_by', 'soft_delete', 'max_deletes') %}
      {% set value = cdc.option(name) %}
      {% if value is not none %}
        {% do arguments.append(name ~ ' => ' ~ cdc.literal(value)) %}
      {% endif %}
    {% endfor %}
    {% for name in ('ignore_null_updates', 'deduplicate', 'history') %}
      {% if cdc.option(name) %}
        {% do arguments.append(name ~ ' => true') %}
      {% endif %}
    {% endfor %}
    {% set exclude = cdc.as_list(cdc.option('history_exclude')) %}
    {% if exclude | length > 0 %}
      {% do arguments.append('history_exclude => ' ~ cdc.literal_array(exclude)) %}
    {% endif %}
  {% endif %}
  {% do arguments.append('consumer => ' ~ cdc.literal(cdc.consumer())) %}
  {% if not reset %}
    {{ return('select inserted, updated, deleted from cdc.apply_changelog(' ~ arguments | join(',\n  ') ~ ')') }}
  {% endif %}
  {# the argument nowait is false, and makes the one come before the other #}
  {% do arguments.append('nowait => fresh.consumers < 0') %}
  {{ return('with fresh as materialized (\n  select count(cdc.reset(c.consumer)) as consumers'
    ~ '\n  from (select distinct consumer from cdc.consumers where consumer = ' ~ cdc.literal(cdc.consumer()) ~ ') as c\n)\n'
    ~ 'select a.inserted, a.updated, a.deleted from fresh cross join lateral cdc.apply_changelog('
    ~ arguments | join(',\n  ') ~ ') as a') }}
{% endmacro %}

{% macro is_append() %}
  {% set mode = cdc.option('mode') %}
  {% if mode not in (none, 'append', 'apply') %}
    {{ exceptions.raise_compiler_error("Unknown mode \"" ~ mode ~ "\" of model " ~ model.name ~ ": the modes are \"apply\" and \"append\"") }}
  {% endif %}
  {{ return(mode == 'append') }}
{% endmacro %}

{# Runs it, and returns the counts. #}
{% macro run_apply(relation, sql, columns, keys, reset=false) %}
  {% call statement('cdc_apply', fetch_result=true) %}
    {{ config.get('sql_header') or '' }}
    {{ cdc.apply_sql(relation, sql, columns, keys, reset) }}
  {% endcall %}
  {{ return(load_result('cdc_apply').table.rows[0]) }}
{% endmacro %}

{# Is a table tracked itself?  Others follow it then, and it has to stay. #}
{% macro is_tracked(relation) %}
  {% set found = run_query("select 1 from cdc.tracked_tables where relation = pg_catalog.to_regclass("
    ~ cdc.literal(cdc.plain(relation)) ~ ")") %}
  {{ return(found.rows | length > 0) }}
{% endmacro %}

{# The strategy "changelog" for models that are materialized as incremental.  dbt
   looks for it in the user's project only; see the README for the one line. #}
{% macro get_incremental_changelog_sql(arg_dict) %}
  {% set keys = cdc.as_list(arg_dict['unique_key']) %}
  {% if keys | length == 0 %}
    {{ exceptions.raise_compiler_error("The incremental strategy changelog needs a unique_key") }}
  {% endif %}
  {% do cdc.refuse_sample() %}
  {% if config.get('on_schema_change') not in (none, 'ignore') %}
    {{ exceptions.raise_compiler_error("The incremental strategy changelog needs on_schema_change='ignore' in model " ~ model.name ~ ": dbt takes _change_type for a new column. The materialization changelog can do more.") }}
  {% endif %}
  {% if flags.EMPTY %}
    {{ return('select 0 as inserted where false') }}
  {% endif %}
  {% set target = arg_dict['target_relation'] %}
  {% set names = cdc.query_columns('select * from ' ~ arg_dict['temp_relation']) %}
  {% if '_change_type' not in names %}
    {{ exceptions.raise_compiler_error("The incremental strategy changelog needs a column _change_type; use cdc.changes and cdc.keep_when in the incremental branch of model " ~ model.name) }}
  {% endif %}
  {% set columns = [] %}
  {% set have = arg_dict['dest_columns'] | map(attribute='name') | list %}
  {% for name in names if name in have or name in ('_change_type', '_change_ordinal') %}
    {% do columns.append(name) %}
  {% endfor %}
  {# the query itself and not its temporary copy: reading and the move of the
     positions belong into one statement #}
  {{ return(cdc.apply_sql(target, model['compiled_code'], columns, keys)) }}
{% endmacro %}
