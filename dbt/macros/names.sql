{# What the other macros share: options, names, literals. #}

{# An option of the model: in its config, or under "cdc" in its meta. #}
{% macro option(name, default=none) %}
  {% set meta = (config.get('meta', {}) or {}).get('cdc', {}) or {} %}
  {% set value = config.get(name, none) %}
  {{ return(value if value is not none else meta.get(name, default)) }}
{% endmacro %}

{# The package's settings in a node's dictionary, wherever this version of dbt
   keeps its meta. #}
{% macro node_settings(node) %}
  {% set outer = node.get('meta', {}) or {} %}
  {% set inner = (node.get('config', {}) or {}).get('meta', {}) or {} %}
  {{ return(inner.get('cdc') or outer.get('cdc') or {}) }}
{% endmacro %}

{# A string as an SQL literal.  Single quotes only: not every client splits
   statements with dollar quotes in mind. #}
{% macro literal(value) %}
  {% set text = value | string %}
  {% if '\\' in text %}
    {{ return("E'" ~ text | replace('\\', '\\\\') | replace("'", "''") ~ "'") }}
  {% endif %}
  {{ return("'" ~ text | replace("'", "''") ~ "'") }}
{% endmacro %}

{# A list of strings as an SQL array. #}
{% macro literal_array(values) %}
  {% set parts = [] %}
  {% for value in values %}
    {% do parts.append(cdc.literal(value)) %}
  {% endfor %}
  {{ return('array[' ~ parts | join(', ') ~ ']::text[]') }}
{% endmacro %}

{# A relation as a regclass.  render(): --empty and --sample make a subquery of
   the relation itself. #}
{% macro regclass(relation) %}
  {{ return(cdc.literal(cdc.plain(relation)) ~ '::regclass') }}
{% endmacro %}

{# The name of a relation, quoted and qualified, without a limit. #}
{% macro plain(relation) %}
  {{ return(relation.include(database=false, schema=true, identifier=true).render()) }}
{% endmacro %}

{# A string or a list as a list. #}
{% macro as_list(value) %}
  {% if value is none %}
    {{ return([]) }}
  {% elif value is string %}
    {{ return([value]) }}
  {% endif %}
  {{ return(value | list) }}
{% endmacro %}

{# The consumer of a model.  Development, CI and production may share a
   database, so the schema belongs to its name. #}
{% macro consumer(unique_id=none, schema=none) %}
  {{ return('dbt:' ~ (unique_id or model.unique_id) ~ '@' ~ (schema or this.schema)) }}
{% endmacro %}

{# Columns that a changelog adds. #}
{% macro change_columns() %}
  {{ return(['_change_type', '_change_ordinal', '_commit_snapshot_id', '_commit_timestamp']) }}
{% endmacro %}

{# Raise an error unless the extension is there, and of this version at least.
   For on-run-start. #}
{% macro require_extension(min_version='1.0') %}
  {% if execute %}
    {% set found = run_query("select extversion from pg_catalog.pg_extension where extname = 'cdc_changelog'") %}
    {% if found.rows | length == 0 %}
      {{ exceptions.raise_compiler_error("The extension cdc_changelog is not installed in this database. Run: CREATE EXTENSION cdc_changelog") }}
    {% endif %}
    {% set have = found.rows[0][0].split('.') | map('int') | list %}
    {% set want = min_version.split('.') | map('int') | list %}
    {% if have < want %}
      {{ exceptions.raise_compiler_error("The extension cdc_changelog is of version " ~ found.rows[0][0] ~ ", but " ~ min_version ~ " is needed. Run: ALTER EXTENSION cdc_changelog UPDATE") }}
    {% endif %}
  {% endif %}
{% endmacro %}
