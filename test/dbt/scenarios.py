"""Scenarios of the dbt package, with real dbt on a real server.

usage: scenarios.py [--main] [scenario...]

Run by test/dbt/run.sh with the Python of a virtual environment that has dbt;
the PG* variables lead to the server.  Every scenario starts with tables of its
own making and prints one line, "ok N name" or "not ok N name"; after a failure
follows what dbt said.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback

PROJECT = os.environ["CDC_DBT_PROJECT"]
# runs the tour of the package's README
TOUR = os.path.join(PROJECT, "../../test/dbt/tour.sh")
DATABASE = os.environ.get("SHOP_DATABASE", "shop")
LOG = os.path.join(PROJECT, "dbt-output.txt")

# dbt's own output goes to a file, ours to where stdout was.
report = os.fdopen(os.dup(1), "w", buffering=1)
scenarios = []


class Failure(Exception):
    pass


def scenario(main=False):
    def register(function):
        scenarios.append((function.__name__, function, main))
        return function
    return register


def expect(condition, message):
    if not condition:
        raise Failure(message)


def equal(got, wanted, what):
    expect(got == wanted, "%s: got %r, expected %r" % (what, got, wanted))


# ----------
# The database
# ----------

def psql(sql, database=DATABASE, user="shop"):
    """Runs statements, each in a transaction of its own, and returns the output."""
    done = subprocess.run(
        ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-U", user, "-d", database],
        input=sql, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode != 0:
        raise Failure("psql: %s\n%s" % (sql, done.stderr))
    return done.stdout.strip()


SETUP = """
CREATE SCHEMA app;
CREATE TABLE app.customers (customer_id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE app.orders (order_id int PRIMARY KEY, customer_id int, status text NOT NULL, amount_cents bigint NOT NULL);
CREATE TABLE app.payments (payment_id int PRIMARY KEY, customer_id int, paid_cents bigint NOT NULL);
CREATE TABLE app."Line Items" ("Order Id" int, line int, "SKU's" text, PRIMARY KEY ("Order Id", line));
CREATE TABLE app.control (name text PRIMARY KEY);
CREATE FUNCTION app.pause() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF EXISTS (SELECT FROM app.control WHERE name = 'sleep') THEN
        PERFORM pg_sleep(36000);
    END IF;
    RETURN true;
END $$;
INSERT INTO app.customers SELECT i, 'customer ' || i FROM generate_series(1, 20) i;
INSERT INTO app.orders SELECT i, i % 20 + 1, CASE WHEN i % 3 = 0 THEN 'closed' ELSE 'active' END, i * 100 FROM generate_series(1, 100) i;
INSERT INTO app.payments SELECT i, i % 20 + 1, i * 50 FROM generate_series(1, 50) i;
INSERT INTO app."Line Items" SELECT i, 1, 'it''s \\ "' || i FROM generate_series(1, 10) i;
"""

# One change of each kind in every source; may be repeated.
DML = """
UPDATE app.orders SET status = CASE status WHEN 'active' THEN 'closed' ELSE 'active' END WHERE order_id % 7 = {n} % 7;
UPDATE app.orders SET amount_cents = amount_cents + 1000 WHERE order_id % 11 = {n} % 11;
DELETE FROM app.orders WHERE order_id = {n};
INSERT INTO app.orders VALUES (1000 + {n}, 5, 'active', 7700);
UPDATE app.customers SET name = name || '*' WHERE customer_id = {n} % 20 + 1;
BEGIN;
UPDATE app.payments SET paid_cents = -paid_cents WHERE payment_id % 5 = {n} % 5;
DELETE FROM app.payments WHERE payment_id = {n};
INSERT INTO app.payments VALUES (1000 + {n}, 2, 3);
COMMIT;
UPDATE app."Line Items" SET "SKU's" = "SKU's" || 'x' WHERE "Order Id" = {n} % 10 + 1;
INSERT INTO app."Line Items" VALUES (1000 + {n}, 1, 'new');
"""

dml_runs = 0


def dml():
    global dml_runs
    dml_runs += 1
    psql(DML.format(n=dml_runs))


def control(name, on):
    if on:
        psql("INSERT INTO app.control VALUES ('%s')" % name)
    else:
        psql("DELETE FROM app.control WHERE name = '%s'" % name)


def fresh(track=True):
    """A new database with the shop's tables, tracked."""
    global dml_runs
    dml_runs = 0
    from dbt.adapters.factory import cleanup_connections

    cleanup_connections()
    psql("DROP DATABASE IF EXISTS %s WITH (FORCE)" % DATABASE, "postgres", "postgres")
    psql("CREATE DATABASE %s OWNER shop" % DATABASE, "postgres", "postgres")
    psql("CREATE EXTENSION cdc_changelog", user="postgres")
    psql(SETUP)
    if track:
        psql("SELECT cdc.track('app.orders'); SELECT cdc.track('app.customers');"
             "SELECT cdc.track('app.payments'); SELECT cdc.track('app.\"Line Items\"')")


def positions():
    return psql("SELECT c.consumer, p.* FROM (SELECT DISTINCT consumer FROM cdc.consumers) c, "
                "cdc.position(c.consumer) p ORDER BY 1, 2")


def consumers():
    return psql("SELECT DISTINCT consumer FROM cdc.consumers ORDER BY 1").split("\n")


# ----------
# dbt
# ----------

class Result:
    def __init__(self, success, nodes, output):
        self.success = success
        self.nodes = nodes
        self.output = output

    def message(self, name):
        expect(name in self.nodes, "no result of %s in %s" % (name, sorted(self.nodes)))
        return self.nodes[name][1]


def arguments_of(arguments):
    return list(arguments) + ["--project-dir", PROJECT, "--profiles-dir", PROJECT]


def read_from(offset):
    with open(LOG, errors="replace") as file:
        file.seek(offset)
        return file.read()


def dbt(*arguments, ok=True):
    """Runs dbt in this process.  ok: whether it has to succeed; None: either."""
    from dbt.cli.main import dbtRunner

    start = os.path.getsize(LOG)
    print("\n$ dbt " + " ".join(arguments), flush=True)
    outcome = dbtRunner().invoke(arguments_of(arguments))
    sys.stdout.flush()
    if outcome.exception is not None:
        print("exception: %s" % outcome.exception, flush=True)
    nodes = {}
    for result in getattr(outcome.result, "results", None) or []:
        if hasattr(result, "node"):
            nodes[result.node.name] = (str(result.status), getattr(result, "message", None))
    result = Result(outcome.success, nodes, read_from(start))
    if ok is not None and outcome.success != ok:
        raise Failure("dbt %s: %s" % (" ".join(arguments), "failed" if ok else "succeeded"))
    return result


def dbt_process(*arguments, target_path="target"):
    """Starts dbt in a process of its own."""
    out = open(LOG, "a")
    return subprocess.Popen(
        [os.path.join(os.path.dirname(sys.executable), "dbt")] + arguments_of(arguments) +
        ["--target-path", os.path.join(PROJECT, target_path)],
        stdout=out, stderr=out, cwd=PROJECT)


def build(*selection, ok=True):
    arguments = ["build"]
    if selection:
        arguments += ["--select"] + list(selection)
    return dbt(*arguments, ok=ok)


def build_all():
    build("path:models/shop")


class Models:
    """Models that the project has for a while, text by name."""

    def __init__(self, **texts):
        self.texts = texts

    def path(self, name):
        return os.path.join(PROJECT, "models", name + ".sql")

    def __enter__(self):
        for name, text in self.texts.items():
            with open(self.path(name), "w") as file:
                file.write(text)

    def __exit__(self, *unused):
        for name in self.texts:
            os.remove(self.path(name))


def same(table, query):
    """A table has to be what a recomputation gives."""
    equal(psql("(SELECT * FROM {0} t EXCEPT ALL ({1})) UNION ALL (({1}) EXCEPT ALL SELECT * FROM {0} t)".format(table, query)),
          "", "rows of %s that are too many or missing" % table)


# ----------
# Scenarios
# ----------

@scenario(main=True)
def track_sources():
    dbt("run-operation", "cdc.track_sources")
    equal(psql("SELECT string_agg(relation::text, ', ' ORDER BY relation::text COLLATE \"C\") FROM cdc.tracked_tables"),
          'app."Line Items", app.customers, app.orders, app.payments', "tracked tables")
    again = dbt("run-operation", "cdc.track_sources")
    expect("app.orders is tracked already" in again.output.replace('"', ""), "not idempotent")


@scenario(main=True)
def builds_follow_changes():
    build_all()
    for _ in range(3):
        dml()
        build("path:models/shop")
    # a build without changes
    equal(build("orders_copy").message("orders_copy"), "APPLY 0 ins 0 upd 0 del", "status")


@scenario(main=True)
def status_line_counts():
    build("active_orders")
    psql("UPDATE app.orders SET amount_cents = 1 WHERE order_id IN (1, 2);"
         "UPDATE app.orders SET status = 'closed' WHERE order_id = 4")
    result = build("active_orders")
    equal(result.message("active_orders"), "APPLY 0 ins 2 upd 1 del", "status")
    expect("[APPLY 0 ins 2 upd 1 del in" in result.output, "the counts are not in the line")
    with open(os.path.join(PROJECT, "target", "run_results.json")) as file:
        rows = [r["adapter_response"].get("rows_affected") for r in json.load(file)["results"]
                if r["unique_id"] == "model.shop.active_orders"]
    equal(rows, [3], "rows_affected")


@scenario(main=True)
def failing_post_hook():
    build("active_orders")
    before = positions()
    control("fail active_orders", True)
    dml()
    build("active_orders", ok=False)
    equal(positions(), before, "positions")
    control("fail active_orders", False)
    dml()
    build("active_orders")
    # at the first build
    psql("DROP TABLE dw.active_orders")
    control("fail active_orders", True)
    build("active_orders", ok=False)
    control("fail active_orders", False)
    dml()
    build("active_orders")


@scenario(main=True)
def before_begin_hook():
    build("before_begin")
    for _ in range(2):
        dml()
        control("fail before_begin", True)
        build("before_begin", ok=False)
        control("fail before_begin", False)
        dml()
        build("before_begin")
    control("fail before_begin", True)
    dbt("run", "--full-refresh", "--select", "before_begin", ok=False)
    control("fail before_begin", False)
    dml()
    build("before_begin")


# an option of the profile from 1.10 on
@scenario()
def autocommit_profile():
    target = ["--target", "autocommit"]
    for refresh in ([], [], ["--full-refresh"], []):
        control("fail active_orders", True)
        dml()
        dbt("run", "--select", "active_orders", "orders_copy", *target, *refresh, ok=False)
        control("fail active_orders", False)
        dml()
        dbt("build", "--select", "active_orders", "orders_copy", "orders_named", *target, *refresh)


@scenario(main=True)
def killed_run():
    build("slow_orders")
    for refresh in ([], ["--full-refresh"]):
        before = positions()
        dml()
        control("sleep", True)
        process = dbt_process("run", "--select", "slow_orders", *refresh)
        try:
            deadline = time.time() + 1800
            while psql("SELECT count(*) FROM pg_stat_activity WHERE datname = '%s' AND wait_event = 'PgSleep'" % DATABASE) == "0":
                expect(process.poll() is None, "dbt ended by itself")
                expect(time.time() < deadline, "dbt does not run the model")
                time.sleep(0.1)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        control("sleep", False)
        deadline = time.time() + 600
        while psql("SELECT count(*) FROM pg_stat_activity WHERE datname = '%s' AND wait_event = 'PgSleep'" % DATABASE) != "0":
            expect(time.time() < deadline, "the server goes on without dbt")
            time.sleep(0.1)
        equal(positions(), before, "positions")
        dml()
        build("slow_orders")


class Writers:
    """Sessions that change the orders and customers until the end."""
    SQL = """
DO $$
DECLARE
    n int := %d;
BEGIN
    WHILE NOT EXISTS (SELECT FROM app.control WHERE name = 'stop') LOOP
        n := n + 2;
        INSERT INTO app.orders VALUES (n, n %% 20 + 1, 'active', n);
        UPDATE app.orders SET amount_cents = amount_cents + 1 WHERE order_id = n - 10;
        COMMIT;
        DELETE FROM app.orders WHERE order_id = n - 20;
        UPDATE app.orders SET status = 'closed' WHERE order_id = n - 6;
        UPDATE app.customers SET name = 'n' || n WHERE customer_id = n %% 20 + 1;
        COMMIT;
        PERFORM pg_sleep(0.01);
        COMMIT;
    END LOOP;
END $$;
"""

    def __enter__(self):
        self.failures = []
        self.threads = [threading.Thread(target=self.write, args=(start,)) for start in (10000, 20001)]
        for thread in self.threads:
            thread.start()
        return self

    def write(self, start):
        try:
            psql(self.SQL % start)
        except Failure as failure:
            if "deadlock detected" not in str(failure):
                self.failures.append(failure)

    def __exit__(self, *unused):
        control("stop", True)
        for thread in self.threads:
            thread.join()
        control("stop", False)
        if self.failures:
            raise self.failures[0]


@scenario(main=True)
def full_refresh_while_writers_run():
    models = ["active_orders", "orders_copy", "orders_named", "orders_classic"]
    with Writers():
        dbt("run", "--select", *models)
        dbt("run", "--full-refresh", "--select", *models)
        dbt("run", "--select", *models)
        dbt("run", "--full-refresh", "--select", *models)
    build(*models)


@scenario(main=True)
def two_invocations_at_once():
    models = ["active_orders", "orders_copy", "orders_named", "orders_audit"]
    build(*models)
    with Writers():
        processes = [dbt_process("run", "--select", *models, target_path="target%d" % i) for i in (1, 2)]
        codes = [process.wait() for process in processes]
    equal(codes, [0, 0], "exit status")
    result = build(*models, "audit_leads_to_the_orders")
    expect(result.message("active_orders").startswith("APPLY "), "no counts")


@scenario(main=True)
def empty_moves_nothing():
    build("active_orders", "orders_copy")
    dml()
    before = positions()
    rows = psql("SELECT * FROM dw.orders_copy ORDER BY 1")
    dbt("run", "--empty", "--select", "active_orders", "orders_copy")
    equal(positions(), before, "positions")
    equal(psql("SELECT * FROM dw.orders_copy ORDER BY 1"), rows, "content")
    build("active_orders", "orders_copy")
    # a first build that is empty
    dbt("run", "--empty", "--select", "slow_orders", "orders_classic")
    build("slow_orders", "orders_classic")
    dbt("run", "--empty", "--full-refresh", "--select", "orders_copy")
    build("orders_copy")


@scenario()
def retry():
    build("active_orders")
    dml()
    control("fail active_orders", True)
    dbt("run", "--select", "active_orders", "orders_copy", ok=False)
    control("fail active_orders", False)
    dml()
    dbt("retry")
    build("active_orders", "orders_copy")


@scenario()
def clone():
    build("active_orders", "orders_copy")
    dml()
    before = positions()
    state = os.path.join(PROJECT, "state")
    os.makedirs(state, exist_ok=True)
    with open(os.path.join(PROJECT, "target", "manifest.json"), "rb") as source:
        with open(os.path.join(state, "manifest.json"), "wb") as copy:
            copy.write(source.read())
    dbt("clone", "--state", state, "--target", "ci", "--select", "active_orders", "orders_copy")
    equal(positions(), before, "positions")
    # where the clone is a view, it is replaced
    dbt("build", "--target", "ci", "--select", "active_orders", "orders_copy")
    equal(psql("SELECT relkind FROM pg_class WHERE oid = 'ci.orders_copy'::regclass"), "r", "kind of the copy")
    equal([c for c in consumers() if c.endswith("@ci")],
          ["dbt:model.shop.active_orders@ci", "dbt:model.shop.orders_copy@ci"], "consumers")
    dml()
    dbt("build", "--target", "ci", "--select", "active_orders", "orders_copy")
    build("active_orders", "orders_copy")


@scenario()
def reading_has_no_side_effects():
    build("active_orders", "orders_copy", "orders_classic")
    dml()
    before = positions()
    shown = dbt("show", "--select", "active_orders", "--limit", "3")
    expect("_change_type" in shown.output, "no pending changes are shown")
    for arguments in (["compile"], ["docs", "generate"], ["ls"], ["parse"]):
        dbt(*arguments)
        equal(positions(), before, "positions after dbt " + arguments[0])
    expect("position" in dbt("run-operation", "cdc.status").output, "no positions in the status")
    equal(positions(), before, "positions")
    build("active_orders", "orders_copy", "orders_classic")


@scenario()
def renamed_model():
    build("renamed_orders", "orders_copy")
    dml()
    os.environ["SHOP_ALIAS"] = "orders_b"
    try:
        build("renamed_orders")
        dml()
        build("renamed_orders")
        equal(psql("SELECT (SELECT count(*) FROM dw.orders_b) = (SELECT count(*) FROM app.orders)"), "t", "rows")
    finally:
        del os.environ["SHOP_ALIAS"]
    # back, to a table that was left behind
    build("renamed_orders")


@scenario(main=True)
def removed_model():
    model = os.path.join(PROJECT, "models", "short_lived.sql")
    with open(model, "w") as file:
        file.write("{{ config(unique_key='order_id') }} select * from {{ cdc.changes(source('app', 'orders')) }}")
    try:
        build("short_lived", "orders_copy")
        dbt("run-operation", "cdc.prune_consumers")
        expect("dbt:model.shop.short_lived@dw" in consumers(), "a consumer in use was removed")
    finally:
        os.remove(model)
    told = dbt("run-operation", "cdc.prune_consumers", "--args", "{dry_run: true}")
    expect("short_lived@dw would be removed" in told.output, "the dry run does not tell")
    dbt("run-operation", "cdc.prune_consumers")
    equal(consumers(), ["dbt:model.shop.orders_copy@dw"], "consumers")


@scenario(main=True)
def swapped_target():
    build("orders_copy", "active_orders")
    dml()
    psql("CREATE TABLE dw.other (LIKE dw.orders_copy); INSERT INTO dw.other VALUES (5000, 1, 'wrong', 1);"
         "ALTER TABLE dw.orders_copy RENAME TO orders_old; ALTER TABLE dw.other RENAME TO orders_copy;"
         "TRUNCATE dw.active_orders")
    build("orders_copy", "active_orders")


@scenario(main=True)
def full_refresh_of_tracked_model():
    build_all()
    dml()
    oid = psql("SELECT 'dw.active_orders'::regclass::oid")
    dbt("run", "--full-refresh", "--select", "active_orders")
    equal(psql("SELECT 'dw.active_orders'::regclass::oid"), oid, "table")
    dml()
    build("active_orders", "big_orders")


@scenario(main=True)
def audit_of_changes():
    build("orders_audit")
    before = int(psql("SELECT count(*) FROM dw.orders_audit"))
    equal(before, 100, "rows of the first build")
    psql("UPDATE app.orders SET amount_cents = 5 WHERE order_id = 5; UPDATE app.orders SET amount_cents = 6 WHERE order_id = 5;"
         "DELETE FROM app.orders WHERE order_id = 6")
    build("orders_audit", "audit_leads_to_the_orders")
    equal(psql("SELECT string_agg(_change_type, ',' ORDER BY _change_ordinal, _change_type) FROM "
               "(SELECT * FROM dw.orders_audit WHERE order_id IN (5, 6) ORDER BY _change_ordinal OFFSET 2) a "
               "WHERE _change_type <> 'UPDATE_BEFORE'"), "UPDATE_AFTER,UPDATE_AFTER,DELETE", "audit")
    dml()
    build("orders_audit", "audit_leads_to_the_orders")


@scenario(main=True)
def schema_changes():
    build("path:models/schema_change")
    psql("ALTER TABLE app.customers ADD COLUMN phone text;"
         "UPDATE app.customers SET phone = '555' || customer_id WHERE customer_id < 4")
    columns = ("SELECT string_agg(attname, ',' ORDER BY attnum) FROM pg_attribute "
               "WHERE attrelid = 'dw.customers_%s'::regclass AND attnum > 0 AND NOT attisdropped")
    result = build("path:models/schema_change", ok=False)
    equal({name: status for name, (status, _) in result.nodes.items() if name.startswith("customers_")},
          {"customers_ignore": "success", "customers_fail": "error", "customers_append_new_columns": "success"},
          "results")
    equal(psql(columns % "ignore"), "customer_id,name", "columns, ignore")
    equal(psql(columns % "fail"), "customer_id,name", "columns, fail")
    equal(psql(columns % "append_new_columns"), "customer_id,name,phone", "columns, append_new_columns")
    psql("UPDATE app.customers SET phone = '556' WHERE customer_id = 1; DELETE FROM app.customers WHERE customer_id = 2")
    dbt("run", "--select", "customers_ignore", "customers_append_new_columns")
    dbt("run", "--full-refresh", "--select", "customers_fail")
    for name in ("ignore", "fail", "append_new_columns"):
        select = "SELECT customer_id, name%s FROM %%s ORDER BY 1" % ("" if name == "ignore" else ", phone")
        equal(psql(select % ("dw.customers_" + name)), psql(select % "app.customers"), "content, " + name)


@scenario(main=True)
def contract_indexes_grants_docs():
    for _ in range(2):
        dml()
        build("customer_payments")
    equal(psql("SELECT count(*) FROM pg_index WHERE indrelid = 'dw.customer_payments'::regclass"), "2", "indexes")
    equal(psql("SELECT has_table_privilege('reporting', 'dw.customer_payments', 'SELECT')"), "t", "grant")
    equal(psql("SELECT obj_description('dw.customer_payments'::regclass)"), "what customers paid, it's all", "description")
    equal(psql("SELECT attname FROM pg_attribute WHERE attrelid = 'dw.customer_payments'::regclass AND attnum > 0 AND attnotnull"),
          "payment_id", "not null")
    dbt("run", "--full-refresh", "--select", "customer_payments")
    equal(psql("SELECT count(*) FROM pg_index WHERE indrelid = 'dw.customer_payments'::regclass"), "2", "indexes")
    dml()
    build("customer_payments")


@scenario(main=True)
def schema_and_quoting():
    for _ in range(2):
        dml()
        build("quoted_lines")
    equal(psql("""SELECT count(*) > 0 FROM "dw_Mart"."Order Lines" WHERE "SKU's" LIKE '%x'"""), "t", "content")
    psql('DELETE FROM app."Line Items" WHERE "Order Id" < 4')
    equal(build("quoted_lines").message("quoted_lines"), "APPLY 0 ins 0 upd 3 del", "status")


@scenario()
def source_freshness():
    dml()
    dbt("source", "freshness", "--select", "source:app.orders")
    with open(os.path.join(PROJECT, "target", "sources.json")) as file:
        equal([r["status"] for r in json.load(file)["results"]], ["pass"], "freshness")


@scenario()
def lag():
    build("active_orders")
    for i in range(5):
        psql("UPDATE app.orders SET amount_cents = amount_cents + 1 WHERE order_id = 1")
    dbt("test", "--select", "active_orders,test_name:lag_below", ok=False)
    build("active_orders")
    dbt("test", "--select", "active_orders,test_name:lag_below")


@scenario()
def drift_is_found():
    build("orders_copy")
    psql("UPDATE dw.orders_copy SET status = 'wrong' WHERE order_id = 1")
    dbt("test", "--select", "orders_copy", ok=False)


@scenario()
def rewind():
    build("orders_copy")
    start = psql("SELECT snapshot FROM cdc.position('dbt:model.shop.orders_copy@dw')")
    dml()
    build("orders_copy")
    dbt("run-operation", "cdc.rewind", "--args",
        json.dumps({"model": "orders_copy", "table": "app.orders", "to": int(start)}))
    equal(psql("SELECT snapshot FROM cdc.position('dbt:model.shop.orders_copy@dw')"), start, "position")
    equal(build("orders_copy").message("orders_copy"), "APPLY 0 ins 0 upd 0 del", "status")
    dml()
    build("orders_copy")


@scenario(main=True)
def keys_of_rows_change():
    psql("""ALTER TABLE app.orders ADD code text;
        UPDATE app.orders SET code = 'c' || order_id;
        CREATE TABLE app.plain (a int, b int);
        INSERT INTO app.plain VALUES (1, 1), (2, 2), (NULL, 3);
        SELECT cdc.track('app.plain')""")
    orders = "{{ cdc.changes(source('app', 'orders')) }}"
    with Models(
            # the key of the target is not the one of the source
            by_code="{{ config(unique_key='code', deduplicate=true) }} select code, amount_cents, _change_type, _change_ordinal from " + orders,
            # it has more columns
            by_both="{{ config(unique_key=['order_id', 'customer_id']) }} select order_id, customer_id, amount_cents, "
                    "_change_type, _change_ordinal from " + orders,
            # rows are summed up
            by_customer="{{ config(unique_key='customer_id') }} with touched as (select distinct customer_id from " + orders +
                        ") select t.customer_id, count(*) as orders, {{ cdc.keep_when('count(o.order_id) > 0', from_state=true) }} "
                        "from touched t left join {{ source('app', 'orders') }} o using (customer_id) group by 1",
            # the source has none
            by_a="{{ config(unique_key='a') }} select * from "
                 "{{ cdc.changes(api.Relation.create(schema='app', identifier='plain')) }}"):
        models = ["by_code", "by_both", "by_customer", "by_a"]
        dbt("run", "--select", *models)
        psql("""UPDATE app.orders SET code = 'new' WHERE order_id = 1;
            UPDATE app.orders SET customer_id = 19 WHERE order_id IN (2, 3);
            UPDATE app.orders SET customer_id = 18 WHERE customer_id = 17;
            BEGIN;
            UPDATE app.orders SET code = 'other' WHERE order_id = 4;
            UPDATE app.orders SET code = 'c4' WHERE order_id = 5;
            COMMIT;
            UPDATE app.plain SET b = 5 WHERE a = 1;
            DELETE FROM app.plain WHERE a = 2;
            UPDATE app.plain SET b = 4 WHERE a IS NULL""")
        dbt("run", "--select", *models)
        same("dw.by_code", "SELECT code, amount_cents FROM app.orders")
        same("dw.by_both", "SELECT order_id, customer_id, amount_cents FROM app.orders")
        same("dw.by_customer", "SELECT customer_id, count(*) FROM app.orders GROUP BY 1")
        same("dw.by_a", "SELECT * FROM app.plain")


@scenario(main=True)
def changes_want_a_model_that_remembers():
    text = "{{ config(%s) }} select * from {{ cdc.changes(source('app', 'customers')) }}"
    with Models(
            a_view=text % "materialized='view'",
            a_table=text % "materialized='table'",
            an_incremental=text % "materialized='incremental', unique_key='customer_id'",
            an_ephemeral=text % "materialized='ephemeral'",
            # half of it would be read through another consumer
            on_ephemeral="{{ config(unique_key='order_id') }} with touched as (select order_id from "
                         "{{ cdc.changes(source('app', 'orders')) }} union select order_id from "
                         "{{ source('app', 'orders') }} join {{ ref('an_ephemeral') }} using (customer_id)) "
                         "select t.order_id, c.name, {{ cdc.keep_when('o.order_id is not null', from_state=true) }} "
                         "from touched t left join {{ source('app', 'orders') }} o using (order_id) "
                         "left join {{ source('app', 'customers') }} c using (customer_id)"):
        models = ["a_view", "a_table", "an_incremental", "on_ephemeral"]
        result = dbt("run", "--select", *models, ok=False)
        equal({name: result.nodes[name][0] for name in models}, {name: "error" for name in models}, "results")
        expect("cannot use cdc.changes" in result.message("on_ephemeral"), "message")


@scenario(main=True)
def classic_spelling_is_checked():
    changes = "select order_id, {{ cdc.keep_when(\"status = 'active'\") }} from {{ cdc.changes(source('app', 'orders')) }}"
    config = "{{ config(materialized='incremental', incremental_strategy='changelog', unique_key='order_id'%s) }} "
    with Models(
            # its table would have the rows that are to be deleted
            one_branch=config % "" + changes,
            # the table would get a column _change_type
            appending=config % ", on_schema_change='append_new_columns'" + "{% if is_incremental() %} " + changes +
            " {% else %} select order_id from {{ source('app', 'orders') }} where status = 'active' {% endif %}"):
        result = dbt("run", "--select", "one_branch", "appending", ok=False)
        equal((result.nodes["one_branch"][0], result.nodes["appending"][0]), ("error", "success"), "results")
        expect("is_incremental()" in result.message("one_branch"), "message")
        result = dbt("run", "--select", "appending", ok=False)
        expect("on_schema_change" in result.message("appending"), "message")


@scenario(main=True)
def new_columns_get_their_values():
    text = "{{ config(unique_key='customer_id', on_schema_change='%s') }} select * from {{ cdc.changes(source('app', 'customers')) }}"
    few = "{{ config(unique_key='customer_id', on_schema_change='append_new_columns') }} " \
          "select customer_id, %s _change_type, _change_ordinal from {{ cdc.changes(source('app', 'customers')) }}"
    models = ["appended", "synchronized", "computed"]
    with Models(appended=text % "append_new_columns", synchronized=text % "sync_all_columns", computed=few % ""):
        dbt("run", "--select", *models)
    psql("ALTER TABLE app.customers ADD level int DEFAULT 5; UPDATE app.customers SET level = 6 WHERE customer_id = 2")
    with Models(appended=text % "append_new_columns", synchronized=text % "sync_all_columns", computed=few % "upper(name) as upper,"):
        dbt("run", "--select", *models)
        for table in models:
            same("dw." + table, "SELECT customer_id, upper(name) FROM app.customers" if table == "computed"
                 else "SELECT * FROM app.customers")
        dml()
        result = dbt("run", "--select", *models)
        equal(result.message("appended"), "APPLY 0 ins 1 upd 0 del", "status")


@scenario(main=True)
def audit_is_not_appended_twice():
    text = "{{ config(mode='append', alias='audit') }} select order_id, _change_type from " \
           "{{ cdc.changes(source('app', 'orders'), mode='all') }}"
    with Models(audit_a=text):
        dbt("run", "--select", "audit_a")
        psql("SELECT cdc.untrack('app.orders'); SELECT cdc.track('app.orders')")
        dbt("run", "--select", "audit_a", ok=False)
        equal(psql("SELECT count(*) FROM dw.audit"), "100", "rows after the source was tracked anew")
        dbt("run", "--full-refresh", "--select", "audit_a")
        psql("DELETE FROM app.orders WHERE order_id = 1")
        dbt("run", "--select", "audit_a")
    with Models(audit_b=text):
        result = dbt("run", "--select", "audit_b", ok=False)
        expect("once more" in result.message("audit_b"), "message")
        equal(psql("SELECT count(*) FROM dw.audit"), "101", "rows after the model was renamed")


# an option from 1.10 on
@scenario()
def samples_are_refused():
    build("orders_copy")
    result = dbt("run", "--sample", "1 day", "--select", "orders_copy", ok=False)
    expect("--sample" in result.message("orders_copy"), "message")


@scenario(main=True)
def full_refresh_of_tracked_model_with_other_types():
    text = "{{ config(unique_key='order_id', track=true) }} select order_id, amount_cents / 7%s as share, " \
           "_change_type, _change_ordinal from {{ cdc.changes(source('app', 'orders')) }}"
    with Models(shares=text % ""):
        dbt("run", "--select", "shares")
        oid = psql("SELECT 'dw.shares'::regclass::oid")
        dbt("run", "--full-refresh", "--select", "shares")
        equal(psql("SELECT 'dw.shares'::regclass::oid"), oid, "table")
    with Models(shares=text % ".0"):
        dbt("run", "--full-refresh", "--select", "shares")
        same("dw.shares", "SELECT order_id, amount_cents / 7.0 FROM app.orders")
        equal(psql("SELECT count(*) FROM cdc.tracked_tables WHERE relation = 'dw.shares'::regclass"), "1", "tracked")


@scenario(main=True)
def versions_and_marks():
    with Models(
            versions="{{ config(unique_key='order_id', history=true, on_schema_change='append_new_columns') }} "
                     "select * from {{ cdc.changes(source('app', 'orders')) }}",
            marked="{{ config(unique_key='order_id', soft_delete='gone') }} "
                   "select *, false as gone from {{ cdc.changes(source('app', 'orders')) }}"):
        dbt("run", "--select", "versions", "marked")
        psql("""UPDATE app.orders SET amount_cents = 1 WHERE order_id = 1;
            UPDATE app.orders SET amount_cents = 2 WHERE order_id = 1;
            DELETE FROM app.orders WHERE order_id = 2;
            INSERT INTO app.orders VALUES (500, 1, 'active', 5)""")
        dbt("run", "--select", "versions", "marked")
        same("(SELECT order_id, customer_id, status, amount_cents FROM dw.versions WHERE valid_to IS NULL)", "SELECT * FROM app.orders")
        equal(psql("SELECT string_agg(amount_cents || ' ' || (valid_to_time IS NULL), ', ' ORDER BY valid_from) "
                   "FROM dw.versions WHERE order_id = 1"), "100 false, 1 false, 2 true", "versions")
        same("dw.marked", "SELECT *, false FROM app.orders UNION ALL SELECT 2, 3, 'active', 200, true")


@scenario(main=True)
def tour():
    psql("DROP SCHEMA app CASCADE; DROP EXTENSION cdc_changelog CASCADE", user="postgres")
    environment = dict(os.environ, PGDATABASE=DATABASE,
                       PATH=os.path.dirname(sys.executable) + ":" + os.environ["PATH"])
    status = subprocess.call(["bash", TOUR, os.path.join(PROJECT, "../../tour-copy")], env=environment)
    equal(status, 0, "exit status")


@scenario()
def messages_of_mistakes():
    psql("SELECT cdc.untrack('app.payments')")
    result = dbt("run", "--select", "customer_payments", ok=False)
    expect("is not tracked" in result.output, "not tracked")
    model = os.path.join(PROJECT, "models", "mistake.sql")
    try:
        for text, message in (
                ("select * from {{ cdc.changes(source('app', 'orders')) }}", "unique_key"),
                ("{{ config(unique_key='order_id') }} select * from {{ source('app', 'orders') }}", "_change_type"),
                ("{{ config(unique_key='order_id', mode='odd') }} select * from {{ cdc.changes(source('app', 'orders')) }}", "odd")):
            with open(model, "w") as file:
                file.write(text)
            result = dbt("run", "--select", "mistake", ok=False)
            expect(message in result.output, "no \"%s\" in the message" % message)
    finally:
        os.remove(model)


# ----------

def main(arguments):
    only_main = "--main" in arguments
    names = [a for a in arguments if not a.startswith("--")]
    open(LOG, "w").close()
    out = os.open(LOG, os.O_WRONLY | os.O_APPEND)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.chdir(PROJECT)

    try:
        dbt("deps")
    except Failure as error:
        report.write("not ok - %s\n%s" % (error, read_from(0)))
        return 1

    number = failed = 0
    for name, function, is_main in scenarios:
        if names and name not in names or only_main and not is_main:
            continue
        number += 1
        start = os.path.getsize(LOG)
        began = time.time()
        try:
            fresh(name != "track_sources")
            function()
            report.write("ok %d %s (%.0f s)\n" % (number, name, time.time() - began))
        except Exception as error:
            failed += 1
            report.write("not ok %d %s\n" % (number, name))
            if isinstance(error, Failure):
                report.write("# %s\n" % error)
            else:
                report.write(traceback.format_exc())
            said = read_from(start).splitlines()
            report.writelines("#   %s\n" % line for line in said[-150:])
    return 1 if failed or not number else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
