"""Dashboards and alerts say what a real server exports.

Debian's prometheus scrapes a server under load; every panel's queries go to it.
"""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from monitored_server import MonitoredServer, Panel, Prometheus, dashboards, expand, panels
from places import DEPLOY
from waiting import eventually

ALERTS = DEPLOY / "prometheus/alerts.yml"
RULES = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
pytestmark = pytest.mark.timing

METRIC = re.compile(r"\b(?:tensord|process)_[a-z_]+\b(?=[{\[)\s]|$)")

# Has samples only where a record of plans was wrong, which takes another version of the server.
WITHOUT_SAMPLES = "tensord_plan_cache_load_errors_total"


class Watched(NamedTuple):
    """What the tests of this file share."""

    prometheus: Prometheus
    metrics: str
    end: float  # of the load

    def query(self, query: str) -> list[Any]:
        """What the query of a panel or variable answers as the load ends."""
        return self.prometheus.query(expand(query, seconds=8), self.end)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A Prometheus that has seen a server under load, a reload, and what it refuses."""
    folder = tmp_path_factory.mktemp("watched")
    with (
        MonitoredServer(folder) as server,
        Prometheus(folder, server.metrics_address) as prometheus,
    ):
        assert eventually(lambda: prometheus.query("up == 1", time.time()) != [])
        with server.load(seconds=4) as load:
            server.change_a_file()
            server.refuse_a_connection()
            for _ in range(4):
                server.fail_a_call()
                time.sleep(1)
        assert load.returncode == 0
        yield Watched(prometheus, server.metrics(), time.time())


def names(query: str) -> set[str]:
    """Metrics of a query, those of histograms by the histogram's name."""
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in METRIC.findall(query)}


def run_promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["promtool", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def test_prometheus_takes_configuration_and_rules() -> None:
    for kind, file in (("config", "prometheus.yml"), ("rules", "alerts.yml")):
        done = run_promtool("check", kind, DEPLOY / "prometheus" / file)
        assert done.returncode == 0, done.stdout


def test_each_alert_is_quiet_while_all_is_well_and_fires_when_it_is_not() -> None:
    file = DEPLOY / "prometheus/alerts_test.yml"
    done = run_promtool("test", "rules", file)
    assert done.returncode == 0, done.stdout
    cases = [case["alert_rule_test"] for case in yaml.safe_load(file.read_text())["tests"]]
    quiet = [quiet["alertname"] for quiet, _ in cases if "exp_alerts" not in quiet]
    fires = [fires["alertname"] for _, fires in cases if fires["exp_alerts"]]
    assert quiet == fires  # an alert may have several
    assert list(dict.fromkeys(fires)) == [rule["alert"] for rule in RULES]


def test_a_wrong_threshold_fails_the_alerts_tests(tmp_path: Path) -> None:
    shutil.copy(DEPLOY / "prometheus/alerts_test.yml", tmp_path)
    text = ALERTS.read_text()
    assert "tensord_device_up == 0" in text
    (tmp_path / "alerts.yml").write_text(
        text.replace("tensord_device_up == 0", "tensord_device_up < 0")
    )
    done = run_promtool("test", "rules", tmp_path / "alerts_test.yml")
    assert done.returncode != 0 and "TensordDeviceLost" in done.stdout


def test_the_runbook_has_an_entry_for_each_alert_and_no_other() -> None:
    runbook = (DEPLOY / "docs/runbook.md").read_text()
    assert re.findall(r"^## (\w+)$", runbook, re.MULTILINE) == [rule["alert"] for rule in RULES]
    for rule in RULES:
        anchor = rule["annotations"]["runbook"]
        assert anchor == f"deploy/docs/runbook.md#{rule['alert'].lower()}"
    links = re.findall(r"\]\(#(\w+)\)", runbook)
    assert set(links) <= {rule["alert"].lower() for rule in RULES}


def test_options_that_the_runbook_names_exist() -> None:
    operating = (DEPLOY / "docs/operating.md").read_text()
    options = re.findall(r"`([a-z]+(?:-[a-z]+)+)`", (DEPLOY / "docs/runbook.md").read_text())
    assert len(options) > 8
    assert [option for option in options if f"`--{option}`" not in operating] == []


def test_reasons_that_the_runbook_names_exist() -> None:
    described = (DEPLOY / "docs/reasons.md").read_text()
    reasons = re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", (DEPLOY / "docs/runbook.md").read_text())
    assert len(reasons) > 8
    assert [reason for reason in reasons if f"`{reason}`" not in described] == []


def test_dashboards_are_told_apart() -> None:
    boards = dashboards()
    assert len(boards) == len({board["uid"] for board in boards}) == 4
    for board in boards:
        ids = [panel["id"] for panel in board["panels"]]
        assert len(ids) == len(set(ids))


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: f"{panel.dashboard}: {panel.title}")
def test_the_query_of_a_panel_answers(watched: Watched, panel: Panel) -> None:
    for query, _ in panel.queries:
        exported = {f"# TYPE {name} " in watched.metrics for name in names(query)}
        assert exported == {True}, query
        values = [float(answer["value"][1]) for answer in watched.query(query)]
        assert any(map(math.isfinite, values)) or WITHOUT_SAMPLES in query, (query, values)


def test_legends_name_labels_that_answers_have(watched: Watched) -> None:
    for panel in panels():
        for query, legend in panel.queries:
            labels = set(re.findall(r"\{\{(\w+)\}\}", legend))
            for answer in watched.query(query):
                assert labels <= set(answer["metric"]), (query, legend)


def test_variables_of_dashboards_have_values(watched: Watched) -> None:
    for board in dashboards():
        for variable in board["templating"]["list"]:
            if variable["type"] != "query":
                continue
            found = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"])
            assert found is not None
            answers = watched.query(found[1])
            assert answers and all(found[2] in each["metric"] for each in answers)


def test_alerts_are_about_what_is_exported_and_quiet_at_a_healthy_server(
    watched: Watched,
) -> None:
    for rule in RULES:
        exported = {f"# TYPE {name} " in watched.metrics for name in names(rule["expr"])}
        assert exported <= {True}, rule["expr"]
    (group,) = watched.prometheus.get("rules")["groups"]
    assert [rule["name"] for rule in group["rules"]] == [rule["alert"] for rule in RULES]
    assert {rule["health"] for rule in group["rules"]} == {"ok"}
    states = {rule["name"]: rule["state"] for rule in group["rules"]}
    # A Redis that once took longer than the server waits leaves that one pending for minutes.
    assert states.pop("TensordPlanExchangeFails") in ("inactive", "pending")
    assert set(states.values()) == {"inactive"}, states
