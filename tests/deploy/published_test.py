#!/usr/bin/env python3
"""published_test.py SOURCE [CRD...]: the manifests of packaging/kubernetes fit the schemas that are published.

Of the package index: Kubernetes' own (kubernetes-validate, strict), and the models of Kubeflow and JobSet
(kubeflow-training, kubeflow-trainer-api), which must return a manifest unchanged. CRD: definitions of the controllers'
resources, as their repositories publish them; a field that they do not have is refused."""
import copy
import json
import os
import sys
from typing import Any

import jsonschema
import yaml
from pods import Documents, read

KUBERNETES = "1.31"
Mistakes = dict[str, list[Any]]  # path of a field, and its wrong value at the end
MISTAKES: Mistakes = {
    "jobset": ["spec", "replicatedJobs", 0, "template", "spec", "completion", 4],
    "jobset, network": ["spec", "network", "enableDNSHostname", True],
    "jobset, type": ["spec", "failurePolicy", "maxRestarts", "three"],
    "pytorchjob": ["spec", "pytorchReplicaSpec", {}],
    "pytorchjob, pod": ["spec", "pytorchReplicaSpecs", "Master", "template", "spec", "volume", []],
    "pytorchjob, type": ["spec", "pytorchReplicaSpecs", "Worker", "replicas", "three"],
    "job": ["spec", "completion", 4],
}


class Unfit(Exception):
    pass


def of_kubernetes(documents: Documents) -> None:
    """Jobs, services and pod templates, also those inside of other resources."""
    import kubernetes_validate

    whole = []
    for document in documents:
        if document["kind"] == "PyTorchJob":
            for kind, replica in document["spec"].get("pytorchReplicaSpecs", {}).items():
                whole.append({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": kind.lower()}, "template": replica["template"]})
        elif document["kind"] == "JobSet":
            for job in document["spec"]["replicatedJobs"]:
                whole.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": job["name"]}, "spec": job["template"]["spec"]})
        else:
            whole.append(document)
    for document in whole:
        try:
            kubernetes_validate.validate(document, KUBERNETES, strict=True)
        except kubernetes_validate.ValidationError as error:
            raise Unfit(f"Kubernetes {KUBERNETES}: {error.message}") from error


def same(given: Any, returned: Any, path: str = "") -> None:
    """What a model does not know is lost on the way through it."""
    if isinstance(given, dict) and isinstance(returned, dict):
        for key, value in given.items():
            if key not in returned:
                raise Unfit(f"the model has no field {path}.{key}")
            same(value, returned[key], f"{path}.{key}")
    elif isinstance(given, list) and isinstance(returned, list) and len(given) == len(returned):
        for number, (one, other) in enumerate(zip(given, returned)):
            same(one, other, f"{path}[{number}]")
    elif given != returned:
        raise Unfit(f"the model makes {returned} of {given} at {path}")


def through_jobset(document: dict[str, Any]) -> None:
    from kubeflow_trainer_api import models

    try:
        model = models.JobsetV1alpha2JobSet.from_dict(document)
    except ValueError as error:
        raise Unfit(str(error)) from error
    same(document, json.loads(model.to_json()))


def through_kubeflow(document: dict[str, Any]) -> None:
    from kubeflow.training import ApiClient

    class Response:
        data = json.dumps(document)

    client = ApiClient()
    try:
        model = client.deserialize(Response, "KubeflowOrgV1PyTorchJob")
    except ValueError as error:
        raise Unfit(str(error)) from error
    same(document, json.loads(json.dumps(client.sanitize_for_serialization(model))))


def strict(schema: Any) -> Any:
    """A field that is not described is refused, as by kubectl --validate=strict."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(value) for key, value in schema.items()}
    if isinstance(made.get("properties"), dict) and "additionalProperties" not in made and not made.get("x-kubernetes-preserve-unknown-fields"):
        made["additionalProperties"] = False
    return made


def definitions(paths: list[str]) -> dict[tuple[str, str], Any]:
    """(version, kind): schema."""
    found = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            resource = yaml.safe_load(file)["spec"]
        for version in resource["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            schema["properties"]["metadata"] = {"type": "object", "properties": {"name": {"type": "string"}, "labels": {"type": "object"}}}
            found[f"{resource['group']}/{version['name']}", resource["names"]["kind"]] = strict(schema)
    return found


def check(documents: Documents, resources: dict[tuple[str, str], Any]) -> None:
    of_kubernetes(documents)
    for document in documents:
        if document["kind"] == "JobSet":
            through_jobset(document)
        if document["kind"] == "PyTorchJob":
            through_kubeflow(document)
        by_definition(document, resources)


def by_definition(document: dict[str, Any], resources: dict[tuple[str, str], Any]) -> None:
    schema = resources.get((document["apiVersion"], document["kind"]))
    if schema is None:
        return
    try:
        jsonschema.validate(document, schema, cls=jsonschema.Draft7Validator)
    except jsonschema.ValidationError as error:
        raise Unfit(error.message) from error


def broken(documents: Documents, path: list[Any]) -> Documents:
    documents = copy.deepcopy(documents)
    at: Any = next(document for document in documents if document["kind"] != "Service")
    for key in path[:-2]:
        at = at[key]
    at[path[-2]] = path[-1]
    return documents


def missed(manifests: dict[str, Documents], resources: dict[tuple[str, str], Any]) -> list[str]:
    """Mistakes that are not found: by what the index has, by the definitions."""
    found = []
    for what, path in MISTAKES.items():
        documents = broken(manifests[what.split(",")[0]], path)
        try:
            check(documents, {})
            found.append(f"{what}, by the models")
        except Unfit:
            pass
        if all((document["apiVersion"], document["kind"]) in resources for document in documents):
            try:
                by_definition(documents[0], resources)
                found.append(f"{what}, by the definitions")
            except Unfit:
                pass
    return found


def main() -> int:
    source = sys.argv[1]
    resources = definitions(sys.argv[2:])
    manifests = {name: read(os.path.join(source, f"packaging/kubernetes/{name}.yaml")) for name in ("job", "jobset", "pytorchjob")}
    for documents in manifests.values():
        check(documents, resources)
    not_found = missed(manifests, resources)
    if not_found:
        print("mistakes that were not found:", "; ".join(not_found), file=sys.stderr)
    defined = ", ".join(" ".join(name) for name in resources) or "none given"
    print(f"{len(manifests)} manifests fit what is published (definitions: {defined}); {len(MISTAKES)} mistakes are looked for")
    return int(bool(not_found))


if __name__ == "__main__":
    sys.exit(main())
