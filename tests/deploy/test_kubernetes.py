"""Kubernetes objects: overlays and chart render, are right, agree, and the server takes their options."""

from __future__ import annotations

import copy
import itertools
import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from objects import Object, kustomize, mistakes, named, pods, render, the
from places import DEPLOY, program

MEMORY = {"requests": {"cpu": "8", "memory": "32Gi"}, "limits": {"cpu": "8", "memory": "32Gi"}}
GPU_MEMORY = {"requests": {"cpu": "4", "memory": "32Gi"}, "limits": {"memory": "32Gi"}}
TLS: Object = {"enabled": True, "operators": ["tensord-operator"]}

# For each overlay, the chart's values that make the same objects.
OVERLAYS: dict[str, Object] = {
    "base": {},
    "overlays/cpu": {"replicas": 3, "resources": MEMORY},
    "overlays/gpu": {"gpu": {"enabled": True}, "resources": GPU_MEMORY},
    "overlays/tls": {"tls": TLS},
    "overlays/tenants": {"tls": TLS, "tenants": {"enabled": True}},
    "overlays/redis": {"redis": {"enabled": True}},
    "overlays/monitoring": {"monitoring": {"enabled": True}},
}
SWITCHES = (
    "gpu.enabled",
    "tls.enabled",
    "tls.clientCertificates",
    "tenants.enabled",
    "redis.enabled",
    "monitoring.enabled",
    "networkPolicy.enabled",
)
# Whoever deploys makes these.
SECRETS = {
    "tensord-tls": {"tls.crt", "tls.key", "ca.crt"},
    "tensord-tokens": {"tokens"},
    "tensord-redis": {"password"},
}


def switched(choice: tuple[bool, ...]) -> Object:
    values: Object = {}
    for switch, on in zip(SWITCHES, choice):
        group, name = switch.split(".")
        values.setdefault(group, {})[name] = on
    values["tls"]["operators"] = TLS["operators"]
    return values


def tells_who_asks(values: Object) -> bool:
    tls, has_tokens = values["tls"], values["tenants"]["enabled"]
    return tls["clientCertificates"] or has_tokens if tls["enabled"] else not has_tokens


ALL = [switched(choice) for choice in itertools.product((False, True), repeat=len(SWITCHES))]
COMBINATIONS = [values for values in ALL if tells_who_asks(values)]


@pytest.fixture(scope="module")
def overlays() -> dict[str, list[Object]]:
    return {name: kustomize(name) for name in OVERLAYS}


@pytest.fixture(scope="module")
def charts() -> list[list[Object]]:
    """The chart for every combination of switches."""
    charts = render(*COMBINATIONS)
    assert [each for each in charts if isinstance(each, str)] == []
    return charts


@pytest.fixture(scope="module")
def everything(overlays: dict[str, list[Object]], charts: list[list[Object]]) -> list[list[Object]]:
    return [*overlays.values(), *charts]


def test_objects_are_as_the_models_of_their_api_want_them(everything: list[list[Object]]) -> None:
    checked = {json.dumps(each, sort_keys=True): each for objects in everything for each in objects}
    assert len(checked) > 50
    assert [each for object_ in checked.values() for each in mistakes(object_)] == []


def wrong(objects: list[Object], change: str) -> list[str]:
    """Mistakes that are found after a change to the server's container."""
    stateful = copy.deepcopy(the(objects, "StatefulSet"))
    container = stateful["spec"]["template"]["spec"]["containers"][0]
    exec(change, {"container": container, "spec": stateful["spec"]})
    return mistakes(stateful)


@pytest.mark.parametrize(
    "change",
    [
        "container['imagePullPolcy'] = 'Always'",
        "container['ports'][0]['containerPort'] = '8470'",
        "container['resources']['limits']['memory'] = '4 GiB'",
        "container['securityContext']['readOnlyRootFilesystem'] = 'yes'",
        "spec['template']['spec']['terminationGracePeriodSeconds'] = '45'",
        "del spec['selector']",
        "container['env'] = {}",
    ],
)
def test_the_check_finds_a_mistake(overlays: dict[str, list[Object]], change: str) -> None:
    assert len(wrong(overlays["base"], change)) == 1


