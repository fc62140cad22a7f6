"""compose.yaml cannot be run where there is no container engine, so it is read."""

import re

import pytest
import yaml
from stack.layout import Ports

from conftest import ROOT
from stack import keys, seaweed


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((ROOT / "compose.yaml").read_text())


def test_compose_has_the_same_services_ports_and_buckets(compose):
    published = {
        name: re.fullmatch(r"127\.0\.0\.1:\$\{\w+:-(\d+)\}:\d+", *service["ports"]).group(1)
        for name, service in compose["services"].items()
    }

    ports = Ports()
    wanted = {"postgres": ports.postgres, "seaweed": ports.s3, "mlflow": ports.mlflow}
    assert wanted == {name: int(port) for name, port in published.items()}
    buckets = f"-bucket={seaweed.BUCKET},{seaweed.MLFLOW_BUCKET}"
    assert buckets in compose["services"]["seaweed"]["command"]
    assert "-master.telemetry=false" in compose["services"]["seaweed"]["command"]


def test_compose_pins_images_checks_health_and_holds_no_secret(compose, tmp_path):
    given = dict(
        line.split("=", 1)
        for line in (keys.ensure(tmp_path).files / "compose.env").read_text().splitlines()
    )
    wanted = set()
    for service in compose["services"].values():
        assert re.fullmatch(r"[a-z/-]+:[\w.-]*\d[\w.-]*", service["image"])
        assert service["healthcheck"]["test"][0] == "CMD"
        for name, value in service["environment"].items():
            if re.search(r"PASSWORD|SECRET|ACCESS_KEY", name):
                wanted.add(re.fullmatch(r"\$\{(\w+):\?[^}]+\}", value).group(1))
    assert wanted == set(given) - {"AWS_DEFAULT_REGION"}


def test_the_image_has_the_versions_of_the_lock():
    lock = (ROOT / "requirements.lock").read_text()
    pins = re.findall(r"([\w-]+)==([\d.]+)", (ROOT / "stack" / "Dockerfile.mlflow").read_text())

    assert {"mlflow", "psycopg2-binary", "boto3", "uvloop"} == {name for name, _ in pins}
    assert [] == [
        pin
        for pin in pins
        if not re.search(rf"^{pin[0]}=={re.escape(pin[1])}\b", lock, re.MULTILINE)
    ]
