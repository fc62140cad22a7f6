"""What the tests of the stores share: a real S3 service, and a proxy in front of it."""

import boto3
import pytest
from botocore.config import Config

from adaexplore.backends.s3.store import S3Store
from adaexplore.experiments.config import StoreConfig
from s3_proxy import Proxy
from weed import Weed

KEYS = {"AKFIRST": "canary-secret-one", "AKSECOND": "canary-secret-two"}
BUCKET = "adaexplore"


@pytest.fixture(scope="session")
def weed(tmp_path_factory):
    """SeaweedFS with two keys and one bucket."""
    service = Weed(tmp_path_factory.mktemp("weed"), KEYS)
    key, secret = next(iter(KEYS.items()))
    client = boto3.client(
        "s3",
        endpoint_url=service.endpoint,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        region_name="us-east-1",
        config=Config(retries={"total_max_attempts": 3}),
    )
    client.create_bucket(Bucket=BUCKET)
    client.close()
    yield service
    service.kill()


@pytest.fixture
def aws(monkeypatch, tmp_path):
    """The environment of somebody whose keys are those of the service, and nothing else."""
    key, secret = next(iter(KEYS.items()))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def s3_config(weed, aws, request):  # noqa: ARG001 (the environment is what is wanted of it)
    """Configuration of a store below a prefix of this test's own; fields can be given."""
    prefix = "".join(c if c.isalnum() else "-" for c in request.node.name)[:80]

    def make(**fields) -> StoreConfig:
        given = {"bucket": BUCKET, "endpoint": weed.endpoint, "prefix": prefix} | fields
        return StoreConfig(kind="s3", **given)

    return make


@pytest.fixture
def proxy(weed):
    """A proxy before the service, without rules."""
    between = Proxy(weed.endpoint)
    between.up()
    yield between
    between.down()


@pytest.fixture
def pauses():
    """How long a store would have waited between tries."""
    return []


@pytest.fixture
def behind(s3_config, proxy, pauses):
    """A store behind the proxy; it waits for nothing, and notes how long it would have."""
    stores = []

    def make(**fields) -> S3Store:
        config = s3_config(endpoint=proxy.endpoint, **fields)
        store = S3Store(config, sleep=pauses.append, jitter=lambda: 1.0)
        stores.append(store)
        return store

    yield make
    proxy.rules.clear()
    for store in stores:
        store.close()