def references(objects: list[Object]) -> set[tuple[str, str, str]]:
    """What pods name: kind, name, and the key where one is named."""
    found = set()
    for template in pods(objects):
        spec = template["spec"]
        if "serviceAccountName" in spec:
            found.add(("ServiceAccount", spec["serviceAccountName"], ""))
        for volume in spec.get("volumes", ()):
            if "configMap" in volume:
                found.add(("ConfigMap", volume["configMap"]["name"], ""))
            if "secret" in volume:
                found.add(("Secret", volume["secret"]["secretName"], ""))
        for container in spec["containers"]:
            for variable in container.get("env", ()):
                if "valueFrom" in variable:
                    key = variable["valueFrom"]["secretKeyRef"]
                    found.add(("Secret", key["name"], key["key"]))
    return found


def test_references_resolve(everything: list[list[Object]]) -> None:
    for objects in everything:
        for kind, name, key in references(objects):
            if kind == "Secret":
                assert name in SECRETS and (not key or key in SECRETS[name])
            else:
                assert named(objects, kind, name), (kind, name)
        assert named(objects, "Service", the(objects, "StatefulSet")["spec"]["serviceName"])


def test_volumes_and_ports_that_containers_name_exist(everything: list[list[Object]]) -> None:
    for objects in everything:
        claims = [
            claim["metadata"]["name"]
            for claim in the(objects, "StatefulSet")["spec"]["volumeClaimTemplates"]
        ]
        for template in pods(objects):
            volumes = claims + [each["name"] for each in template["spec"].get("volumes", ())]
            for container in template["spec"]["containers"]:
                assert all(each["name"] in volumes for each in container.get("volumeMounts", ()))
                ports = [each["name"] for each in container["ports"]]
                for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                    action = container.get(probe, {})
                    for way in ("httpGet", "tcpSocket"):
                        assert action.get(way, {}).get("port", ports[0]) in ports


def selectors(object_: Object) -> list[Object]:
    """Labels by which an object finds pods of its own namespace."""
    spec = object_["spec"]
    if object_["kind"] == "Service":
        return [spec["selector"]]
    if object_["kind"] == "NetworkPolicy":
        peers = [peer for rule in spec.get("egress", ()) for peer in rule.get("to", ())]
        inner = [each["podSelector"]["matchLabels"] for each in peers if "podSelector" in each]
        return [spec["podSelector"]["matchLabels"], *inner]
    return [spec["selector"]["matchLabels"]]


def test_selectors_find_pods_and_services(everything: list[list[Object]]) -> None:
    for objects in everything:
        labels = [each["metadata"]["labels"] for each in pods(objects)]
        services = [each["metadata"]["labels"] for each in objects if each["kind"] == "Service"]
        kinds = ("Service", "StatefulSet", "Deployment", "PodDisruptionBudget", "NetworkPolicy")
        for object_ in objects:
            if object_["kind"] in kinds:
                for wanted in selectors(object_):
                    assert any(wanted.items() <= each.items() for each in labels), object_
            if object_["kind"] == "ServiceMonitor":
                (wanted,) = selectors(object_)
                found = [each for each in services if wanted.items() <= each.items()]
                assert [each[object_["spec"]["jobLabel"]] for each in found] == ["tensord"]


def test_pods_are_what_restricted_namespaces_admit(everything: list[list[Object]]) -> None:
    for template in itertools.chain.from_iterable(map(pods, everything)):
        security = template["spec"]["securityContext"]
        assert security["runAsNonRoot"] is True and security["runAsUser"] == 65532
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert template["spec"]["automountServiceAccountToken"] is False
        for volume in template["spec"].get("volumes", ()):
            assert set(volume) - {"name"} <= {"configMap", "secret", "emptyDir"}
        for container in template["spec"]["containers"]:
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False
            assert own["readOnlyRootFilesystem"] is True
            assert own["capabilities"] == {"drop": ["ALL"]}


