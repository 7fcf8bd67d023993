#!/usr/bin/env python3
"""kubernetes_run_test.py SOURCE BUILD: what the manifests of packaging/kubernetes start, on this machine.

Each pod is a process: its container's command, with the variables that the manifest and the controller set, and with
files in the place of the volumes; for root with the manifest's user and the secret's mode, too. Names of pods are this
machine's address, and each pod counts as a host. All manifests train the same model, bit for bit. A pod of the JobSet
is killed: the others name it and end, and the next pods go on from the checkpoint to the same model."""
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pods import Pod, pods_of, read

LIMIT_S = 240
MANIFESTS = ("job", "jobset", "pytorchjob")
ROWS = 2000
ROOT = os.geteuid() == 0


def write_data(path: Path) -> None:
    """Two numbers, and whether the first is the larger one."""
    state, lines = 1, []
    for _ in range(ROWS):
        state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
        x, y = state >> 50, state >> 36 & 0x3FFF
        lines.append(f"{x},{y},{int(x > y)}\n")
    path.write_text("".join(lines))


class Cluster:
    """The volumes of the pods, and the pods that run."""

    def __init__(self, folder: Path, build: Path) -> None:
        self.folder, self.build = folder, build
        self.running: list[subprocess.Popen[str]] = []

    def volumes(self, pod: Pod) -> None:
        for volume in pod.spec["volumes"]:
            path = self.folder / volume["name"]
            path.mkdir(exist_ok=True)
            if volume["name"] == "data" and not any(path.iterdir()):
                write_data(path / "train.csv")
            if "secret" in volume and not any(path.iterdir()):
                (path / "secret").write_text(secrets.token_hex(32))
                (path / "secret").chmod(volume["secret"]["defaultMode"] if ROOT else 0o400)
            if ROOT:
                for each in (path, *path.iterdir()):
                    os.chown(each, 0 if "secret" in volume else pod.spec["securityContext"]["runAsUser"], pod.spec["securityContext"]["fsGroup"])

    def here(self, pod: Pod, text: str) -> str:
        """The text with the folders of this machine in the place of the volumes."""
        for name, path in pod.mounts.items():
            text = re.sub(rf"(?<![\w./]){re.escape(path)}(?![\w.])", str(self.folder / name), text)
        return text

    def start(self, pod: Pod, port: str) -> "subprocess.Popen[str]":
        self.volumes(pod)
        command = [self.here(pod, word) for word in pod.container["command"] + pod.container.get("args", [])]
        variables = {name: self.here(pod, value) for name, value in pod.variables.items()}
        variables.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, GYRE_HOST_ID=pod.name, OPENBLAS_NUM_THREADS="1",
                         PATH=f"{self.build / 'tools/train'}:/usr/bin:/bin", LC_ALL="C.UTF-8")
        context = pod.spec["securityContext"]
        user = {"user": context["runAsUser"], "group": context["runAsUser"], "extra_groups": [context["fsGroup"]]} if ROOT else {}
        return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **user)

    def run(self, pods: list[Pod], killed: int | None = None) -> list[tuple[int, str]]:
        """Exit status and output of each pod. `killed`: the one that is killed after the first checkpoint."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        self.running = [self.start(pod, port) for pod in pods]
        deadline = time.monotonic() + LIMIT_S
        if killed is not None:
            while not self.model.exists() and self.running[killed].poll() is None and time.monotonic() < deadline:
                time.sleep(0.005)
            self.running[killed].send_signal(signal.SIGKILL)
        outputs = [process.communicate(timeout=max(1, deadline - time.monotonic()))[0] for process in self.running]
        return [(process.returncode, output) for process, output in zip(self.running, outputs)]

    @property
    def model(self) -> Path:
        return self.folder / "out" / "model.safetensors"

    def end(self) -> None:
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()


def need(holds: bool, what: str, output: Any = "") -> None:
    if not holds:
        raise SystemExit(f"kubernetes_run_test.py: {what}\n{output}")


def trained(name: str, pods: list[Pod], cluster: Cluster, first: int = 1) -> bytes:
    """The model of a run that succeeds. `first`: the least epoch with which it begins."""
    ended = cluster.run(pods)
    need(all(code == 0 for code, _ in ended), f"{name}: a rank failed", ended)
    begun = re.search(r"^epoch (\d+)/", ended[0][1], re.M)
    need(begun is not None and int(begun[1]) >= first, f"{name}: the run begins with another epoch than {first}", ended[0][1])
    return cluster.model.read_bytes()


def restarted(pods: list[Pod], restarts: int, cluster: Cluster, killed: int) -> bytes:
    """As the JobSet controller does it: when a pod has failed all are deleted and made again."""
    need(restarts > 0, "the JobSet is never restarted")
    ended = cluster.run(pods, killed)
    need(ended[killed][0] == -signal.SIGKILL, "the job had ended before a rank was killed", ended)
    for rank, (code, output) in enumerate(ended):
        need(rank == killed or (code != 0 and f"rank {killed} " in output), f"rank {rank} does not name rank {killed}", output)
    need(cluster.model.exists(), "there is no checkpoint")
    return trained("jobset after a restart", pods, cluster, first=2)


def main() -> int:
    source, build = Path(sys.argv[1]), Path(sys.argv[2]).resolve()
    models, ranks = {}, 0
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o711)
        for name in (*MANIFESTS, "restarted"):
            documents = read(str(source / f"packaging/kubernetes/{'jobset' if name == 'restarted' else name}.yaml"))
            pods = pods_of(documents)
            cluster = Cluster(Path(folder) / name, build)
            cluster.folder.mkdir()
            try:
                if name == "restarted":
                    models[name] = restarted(pods, documents[0]["spec"]["failurePolicy"]["maxRestarts"], cluster, killed=2)
                else:
                    models[name] = trained(name, pods, cluster)
            finally:
                cluster.end()
            ranks = len(pods)
    for name, model in models.items():
        need(model == models["job"], f"{name} trains another model than job")
    print(f"{len(MANIFESTS)} manifests train the same model on {ranks} ranks, also after a restart")
    return 0


if __name__ == "__main__":
    sys.exit(main())
