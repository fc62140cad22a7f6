"""Whom the reaper takes: against the definition, with clocks that differ."""

from hypothesis import given
from hypothesis import strategies as st

from adaexplore.backends.kubernetes import reaper
from adaexplore.backends.kubernetes.manifests import common, leases

NOW_S = 1_800_000_000.0
SLACK_S, YOUNG_S = 30.0, 120.0


def job(heartbeat="beat", age_s=1000.0, **more):
    annotations = {} if heartbeat is None else {common.HEARTBEAT: heartbeat}
    made = leases.stamp(NOW_S - age_s).partition(".")[0] + "Z"
    return {
        "metadata": {"name": "j", "annotations": annotations, "creationTimestamp": made, **more}
    }


def beat(age_s, duration_s=120):
    spec = {"renewTime": leases.stamp(NOW_S - age_s), "leaseDurationSeconds": duration_s}
    return {"metadata": {"name": "beat"}, "spec": spec}


def why(document, *beats):
    known = {one["metadata"]["name"]: one for one in beats}
    return reaper.forsaken(document, known, NOW_S, slack_s=SLACK_S, young_s=YOUNG_S)


@given(st.floats(0, 1000), st.integers(1, 300))
def test_taken_once_the_heartbeat_is_older_than_its_duration_and_the_slack(age_s, duration_s):
    expected = round(age_s, 6) > duration_s + SLACK_S
    assert expected == (why(job(), beat(age_s, duration_s)) is not None)


def test_without_a_lease_only_what_is_not_young():
    assert why(job(age_s=YOUNG_S - 1)) is None
    assert "is not there" in why(job(age_s=YOUNG_S + 1))


def test_never_what_names_no_heartbeat_or_goes_already():
    assert why(job(heartbeat=None)) is None
    assert why(job(deletionTimestamp="2027-01-15T08:00:00Z"), beat(10**6)) is None
