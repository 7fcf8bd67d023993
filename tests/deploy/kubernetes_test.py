#!/usr/bin/env python3
"""kubernetes_test.py SOURCE: the manifests of packaging/kubernetes, without a cluster.

Each document fits the schema beside this file, and they fit each other: names, numbers, ports, volumes, and settings
that gyre has. Then each of some deliberate mistakes must be found. published_test.sh checks them against the schemas
that Kubernetes and the controllers publish, kubernetes_run_test.py runs what they say."""
import copy
import json
import os
import re
import sys
from typing import Any, Callable

import jsonschema
from pods import Documents, find, pods_of, read

Change = Callable[[Documents], Any]


def together(documents: Documents, source: str) -> None:
    """What no schema sees. Raises ValueError."""

    def need(holds: bool, what: str) -> None:
        if not holds:
            raise ValueError(what)

    pods = pods_of(documents)
    with open(os.path.join(source, "src/core/config.c"), encoding="utf-8") as file:
        settings = set(re.findall(r'\{"(GYRE_[A-Z_]+)"', file.read()))
    for rank, pod in enumerate(pods):
        variables, container = pod.variables, pod.container
        need(variables["WORLD_SIZE"] == str(len(pods)), "WORLD_SIZE is not the number of pods")
        need(variables["RANK"] == str(rank), "RANK is not the pod's index")
        need(variables["MASTER_ADDR"] == pods[0].name, "MASTER_ADDR is not pod 0")
        need([int(variables["MASTER_PORT"])] == [port["containerPort"] for port in container["ports"]], "ports differ")
        need(sorted(pod.mounts) == sorted(volume["name"] for volume in pod.spec["volumes"]), "volumes and mounts differ")
        need(variables["GYRE_SECRET_FILE"].startswith(pod.mounts["secret"] + "/"), "the secret is not where it is mounted")
        need("GYRE_SECRET" not in variables, "a secret stands in the manifest")
        unknown = {variable for variable in variables if variable.startswith("GYRE_")} - settings
        need(not unknown, f"no setting of gyre: {unknown}")
        command = " ".join(container["command"] + container.get("args", []))
        need(re.search(r"\bgyre-train\b", command) is not None, "the program is not gyre-train")
        written = {path.split("/")[1] for path in re.findall(r"/[\w.]+(?:/[\w.]+)+", command.replace("/bin/sh", ""))}
        need(written <= {mount.split("/")[1] for mount in pod.mounts.values()}, "a path is not in a volume")
    need(os.path.exists(os.path.join(source, "tools/train/gyre-train.c")), "gyre-train is no program")


def check(documents: Documents, schema: dict[str, Any], source: str) -> None:
    for document in documents:
        jsonschema.validate(document, schema, cls=jsonschema.Draft7Validator)
    together(documents, source)


def variable(container: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in container["env"] if each["name"] == name)
    return found


def mistakes_of_pods(pod: Callable[[Documents], dict[str, Any]]) -> dict[str, Change]:
    """In every manifest; `pod`: the specification of its pods."""

    def container(documents: Documents) -> dict[str, Any]:
        found: dict[str, Any] = pod(documents)["containers"][0]
        return found

    return {
        "no setting": lambda d: variable(container(d), "GYRE_MEET_TIMEOUT").update(name="GYRE_MEET_TIMOUT"),
        "a number as a variable": lambda d: variable(container(d), "GYRE_MEET_TIMEOUT").update(value=600),
        "a variable twice": lambda d: container(d)["env"].append({"name": "GYRE_MEET_TIMEOUT", "value": "600"}),
        "a secret to read": lambda d: container(d)["env"].append({"name": "GYRE_SECRET", "value": "0123456789"}),
        "a secret elsewhere": lambda d: variable(container(d), "GYRE_SECRET_FILE").update(value="/secret"),
        "a volume that is not there": lambda d: pod(d)["volumes"].pop(),
        "a mode in octal": lambda d: pod(d)["volumes"][0]["secret"].update(defaultMode="0440"),
        "memory in words": lambda d: container(d)["resources"]["limits"].update(memory="2 GB"),
        "another program": lambda d: container(d).update(command=["gyre-trian"], args=[]),
        "a path without a volume": lambda d: container(d)["args"].append("/tmp/model"),
        "another port": lambda d: container(d)["ports"].append({"containerPort": 29401}),
        "a misspelt field": lambda d: pod(d).update(restartPolice="Never"),
        "a capital in a name": lambda d: next(document for document in d if document["kind"] != "Service")["metadata"].update(name="Gyre"),
    }


def job_spec(documents: Documents) -> dict[str, Any]:
    """Of a Job, or of a JobSet's only one."""
    document = next(document for document in documents if document["kind"] != "Service")
    spec: dict[str, Any] = document["spec"] if document["kind"] == "Job" else document["spec"]["replicatedJobs"][0]["template"]["spec"]
    return spec


