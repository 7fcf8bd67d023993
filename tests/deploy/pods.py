"""The pods that a controller makes of a manifest of packaging/kubernetes, with what it adds to them: names, indices,
variables. Of the Job controller, of JobSet, and of Kubeflow's Training Operator (PyTorchJob)."""
from dataclasses import dataclass
from typing import Any

import yaml

Documents = list[dict[str, Any]]
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


@dataclass
class Pod:
    name: str  # by which the other pods find it
    spec: dict[str, Any]
    variables: dict[str, str]

    @property
    def container(self) -> dict[str, Any]:
        container: dict[str, Any] = self.spec["containers"][0]
        return container

    @property
    def mounts(self) -> dict[str, str]:
        return {mount["name"]: mount["mountPath"] for mount in self.container["volumeMounts"]}


def read(path: str) -> Documents:
    with open(path, encoding="utf-8") as file:
        return list(yaml.safe_load_all(file))


def find(documents: Documents, kind: str) -> dict[str, Any]:
    found = [document for document in documents if document["kind"] == kind]
    if len(found) != 1:
        raise ValueError(f"{len(found)} documents of kind {kind}")
    return found[0]


def variables_of(container: dict[str, Any], fields: dict[str, str]) -> dict[str, str]:
    """The variables as the container sees them; `fields`: values of fieldRef by their path."""
    variables: dict[str, str] = {}
    for variable in container.get("env", []):
        if variable["name"] in variables:
            raise ValueError(f"{variable['name']} is there twice")
        variables[variable["name"]] = variable["value"] if "value" in variable else fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
    return variables


def indexed(name: str, subdomain: str, job: dict[str, Any]) -> list[Pod]:
    """Of an Indexed Job."""
    if job["completions"] != job["parallelism"]:
        raise ValueError("all ranks must run at once: completions and parallelism differ")
    if job["completionMode"] != "Indexed":
        raise ValueError("the pods have no index")
    spec = job["template"]["spec"]
    return [Pod(f"{name}-{index}.{subdomain}", spec, variables_of(spec["containers"][0], {INDEX: str(index)})) for index in range(job["completions"])]


def of_job(documents: Documents) -> list[Pod]:
    service, job = find(documents, "Service"), find(documents, "Job")
    name, subdomain = job["metadata"]["name"], job["spec"]["template"]["spec"]["subdomain"]
    if subdomain != service["metadata"]["name"]:
        raise ValueError("the pods' subdomain is not the service")
    if service["spec"]["selector"] != {"job-name": name}:
        raise ValueError("the service does not select the job's pods")
    if service["spec"].get("publishNotReadyAddresses") is not True:
        raise ValueError("pods that are not ready have no name")
    pods = indexed(name, subdomain, job["spec"])
    if service["spec"]["ports"] and [port["port"] for port in service["spec"]["ports"]] != [port["containerPort"] for port in pods[0].container["ports"]]:
        raise ValueError("ports differ")
    return pods


def of_jobset(documents: Documents) -> list[Pod]:
    jobset = find(documents, "JobSet")
    name, network = jobset["metadata"]["name"], jobset["spec"]["network"]
    if not network["enableDNSHostnames"] or not network.get("publishNotReadyAddresses", True):
        raise ValueError("pods that are not ready have no name")
    pods = []
    for job in jobset["spec"]["replicatedJobs"]:
        for number in range(job.get("replicas", 1)):
            pods += indexed(f"{name}-{job['name']}-{number}", network.get("subdomain", name), job["template"]["spec"])
    return pods


def of_pytorchjob(documents: Documents) -> list[Pod]:
    """pkg/controller.v1/pytorch/envvar.go and master.go of the operator say what it sets."""
    job = find(documents, "PyTorchJob")
    name, replicas = job["metadata"]["name"], job["spec"]["pytorchReplicaSpecs"]
    if replicas["Master"]["replicas"] != 1:
        raise ValueError("there is one master")
    size = sum(replica["replicas"] for replica in replicas.values())
    pods: list[Pod] = []
    for kind in ("Master", "Worker"):
        for number in range(replicas[kind]["replicas"]):
            spec = replicas[kind]["template"]["spec"]
            container = spec["containers"][0]
            port = next((port["containerPort"] for port in container["ports"] if port.get("name") == "pytorchjob-port"), None)
            if container["name"] != "pytorch" or port is None:
                raise ValueError("the operator looks for the container pytorch and its port pytorchjob-port")
            master, rank = f"{name}-master-0", str(len(pods))
            added = {"PYTHONUNBUFFERED": "1", "MASTER_ADDR": master, "MASTER_PORT": str(port), "PET_MASTER_ADDR": master, "PET_MASTER_PORT": str(port),
                     "WORLD_SIZE": str(size), "RANK": rank, "PET_NODE_RANK": rank, "PET_NPROC_PER_NODE": "auto", "PET_NNODES": str(size)}
            own = variables_of(container, {})
            if set(own) & set(added):
                raise ValueError(f"the operator sets {set(own) & set(added)} itself")
            pods.append(Pod(f"{name}-{kind.lower()}-{number}", spec, {**own, **added}))
    return pods


CONTROLLERS = {"Job": of_job, "JobSet": of_jobset, "PyTorchJob": of_pytorchjob}


def pods_of(documents: Documents) -> list[Pod]:
    controllers = [CONTROLLERS[document["kind"]] for document in documents if document["kind"] in CONTROLLERS]
    if len(controllers) != 1:
        raise ValueError("there is not one job")
    return controllers[0](documents)
