{#
  Materialization "changelog": a table that follows the changes of its sources.

  The first build and --full-refresh make a new, empty table and apply
  everything to it; later builds apply the changes to the table that is there.
  Where the consumer's positions are of no use any more, or belong to another
  table, the same statement reads everything and makes the target equal to it.
#}
{% materialization changelog, adapter='postgres' %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='table') -%}
  {%- set intermediate = make_intermediate_relation(target) -%}
  {%- set backup = make_backup_relation(target, 'table' if existing is none else existing.type) -%}
  {%- set keys = cdc.as_list(config.get('unique_key')) -%}
  {%- set append = cdc.is_append() -%}
  {%- set on_schema_change = incremental_validate_on_schema_change(config.get('on_schema_change'), default='ignore') -%}
  {%- set grant_config = config.get('grants') -%}
  {%- set to_drop = [] -%}

  {% if keys | length == 0 and not append %}
    {{ exceptions.raise_compiler_error("Model " ~ model.name ~ " needs a unique_key: the columns that identify a row of it") }}
  {% elif keys | length > 0 and append %}
    {{ exceptions.raise_compiler_error("Model " ~ model.name ~ " has the mode append and cannot have a unique_key") }}
  {% endif %}

  {% do cdc.refuse_sample() %}

  {% do drop_relation_if_exists(load_cached_relation(intermediate)) %}
  {% do drop_relation_if_exists(load_cached_relation(backup)) %}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {% set names = cdc.query_columns(sql) %}
  {% set data = names if append else cdc.data_columns(names) %}
  {% if not append and '_change_type' not in names %}
    {{ exceptions.raise_compiler_error("Model " ~ model.name ~ " has no column _change_type: select it from cdc.changes, or make it with cdc.keep_when") }}
  {% endif %}
  {% set changes = [] %}
  {% for name in ('_change_type', '_change_ordinal') if name in names and not append %}
    {% do changes.append(name) %}
  {% endfor %}
  {% if cdc.option('history') and '_commit_timestamp' in names and not append %}
    {% do changes.append('_commit_timestamp') %}
  {% endif %}

  {% set usable = existing is not none and existing.type == 'table' %}
  {% set rebuild = not usable or should_full_refresh() %}
  {% set in_place = false %}
  {% set contract = config.get('contract') %}
  {% set contract = contract and contract.enforced %}
  {% set temp = make_temp_relation(target) %}
  {% set followed = usable and rebuild and not append and cdc.is_tracked(target) %}
  {% if followed or not rebuild %}
    {% do run_query(cdc.create_temp_sql(temp, cdc.no_rows(sql, data, names))) %}
  {% endif %}
  {% if followed %}
    {# others follow this table: it stays, and gets what is different #}
    {% set have = adapter.get_columns_in_relation(existing) | map(attribute='name') | list %}
    {% set want = adapter.get_columns_in_relation(temp) | map(attribute='name') | list %}
    {% if have | sort == want | sort
        and (contract or not check_for_schema_changes(temp, existing)['schema_changed']) %}
      {% set in_place = true %}
      {% set rebuild = false %}
    {% else %}
      {% do log("The columns of " ~ cdc.plain(target) ~ " change: it is made anew", info=true) %}
    {% endif %}
  {% endif %}

  {% if rebuild %}
    {% call statement('cdc_create') %}
      {{ get_create_table_as_sql(False, intermediate, cdc.no_rows(sql, data, names)) }}
    {% endcall %}
    {% do create_indexes(intermediate) %}
    {% set applied_to = intermediate %}
    {% set columns = data + changes %}
  {% else %}
    {% set applied_to = target %}
    {% if not contract %}
      {% do adapter.expand_target_column_types(from_relation=temp, to_relation=target) %}
    {% endif %}
    {% if append %}
      {% do cdc.refuse_to_append_again(target) %}
    {% elif not flags.EMPTY and not cdc.option('history') %}
      {% do cdc.refill_if_columns_change(on_schema_change, temp, existing) %}
    {% endif %}
    {% if not flags.EMPTY %}
      {% do process_schema_changes(on_schema_change, temp, existing) %}
    {% endif %}
    {% set have = adapter.get_columns_in_relation(existing) | map(attribute='name') | list %}
    {% set columns = [] %}
    {% for name in data if name in have %}
      {% do columns.append(name) %}
    {% endfor %}
    {% set columns = columns + changes %}
  {% endif %}
  {% set reset = rebuild or in_place %}

  {% if flags.EMPTY %}
    {% call noop_statement('main', 'EMPTY', 'EMPTY', 0) %}
      {{ sql }}
    {% endcall %}
  {% else %}
    {% set counts = cdc.run_apply(applied_to, sql, columns, keys, reset) %}
    {% set message = 'APPLY ' ~ counts[0] ~ ' ins ' ~ counts[1] ~ ' upd ' ~ counts[2] ~ ' del' %}
    {% call noop_statement('main', message, 'APPLY', counts[0] + counts[1] + counts[2]) %}
      {{ cdc.apply_sql(applied_to, sql, columns, keys, reset) }}
    {% endcall %}
  {% endif %}

  {% if rebuild %}
    {% if existing is not none %}
      {% do adapter.rename_relation(existing, backup) %}
      {% do to_drop.append(backup) %}
    {% endif %}
    {% do adapter.rename_relation(intermediate, target) %}
  {% endif %}

  {% if (cdc.option('track') or false) and not cdc.is_tracked(target) %}
    {# others are to follow it: a new table wants a new log #}
    {% do run_query('select cdc.track(' ~ cdc.regclass(target) ~ ')') %}
  {% endif %}

  {% do apply_grants(target, grant_config, should_revoke=should_revoke(existing, rebuild)) %}
  {% do persist_docs(target, model) %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {% do adapter.commit() %}

  {% for relation in to_drop %}
    {% do adapter.drop_relation(relation) %}
  {% endfor %}

  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target]}) }}
{% endmaterialization %}

