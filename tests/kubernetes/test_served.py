"""Sweeps whose models are served by pods: a stand-in that is evicted, and the real engine on the CPU."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import yaml

import clustered
import model_pods
from clustered import ROOT, answers, pods, standin
from loopback import free_ports
from rooms import eventually, is_ready
from serving import played

pytestmark = pytest.mark.cluster

GRID = [
    "+grid=main", "name=served", "models=[small,random]", "settings=[default]", "dataset=lite",
    "dataset.limit=6", "protocol.batches=2", "report=false", "backend.concurrency=1",
]  # fmt: skip
PATIENT_S = 900
ENGINE = ROOT / ".venv-vllm" / "bin" / "python"
AT_ONCE = "serving.stop_grace_s=1"
"""A stand-in does not end when it is asked to, so it would be waited for as long as an engine may take."""


def serving(**changes):
    """Words for small pods that serve."""
    given = {
        "image": model_pods.ENGINE, "command": json.dumps(model_pods.STANDIN), "cpu": "100m",
        "memory": "128Mi", "ephemeral": "1Gi", "shm": "16Mi", "start_limit_s": 60, "lease_s": 8,
        **changes,
    }  # fmt: skip
    return [
        "serving=kubernetes",
        *(f"serving.kubernetes.{key}={value}" for key, value in given.items()),
    ]


def write_profile(folder, **sections):
    """A profile `small` for whoever launches in a folder."""
    path = folder / "conf" / "model" / "small.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"kind": "vllm", "provider": "local", "model": "some/model", **sections}
    path.write_text(yaml.safe_dump(document))


def local(site, words):
    """Tables of a sweep on this machine, whose model is served already."""
    with standin() as url:
        word = f"+profiles.small.route.base_url={url}"
        words = [*words, word, "tracking=none", f"runs_dir={site.folder}/local"]
        done = site.command("launch", *words)
        assert 0 == done.returncode, done.stdout + done.stderr
    tables = site.folder / "local" / "sweeps" / "served" / "tables"
    return {found.name: found.read_bytes() for found in tables.iterdir()}


def test_a_server_that_is_evicted_is_replaced_and_the_tables_do_not_know(site):
    """With exactly the rights of the chart; nothing of the server is left."""
    model_pods.grant(site.room)
    metered = {"environment": {"STANDIN": "metered"}}  # the sweep is not over before its eviction
    write_profile(site.folder, patience={"backoff_cap_s": 1, "attempts": 100}, hosting=metered)
    launch = site.begun(*GRID, "+backend.ray.batch=1", *serving(), AT_ONCE)
    launch.until(lambda: site.results() > 1)
    server = clustered.lone(launch, site.room, "model-server")
    site.bed.drain(site.room.name, server["metadata"]["name"])
    launch.until(lambda: replaced(site.room, server))
    with ThreadPoolExecutor() as beside:  # while the sweep goes on
        expected = beside.submit(local, site, GRID)
        assert 0 == launch.ended(), launch.said
    assert expected.result() == site.tables("served")
    site.require_clean()
    (rayjob,) = site.rayjobs()
    assert rayjob["status"].get("failed", 0) == 0


def replaced(room, server):
    """Whether there is another server, which is told then to answer everything."""
    for pod in pods(room, "model-server"):
        if pod["metadata"]["uid"] != server["metadata"]["uid"] and is_ready(pod):
            clustered.allow(f"http://{pod['status']['podIP']}:8000/v1", 1_000_000)
            return True
    return False


@contextmanager
def mlflow(host, folder):
    """The address at which an MLflow server will answer that pods reach."""
    (port,) = free_ports(1)
    words = [
        sys.executable, "-m", "mlflow", "server", f"--host={host}", f"--port={port}", "--workers=1",
        f"--backend-store-uri=sqlite:///{folder}/mlflow.db", f"--artifacts-destination={folder}/artifacts",
        f"--allowed-hosts={host},{host}:*",
    ]  # fmt: skip
    own = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    with (folder / "mlflow.log").open("wb") as log:
        process = subprocess.Popen(words, cwd=folder, env=own, stdout=log, stderr=log)
    try:
        yield f"http://{host}:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.mark.skipif(not ENGINE.exists(), reason="NO REAL ENGINE HERE: run make vllm-env first")
def test_a_real_engine_in_a_pod_plays_and_mlflow_shows_it(site, tmp_path_factory):
    """SmolLM2 on the CPU, on a GPU node; results and a true fingerprint in the bucket, runs in MLflow."""
    model_pods.grant(site.room)
    words = [
        "+grid=smoke", "name=real", "models=[small]", "dataset=lite", "dataset.limit=1",
        "protocol.batches=1", "protocol.regenerations=0",
        *serving(
            image=clustered.REAL, command=json.dumps(["python", "-m", "vllm.entrypoints.openai.api_server"]),
            cpu="1", memory="6Gi", ephemeral="4Gi", shm="1Gi", start_limit_s=PATIENT_S, hf_offline="true",
        ),
    ]  # fmt: skip
    with mlflow(site.bed.bridge.address, tmp_path_factory.mktemp("mlflow")) as uri:
        write_profile(
            site.folder,
            model=played.model_folder(ENGINE),
            weights={"dtype": played.CPU_DTYPE, "max_model_len": 8192},
            hosting={
                "arguments": ["--enforce-eager"],
                "environment": {"VLLM_CPU_KVCACHE_SPACE": "1"},
            },
            limits={"context_tokens": 8192},
            sampling={"max_output_tokens": 64},
        )
        tracked = ["tracking=server", f"tracking.uri={uri}"]
        eventually(lambda: answers(f"{uri}/health"))
        launch = site.begun(*words, override=tracked)
        code = launch.ended(PATIENT_S)
        assert 0 == code, launch.said
        audit = site.command("verify", "real", *tracked, *site.store)
    assert 0 == audit.returncode, audit.stdout + audit.stderr
    assert 1 == site.results()
    (served,) = [key for key in site.keys("sweeps/") if "/served/small-" in key]
    fingerprint = json.loads(site.stored(served))
    assert fingerprint["version"].startswith("0.3")
    assert (played.CPU_DTYPE, 8192) == (fingerprint["dtype"], fingerprint["max_model_len"])
    assert f"testbed://{clustered.REAL}" == fingerprint["image_id"]
    assert "main.csv" in site.tables("real")
    site.require_clean()
