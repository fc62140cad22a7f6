"""The backend part of a configuration: what is refused, and what may be left out."""

import pytest

from adaexplore import configure
from adaexplore.errors import ConfigError


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["backend.ray.address=ray://h:10001"], "expected HOST:PORT of a Ray head, or auto"),
        (["backend.ray.address=http://h:8265"], "expected HOST:PORT of a Ray head, or auto"),
        (["backend.ray.batch=0"], "backend.ray.batch"),
        (["+backend.ray.retries=3"], "there is no such key"),
        (["backend.ray.auth=password"], "backend.ray.auth"),
        (["backend.processes=4"], "expected processes of 0, got 4"),
        (["+backend.ray.runtime_env.env_vars.MY_API_KEY=abc"], "would write MY_API_KEY down"),
    ],
)
def test_a_wrong_key_or_value_is_named(words, shown):
    with pytest.raises(ConfigError, match="configuration key") as caught:
        configure.sweep(["+grid=smoke", "backend=ray", *words])
    assert shown in str(caught.value)
    assert "abc" not in str(caught.value)


def test_ray_settings_of_the_local_backend_are_refused():
    with pytest.raises(ConfigError, match="did you mean backend=ray"):
        configure.sweep(["+grid=smoke", "+backend.ray.batch=2"])


def test_the_backend_is_no_part_of_any_identity():
    ray = configure.sweep(["+grid=smoke", "backend=ray", "backend.ray.address=head:6379"])
    local = configure.sweep(["+grid=smoke"])

    assert "head:6379" == ray.backend.rays.address
    assert local.models == ray.models
    assert "token" == local.backend.rays.auth
