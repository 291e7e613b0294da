"""Values of the chart: what is refused and how that is told, and what reaches the objects."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib

import pytest
import yaml

from objects import Object, mistakes, render, the
from places import DEPLOY, program


@pytest.mark.parametrize(
    ("values", "unknown", "nearest"),
    [
        ({"replica": 2}, "replica", "replicas"),
        ({"gpu": {"enable": True}}, "gpu.enable", "gpu.enabled"),
        ({"tls": {"secretName": "a"}}, "tls.secretName", "tls.secret"),
        ({"image": {"pullpolicy": "Always"}}, "image.pullpolicy", "image.pullPolicy"),
        ({"tenant": {"enabled": True}}, "tenant", "tenants"),
        ({"drainSeconds": 3}, "drainSeconds", "preStopSeconds"),
        ({"monitoring": {"label": {}}}, "monitoring.label", "monitoring.labels"),
        ({"options": {"max-sesions": 64}}, "options.max-sesions", "options.max-sessions"),
        ({"options": {"thread": 2}}, "options.thread", "options.threads"),
    ],
)
def test_an_unknown_value_is_refused_with_the_nearest(
    values: Object, unknown: str, nearest: str
) -> None:
    (error,) = render(values)
    assert error.endswith(f"there is no value '{unknown}'; the nearest is '{nearest}'")


def test_the_chart_knows_the_options_that_the_server_has() -> None:
    known = yaml.safe_load((DEPLOY / "helm/tensord/files/options.yaml").read_text())["options"]
    command = [program("tensord"), "--print-config"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^(?:# )?([a-z-]+) (?:= |is not set)", said, re.MULTILINE)
    assert len(names) == len(said.splitlines())
    assert known == names


@pytest.mark.parametrize("got", ["abc", "30", True, [30]])
def test_a_drain_that_is_no_number_is_refused(got: object) -> None:
    (error,) = render({"options": {"drain-timeout-seconds": got}})
    told = json.dumps(got)
    assert f"options.drain-timeout-seconds is {told}, wanted a number of seconds" in error


def test_a_value_that_is_null_is_refused() -> None:
    names = list(yaml.safe_load((DEPLOY / "helm/tensord/values.yaml").read_text()))
    nulls: list[Object] = [{name: None} for name in names]
    for name, error in zip([*names, "gpu.count"], render(*nulls, {"gpu": {"count": None}})):
        assert f"value '{name}' is null, wanted what values.yaml has" in error


@pytest.mark.parametrize(
    ("name", "got", "port"),
    [
        ("listen", ["0.0.0.0:18470", "unix:/run/tensord/socket"], 8470),
        ("listen", "0.0.0.0:9999", 8470),
        ("listen", ["127.0.0.1:8470", "localhost:8470", "[::1]:8470"], 8470),
        ("metrics-listen", "0.0.0.0:8470", 9470),
        ("probe-listen", None, 9471),
    ],
)
def test_an_address_whose_port_is_not_the_charts_is_refused(
    name: str, got: object, port: int
) -> None:
    (error,) = render({"options": {name: got}})
    told = json.dumps(got, separators=(",", ":"))
    assert f"options.{name} is {told}, wanted an address with port {port}" in error


def test_rules_and_labels_of_a_cluster_reach_the_objects() -> None:
    collector = {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"port": 4317}]}
    values = {
        "networkPolicy": {"egress": [collector]},
        "monitoring": {"enabled": True, "labels": {"release": "prometheus"}},
    }
    (objects,) = render(values)
    assert [each for object_ in objects for each in mistakes(object_)] == []
    names, added = the(objects, "NetworkPolicy")["spec"]["egress"]
    assert added == collector
    assert set(names) == {"ports"} and {each["port"] for each in names["ports"]} == {53}
    for kind in ("ServiceMonitor", "PrometheusRule"):
        assert the(objects, kind)["metadata"]["labels"]["release"] == "prometheus"


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("insecure", "tls.enabled"),
        ("tls-certificate", "tls.enabled"),
        ("tls-key", "tls.enabled"),
        ("tls-client-ca", "tls.clientCertificates"),
        ("operators", "tls.operators"),
        ("metrics-tls-certificate", "tls.enabled"),
        ("metrics-tls-key", "tls.enabled"),
        ("require-gpu", "gpu.enabled"),
        ("tenants", "tenants.enabled"),
        ("tokens", "tenants.enabled"),
        ("plan-exchange", "redis.enabled"),
        ("plan-exchange-password-file", "redis.enabled"),
    ],
)
def test_an_option_that_another_value_sets_is_refused(name: str, owner: str) -> None:
    on: Object = {group: {"enabled": True} for group in ("gpu", "tls", "tenants", "redis")}
    (error,) = render(on | {"options": {name: False}})
    assert error.endswith(f"options.{name} is the chart's: {owner}")


@pytest.mark.parametrize("part", ["requests", "limits"])
@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "nvidia.com/mig-3g.40gb"])
def test_gpus_beside_those_that_the_chart_counts_are_refused(part: str, resource: str) -> None:
    gpu = {"enabled": True, "resource": resource}
    values = {"gpu": gpu, "resources": {part: {resource: 4}}}
    error, objects = render(values, values | {"gpu": gpu | {"enabled": False}})
    assert error.endswith(f"resources.{part} has {resource}, wanted gpu.count")
    (container,) = the(objects, "StatefulSet")["spec"]["template"]["spec"]["containers"]
    assert container["resources"][part][resource] == 4


def test_a_redis_that_is_not_the_charts_is_an_option() -> None:
    (objects,) = render({"options": {"plan-exchange": "redis.other:6379"}})
    options = tomllib.loads(the(objects, "ConfigMap")["data"]["tensord.toml"])
    assert options["plan-exchange"] == "redis.other:6379"


@pytest.mark.parametrize("name", ["jwt-keys", "tokens"])
def test_tokens_of_a_secret_want_tls(name: str) -> None:
    options = {name: "/etc/tensord-secrets/keys/file"}
    values = {"options": options, "secrets": [{"name": "keys", "secret": "a"}]}
    (error,) = render(values)
    assert error.endswith(f"options.{name} wants tls.enabled: clients send no token in plaintext")
    (objects,) = render(values | {"tls": {"enabled": True, "clientCertificates": False}})
    assert tomllib.loads(the(objects, "ConfigMap")["data"]["tensord.toml"])[name] == options[name]


def test_where_certificates_say_who_asks_an_operator_is_named() -> None:
    tls = {"enabled": True}
    tokens = {"tokens": "/etc/tensord-secrets/keys/file"}
    others: list[Object] = [{"tenants": {"enabled": True}}, {"options": tokens}]
    error, *rendered = render({"tls": tls}, *({"tls": tls} | other for other in others))
    assert "tls.operators is empty, wanted the names of operators' certificates" in error
    for objects in rendered:
        (container,) = the(objects, "StatefulSet")["spec"]["template"]["spec"]["containers"]
        assert "TENSORD_OPERATORS" not in {each["name"] for each in container["env"]}
    (objects,) = render({"tls": tls | {"operators": ["chief", "spiffe://cluster/ops"]}})
    (container,) = the(objects, "StatefulSet")["spec"]["template"]["spec"]["containers"]
    assert {"name": "TENSORD_OPERATORS", "value": "chief,spiffe://cluster/ops"} in container["env"]


def test_a_token_of_metrics_that_prometheus_does_not_know_is_refused() -> None:
    options = {"options": {"metrics-token-file": "/etc/tensord-secrets/a/token"}}
    on, named_, none = render(
        options | {"monitoring": {"enabled": True}},
        options | {"monitoring": {"tokenSecret": {"name": "a"}}},
        options,
    )
    for error in (on, named_):
        assert error.endswith("options.metrics-token-file is the chart's: monitoring.tokenSecret")
    assert the(none, "ConfigMap")


def test_a_secret_whose_name_is_there_twice_is_refused() -> None:
    (error,) = render({"secrets": [{"name": "keys", "secret": each} for each in "ab"]})
    assert "secrets has 'keys' twice, wanted a name for each" in error


def test_another_tag_changes_the_image_of_the_servers_alone() -> None:
    old, new = render({}, {"image": {"tag": "0.2.0-cpu"}})
    (container,) = the(new, "StatefulSet")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "tensord:0.2.0-cpu"
    container["image"] = "tensord:cpu"
    assert new == old


def test_values_that_may_have_any_name_reach_the_objects() -> None:
    values = {
        "options": {"max-sessions": 64, "devices": "cpu"},
        "nodeSelector": {"zone": "a"},
        "podAnnotations": {"note": "x"},
        "preStopSeconds": 9,
        "plans": {"storageClassName": "fast"},
        "gpu": {"enabled": True, "resource": "nvidia.com/mig-3g.40gb", "count": 2},
    }
    (objects,) = render(values)
    assert [each for object_ in objects for each in mistakes(object_)] == []
    options = tomllib.loads(the(objects, "ConfigMap")["data"]["tensord.toml"])
    assert options["max-sessions"] == 64 and options["devices"] == "cpu"
    stateful = the(objects, "StatefulSet")["spec"]
    template = stateful["template"]
    assert template["metadata"]["annotations"]["note"] == "x"
    assert template["spec"]["nodeSelector"] == {"zone": "a", "nvidia.com/gpu.present": "true"}
    assert template["spec"]["terminationGracePeriodSeconds"] == 49
    limits = template["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"memory": "4Gi", "nvidia.com/mig-3g.40gb": "2"}
    assert stateful["volumeClaimTemplates"][0]["spec"]["storageClassName"] == "fast"
