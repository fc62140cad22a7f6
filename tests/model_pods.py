"""Model servers on a test bed: a driver in a pod, with the rights of the chart, and what it says."""

import json
from pathlib import Path

from adaexplore.backends.kubernetes.manifests import common
from chart_views import CHART, only, render, values
from rooms import eventually

ROOT = Path(__file__).parent.parent
ENGINE = "registry.example/engine:1"
"""An image with this environment's Python and the checkout."""
STANDIN = ["python", str(ROOT / "tests" / "backends" / "standin_server.py")]
PYTHONPATH = {"name": "PYTHONPATH", "value": str(ROOT / "platform")}
START_S = 60
PATIENT_S = 240.0
DEFAULT = CHART / "ci" / "default-values.yaml"


def config(**changes):
    """A serving configuration whose pods are small and quick; changes of pods in `pods`."""
    pods = {
        "image": ENGINE, "command": STANDIN, "cpu": "100m", "memory": "128Mi", "ephemeral": "1Gi",
        "shm": "16Mi", "start_limit_s": START_S, "lease_s": 4, "ttl_s": 60, **changes.pop("pods", {}),
    }  # fmt: skip
    return {
        "kind": "kubernetes", "ready_timeout_s": PATIENT_S, "progress_timeout_s": PATIENT_S,
        "stop_grace_s": 1, "max_restarts": 2, "kubernetes": pods, **changes,
    }  # fmt: skip


def profile(faults="", **hosting):
    environment = {"STANDIN": faults}
    return {
        "kind": "vllm", "provider": "local", "model": "some/model",
        "hosting": {"environment": environment, **hosting},
    }  # fmt: skip


def case(name, faults="", *, answers=1, hosting=None, **changes):
    """One model that is served, and asked until so many pods have answered."""
    made = profile(faults, **(hosting or {}))
    return {"name": name, "config": config(**changes), "profile": made, "answers": answers}


def grant(room, which="driver"):
    """The chart's own account with the chart's own Role; the account's name."""
    documents = render(values(DEFAULT), name="bench", namespace=room.name)
    role = only(documents, "Role", f"-{which}")
    binding = only(documents, "RoleBinding", f"-{which}")
    for document in (role, binding):
        room.admin.create(document)
    return binding["subjects"][0]["name"]


class Driver:
    """A driver's pod, begun."""

    def __init__(self, room, cases, name="driver", account="adaexplore-driver", **rest):
        self.room, self.name = room, name
        variables = {"CASES": json.dumps(cases), **rest}
        env = [{"name": key, "value": value} for key, value in variables.items()]
        main = {"name": "main", "image": ENGINE, "env": [*env, PYTHONPATH]}
        main["command"] = ["python", str(ROOT / "tests" / "kubernetes" / "driver.py")]
        room.pod(name, main, serviceAccountName=account, restartPolicy="Never")

    @property
    def lines(self):
        """What it has said; a line that is not finished is not read."""
        found = self.room.log(self.name).rpartition("\n")[0].splitlines()
        return [json.loads(line) for line in found if line.startswith("{")]

    def said(self, key, case=None):
        """The values of a key in its lines."""
        return [one[key] for one in self.lines if key in one and case in (None, one["case"])]

    def until(self, true, seconds=PATIENT_S):
        """Wait for something that it says."""
        try:
            eventually(true, seconds)
        except AssertionError:
            raise AssertionError(self.room.log(self.name)) from None

    def answered(self, count=1, case=None):
        """Names of the pods that have answered, as soon as they are so many."""
        self.until(lambda: len(self.said("answer", case)) >= count)
        return self.said("answer", case)

    def errors(self):
        """The error of each case that had one, once the driver has ended."""
        self.ended()
        return {one["case"]: one["error"] for one in self.lines if "error" in one}

    def ended(self, seconds=PATIENT_S):
        """Wait for its end, which has to be a good one."""
        over = lambda pod: pod["status"]["phase"] in ("Succeeded", "Failed")  # noqa: E731
        pod = self.room.wait("Pod", self.name, over, seconds, self.room.log(self.name))
        assert "Succeeded" == pod["status"]["phase"], self.room.log(self.name)


def servers(room, kind="Pod"):
    """The objects of a kind that make model servers."""
    labels = f"{common.COMPONENT}=model-server"
    return room.admin.items(room.path(kind), labelSelector=labels)


def left(room):
    """What is left of model servers."""
    kinds = ("Job", "Service", "Pod")
    return [f"{kind}/{one['metadata']['name']}" for kind in kinds for one in servers(room, kind)]
