"""Sweeps on a test bed: its nodes and services, launches as processes, and what is left of them."""

import compileall
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import boto3
from botocore.config import Config
from k8s.testbed import images
from k8s.testbed.api import path
from k8s.testbed.beds import Bed

from adaexplore.backends.kubernetes.manifests import common
from rooms import Room, eventually
from serving import make_model

ROOT = Path(__file__).parent.parent
BUCKET = "adaexplore"
KEY, SECRET = "AKCLUSTER", "canary-secret-of-the-store"
IMAGE = "registry.example/adaexplore@sha256:" + "5" * 64
REAL = "registry.example/vllm:cpu"
"""An image with the real engine, where there is one here."""
STANDIN = ROOT / "tests" / "backends" / "standin_server.py"
DEADLINE_S = 1500
"""Of what takes a few minutes at most where nothing else goes on."""
GONE_S = 240
SMALL = [
    "backend.kubernetes.head={cpu: '1', memory: 3Gi, ephemeral: 1Gi}",
    "backend.kubernetes.worker={cpu: '1', memory: 3Gi, ephemeral: 1Gi}",
    "backend.kubernetes.workers=1",
    "backend.kubernetes.follow_s=0.3",
    "backend.kubernetes.ttl_after_finished_s=1",
]
"""As little as a real Ray runs with, and gone as soon as it has ended."""


def copied(folder: Path) -> Path:
    """A copy of what the image holds: the checkout may be worked on while tests run."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("platform", "conf", "jobs"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "requirements.lock", folder)
    compileall.compile_dir(folder / "platform", quiet=1)  # here, since pods write no bytecode
    return folder


def image(source: Path) -> images.Image:
    """The project's image, of this environment and a copy of the checkout."""
    return images.of_project(Path(sys.executable), source)


def engine_images():
    """The real engine's image with the folder of small models, if `make vllm-env` has been here."""
    python = ROOT / ".venv-vllm" / "bin" / "python"
    if not python.exists():
        return {}
    engine = images.of_python(python, ROOT)
    needs = (*engine.needs, str(make_model.cache()))
    return {REAL.partition(":")[0]: replace(engine, needs=needs)}


