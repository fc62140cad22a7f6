"""Nodes that are lost, and a bed whose process is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from k8s.testbed import networks
from k8s.testbed.api import path
from k8s.testbed.beds import CHECKOUT
from k8s.testbed.first_objects import is_ready as takes_pods

from rooms import TOLERANT, container, eventually

pytestmark = pytest.mark.cluster

SLEEP = "import time; time.sleep(600)"
LOST_S = 180.0


def doomed(room, name, nodes=("doomed-0", "doomed-1")):
    """A Deployment of one pod, on the nodes that may be switched off; the pod, ready."""
    terms = [{"matchExpressions": [{"key": "doomed", "operator": "Exists"}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod = {
        "containers": [container(SLEEP)],
        "affinity": {"nodeAffinity": required},
        "terminationGracePeriodSeconds": 1,
        **TOLERANT,
    }
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    room.make("Deployment", name, "apps/v1", spec=spec)
    ready = lambda one: one and one.get("status", {}).get("readyReplicas") == 1  # noqa: E731
    room.wait("Deployment", name, ready, what="a ready replica")
    (found,) = room.pods(app=name)
    assert found["spec"]["nodeName"] in nodes
    return found


def lost(node):
    conditions = node["status"]["conditions"]
    return any(one["type"] == "Ready" and one["status"] == "Unknown" for one in conditions)


def test_a_node_without_power_is_noticed_its_pod_replaced_and_it_comes_back(room):
    """The pod's object stays until the node, back again, says that it is gone."""
    first = doomed(room, "moved")
    name, node = first["metadata"]["name"], first["spec"]["nodeName"]
    room.bed.kill_node(node)
    try:
        room.admin.wait(path("Node", name=node), lost, LOST_S, "the loss to be noticed")
        moved = lambda: [  # noqa: E731
            pod
            for pod in room.pods(app="moved")
            if pod["spec"].get("nodeName") not in (None, node)
            and pod["status"]["phase"] == "Running"
        ]
        eventually(moved, LOST_S)
        stuck = room.admin.get(room.path("Pod", name))
        assert "deletionTimestamp" in stuck["metadata"]
    finally:
        room.bed.start_node(node)
    room.wait("Pod", name, lambda pod: pod is None, LOST_S, "the node to clear it away")
    back = lambda one: not lost(one)  # noqa: E731
    room.admin.wait(path("Node", name=node), back, LOST_S, "the node to be back")


def test_a_node_without_network_keeps_its_pods_running_and_ends_them_when_it_is_back(room):
    """What the API believes and what runs are two things meanwhile."""
    first = doomed(room, "cut")
    name, node = first["metadata"]["name"], first["spec"]["nodeName"]
    room.bed.freeze_node(node)
    try:
        gone = lambda pod: pod and "deletionTimestamp" in pod["metadata"]  # noqa: E731
        room.wait("Pod", name, gone, LOST_S, "its eviction")
        assert processes_in(room.bed.folder / "nodes" / node)
    finally:
        room.bed.thaw_node(node)
    room.wait("Pod", name, lambda pod: pod is None, LOST_S, "its end")


def test_a_kubelet_that_is_restarted_starts_its_pods_again(room):
    """A pod that is not restarted is reported lost, with code 137."""
    stay = {"operator": "Exists", "effect": "NoExecute"}  # though a slow start looks like a loss
    where = {"nodeName": "doomed-1", "tolerations": [*TOLERANT["tolerations"], stay]}
    room.pod("kept", container(SLEEP), restartPolicy="Always", **where)
    room.pod("once", container(SLEEP), restartPolicy="Never", **where)
    for name in ("kept", "once"):
        room.ready(name)
    room.bed.kill_node("doomed-1")
    room.bed.start_node("doomed-1")
    counted = lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] == 1  # noqa: E731
    room.wait("Pod", "kept", counted)
    room.ready("kept")
    end = room.phase("once", "Failed")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (137, "ContainerStatusUnknown") == (end["exitCode"], end["reason"])


def test_a_pod_that_ends_while_the_api_server_is_away_is_told_of_when_it_is_back(room, tmp_path):
    """Whoever follows it then learns of its end, as from a real kubelet."""
    code = (
        "import pathlib, time\n"
        "while not pathlib.Path('/gate/open').exists(): time.sleep(0.05)\n"
        "print('over', flush=True)"
    )
    main = container(code, volumeMounts=[{"name": "gate", "mountPath": "/gate"}])
    gate = {"name": "gate", "hostPath": {"path": str(tmp_path)}}
    room.pod("brief", main, restartPolicy="Never", volumes=[gate])
    room.phase("brief", "Running")
    (folder,) = room.bed.folder.glob(f"logs/{room.name}_brief_*")
    room.bed.plane.stop_api()
    try:
        (tmp_path / "open").touch()
        eventually((folder / "main.over").exists)
    finally:
        room.bed.plane.resume_api()
    assert "over\n" == room.log("brief")
    room.phase("brief", "Succeeded")


def processes_in(folder: Path) -> list[int]:
    """Processes whose command line names something below a folder, or which work there."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes()
                works = str((entry / "cwd").readlink())
                mounts = (entry / "mounts").read_text()
            except OSError:
                continue
            if str(folder).encode() in words or str(folder) in works or str(folder) in mounts:
                found.append(int(entry.name))
    return found


def test_a_killed_bed_leaves_no_process_and_the_next_takes_its_bridge_away(tmp_path):
    """The kernel ends everything with the process that started it."""
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from k8s.testbed import images\n"
        "from k8s.testbed.beds import Bed, CHECKOUT\n"
        "from k8s.testbed.kubelet import Node\n"
        "table = {'python': images.this_python(CHECKOUT)}\n"
        "bed = Bed(Path(sys.argv[1]), nodes=[Node(name='n')], table=table).start()\n"
        "room = bed.namespace('room')\n"
        "bed.admin.create({'kind': 'Pod', 'apiVersion': 'v1',\n"
        "  'metadata': {'name': 'p', 'namespace': room}, 'spec': {'containers': [\n"
        "  {'name': 'c', 'image': 'python', 'command': ['sleep', '600']}]}})\n"
        "running = lambda pod: pod and pod['status']['phase'] == 'Running'\n"
        "bed.admin.wait(f'/api/v1/namespaces/{room}/pods/p', running, 180)\n"
        "print(bed.bridge.name, flush=True)\n"
        "time.sleep(600)\n"
    )
    folder = tmp_path / "bed"
    places = os.pathsep.join([str(CHECKOUT), str(CHECKOUT / "platform")])
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": places},
    )
    with child:
        bridge = child.stdout.readline().decode().strip()
        assert bridge.startswith("aeb")
        maker = maker_of(bridge)
        assert maker.startswith(f"{child.pid}:")
        assert len(processes_in(folder)) > 5
        os.kill(child.pid, signal.SIGKILL)
    eventually(lambda: not processes_in(folder))

    networks.build().remove()
    assert maker != maker_of(bridge)


def maker_of(bridge):
    """Which process made a bridge; None if it is gone."""
    alias = Path(f"/sys/class/net/{bridge}/ifalias")
    return alias.read_text() if alias.exists() else None


def test_all_nodes_of_the_bed_take_pods_again(bed):
    """What the tests before did to them has passed."""
    for name in ("gpu-0", "cpu-0"):
        bed.admin.wait(path("Node", name=name), takes_pods, LOST_S, "the node to take pods")
