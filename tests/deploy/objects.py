"""Kubernetes objects, rendered and checked."""

from __future__ import annotations

import datetime
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import kubernetes.client  # type: ignore[import-untyped]
import yaml

from places import DEPLOY, REPOSITORY

TOOLS = REPOSITORY / "build/tools"

Object = dict[str, Any]

# Objects of the Prometheus operator have no typed models: what these have, by its path.
OPERATOR = {
    "ServiceMonitor": {
        "jobLabel": str,
        "selector.matchLabels": dict,
        "endpoints.port": str,
        "endpoints.interval": str,
        "endpoints.scheme": str,
        "endpoints.tlsConfig.ca.secret.name": str,
        "endpoints.tlsConfig.ca.secret.key": str,
        "endpoints.tlsConfig.serverName": str,
        "endpoints.authorization.credentials.name": str,
        "endpoints.authorization.credentials.key": str,
    },
    "PrometheusRule": {
        "groups.name": str,
        "groups.rules.alert": str,
        "groups.rules.expr": str,
        "groups.rules.for": str,
        "groups.rules.labels": dict,
        "groups.rules.annotations": dict,
    },
}
PRIMITIVES = {"str": str, "int": int, "bool": bool, "float": float, "datetime": datetime.datetime}
QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?([numkMGTPE]|[KMGTPE]i)?")


def kustomize(overlay: str | Path) -> list[Object]:
    """What Debian's kubectl makes of an overlay."""
    done = subprocess.run(
        [TOOLS / "kubectl", "kustomize", DEPLOY / "kubernetes" / overlay],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return list(yaml.load_all(done.stdout, yaml.CSafeLoader))


def render(*values: Object, numbers: str = "float64") -> list[Any]:
    """What the chart makes of each of the values: objects, or an error's text.

    Templates see numbers as that type of Go.
    """
    done = subprocess.run(
        [TOOLS / "render", DEPLOY / "helm/tensord", "tensord", numbers],
        input=json.dumps(values),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [each.get("error") or each["objects"] for each in json.loads(done.stdout)]


def mistakes(object_: Object) -> list[str]:
    """What the typed models of the object's API have against it."""
    version, kind = object_["apiVersion"], object_["kind"]
    if version == "monitoring.coreos.com/v1":
        rest = {key: value for key, value in object_.items() if key != "spec"}
        found = check(rest, "V1ConfigMap", kind) + check_paths(object_["spec"], kind, "")
        return found
    return check(object_, version.rpartition("/")[2].capitalize() + kind, kind)


def check_paths(value: Any, kind: str, path: str) -> list[str]:
    known = OPERATOR[kind]
    if path in known:
        right = isinstance(value, known[path])
        return [] if right else [f"{kind}.spec.{path} is {value!r}, wanted {known[path]}"]
    if isinstance(value, list):
        return [each for item in value for each in check_paths(item, kind, path)]
    if isinstance(value, dict):
        prefix = f"{path}." if path else ""
        return [
            each for key, item in value.items() for each in check_paths(item, kind, prefix + key)
        ]
    return [f"{kind}.spec.{path} is unknown"]


def check(value: Any, type_: str, path: str) -> list[str]:
    """Mistakes of a value that should be of a model's type."""
    if type_ in PRIMITIVES:
        right = type(value) is PRIMITIVES[type_]  # True is an int, too, otherwise
        return [] if right else [f"{path} is {value!r}, wanted {type_}"]
    if type_ == "object":  # an integer or string, such as a port
        return [] if isinstance(value, (int, str)) else [f"{path} is {value!r}"]
    if found := re.fullmatch(r"list\[(.+)\]", type_):
        if not isinstance(value, list):
            return [f"{path} is {value!r}, wanted a list"]
        return [
            each for i, item in enumerate(value) for each in check(item, found[1], f"{path}[{i}]")
        ]
    if found := re.fullmatch(r"dict\((\w+), (.+)\)", type_):
        if not isinstance(value, dict):
            return [f"{path} is {value!r}, wanted a mapping"]
        return [
            each for key, item in value.items() for each in check(item, found[2], f"{path}.{key}")
        ]
    return check_model(value, type_, path)


def check_model(value: Any, type_: str, path: str) -> list[str]:
    model = getattr(kubernetes.client, type_)
    if not isinstance(value, dict):
        return [f"{path} is {value!r}, wanted {type_}"]
    attributes = {name: attribute for attribute, name in model.attribute_map.items()}
    found = []
    for name, item in value.items():
        if name not in attributes:
            found.append(f"{path}.{name} is unknown")
        else:
            found += check(item, model.openapi_types[attributes[name]], f"{path}.{name}")
        if name in ("limits", "requests"):
            found += [
                f"{path}.{name}.{what} is {amount!r}, wanted a quantity"
                for what, amount in item.items()
                if not (isinstance(amount, str) and QUANTITY.fullmatch(amount))
            ]
    try:  # what a model requires, its constructor asks for
        model(**{attributes[name]: item for name, item in value.items() if name in attributes})
    except ValueError as error:
        found.append(f"{path}: {error}")
    return found


def named(objects: list[Object], kind: str, name: str) -> bool:
    return any(each["kind"] == kind and each["metadata"]["name"] == name for each in objects)


def the(objects: list[Object], kind: str, name: str = "tensord") -> Object:
    (found,) = (
        each for each in objects if each["kind"] == kind and each["metadata"]["name"] == name
    )
    return found


def pods(objects: list[Object]) -> list[Object]:
    """Templates of pods."""
    return [each["spec"]["template"] for each in objects if "template" in each.get("spec", {})]
