"""Whether a writer lives, told by the service's clock from afar and by the process table at home."""

import os
import subprocess
import sys
import time
from pathlib import Path

import boto3
import pytest

import s3_proxy
from adaexplore.backends.s3 import writers

pytestmark = pytest.mark.stack

ALWAYS = 10**9
SOMEBODY = "0123456789ab"


@pytest.fixture
def says(s3_config):
    """Lets somebody's object say what is given."""
    config = s3_config()
    client = boto3.client("s3", endpoint_url=config.endpoint, region_name="us-east-1")

    def say(**said):
        key = f"{config.prefix}/writers/{SOMEBODY}"
        client.put_object(Bucket=config.bucket, Key=key, Body=b"", Metadata=said)

    yield say
    client.close()


@pytest.mark.parametrize(
    ("ahead", "alive"), [(0, True), (450, True), (750, False), (10_000, False)]
)
def test_a_writer_elsewhere_lives_while_its_lease_lasts_by_the_services_clock(
    ahead, alive, behind, proxy, says
):
    store = behind()
    says(machine="elsewhere", pid="1", started="1", lease="600")
    proxy.rule("HEAD", "writers/", s3_proxy.shifted(ahead))

    assert alive == store.alive(SOMEBODY)


def test_the_lease_that_counts_is_the_writers_own(behind, proxy, says):
    store = behind(lease_s=2)
    says(machine="elsewhere", pid="1", started="1", lease="600")
    proxy.rule("HEAD", "writers/", s3_proxy.shifted(500))

    assert store.alive(SOMEBODY)


def test_on_this_machine_the_process_itself_is_looked_at(behind, proxy, says):
    """However old its object is; and a process that has its number now is another one."""
    store = behind()
    proxy.rule("HEAD", "writers/", s3_proxy.shifted(10_000), ALWAYS)
    own = writers.Process.own()
    said = {"machine": own.machine, "pid": own.pid, "started": own.started, "lease": "20"}
    says(**said)
    assert str(os.getpid()) == own.pid
    assert store.alive(SOMEBODY)
    says(**said | {"started": str(int(own.started) - 1)})
    assert not store.alive(SOMEBODY)


def test_a_process_that_is_dead_and_not_buried_is_dead(behind, says):
    store = behind()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19]
    machine = writers.Process.own().machine
    says(machine=machine, pid=str(child.pid), started=started, lease="20")
    assert store.alive(SOMEBODY)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not store.alive(SOMEBODY)
    child.communicate()


@pytest.mark.parametrize("said", [{}, {"lease": "soon"}, {"machine": "", "lease": "x"}])
def test_an_object_that_says_nothing_is_nobodys_life(said, behind, says):
    store = behind()
    says(**said)

    assert not store.alive(SOMEBODY)


def test_a_lease_is_renewed_whatever_befalls_one_renewal(behind, proxy):
    store = behind(lease_s=2)
    rule = proxy.rule("PUT", "writers/", s3_proxy.refusal(503, "SlowDown"), times=0)
    store.create("j", b"head\n")
    rule.times = 2  # the first two renewals fail
    renewed = wait_for(lambda: sum("writers/" in path for _, path in proxy.seen), 6)

    assert renewed >= 6
    assert 2 == rule.met
    assert store.alive(store.writer)


def test_closing_ends_the_lease_and_again_does_nothing(behind, proxy):
    store = behind(lease_s=2)
    store.create("j", b"head\n")
    store.close()
    proxy.seen.clear()
    store.close()

    assert not store.alive(store.writer)
    assert [] == [path for method, path in proxy.seen if method in ("PUT", "DELETE")]
    store.create("j2", b"head\n")
    assert store.alive(store.writer)


def test_a_store_that_only_reads_writes_nothing(behind, proxy):
    store = behind()
    store.get("a")
    store.keys("a/")
    store.alive(SOMEBODY)
    store.close()

    assert {"GET", "HEAD"} == {method for method, _ in proxy.seen}


def test_nothing_loads_the_client_library_before_it_is_used():
    code = (
        "import sys, adaexplore.launching, adaexplore.sweep_verbs; sys.exit('boto3' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)

    assert 0 == done.returncode


def wait_for(count, least, seconds=120.0):
    """A count, as soon as it is large enough or patience ends."""
    give_up = time.monotonic() + seconds
    while (now := count()) < least and time.monotonic() < give_up:
        time.sleep(0.02)
    return now