def test_a_pod_has_time_to_drain(everything: list[list[Object]]) -> None:
    for objects in everything:
        options = tomllib.loads(the(objects, "ConfigMap")["data"]["tensord.toml"])
        spec = the(objects, "StatefulSet")["spec"]["template"]["spec"]
        stop = spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
        assert stop[0] == "/usr/bin/sleep"
        needed = int(stop[1]) + options["drain-timeout-seconds"] + 5  # of what does not stop then
        assert needed < spec["terminationGracePeriodSeconds"] <= needed + 15


def plain(objects: list[Object]) -> dict[tuple[str, str], Any]:
    """The objects without what is Helm's or kustomize's own; lists of names in no order."""
    found = {}
    for object_ in copy.deepcopy(objects):
        metadata = object_["metadata"]
        metadata.pop("namespace", None)
        metadata.get("labels", {}).pop("helm.sh/chart", None)
        metadata.get("labels", {}).pop("app.kubernetes.io/managed-by", None)
        if object_["kind"] == "Namespace":
            continue
        for template in pods([object_]):
            template["metadata"].pop("annotations", None)
        if "tensord.toml" in object_.get("data", {}):
            object_["data"] = tomllib.loads(object_["data"]["tensord.toml"])
        found[object_["kind"], metadata["name"]] = ordered(object_)
    return found


def ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: ordered(item) for key, item in value.items()}
    if isinstance(value, list):
        items = [ordered(item) for item in value]
        by_name = items and all(isinstance(item, dict) and "name" in item for item in items)
        return sorted(items, key=lambda item: str(item["name"])) if by_name else items
    return value


def test_the_overlay_that_the_page_shows_combines_two(tmp_path: Path) -> None:
    page = (DEPLOY / "docs/kubernetes.md").read_text()
    head = r"^```yaml\n# deploy/kubernetes/overlays/ours/kustomization.yaml\n"
    example = re.search(rf"{head}(.+?)^```", page, re.MULTILINE | re.DOTALL)
    assert example is not None
    shutil.copytree(DEPLOY / "kubernetes", tmp_path / "kubernetes")
    ours = tmp_path / "kubernetes/overlays/ours"
    ours.mkdir()
    (ours / "kustomization.yaml").write_text(example[1])
    shutil.copy(ours.parent / "tls/statefulset.yaml", ours / "tls.yaml")
    stateful = the(kustomize(ours), "StatefulSet")
    (container,) = stateful["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example:5000/tensord:cuda"
    variables = {each["name"]: each["value"] for each in container["env"]}
    assert variables["TENSORD_INSECURE"] == "false" and "TENSORD_REQUIRE_GPU" in variables


def test_tls_and_monitoring_combine_as_in_the_chart(tmp_path: Path) -> None:
    shutil.copytree(DEPLOY / "kubernetes", tmp_path / "kubernetes")
    for folder in ("prometheus", "grafana"):
        shutil.copytree(DEPLOY / folder, tmp_path / folder)
    ours = tmp_path / "kubernetes/overlays/ours"
    ours.mkdir()
    patches = ["tls.yaml", "tls-servicemonitor.yaml"]
    own = {"bases": ["../monitoring"], "patchesStrategicMerge": patches}
    (ours / "kustomization.yaml").write_text(yaml.safe_dump(own))
    shutil.copy(ours.parent / "tls/statefulset.yaml", ours / patches[0])
    shutil.copy(ours.parent / "tls/servicemonitor.yaml", ours / patches[1])
    (chart,) = render({"tls": TLS, "monitoring": {"enabled": True}})
    assert plain(kustomize(ours)) == plain(chart)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_chart_and_overlay_agree(overlays: dict[str, list[Object]], overlay: str) -> None:
    (chart,) = render(OVERLAYS[overlay])
    assert plain(chart) == plain(overlays[overlay])


def test_the_rules_of_the_operator_are_those_of_prometheus() -> None:
    rules = yaml.safe_load((DEPLOY / "prometheus/prometheusrule.yaml").read_text())
    assert rules["spec"] == yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())


def test_dashboards_of_the_operator_are_all_there_are(overlays: dict[str, list[Object]]) -> None:
    data = the(overlays["overlays/monitoring"], "ConfigMap", "tensord-dashboards")["data"]
    files = {file.name: file.read_text() for file in (DEPLOY / "grafana").glob("*.json")}
    assert data == files


