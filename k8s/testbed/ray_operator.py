"""A stand-in for the KubeRay operator: acts on RayJobs as it does, for the fields that we use.

Twice a second, each RayJob is looked at and moved one step: New, Initializing (its RayCluster is made,
and waited for), Running (a submitter Job is made; the head is asked for the Ray job's state), Complete or
Failed; beside these Suspending, Suspended and Retrying. A cluster's pods are made again when they are
lost. Everything is owned by the RayJob or its RayCluster, so the real garbage collector takes it away.
A restart forgets nothing: all state is in the objects.

Unknown here, and refused where they are asked for: autoscaling, HTTP, sidecar and interactive
submission, cluster selectors, deletion strategies.

    python -m k8s.testbed.ray_operator ACCESS.json
"""

import json
import os
import secrets
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import urllib3

from k8s.testbed import ray_pods, rayjobs
from k8s.testbed.api import Access, Api, Json, path
from k8s.testbed.faults import ApiError, BedError
from k8s.testbed.ray_clusters import Clusters
from k8s.testbed.statuses import seconds, stamp

TURN_S: Final = 0.5
CHECK_S: Final = float(os.environ.get("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", "300"))
"""A head that is silent for so long has lost its job."""
TERMINAL: Final = ("SUCCEEDED", "FAILED", "STOPPED")
NO_RETRY: Final = (
    "DeadlineExceeded",
    "PreRunningDeadlineExceeded",
    "JobStatusCheckTimeoutExceeded",
)
RESET: Final = dict.fromkeys(("jobId", "rayClusterName", "dashboardURL", "jobStatus"))
"""None takes a field away; an empty text in a merge patch is not understood by Kubernetes 1.20."""