{# Where columns of the target are going to be new or of another type, all rows
   want values in them: the consumer forgets what it has read.  It does so first,
   for where dbt makes no transactions the build may end in between. #}
{% macro refill_if_columns_change(on_schema_change, temp, existing) %}
  {% if on_schema_change in ('append_new_columns', 'sync_all_columns') %}
    {% set difference = check_for_schema_changes(temp, existing) %}
    {% if difference['source_not_in_target'] | length > 0
        or (on_schema_change == 'sync_all_columns' and difference['new_target_types'] | length > 0) %}
      {% do run_query('select cdc.reset(consumer) from (select distinct consumer from cdc.consumers where consumer = '
        ~ cdc.literal(cdc.consumer()) ~ ') as c') %}
    {% endif %}
  {% endif %}
{% endmacro %}

{# With a sample of the sources, rows that are not in it would pass for deleted. #}
{% macro refuse_sample() %}
  {% if invocation_args_dict.get('sample') or invocation_args_dict.get('SAMPLE') %}
    {{ exceptions.raise_compiler_error("Model " ~ model.name ~ " cannot be built with --sample: rows outside of the sample would look like deleted ones. Leave the model out with --exclude.") }}
  {% endif %}
{% endmacro %}

{# Rows that a table got under another name of the model, or before the consumer
   was removed, would be appended a second time. #}
{% macro refuse_to_append_again(relation) %}
  {% set found = run_query("select not exists (select from cdc.position(" ~ cdc.literal(cdc.consumer()) ~ "))
    and exists (select from " ~ cdc.plain(relation) ~ ")") %}
  {% if found.rows[0][0] %}
    {{ exceptions.raise_compiler_error("Model " ~ model.name ~ " appends to table " ~ cdc.plain(relation)
      ~ ", which has rows already, but is not known to have read anything: everything would be appended once more. Was the model renamed, or its consumer removed? Give it another alias, or run it with --full-refresh to build the table anew.") }}
  {% endif %}
{% endmacro %}

{# dbt's own macro would ask for the columns of the contract. #}
{% macro create_temp_sql(relation, sql) %}
  {{ return('create temporary table ' ~ relation.include(database=false, schema=false) ~ ' as (' ~ sql ~ ')') }}
{% endmacro %}
