#!/usr/bin/env python3
"""kubernetes_test.py SOURCE: packaging/kubernetes/job.yaml, without a cluster.

Each document fits the schema beside this file, and they fit each other: names, numbers, ports, volumes, and settings
that gyre has. Then each of some deliberate mistakes must be found."""
import copy
import json
import os
import re
import sys
from typing import Any, Callable

import jsonschema
import yaml

Documents = list[dict[str, Any]]


def find(documents: Documents, kind: str) -> dict[str, Any]:
    found = [document for document in documents if document["kind"] == kind]
    if len(found) != 1:
        raise ValueError(f"{len(found)} documents of kind {kind}")
    return found[0]


def together(documents: Documents, source: str) -> None:
    """What no schema sees. Raises ValueError."""
    service, job = find(documents, "Service"), find(documents, "Job")
    pod = job["spec"]["template"]["spec"]
    rank = pod["containers"][0]
    variables = {variable["name"]: variable for variable in rank["env"]}
    name, ports = job["metadata"]["name"], [port["port"] for port in service["spec"]["ports"]]

    def need(holds: bool, what: str) -> None:
        if not holds:
            raise ValueError(what)

    need(len(variables) == len(rank["env"]), "a variable is there twice")
    need(job["spec"]["completions"] == job["spec"]["parallelism"], "all ranks must run at once: completions and parallelism differ")
    need(variables["WORLD_SIZE"].get("value") == str(job["spec"]["completions"]), "WORLD_SIZE is not the number of pods")
    need(variables["RANK"].get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
         == "metadata.annotations['batch.kubernetes.io/job-completion-index']", "RANK is not the pod's index")
    need(pod["subdomain"] == service["metadata"]["name"], "the pods' subdomain is not the service")
    need(service["spec"]["selector"] == {"job-name": name}, "the service does not select the job's pods")
    need(service["spec"].get("publishNotReadyAddresses") is True, "pods that are not ready have no name")
    need(variables["MASTER_ADDR"].get("value") == f"{name}-0.{pod['subdomain']}", "MASTER_ADDR is not pod 0")
    need([int(variables["MASTER_PORT"]["value"])] == ports == [port["containerPort"] for port in rank["ports"]], "ports differ")
    mounts = {mount["name"]: mount["mountPath"] for mount in rank["volumeMounts"]}
    need(sorted(mounts) == sorted(volume["name"] for volume in pod["volumes"]), "volumes and mounts differ")
    need(variables["GYRE_SECRET_FILE"]["value"].startswith(mounts["secret"] + "/"), "the secret is not where it is mounted")
    need("GYRE_SECRET" not in variables, "a secret stands in the manifest")
    with open(os.path.join(source, "src/core/config.c"), encoding="utf-8") as file:
        settings = set(re.findall(r'\{"(GYRE_[A-Z_]+)"', file.read()))
    unknown = {variable for variable in variables if variable.startswith("GYRE_")} - settings
    need(not unknown, f"no setting of gyre: {unknown}")
    need(all(os.path.exists(os.path.join(source, "tools", program)) for program in ("train/gyre-train.c", "run/gyre-run.c")), "gyre-train is no program")
    need(rank["command"] == ["gyre-train"], "the program is not gyre-train")


def check(documents: Documents, schema: dict[str, Any], source: str) -> None:
    for document in documents:
        jsonschema.validate(document, schema, cls=jsonschema.Draft7Validator)
    together(documents, source)


def container(documents: Documents) -> dict[str, Any]:
    found: dict[str, Any] = find(documents, "Job")["spec"]["template"]["spec"]["containers"][0]
    return found


MISTAKES: dict[str, Callable[[Documents], Any]] = {
    "a misspelt field": lambda d: find(d, "Job")["spec"].update(completion=4),
    "a number as a variable": lambda d: container(d)["env"][1].update(value=4),
    "not indexed": lambda d: find(d, "Job")["spec"].update(completionMode="NonIndexed"),
    "restart always": lambda d: find(d, "Job")["spec"]["template"]["spec"].update(restartPolicy="Always"),
    "too few pods at once": lambda d: find(d, "Job")["spec"].update(parallelism=2),
    "another world": lambda d: container(d)["env"][1].update(value="5"),
    "a service with an address": lambda d: find(d, "Service")["spec"].update(clusterIP="10.0.0.1"),
    "another service": lambda d: find(d, "Service")["metadata"].update(name="other"),
    "pods without names": lambda d: find(d, "Service")["spec"].pop("publishNotReadyAddresses"),
    "another port": lambda d: find(d, "Service")["spec"]["ports"][0].update(port=29401),
    "a port that cannot be": lambda d: find(d, "Service")["spec"]["ports"][0].update(port=70000),
    "no setting": lambda d: container(d)["env"][5].update(name="GYRE_MEET_TIMOUT"),
    "a volume that is not there": lambda d: find(d, "Job")["spec"]["template"]["spec"]["volumes"].pop(),
    "a mode in octal": lambda d: find(d, "Job")["spec"]["template"]["spec"]["volumes"][0]["secret"].update(defaultMode="0440"),
    "memory in words": lambda d: container(d)["resources"]["limits"].update(memory="2 GB"),
    "a capital in a name": lambda d: find(d, "Job")["metadata"].update(name="Gyre"),
    "no job": lambda d: d.remove(find(d, "Job")),
}


def main() -> int:
    source = sys.argv[1]
    with open(os.path.join(os.path.dirname(__file__), "kubernetes.schema.json"), encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft7Validator.check_schema(schema)
    with open(os.path.join(source, "packaging/kubernetes/job.yaml"), encoding="utf-8") as file:
        documents: Documents = list(yaml.safe_load_all(file))
    check(documents, schema, source)
    missed = []
    for what, mistake in MISTAKES.items():
        broken = copy.deepcopy(documents)
        mistake(broken)
        try:
            check(broken, schema, source)
            missed.append(what)
        except (jsonschema.ValidationError, ValueError, KeyError):
            pass
    if missed:
        print("mistakes that were not found:", ", ".join(missed), file=sys.stderr)
    print(f"{len(documents)} documents are right, {len(MISTAKES) - len(missed)} of {len(MISTAKES)} mistakes are found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