class Operator:
    """See the module."""

    def __init__(self, api: Api) -> None:
        """Acts as the user of `api`."""
        self._api = api
        self._clusters = Clusters(api)

    def work(self) -> None:
        """Look at everything, for ever."""
        while True:
            with suppress(BedError, urllib3.exceptions.HTTPError):
                for job in self._api.items(path("RayJob")):
                    self._attend({**job, "kind": "RayJob", "apiVersion": "ray.io/v1"})
            time.sleep(TURN_S)

    def _attend(self, job: Json) -> None:
        try:
            self._step(job)
        except ApiError as error:
            where = f"{job['metadata']['namespace']}/{job['metadata']['name']}"
            print(f"{where}: {error}; again in a moment", flush=True)

    def _step(self, job: Json) -> None:
        if "deletionTimestamp" in job["metadata"]:
            self._release(job)
            return
        steps = {
            "": self._begin,
            "Initializing": self._initialize,
            "Running": self._follow,
            "Suspending": self._suspend,
            "Suspended": self._resume,
            "Retrying": self._retry,
            "Complete": self._finish,
            "Failed": self._finish,
        }
        state = job.get("status", {}).get("jobDeploymentStatus", "")
        if state in steps:
            steps[state](job)

    def _begin(self, job: Json) -> None:
        if fault := rayjobs.fault(job):
            says = {"jobDeploymentStatus": "ValidationFailed", "reason": "ValidationFailed"}
            self._say(job, {**says, "message": fault})
            return
        finalizers = job["metadata"].get("finalizers", [])
        if rayjobs.FINALIZER not in finalizers:
            change = {"metadata": {"finalizers": [*finalizers, rayjobs.FINALIZER]}}
            self._api.patch(_where(job), change)
        name = job["metadata"]["name"]
        self._say(
            job,
            {
                "jobId": f"{name}-{secrets.token_hex(3)[:5]}",
                "rayClusterName": f"{name}-{secrets.token_hex(3)[:5]}",
                "jobDeploymentStatus": "Initializing",
                "startTime": stamp(time.time()),
            },
        )

    def _initialize(self, job: Json) -> None:
        if self._suspended(job) or self._too_late(job, "activeDeadlineSeconds", "DeadlineExceeded"):
            return
        if self._too_late(job, "preRunningDeadlineSeconds", "PreRunningDeadlineExceeded"):
            return
        cluster, ready = self._clusters.complete(job)
        self._say(job, {"rayClusterStatus": cluster.get("status", {})})
        if not ready:
            return
        url = f"{ray_pods.host_name(cluster)}:{ray_pods.DASHBOARD}"
        self._say(job, {"dashboardURL": url})
        self._clusters.ensure(
            "Job", rayjobs.submitter({**job, "status": {**job["status"], "dashboardURL": url}})
        )
        self._say(job, {"jobDeploymentStatus": "Running"})

    def _follow(self, job: Json) -> None:
        if self._suspended(job) or self._too_late(job, "activeDeadlineSeconds", "DeadlineExceeded"):
            return
        cluster, _ = self._clusters.complete(job)
        info = self._clusters.ask(job, cluster)
        if info is None and self._silent(job):
            return
        change: Json = {"rayClusterStatus": cluster.get("status", {})}
        state = job["status"].get("jobStatus", "")
        if info is not None:
            state = info["status"]
            change |= {"jobStatus": state, "message": info.get("message") or None}
            change["jobStatusCheckFailureStartTime"] = None
        submitter = self._submitter(job)
        if state in TERMINAL and submitter:
            self._end(job, change, "AppFailed" if state == "FAILED" else "")
        elif submitter == "Failed":
            self._end(job, change, "SubmissionFailed")
        else:
            self._say(job, change)

    def _end(self, job: Json, change: Json, reason: str) -> None:
        """Complete, or Failed for a reason, or once more."""
        status, now = job["status"], {"endTime": stamp(time.time())}
        if not reason:
            succeeded = status.get("succeeded", 0) + 1
            done = {"jobDeploymentStatus": "Complete", "succeeded": succeeded}
            self._say(job, change | done | now)
            return
        failed = status.get("failed", 0) + 1
        again = failed <= job["spec"].get("backoffLimit", 0) and reason not in NO_RETRY
        state = "Retrying" if again else "Failed"
        says = {"jobDeploymentStatus": state, "reason": reason, "failed": failed}
        self._say(job, change | says | ({} if again else now))

    def _retry(self, job: Json) -> None:
        if self._clusters.cleared(job):
            self._say(job, {**RESET, "jobDeploymentStatus": None, "reason": None, "message": None})

    def _suspend(self, job: Json) -> None:
        if self._clusters.cleared(job):
            self._say(job, {**RESET, "jobDeploymentStatus": "Suspended"})

    def _resume(self, job: Json) -> None:
        if not job["spec"].get("suspend"):
            self._say(job, {**RESET, "jobDeploymentStatus": None})

    def _finish(self, job: Json) -> None:
        """After the end: the cluster goes when its time has come; the RayJob stays."""
        spec, status = job["spec"], job["status"]
        due = seconds(status["endTime"]) + spec.get("ttlSecondsAfterFinished", 0)
        if spec.get("shutdownAfterJobFinishes") and time.time() >= due:
            where = path("RayCluster", job["metadata"]["namespace"], status["rayClusterName"])
            if self._api.find(where) is not None:
                self._api.delete(where, propagationPolicy="Background")

    def _release(self, job: Json) -> None:
        """A RayJob that is deleted: its Ray job is asked to stop, then it may go."""
        finalizers = [
            one for one in job["metadata"].get("finalizers", []) if one != rayjobs.FINALIZER
        ]
        if len(finalizers) == len(job["metadata"].get("finalizers", [])):
            return
        status = job.get("status", {})
        if status.get("jobStatus", "") not in TERMINAL and status.get("rayClusterName"):
            where = path("RayCluster", job["metadata"]["namespace"], status["rayClusterName"])
            cluster = self._api.find(where)
            if cluster is not None:
                self._clusters.call("POST", f"/api/jobs/{status['jobId']}/stop", cluster)
        self._api.patch(_where(job), {"metadata": {"finalizers": finalizers}})

    # -- the Ray job -----------------------------------------------------------------------------

    def _silent(self, job: Json) -> bool:
        """Whether the head has not answered for too long; remembers since when."""
        since = job["status"].get("jobStatusCheckFailureStartTime")
        if since is None:
            self._say(job, {"jobStatusCheckFailureStartTime": stamp(time.time())})
            return False
        if time.time() - seconds(since) < CHECK_S:
            return False
        self._end(job, {}, "JobStatusCheckTimeoutExceeded")
        return True

    def _submitter(self, job: Json) -> str:
        """`Complete` or `Failed`, once the submitter has ended."""
        metadata = job["metadata"]
        found = self._api.find(path("Job", metadata["namespace"], metadata["name"])) or {}
        conditions = found.get("status", {}).get("conditions") or []
        return next((one["type"] for one in conditions if one["status"] == "True"), "")

    # -- the RayJob's status ---------------------------------------------------------------------

    def _suspended(self, job: Json) -> bool:
        if job["spec"].get("suspend"):
            self._say(job, {"jobDeploymentStatus": "Suspending"})
            return True
        return False

    def _too_late(self, job: Json, limit: str, reason: str) -> bool:
        allowed = job["spec"].get(limit)
        if not allowed or time.time() < seconds(job["status"]["startTime"]) + allowed:
            return False
        self._end(job, {"message": f"the RayJob has passed its {limit}"}, reason)
        return True

    def _say(self, job: Json, change: Json) -> None:
        """Change the status, where that changes anything."""
        status = job.setdefault("status", {})
        if any(status.get(name) != value for name, value in change.items()):
            self._api.patch(_where(job) + "/status", {"status": change})
            status |= change


def _where(job: Json) -> str:
    return path("RayJob", job["metadata"]["namespace"], job["metadata"]["name"])


def main(arguments: list[str]) -> None:
    """Act until killed."""
    Operator(Api(Access(**json.loads(Path(arguments[0]).read_text())))).work()


if __name__ == "__main__":
    main(sys.argv[1:])
