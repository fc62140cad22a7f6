"""The same sweep, as pods see it, and what pods could not play."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore import configure
from adaexplore.experiments import grids, relocations

WORDS = [
    "+grid=smoke", "backend=kubernetes", "backend.kubernetes.image=r.example/a@sha256:" + "0" * 64,
    "store=s3", "store.bucket=b",
]  # fmt: skip
REMOTE = [
    "models=[openai_compatible]", "+profiles.openai_compatible.model=m",
    "+profiles.openai_compatible.route.base_url=https://api.example/v1",
]  # fmt: skip


def composed(*words):
    return configure.sweep([*WORDS, *words])


def test_services_have_their_addresses_in_the_cluster():
    config = composed(
        "store.endpoint=http://127.0.0.1:1", "store.endpoint_in_cluster=http://s3:8333",
        "tracking=server", "tracking.uri=http://localhost:5000",
        "tracking.uri_in_cluster=http://mlflow:5000",
    )  # fmt: skip
    inside = relocations.in_cluster(config)
    assert ("http://s3:8333", "http://mlflow:5000") == (inside.store.endpoint, inside.tracking.uri)
    assert ("ray", "auto", "token") == (
        inside.backend.kind, inside.backend.rays.address, inside.backend.rays.auth,
    )  # fmt: skip
    assert [] == relocations.refusals(config, {})


def test_what_has_one_address_keeps_it_and_an_embedded_tracker_stays_at_home():
    inside = relocations.in_cluster(composed("store.endpoint=http://s3.example"))
    assert ("http://s3.example", "none") == (inside.store.endpoint, inside.tracking.kind)


def test_without_a_token_ray_is_open():
    assert (
        "none"
        == relocations.in_cluster(composed("backend.kubernetes.auth_secret=null")).backend.rays.auth
    )


def test_no_cell_changes_its_meaning():
    """Whoever plays, the ids are the same."""
    config = composed()
    before = [cell.cell_id for cell in grids.expand(config, "d")]
    assert before == [cell.cell_id for cell in grids.expand(relocations.in_cluster(config), "d")]


def test_twice_is_once_but_for_the_backend():
    once = relocations.in_cluster(composed())
    again = relocations.in_cluster(replace(once, backend=composed().backend))
    assert once == again


REFUSED = [
    (["backend.kubernetes.image=null"], "expected the address of this project's image"),
    (["dataset.name=./mine"], "is a folder of this machine"),
    (["store.endpoint=http://127.0.0.1:1"], "add store.endpoint_in_cluster"),
    (["tracking=server", "tracking.uri=http://localhost:5000"], "add tracking.uri_in_cluster"),
    (["models=[llama_3_1_8b]"], "nothing in the cluster serves it"),
    ([*REMOTE, "+profiles.openai_compatible.auth.key_file=/k"], "is a file of this machine"),
    (
        [*REMOTE, "+profiles.openai_compatible.auth.key_env=MY_KEY"],
        "would have the variable MY_KEY",
    ),
]


@pytest.mark.parametrize(("words", "told"), REFUSED, ids=[told for _, told in REFUSED])
def test_what_pods_cannot_play_is_refused_with_its_mend(words, told):
    (line,) = relocations.refusals(composed(*words), {})
    assert told in line
    assert "\n" not in line


def test_a_folder_is_no_store_for_pods():
    config = configure.sweep([word for word in WORDS if not word.startswith("store")])
    assert any("add store=s3" in line for line in relocations.refusals(config, {}))


@pytest.mark.parametrize("name", relocations.ENDPOINT_VARIABLES)
def test_an_address_from_the_environment_counts_too(name):
    (line,) = relocations.refusals(composed(), {name: "http://localhost:8333"})
    assert "store.endpoint=http://localhost:8333" in line
    assert "http://s3.example" == relocations.endpoint(composed(), {name: "http://s3.example"})


@given(st.ip_addresses(v=4))
def test_loopback_is_127_and_nothing_else(address):
    expected = address.is_loopback or str(address) == "0.0.0.0"  # noqa: S104 (a name of this machine)
    assert expected == relocations.is_loopback(f"http://{address}:80/v1")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost", "[::1]", "127.9.9.9"])
def test_names_of_this_machine_are_loopback(host):
    assert relocations.is_loopback(f"http://{host}:80")
    assert not relocations.is_loopback("http://localhost.example:80")
