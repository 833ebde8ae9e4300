{# The line that a project needs for the strategy "changelog". #}
{% macro get_incremental_changelog_sql(arg_dict) %}
  {{ return(cdc.get_incremental_changelog_sql(arg_dict)) }}
{% endmacro %}

{# A hook that fails while app.control has a row for the model. #}
{% macro fail_on_demand() %}
  {{ return("select 1 / (case when exists (select from app.control where name = 'fail " ~ this.name ~ "') then 0 else 1 end)") }}
{% endmacro %}