def job_pod(documents: Documents) -> dict[str, Any]:
    pod: dict[str, Any] = job_spec(documents)["template"]["spec"]
    return pod


def replicas(documents: Documents, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = find(documents, "PyTorchJob")["spec"]["pytorchReplicaSpecs"][kind]
    return found


MISTAKES_OF_JOBS: dict[str, Change] = {
    **mistakes_of_pods(job_pod),
    "a misspelt field of the job": lambda d: job_spec(d).update(completion=4),
    "not indexed": lambda d: job_spec(d).update(completionMode="NonIndexed"),
    "restart always": lambda d: job_pod(d).update(restartPolicy="Always"),
    "no word of restarts": lambda d: job_pod(d).pop("restartPolicy"),
    "too few pods at once": lambda d: job_spec(d).update(parallelism=2),
    "another world": lambda d: variable(job_pod(d)["containers"][0], "WORLD_SIZE").update(value="5"),
    "another first pod": lambda d: variable(job_pod(d)["containers"][0], "MASTER_ADDR").update(value="gyre-train-1"),
    "no index": lambda d: variable(job_pod(d)["containers"][0], "RANK").update(valueFrom={"fieldRef": {"fieldPath": "metadata.name"}}),
}
MISTAKES: dict[str, dict[str, Change]] = {
    "job": {
        **MISTAKES_OF_JOBS,
        "a service with an address": lambda d: find(d, "Service")["spec"].update(clusterIP="10.0.0.1"),
        "another service": lambda d: find(d, "Service")["metadata"].update(name="other"),
        "pods without names": lambda d: find(d, "Service")["spec"].pop("publishNotReadyAddresses"),
        "another port of the service": lambda d: find(d, "Service")["spec"]["ports"][0].update(port=29401),
        "a port that cannot be": lambda d: find(d, "Service")["spec"]["ports"][0].update(port=70000),
        "no subdomain": lambda d: job_pod(d).pop("subdomain"),
        "no job": lambda d: d.remove(find(d, "Job")),
    },
    "jobset": {
        **MISTAKES_OF_JOBS,
        "two jobs of ranks": lambda d: find(d, "JobSet")["spec"]["replicatedJobs"][0].update(replicas=2),
        "pods without names": lambda d: find(d, "JobSet")["spec"]["network"].update(enableDNSHostnames=False),
        "pods with late names": lambda d: find(d, "JobSet")["spec"]["network"].update(publishNotReadyAddresses=False),
        "another subdomain": lambda d: find(d, "JobSet")["spec"]["network"].update(subdomain="other"),
        "a misspelt field of the set": lambda d: find(d, "JobSet")["spec"].update(failurePolice={}),
        "a name too many": lambda d: find(d, "JobSet")["spec"]["replicatedJobs"][0].update(name="rank"),
    },
    "pytorchjob": {
        **mistakes_of_pods(lambda d: replicas(d, "Worker")["template"]["spec"]),
        "two masters": lambda d: replicas(d, "Master").update(replicas=2),
        "a container of another name": lambda d: replicas(d, "Master")["template"]["spec"]["containers"][0].update(name="rank"),
        "a port of another name": lambda d: replicas(d, "Master")["template"]["spec"]["containers"][0]["ports"][0].update(name="meet"),
        "what the operator sets": lambda d: replicas(d, "Worker")["template"]["spec"]["containers"][0]["env"].append({"name": "RANK", "value": "1"}),
        "no word of restarts": lambda d: replicas(d, "Worker").pop("restartPolicy"),
        "an unquoted none": lambda d: find(d, "PyTorchJob")["spec"]["runPolicy"].update(cleanPodPolicy=None),
        "no workers": lambda d: find(d, "PyTorchJob")["spec"]["pytorchReplicaSpecs"].pop("Worker"),
        "a misspelt field of the job": lambda d: find(d, "PyTorchJob")["spec"].update(nprocPerNod="1"),
    },
}


def missed_mistakes(documents: Documents, mistakes: dict[str, Change], schema: dict[str, Any], source: str) -> list[str]:
    missed = []
    for what, mistake in mistakes.items():
        broken = copy.deepcopy(documents)
        mistake(broken)
        try:
            check(broken, schema, source)
            missed.append(what)
        except (jsonschema.ValidationError, ValueError, KeyError):
            pass
    return missed


def main() -> int:
    source, failed = sys.argv[1], False
    with open(os.path.join(os.path.dirname(__file__), "kubernetes.schema.json"), encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft7Validator.check_schema(schema)
    for name, mistakes in MISTAKES.items():
        documents = read(os.path.join(source, f"packaging/kubernetes/{name}.yaml"))
        check(documents, schema, source)
        missed = missed_mistakes(documents, mistakes, schema, source)
        if missed:
            print(f"{name}.yaml: mistakes that were not found:", ", ".join(missed), file=sys.stderr)
        print(f"{name}.yaml: {len(documents)} documents are right, {len(mistakes) - len(missed)} of {len(mistakes)} mistakes are found")
        failed = failed or bool(missed)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