@contextmanager
def standin(host="127.0.0.1", faults=""):
    """The address of a stand-in for an engine on this machine; a metered one bounds how far a sweep can be."""
    words = [sys.executable, str(STANDIN), "--host", host, "--port", "0"]
    process = subprocess.Popen(
        [*words, "--served-model-name", "some/model"], env={**os.environ, "STANDIN": faults},
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        try:
            port = int(process.stdout.readline())
            eventually(lambda: answers(f"http://{host}:{port}/health"))
            yield f"http://{host}:{port}/v1"
        finally:
            process.kill()


def allow(url, count):
    """Let a metered stand-in answer so many completions more."""
    where = f"{url.removesuffix('/v1')}/more"
    request = urllib.request.Request(where, data=str(count).encode(), method="POST")  # noqa: S310
    urllib.request.urlopen(request, timeout=60).close()  # noqa: S310 (ours)


def answers(url):
    """Whether a page is there."""
    try:
        with urllib.request.urlopen(url, timeout=2) as page:  # noqa: S310 (ours)
            return page.status == 200
    except OSError:
        return False


def client(endpoint):
    """A client of the bucket."""
    return boto3.client(
        "s3", endpoint_url=endpoint, aws_access_key_id=KEY, aws_secret_access_key=SECRET,
        region_name="us-east-1", config=Config(retries={"total_max_attempts": 3}),
    )  # fmt: skip


def furnish(room: Room) -> None:
    """What the chart and an administrator put into a namespace: accounts and Secrets."""
    for account in ("adaexplore-driver", "adaexplore-worker", "adaexplore-server"):
        room.make("ServiceAccount", account)
    room.make("Secret", "adaexplore-ray-token", stringData={"auth_token": "5" * 64})
    keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    room.make("Secret", "adaexplore-s3", stringData={**keys, "AWS_EC2_METADATA_DISABLED": "true"})


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where a test launches: a room of the bed, a prefix of the bucket, a folder of its own."""

    room: Room
    bed: Bed
    source: Path
    endpoint: str
    prefix: str
    folder: Path
    kubeconfig: Path
    environment: dict[str, str] = field(default_factory=dict)

    @cached_property
    def bucket(self):
        """A client of the bucket, one for all looks: to make it takes longer than to look."""
        return client(self.endpoint)

    @property
    def store(self):
        """Words that name the store."""
        return [
            "store=s3", f"store.bucket={BUCKET}", f"store.endpoint={self.endpoint}",
            f"store.prefix={self.prefix}",
        ]  # fmt: skip

    @property
    def words(self):
        """Words that play in the cluster."""
        return [
            "backend=kubernetes", f"backend.kubernetes.image={IMAGE}", *SMALL,
            f"backend.kubernetes.namespace={self.room.name}",
            "backend.kubernetes.secrets=[adaexplore-s3]", "tracking=none", *self.store,
        ]  # fmt: skip

    @property
    def variables(self):
        """The environment of somebody at a laptop."""
        few = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return {
            **few, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_EC2_METADATA_DISABLED": "true", "KUBECONFIG": str(self.kubeconfig),
            "PYTHONPATH": str(self.source / "platform"), "PYTHONDONTWRITEBYTECODE": "1",
            **self.environment,
        }  # fmt: skip

    def command(self, *words):
        """A verb, to its end: its code and what it wrote."""
        return subprocess.run(
            [sys.executable, "-m", "adaexplore", *words], cwd=self.folder, env=self.variables,
            capture_output=True, text=True, check=False, timeout=DEADLINE_S,
        )  # fmt: skip

    def front_door(self, *words, override=()):
        """`python -m platform.launch` in a checkout, that goes on."""
        return Launch(self, ["platform.launch", *words, *self.words, *override], self.source)

    def launch(self, *words, override=()):
        """A launch in the cluster, to its end."""
        return self.command("launch", *words, *self.words, *override)

    def begun(self, *words, override=()):
        """A launch in the cluster that goes on."""
        words = ["adaexplore", "launch", *words, *self.words, *override]
        return Launch(self, words, self.folder)

    def tables(self, sweep):
        """The score tables in the store, by name."""
        prefix = f"{self.prefix}/sweeps/{sweep}/tables/"
        listed = self.bucket.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
        made = {}
        for entry in listed:
            made[entry["Key"].rpartition("/")[2]] = self.stored(entry["Key"])
        return made

    def stored(self, key):
        """The bytes of an object of the bucket."""
        return self.bucket.get_object(Bucket=BUCKET, Key=key)["Body"].read()

    def results(self):
        """How many results are in the store."""
        return sum(key.endswith("/result.json") for key in self.keys("cells/"))

    def objects(self):
        """How many objects of sweeps are in the store."""
        return len(self.keys("sweeps/")) + len(self.keys("cells/"))

    def keys(self, below):
        """Keys of the store below a prefix, as the bucket lists them."""
        pages = self.bucket.get_paginator("list_objects_v2").paginate(
            Bucket=BUCKET, Prefix=f"{self.prefix}/{below}"
        )
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]

    def rayjobs(self):
        """All RayJobs of the room."""
        return self.room.admin.items(self.room.path("RayJob"))

    def left(self, *, finished=True):
        """What is in the namespace and was not there before: kinds with names.

        `finished` leaves out what a finished RayJob keeps until its time comes.
        """
        kept = {one["metadata"]["name"] for one in self.rayjobs()} if finished else set()
        found = []
        for kind in ("RayJob", "RayCluster", "Job", "Pod", "Service", "Lease"):
            for one in self.room.admin.items(self.room.path(kind)):
                name = one["metadata"]["name"]
                owner = one["metadata"].get("labels", {}).get("job-name", name)
                if not (kind in ("RayJob", "Job", "Pod") and owner in kept):
                    found.append(f"{kind}/{name}")
        return found

    def require_clean(self):
        """Nothing is left but what a finished RayJob keeps: itself and its submitter's log."""
        eventually(lambda: not self.left(), GONE_S)


class Launch:
    """A launch that goes on, and what it says."""

    def __init__(self, site, words, folder):
        self.output = site.folder / f"launch-{time.monotonic_ns()}.txt"
        with self.output.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *words],
                cwd=folder, env=site.variables, stdout=file, stderr=subprocess.STDOUT,
            )  # fmt: skip

    @property
    def said(self):
        return self.output.read_text()

    def until(self, holds, seconds=DEADLINE_S):
        """Wait for something while the launch goes on."""
        deadline = time.monotonic() + seconds
        while True:
            over = self.process.poll() is not None  # before the look: what it said last counts too
            if holds():
                return
            assert not over, f"the launch ended: {self.said}"
            assert time.monotonic() < deadline, f"waited in vain: {self.said}"
            time.sleep(0.1)

    def ended(self, seconds=DEADLINE_S):
        """Its exit code."""
        return self.process.wait(seconds)

    def interrupt(self):
        """Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        return self.ended()

    def kill(self):
        """Whatever it is at."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def pods(room, component):
    """Pods of one component of the project in a room."""
    return room.pods(**{common.COMPONENT: component})


def lone(launch, room, component):
    """The one pod of a component that runs and is not about to end, as soon as there is just one."""
    found = []

    def one():
        found[:] = [
            pod for pod in pods(room, component)
            if "Running" == pod["status"]["phase"] and "deletionTimestamp" not in pod["metadata"]
        ]  # fmt: skip
        return 1 == len(found)

    launch.until(one)
    return found[0]


def processes(room):
    """Folders of the pods of a room that its nodes still hold."""
    uids = {pod["metadata"]["uid"] for pod in room.admin.items(path("Pod", room.name))}
    folders = room.bed.folder.glob("nodes/*/pods/*")
    return [one for one in folders if one.name in uids]
