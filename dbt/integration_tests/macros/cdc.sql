{# dbt looks for incremental strategies in the project itself only #}
{% macro get_incremental_changelog_sql(arg_dict) %}
  {{ return(cdc.get_incremental_changelog_sql(arg_dict)) }}
{% endmacro %}
