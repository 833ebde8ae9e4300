{# What a test wants a post-hook to do #}
{% macro misbehave() %}
  {%- if var('misbehave', '') == 'fail' -%} select 1 / 0
  {%- elif var('misbehave', '') == 'hang' -%} select pg_sleep(600)
  {%- else -%} select 1
  {%- endif -%}
{% endmacro %}
