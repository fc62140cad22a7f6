"""A store that cannot be used says in one line what came, where, and how to mend it; never a secret."""

import email.utils
import re
import socket
import time

import pytest

import s3_proxy
from adaexplore import assemble, configure
from adaexplore.backends.s3.store import S3Store
from adaexplore.errors import ConfigError, StoreError

pytestmark = pytest.mark.stack

ALWAYS = 10**9
SECRETS = ("canary-secret-one", "canary-secret-two", "canary-wrong")


def refused(config) -> str:
    """The message of a store that does not open."""
    with pytest.raises(StoreError) as caught:
        S3Store(config, sleep=lambda _: None)
    message = str(caught.value)
    assert "\n" not in message
    assert not any(secret in message for secret in SECRETS)
    assert message.startswith("s3://")
    return message


def test_a_bucket_that_is_missing_is_named_and_not_made(s3_config):
    message = refused(s3_config(bucket="nowhere"))

    assert "s3://nowhere/" in message
    assert "there is no such bucket; make it, or set store.bucket=" in message
    assert message == refused(s3_config(bucket="nowhere"))


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("AWS_ACCESS_KEY_ID", "AKNOBODY", "InvalidAccessKeyId"),
        ("AWS_SECRET_ACCESS_KEY", "canary-wrong", "SignatureDoesNotMatch"),
    ],
    ids=["name", "secret"],
)
def test_wrong_keys_name_where_they_were_looked_for(name, value, code, s3_config, monkeypatch):
    monkeypatch.setenv(name, value)
    message = refused(s3_config())

    assert f"the service refuses the keys ({code})" in message
    assert "AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY" in message
    assert "profile 'default' (AWS_PROFILE)" in message
    assert "used those of 'env'" in message
    assert value not in message


def test_no_keys_at_all(s3_config, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")

    assert "there are no keys; give keys: looked in AWS_ACCESS_KEY_ID" in refused(s3_config())


def test_a_profile_that_does_not_exist(s3_config, monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "absent")

    assert "the profile in AWS_PROFILE does not exist" in refused(s3_config())


def test_a_service_that_is_down_is_named_with_its_address(s3_config):
    with socket.socket() as held:  # nobody listens there, and nobody else can
        held.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{held.getsockname()[1]}"
        message = refused(s3_config(endpoint=address))

    assert f"({address}): nothing answers at this address (3 times)" in message
    assert "store.endpoint" in message


def test_a_service_without_tls(s3_config, weed):
    message = refused(s3_config(endpoint=weed.endpoint.replace("http:", "https:")))

    assert "certificate is not trusted, or it does not speak TLS" in message


def test_a_file_of_certificates_that_is_missing(s3_config):
    with pytest.raises(ConfigError, match=r"'store\.ca_file': there is no file absent\.pem"):
        S3Store(s3_config(ca_file="absent.pem"))


def test_a_bucket_name_that_cannot_be(s3_config):
    assert "the request cannot be made (ParamValidationError" in refused(s3_config(bucket="a b"))


def skewed(seconds):
    def fault(handler):
        date = email.utils.formatdate(time.time() - seconds, usegmt=True)
        s3_proxy.refusal(403, "RequestTimeTooSkewed", Date=date)(handler)

    return fault


def page(handler):
    handler.answer(200, {"Content-Type": "text/html"}, b"<html><p>Hello")


def no_page(handler):
    handler.answer(404, {"Content-Type": "text/html; charset=utf-8"}, b"<html><p>Not here")


PLACE = "<Endpoint>b.s3.example</Endpoint>"
REGION = "<Region>eu-west-1</Region>"
ANSWERS = {
    "region": (
        s3_proxy.refusal(400, "AuthorizationHeaderMalformed", more=REGION),
        r"the bucket is in region 'eu-west-1'; set store\.region=",
    ),
    "elsewhere": (
        s3_proxy.refusal(301, "PermanentRedirect", more=PLACE, x_amz_bucket_region="ap-south-2"),
        r"the bucket is in region 'ap-south-2', at b\.s3\.example",
    ),
    "nowhere": (
        s3_proxy.refusal(301, "PermanentRedirect"),
        r"the bucket is somewhere else; set store\.region=",
    ),
    "checksum": (
        s3_proxy.refusal(400, "InvalidRequest", "x-amz-checksum-crc32 is not known"),
        r"this kind of checksum .*set store\.checksums=when_required",
    ),
    "trailer": (
        s3_proxy.refusal(501, "NotImplemented", "A header that implies aws-chunked"),
        r"this kind of checksum",
    ),
    "denied": (s3_proxy.refusal(403, "AccessDenied"), r"denied.*grant get, put, list and delete"),
    "other": (s3_proxy.refusal(400, "InvalidThing", "a\nb"), r"answers InvalidThing \(a b\)"),
    "page": (page, r"answers 500 .* with a web page: is it an S3 service\?"),
    "no page": (no_page, r"does not speak S3; set store\.endpoint"),
}


@pytest.mark.parametrize(("fault", "said"), ANSWERS.values(), ids=ANSWERS)
def test_every_refusal_is_told_with_its_mend(fault, said, s3_config, proxy):
    proxy.rule("*", "", fault, ALWAYS)

    assert re.search(said, refused(s3_config(endpoint=proxy.endpoint)))


@pytest.mark.parametrize(("ahead_s", "side"), [(1234, "ahead of"), (-4000, "behind")])
def test_a_clock_that_is_wrong_is_told_with_how_wrong_it_is(ahead_s, side, s3_config, proxy):
    proxy.rule("*", "", skewed(ahead_s), ALWAYS)
    begun = time.monotonic()
    message = refused(s3_config(endpoint=proxy.endpoint))
    lasted_s = time.monotonic() - begun  # the service's word is as old as that at most
    (said,) = re.findall(rf"clock is (\d+) s {side} the service's.*NTP", message)

    assert ahead_s - 1 <= int(said) * (1 if ahead_s > 0 else -1) <= ahead_s + lasted_s + 2


@pytest.mark.usefixtures("aws")
def test_the_configuration_names_the_store_of_a_sweep(weed):
    words = ["+grid=smoke", "store=s3", "store.bucket=adaexplore", "store.prefix=of/assemble/"]
    config = configure.sweep([*words, f"store.endpoint={weed.endpoint}"])
    store = assemble.store(config)
    store.put("a", b"data")

    assert "s3://adaexplore/of/assemble/a" == store.locate("a")
    assert b"data" == assemble.store(config).get("a")
    assert ["a"] == list(store.keys(""))


def test_an_address_from_the_environment_serves_too(s3_config, weed, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", weed.endpoint)
    S3Store(s3_config(endpoint=None)).put("a", b"data")

    assert b"data" == S3Store(s3_config()).get("a")


def test_a_secret_is_in_no_repr(s3_config):
    store = S3Store(s3_config())

    assert not any(
        secret in repr(vars(part)) for part in (store, store._calls) for secret in SECRETS
    )