def stand_in(objects: list[Object], folder: Path) -> tuple[list[str], dict[str, str]]:
    """The server's command and variables, with folders of this machine in place of mounts."""
    spec = the(objects, "StatefulSet")["spec"]["template"]["spec"]
    container = spec["containers"][0]
    volumes = {each["name"]: each for each in spec["volumes"]}
    text = json.dumps([container["args"], container["env"]])
    for mount in container["volumeMounts"]:
        place = folder / mount["mountPath"].lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        volume = volumes.get(mount["name"], {})
        if "configMap" in volume:
            for name, content in the(objects, "ConfigMap", volume["configMap"]["name"])[
                "data"
            ].items():
                (place / name).write_text(content)
        for key in SECRETS.get(volume.get("secret", {}).get("secretName", ""), ()):
            shutil.copy(folder / "secrets" / key, place)
    mounts = "|".join(re.escape(each["mountPath"]) for each in container["volumeMounts"])
    text = re.sub(rf'(?<=["=])({mounts})(?=/)', lambda found: str(folder) + found[1], text)
    arguments, variables = json.loads(text)
    return arguments, {each["name"]: each["value"] for each in variables}


def make_secrets(folder: Path) -> None:
    subprocess.run(
        [DEPLOY / "certificates", folder], check=True, stdout=subprocess.DEVNULL, timeout=60
    )
    for name, key in (("server.pem", "tls.crt"), ("server-key.pem", "tls.key")):
        shutil.copy(folder / name, folder / key)
    shutil.copy(folder / "ca.pem", folder / "ca.crt")
    (folder / "password").write_text("secret\n")
    command = [program("tensorctl"), "token", "new", "--tenant=research", "--role=user"]
    with (folder / "made").open("w") as made:
        subprocess.run([*command, f"--tokens={folder}/tokens"], check=True, stdout=made)


