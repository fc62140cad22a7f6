"""The kubelet: what runs, what it sees, how it is asked for its health, and how it ends."""

import urllib.request

import pytest

from adaexplore.backends.vllm import procfs
from rooms import container, eventually, is_ready, state

pytestmark = pytest.mark.cluster

SERVE = (
    "import http.server as s; s.HTTPServer(('', 8000), s.SimpleHTTPRequestHandler).serve_forever()"
)
SLEEP = "import time; time.sleep(600)"
PROBE_S = 10
"""For one answer to a probe: a program is started for it, on a machine that may be busy."""
CATCH = (
    "import signal, sys, time\n"
    "def end(*_): print('asked to end', flush=True); sys.exit(0)\n"
    "signal.signal(signal.SIGTERM, end)\n"
    "print('up', flush=True)\n"
    "time.sleep(600)"
)


def http(port=8000, path="/", **rest):
    probe = {"httpGet": {"port": port, "path": path}, "periodSeconds": 1}
    return {**probe, "timeoutSeconds": PROBE_S, **rest}


def test_a_gpu_pod_serves_is_ready_is_evicted_is_replaced_and_leaves_nothing(room):
    """The life of a model server, as a Deployment's pod."""
    code = f"{SERVE}  # {room.bed.folder} {room.name}"  # other beds of this machine serve as well
    main = container(code, readinessProbe=http(), resources={"limits": {"nvidia.com/gpu": 1}})
    template = {
        "metadata": {"labels": {"app": "server"}},
        "spec": {"containers": [main], "terminationGracePeriodSeconds": 1},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "server"}}, "template": template}
    room.make("Deployment", "server", "apps/v1", spec=spec)
    ready = lambda one: one and one.get("status", {}).get("readyReplicas") == 1  # noqa: E731
    room.wait("Deployment", "server", ready, what="a ready replica")
    (first,) = room.pods(app="server")
    assert "gpu-0" == first["spec"]["nodeName"]
    with urllib.request.urlopen(f"http://{first['status']['podIP']}:8000/", timeout=60) as answer:
        assert 200 == answer.status

    room.bed.drain(room.name, first["metadata"]["name"])

    room.wait("Pod", first["metadata"]["name"], lambda pod: pod is None, what="its end")
    eventually(lambda: [True] == [is_ready(pod) for pod in room.pods(app="server")])
    (second,) = room.pods(app="server")
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    room.admin.delete(room.path("Deployment", "server"), propagationPolicy="Foreground")
    room.wait("Deployment", "server", lambda one: one is None, what="its end")
    assert [] == room.pods(app="server")
    assert [] == processes_with(code)


