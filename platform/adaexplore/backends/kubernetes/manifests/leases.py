"""The heartbeat of a sweep's driver: a Lease that it renews, and by whose end the reaper knows.

Owner references and deadlines take objects away where a cluster works as it should; the Lease is for
the rest. Its time is written in the API's own form, with microseconds.

Source: Kubernetes `coordination.k8s.io/v1`.
"""

import re
import time
from calendar import timegm
from dataclasses import dataclass
from typing import Final

from adaexplore.backends.kubernetes.manifests import common
from adaexplore.backends.kubernetes.manifests.common import Json, Owner

COMPONENT: Final = "driver"
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSpec:
    """The heartbeat of one driver."""

    name: str
    sweep: str
    namespace: str
    owner: Owner | None
    holder: str
    """Who renews it: a pod's name, say."""
    duration_s: int
    attempt: str = ""


def name(sweep: str, attempt: str) -> str:
    """The name of the Lease of an attempt at a sweep."""
    return common.object_name(sweep, attempt, "heartbeat")


def lease(spec: LeaseSpec, now_s: float) -> Json:
    """The Lease, an object of `coordination.k8s.io/v1`, renewed at a time in seconds since 1970."""
    own = {common.SWEEP: spec.sweep}
    if spec.attempt:
        own[common.ATTEMPT] = spec.attempt
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": common.metadata(
            spec.name,
            spec.namespace,
            common.labels(COMPONENT, spec.name, own),
            {common.SWEEP_ID: spec.sweep},
            spec.owner,
        ),
        "spec": {
            "holderIdentity": spec.holder,
            "leaseDurationSeconds": spec.duration_s,
            "acquireTime": stamp(now_s),
            "renewTime": stamp(now_s),
        },
    }


def expired(lease: Json, now_s: float, *, slack_s: float = 0.0) -> bool:
    """Whether it was not renewed within its duration and the slack; one without a time has expired.

    Clocks of nodes differ: the slack is for them.

    Raises:
        ValueError: Its time is not in the API's form.
    """
    spec = lease.get("spec") or {}
    renewed = spec.get("renewTime")
    if renewed is None:
        return True
    lasts_s = float(spec.get("leaseDurationSeconds", 0))
    return seconds(renewed) + lasts_s + slack_s < now_s


def stamp(now_s: float) -> str:
    """Seconds since 1970 in the API's form, as 2026-11-30T06:35:00.000000Z."""
    micros = round(now_s * 1e6)
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(micros // 10**6))
    return f"{whole}.{micros % 10**6:06d}Z"


def seconds(stamp: str) -> float:
    """The seconds since 1970 of a time in the API's form; ValueError if it is in another."""
    found = _TIME.fullmatch(stamp)
    if found is None:
        raise ValueError(f"expected a time as 2026-11-30T06:35:00.000000Z, got {stamp!r}")
    return timegm(time.strptime(found[1], "%Y-%m-%dT%H:%M:%S")) + float(found[2] or 0)