def test_the_server_takes_the_options_of_every_combination(
    overlays: dict[str, list[Object]], charts: list[list[Object]], tmp_path: Path
) -> None:
    """Mounts become folders; --check-config reads certificates, tokens and tenants, too."""
    (tmp_path / "secrets").mkdir()
    make_secrets(tmp_path / "secrets")
    seen = set()
    for objects in [*overlays.values(), *charts]:
        arguments, variables = stand_in(objects, tmp_path)
        key = json.dumps([arguments, variables], sort_keys=True)
        if key in seen:
            continue
        seen.add(key)
        done = subprocess.run(
            [program("tensord"), *arguments, "--check-config"],
            env=os.environ | variables,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (done.stderr, arguments, variables)
    assert len(seen) == 16


def test_numbers_may_be_texts_of_go() -> None:
    """As Helm 3.18.0 has them."""
    drains: list[Object] = [
        {"options": {"drain-timeout-seconds": drain}} for drain in (0.5, 2, 90, 1e3, "30", True)
    ]
    rest: list[Object] = [
        {"replicas": 3, "preStopSeconds": 9, "gpu": {"enabled": True, "count": 2}},
        {"resources": {"limits": {"cpu": 2}}, "options": {"max-sessions": 64}},
    ]
    sets = [*COMBINATIONS, *drains, *rest]
    assert [without_checksum(each) for each in render(*sets, numbers="json.Number")] == [
        without_checksum(each) for each in render(*sets)
    ]


def without_checksum(objects: list[Object] | str) -> Any:
    """The text of 1e3 is another than that of 1000."""
    return objects if isinstance(objects, str) else plain(objects)


def test_tls_without_anybody_who_says_who_asks_is_refused() -> None:
    refused = [each for each in ALL if each["tls"]["enabled"] and not tells_who_asks(each)]
    assert len(refused) == 16
    for error in render(*refused):
        assert error.endswith(
            "tls.clientCertificates or tenants.enabled: somebody has to say who asks"
        )


def test_tenants_without_tls_are_refused() -> None:
    refused = [each for each in ALL if not each["tls"]["enabled"] and not tells_who_asks(each)]
    assert len(refused) == 32
    for error in render(*refused):
        assert error.endswith("wants tls.enabled: clients send no token in plaintext")


def test_variables_of_the_chart_are_options_that_it_refuses(charts: list[list[Object]]) -> None:
    names = set()
    for objects in charts:
        spec = the(objects, "StatefulSet")["spec"]["template"]["spec"]
        names |= {each["name"] for each in spec["containers"][0]["env"]}
    on: Object = {group: {"enabled": True} for group in ("gpu", "tls", "tenants", "redis")}
    for name in sorted(names):
        option = name.removeprefix("TENSORD_").lower().replace("_", "-")
        (error,) = render(on | {"options": {option: "x"}})
        assert f"options.{option} is the chart's: " in error


def test_metrics_want_the_token_that_prometheus_brings() -> None:
    token = {"name": "tensord-metrics", "key": "bearer"}
    monitoring = {"enabled": True, "tokenSecret": token}
    values: Object = {"tls": TLS, "monitoring": monitoring}
    jsonschema.validate(values, schema())
    (objects,) = render(values)
    assert [each for object_ in objects for each in mistakes(object_)] == []
    (endpoint,) = the(objects, "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["authorization"] == {"credentials": token} and endpoint["scheme"] == "https"
    spec = the(objects, "StatefulSet")["spec"]["template"]["spec"]
    variables = {each["name"]: each["value"] for each in spec["containers"][0]["env"]}
    place = Path(variables["TENSORD_METRICS_TOKEN_FILE"])
    mounts = {each["mountPath"]: each["name"] for each in spec["containers"][0]["volumeMounts"]}
    (volume,) = (each for each in spec["volumes"] if each["name"] == mounts[str(place.parent)])
    assert volume["secret"] == {"secretName": token["name"], "defaultMode": 0o440}
    assert place.name == token["key"]


def test_keys_of_jwts_come_from_a_secret() -> None:
    folder = "/etc/tensord-secrets/keys"
    jwt = {"jwt-keys": f"{folder}/jwks.json", "jwt-issuer": "https://a", "jwt-audience": "tensord"}
    values = {
        "options": jwt,
        "tls": {"enabled": True, "clientCertificates": False},
        "secrets": [{"name": "keys", "secret": "issuer-keys"}],
    }
    jsonschema.validate(values, schema())
    (objects,) = render(values)
    assert [each for object_ in objects for each in mistakes(object_)] == []
    spec = the(objects, "StatefulSet")["spec"]["template"]["spec"]
    (mount,) = (
        each for each in spec["containers"][0]["volumeMounts"] if each["mountPath"] == folder
    )
    assert mount["readOnly"] is True
    (volume,) = (each for each in spec["volumes"] if each["name"] == mount["name"])
    assert volume["secret"] == {"secretName": "issuer-keys", "defaultMode": 0o440}


def schema() -> Any:
    return json.loads((DEPLOY / "helm/tensord/values.schema.json").read_text())


@pytest.mark.parametrize(
    "values",
    [
        {"replicas": 0},
        {"replicas": "two"},
        {"gpu": {"enabled": "yes"}},
        {"gpu": {"resource": "gpu"}},
        {"image": {"pullPolicy": "Sometimes"}},
        {"plans": {"size": "much"}},
        {"options": {"drain-timeout-seconds": "abc"}},
        {"options": {"drain-timeout-seconds": -1}},
        {"options": {"max-sessions": {"most": 64}}},
        {"monitoring": {"interval": 15}},
        {"secrets": [{"name": "keys"}]},
        {"resources": {"limit": {"memory": "4Gi"}}},
        {"resources": {"limits": {"memory": "4GiB"}}},
        {"affinity": {"nodeAfinity": {}}},
        {"secrets": [{"name": "../keys", "secret": "issuer-keys"}]},
    ],
)
def test_the_schema_refuses_a_wrong_value(values: Object) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(values, schema())


def test_the_schema_knows_all_values_and_takes_them() -> None:
    values = yaml.safe_load((DEPLOY / "helm/tensord/values.yaml").read_text())
    jsonschema.validate(values, schema())
    for combination in ALL:
        jsonschema.validate(combination, schema())
    known = schema()["properties"]
    assert set(known) == set(values)
    for name, entry in known.items():
        if "properties" in entry and name not in ("resources", "affinity", "options"):
            assert set(entry["properties"]) == set(values[name])
