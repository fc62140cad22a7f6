"""What a container sees: its image, variables, files, network and log."""

import json
import sys

import pytest

from rooms import container, ended, eventually, state

pytestmark = pytest.mark.cluster

SERVE = (
    "import http.server as s; s.HTTPServer(('', 8000), s.SimpleHTTPRequestHandler).serve_forever()"
)
SLEEP = "import time; time.sleep(600)"


def http(port=8000):
    return {"httpGet": {"port": port, "path": "/"}, "periodSeconds": 1}


@pytest.mark.parametrize("image", ["nowhere/nothing:1", "pythonic:1"])
def test_an_unknown_image_is_not_pulled(room, image):
    """First the error, then the back-off, as people know it."""
    room.pod("unpulled", container(SLEEP, image=image))
    wanted = "ImagePullBackOff"
    waits = lambda pod: state(pod).get("waiting", {}).get("reason") == wanted  # noqa: E731
    room.wait("Pod", "unpulled", lambda pod: "containerStatuses" in pod["status"] and waits(pod))


def test_a_slow_image_starts_late_and_an_entrypoint_is_used(room):
    """Pulling takes its time; a container without a command runs its image's program."""
    room.pod("late", container("print('here')", image="slow:1"), restartPolicy="Never")
    room.pod("served", container(image="server@sha256:0", args=["8123"], readinessProbe=http(8123)))
    room.phase("late", "Succeeded")
    room.ready("served")
    assert "port 8123" in room.log("served")


def test_what_is_missing_is_waited_for_and_named(room):
    """A ConfigMap that comes later lets the pod start."""
    source = {"name": "WORD", "valueFrom": {"configMapKeyRef": {"name": "words", "key": "word"}}}
    room.pod(
        "patient",
        container("import os; print(os.environ['WORD'])", env=[source]),
        restartPolicy="Never",
    )
    waits = lambda pod: "CreateContainerConfigError" in json.dumps(pod["status"])  # noqa: E731
    pod = room.wait("Pod", "patient", waits)
    assert 'configmap "words" not found' == state(pod)["waiting"]["message"]
    room.make("ConfigMap", "words", data={"word": "now"})
    room.phase("patient", "Succeeded")
    assert "now\n" == room.log("patient")


def test_variables_files_and_the_downward_api(room):
    """What a container is told, in every way that we use."""
    room.make("ConfigMap", "settings", data={"A": "from map", "file.yaml": "a: 1"})
    room.make("Secret", "keys", stringData={"KEY": "canary"})
    code = (
        "import os, json, socket\n"
        "e = os.environ\n"
        "print(json.dumps([e['A'], e['S_KEY'], e['BOTH'], e['NODE'], e['IP'], e['CPU'],\n"
        "  open('/etc/settings/file.yaml').read(), oct(os.stat('/keys/KEY').st_mode)[-3:],\n"
        "  socket.gethostname(), socket.gethostbyname('told'), os.getcwd(), os.getpid()]))"
    )
    env = [
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"name": "BOTH", "value": "$(A), $$(A), $(NOT)"},
    ]
    main = container(
        code,
        env=env,
        envFrom=[
            {"configMapRef": {"name": "settings"}},
            {"secretRef": {"name": "keys"}, "prefix": "S_"},
        ],
        resources={"limits": {"cpu": "1500m", "memory": "256Mi"}},
        volumeMounts=[
            {"name": "settings", "mountPath": "/etc/settings", "readOnly": True},
            {"name": "keys", "mountPath": "/keys"},
        ],
        workingDir="/srv/work",
    )
    volumes = [
        {"name": "settings", "configMap": {"name": "settings"}},
        {"name": "keys", "secret": {"secretName": "keys", "defaultMode": 0o400}},
    ]
    aliases = [{"ip": "198.18.255.9", "hostnames": ["told"]}]
    room.pod("told", main, volumes=volumes, hostAliases=aliases, restartPolicy="Never")
    pod = room.wait("Pod", "told", ended)
    found = json.loads(room.log("told"))
    node, address = pod["spec"]["nodeName"], pod["status"]["podIP"]
    assert ["from map", "canary", "from map, $(A), $(NOT)", node, address, "2"] == found[:6]
    assert ["a: 1", "400", "told"] == found[6:9]
    assert ["/srv/work", 1] == found[10:]


def test_pods_share_neither_files_nor_ports_and_this_machine_keeps_its_own(room, tmp_path):
    """Each writes where it likes; nothing of it is seen elsewhere."""
    mark = tmp_path / "mark"
    code = (
        "import http.server as s, pathlib, sys\n"
        f"for path in ('/tmp/mark', '/mark', '{mark}', '/dev/shm/mark'):\n"
        "    p = pathlib.Path(path); p.parent.mkdir(parents=True, exist_ok=True)\n"
        "    assert not p.exists(), path\n"
        "    p.write_text('x')\n"
        "s.HTTPServer(('', 8000), s.SimpleHTTPRequestHandler).serve_forever()"
    )
    for name in ("one", "two"):
        room.pod(name, container(code, readinessProbe=http()))
    room.ready("one")
    room.ready("two")
    assert not mark.exists()


def test_containers_of_a_pod_share_its_network_and_its_volumes(room):
    """Memory volumes too."""
    mounts = {"volumeMounts": [{"name": "shared", "mountPath": "/dev/shm"}]}  # noqa: S108
    ask = (
        "import urllib.request as u\n"
        "print(u.urlopen('http://127.0.0.1:8000/word', timeout=5).read().decode())"
    )
    serve = f"import os; os.chdir('/dev/shm'); open('word', 'w').write('heard'); {SERVE}"
    room.pod(
        "both",
        container(serve, "server", **mounts),
        container(ask, readinessProbe=http(), **mounts),
        restartPolicy="OnFailure",
        volumes=[{"name": "shared", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
    )
    eventually(lambda: "heard" in room.log("both"))


def test_the_log_is_read_through_the_api(room):
    """By anyone who may, with the last lines only, and followed to the end."""
    code = "import time\nfor i in range(20): print(i, flush=True); time.sleep(0.05)"
    room.pod("talker", container(code), restartPolicy="Never")
    room.wait("Pod", "talker", lambda pod: pod["status"]["phase"] in ("Running", "Succeeded"))
    where = room.path("Pod", "talker") + "/log"
    assert list(range(20)) == [
        int(line) for line in room.admin.text(where + "?follow=true").split()
    ]
    assert "18\n19\n" == room.admin.text(where + "?tailLines=2")


def test_a_plain_pod_is_what_runs_python_here(room):
    """The image of this environment has the packages of this environment."""
    room.pod("same", container("import sys; print(sys.prefix)"), restartPolicy="Never")
    room.phase("same", "Succeeded")
    assert f"{sys.prefix}\n" == room.log("same")
