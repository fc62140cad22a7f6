"""What the image promises: it plays, as nobody in particular, with what the lock says and nothing else."""

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from conftest import ROOT
from image_builds import WHEELS, Image, discard

pytestmark = pytest.mark.image

SECRET = "canary-4f1d7a90c2"  # noqa: S105 (planted to be looked for)
REVISION = "0123456789abcdef0123456789abcdef01234567"
PROGRAM = "/opt/adaexplore"


@pytest.fixture(scope="module")
def image():
    """Built from nothing, with a secret in the builder's environment."""
    start = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="adaexplore-image-"))
    try:
        made = Image(
            folder, variables={"AWS_SECRET_ACCESS_KEY": SECRET, "MY_KEY": SECRET}, revision=REVISION
        )
        print(f"\nimage: built in {time.monotonic() - start:.0f} s")
        yield made
    finally:
        discard(folder)


def pinned():
    """Name and version of every package that the image's lock has for this kind of machine."""
    lines = re.findall(
        r"^(\S+==[^\\\n]+)", (ROOT / "requirements-image.lock").read_text(), re.MULTILINE
    )
    wanted = [Requirement(line.strip()) for line in lines]
    return {
        f"{one.name}{one.specifier}"
        for one in wanted
        if one.marker is None or one.marker.evaluate()
    }


def tables(folder):
    """The score tables of the only sweep that was played in a folder."""
    return {path.name: path.read_bytes() for path in folder.glob("runs/sweeps/first/tables/*")}


def test_it_runs_the_command_as_a_numbered_user_without_rights(image):
    config = image.document()["OCIv1"]["config"]

    assert "1000:1000" == config["User"]
    assert ["adaexplore"] == config["Entrypoint"]
    assert REVISION == config["Labels"]["org.opencontainers.image.revision"]
    assert "1000\n" == image.output("id", "-u")
    assert "usage: adaexplore" in image.output("adaexplore", "--help")
    assert "usage: adaexplore rerun" in image.output(
        "python", f"{PROGRAM}/jobs/run_grid.py", "--help"
    )
    assert 0 != image.run("touch", f"{PROGRAM}/jobs/run_grid.py").returncode


def test_a_sweep_has_the_tables_that_it_has_here(image, tmp_path):
    """Byte for byte, on a Ray of the image, and by the same code under the same lock."""
    words = ["-m", "adaexplore.launch", "+grid=smoke", "tracking=none", "name=first"]
    image.output("python", *words, "backend=ray")
    subprocess.run([sys.executable, *words], cwd=tmp_path, check=True, capture_output=True)
    there = tables(image.files() / "home" / "adaexplore")

    assert "main.csv" in there
    assert tables(tmp_path) == there

    program = (
        "from adaexplore import provenance as p; o = p.collect(); "
        "print(o['source_sha256'], o['lock_sha256'], o['numpy'], o['scipy'])"
    )
    mine = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert mine.stdout == image.output("python", "-c", program)


def test_any_user_id_may_use_it(image):
    """Clusters assign ids that no file knows."""
    command = (
        "cd && adaexplore freeze +grid=smoke --out frozen.yaml && test -O frozen.yaml && id -u"
    )

    assert "1000770000" in image.output("bash", "-c", command, user="1000770000:0")


def test_ray_is_found_by_every_shell_and_probes_have_their_programs(image):
    version = next(pin for pin in pinned() if pin.startswith("ray==")).removeprefix("ray==")

    assert f"ray, version {version}\n" == image.output("ray", "--version")
    assert version in image.output(
        "bash", "-lc", "ray --version && command -v wget python adaexplore"
    )
    assert "mlflow, version" in image.output("mlflow", "--version")
    image.output("python", "-c", "import boto3, kubernetes, psycopg2, ray, uvloop")


def test_it_holds_what_the_lock_says_and_no_tools_to_build_with(image):
    program = (
        "import json, importlib.metadata as m; "
        "print(json.dumps([f'{d.name}=={d.version}' for d in m.distributions()]))"
    )
    found = {_normal(one) for one in json.loads(image.output("python", "-c", program))}

    assert {_normal(pin) for pin in pinned()} == {
        one for one in found if not one.startswith("adaexplore==")
    }
    for tool in ("gcc", "cc", "make", "git", "pip", "hatchling", "pytest", "ruff"):
        assert 0 != image.run("bash", "-c", f"command -v {tool}").returncode, tool


def _normal(pin):
    """A pin with its name as the index of packages normalises it."""
    name, _, version = pin.partition("==")
    return f"{re.sub(r'[-_.]+', '-', name).lower()}=={version}"


def test_nothing_of_the_machine_that_built_it_is_inside(image):
    """No secret of its environment, no pip settings, no wheels, no history of the checkout."""
    said = json.dumps(image.document())
    files = image.files()

    assert SECRET not in said
    assert str(ROOT) not in said
    assert [] == [path for path in ("etc/pip.conf", "build") if (files / path).exists()]
    assert [] == list((files / WHEELS[1:]).iterdir())
    assert {"bin", "include", "jobs", "lib", "lib64", "pyvenv.cfg", "share"} >= {
        path.name for path in (files / PROGRAM[1:]).iterdir()
    }
    for trace in (SECRET, str(ROOT)):
        done = subprocess.run(
            ["grep", "-rlF", "--devices=skip", trace, files],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "" == done.stdout