def processes_with(text):
    """Process ids of this machine that have a text in their command line."""
    found = []
    for one in procfs.everything():
        try:
            words = (procfs.PROC / str(one.pid) / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended meanwhile
        if text.encode() in words:
            found.append(one.pid)
    return found


@pytest.mark.parametrize(
    ("code", "phase", "reason"), [(0, "Succeeded", "Completed"), (3, "Failed", "Error")]
)
def test_exit_codes(room, code, phase, reason):
    """A pod that is not restarted ends as its program did."""
    room.pod("once", container(f"raise SystemExit({code})"), restartPolicy="Never")
    pod = room.phase("once", phase)
    assert (code, reason) == (
        state(pod)["terminated"]["exitCode"],
        state(pod)["terminated"]["reason"],
    )


def test_a_failed_container_is_started_again_until_it_succeeds(room):
    """OnFailure; a volume outlives the runs, /tmp does not."""
    code = (
        "import pathlib, sys\n"
        "assert not pathlib.Path('/tmp/left').exists()\n"
        "pathlib.Path('/tmp/left').touch()\n"
        "mark = pathlib.Path('/data/mark')\n"
        "first = not mark.exists(); mark.touch(); sys.exit(first)"
    )
    main = container(code, volumeMounts=[{"name": "data", "mountPath": "/data"}])
    room.pod("twice", main, restartPolicy="OnFailure", volumes=[{"name": "data", "emptyDir": {}}])
    (status,) = room.phase("twice", "Succeeded")["status"]["containerStatuses"]
    assert (1, 1) == (status["restartCount"], status["lastState"]["terminated"]["exitCode"])


def test_a_container_over_its_memory_is_killed_and_it_is_said(room):
    """As the kernel does for a real one."""
    code = "import time; held = bytearray(200_000_000); time.sleep(600)"
    limits = {"limits": {"memory": "64Mi"}}
    room.pod("greedy", container(code, resources=limits), restartPolicy="Never")
    end = state(room.phase("greedy", "Failed"))["terminated"]
    assert (137, "OOMKilled") == (end["exitCode"], end["reason"])


def test_whoever_handles_sigterm_ends_in_order_after_the_hook(room):
    """The hook first, then SIGTERM, and the exit code is the program's own."""
    hook = {
        "preStop": {"exec": {"command": ["python", "-c", "open('/data/hook', 'w').write('x')"]}}
    }
    mounts = [{"name": "data", "mountPath": "/data"}]
    code = CATCH.replace("asked to end'", "asked to end', open('/data/hook').read()")
    main = container(code, lifecycle=hook, volumeMounts=mounts)
    started = {"exec": {"command": ["true"]}, "periodSeconds": 1, "timeoutSeconds": PROBE_S}
    room.pod(
        "polite",
        {**main, "readinessProbe": started},
        volumes=[{"name": "data", "emptyDir": {}}],
        terminationGracePeriodSeconds=120,
    )
    room.ready("polite")
    eventually(lambda: "up" in room.log("polite"))
    seen = room.deleted("polite")
    assert "asked to end x" in room.log("polite")
    assert 0 == state(seen[-1])["terminated"]["exitCode"]


def test_whoever_ignores_sigterm_is_killed_after_the_grace_period(room):
    """Process 1 of a container gets no signal that it does not handle, here as there."""
    room.pod("deaf", container(SLEEP), terminationGracePeriodSeconds=1)
    room.ready("deaf")
    seen = room.deleted("deaf")
    assert 137 == state(seen[-1])["terminated"]["exitCode"]
    assert 1 == seen[0]["metadata"]["deletionGracePeriodSeconds"]


def test_all_that_a_container_started_ends_with_it(room):
    """Also what left its session and its parent."""
    code = (
        "import subprocess, sys, time\n"
        "words = ['import', 'time;', 'time.sleep(12345.678)']\n"
        "subprocess.Popen([sys.executable, '-c', ' '.join(words)], start_new_session=True)\n"
        "time.sleep(600)"
    )
    room.pod("parent", container(code))
    room.ready("parent")
    eventually(lambda: processes_with("import time; time.sleep(12345.678)"))
    room.admin.delete(room.path("Pod", "parent"), gracePeriodSeconds=0)
    eventually(lambda: not processes_with("import time; time.sleep(12345.678)"))


def test_readiness_comes_and_goes_and_the_service_follows(room):
    """Endpoints are the real controller's."""
    check = {
        "exec": {"command": ["test", "-e", "ready"]},
        "periodSeconds": 1,
        "timeoutSeconds": PROBE_S,
        "failureThreshold": 1,
    }
    code = (
        "import http.server as s, pathlib\n"
        "class H(s.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        mark = pathlib.Path('/tmp/ready')\n"
        "        mark.touch() if self.path == '/on' else mark.unlink(missing_ok=True)\n"
        "        self.send_response(200); self.end_headers()\n"
        "s.HTTPServer(('', 8000), H).serve_forever()"
    )
    room.make("Service", "web", spec={"selector": {"app": "web"}, "ports": [{"port": 8000}]})
    labels = {"labels": {"app": "web"}}
    room.pod("web", container(code, readinessProbe=check), metadata=labels)
    address = room.phase("web", "Running")["status"]["podIP"]
    eventually(lambda: told(address, "/on"))
    room.ready("web")
    listed = lambda one: bool(one and (one.get("subsets") or [{}])[0].get("addresses"))  # noqa: E731
    room.wait("Endpoints", "web", listed)

    ask = "import urllib.request as u; u.urlopen('http://web:8000/off', timeout=60)"
    room.pod("client", container(ask), restartPolicy="OnFailure")
    room.phase("client", "Succeeded")

    room.wait("Pod", "web", lambda pod: not is_ready(pod))
    room.wait("Endpoints", "web", lambda one: not listed(one))


def told(address, path):
    try:
        with urllib.request.urlopen(f"http://{address}:8000{path}", timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


def test_a_failing_liveness_probe_restarts_once_the_startup_probe_has_passed(room):
    """Held back before, then counted, and the container is new."""
    begun = {
        "exec": {"command": ["test", "-e", "begun"]},
        "periodSeconds": 1,
        "timeoutSeconds": PROBE_S,
        "failureThreshold": 180,
    }
    alive = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 2}
    code = (
        "import pathlib, time; time.sleep(2); pathlib.Path('/tmp/begun').touch(); time.sleep(600)"
    )
    main = container(code, startupProbe=begun, livenessProbe=alive)
    room.pod("sick", main, terminationGracePeriodSeconds=1)
    pod = room.wait("Pod", "sick", restarted, what="a restart")
    last = pod["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert 137 == last["exitCode"]
    assert {"Unhealthy", "Killing"} <= set(room.events("sick"))


def restarted(pod):
    statuses = (pod or {}).get("status", {}).get("containerStatuses", [])
    return bool(statuses) and statuses[0]["restartCount"] >= 1


def test_init_containers_run_first_one_after_another(room):
    """And a failed one is the end of a pod that is not restarted."""
    mounts = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    write = "open('/data/log', 'a').write('{}')"
    room.pod(
        "ordered",
        container("print(open('/data/log').read())", **mounts),
        initContainers=[
            container(write.format("a"), "first", **mounts),
            container(write.format("b"), "second", **mounts),
        ],
        restartPolicy="Never",
        volumes=[{"name": "data", "emptyDir": {}}],
    )
    room.pod(
        "refused",
        container("print('never')"),
        initContainers=[container("raise SystemExit(4)", "first")],
        restartPolicy="Never",
    )
    room.phase("ordered", "Succeeded")
    assert "ab\n" == room.log("ordered")
    room.phase("refused", "Failed")
    assert "" == room.log("refused")


def test_a_node_evicts_and_a_pod_has_its_deadline(room):
    """Both end Failed, each for its reason."""
    room.pod("pressed", container(SLEEP))
    room.pod("late", container(SLEEP), activeDeadlineSeconds=2)
    room.ready("pressed")
    change = {"metadata": {"annotations": {"testbed.adaexplore.dev/evict": "low on memory"}}}
    room.admin.patch(room.path("Pod", "pressed"), change)
    for name, reason in (("pressed", "Evicted"), ("late", "DeadlineExceeded")):
        assert reason == room.phase(name, "Failed")["status"]["reason"]
