"""Profiles: what of them decides an identity, and that it is what it was."""

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from adaexplore import configure
from adaexplore.errors import ConfigError
from adaexplore.experiments import grids, identity
from adaexplore.models import contents
from adaexplore.models.profiles import HttpProfile, Profile, VllmProfile, Weights

HTTP = HttpProfile(kind="openai_compatible", provider="p", model="m")
VLLM = VllmProfile(kind="vllm", provider="p", model="an/model")
SAMPLING = {
    "temperature": 0.0, "top_p": None, "send_seed": True, "reasoning_effort": None,
    "max_output_tokens": 8192, "reply_format": "json_object", "body": {},
}  # fmt: skip
REASONING = [["reasoning_content", "reasoning"], True]


def test_what_decides_an_answer_is_what_it_was():
    """Word for word: one key more, and every stored cell would be lost."""
    common = {"provider": "p", "revision": None, "sampling": SAMPLING, "reasoning": REASONING}
    weights = {
        "dtype": "auto", "quantization": None, "max_model_len": None, "tokenizer": None,
        "chat_template": None,
    }  # fmt: skip

    assert {"kind": "openai_compatible", "model": "m", **common} == HTTP.semantic()
    assert {"kind": "vllm", "model": "an/model", "weights": weights, **common} == VLLM.semantic()


IDS = {
    "gpt_6_luna": "ab98352c1cf832c5",
    "llama_3_1_8b": "cd945f48fedf4335",
    "qwen3_8_27b": "e8001951401f514e",
}


@pytest.mark.parametrize("name", IDS)
def test_ids_of_shipped_profiles_are_stable(name):
    """Golden: digests of what decides their answers."""
    (profile,) = configure.sweep(["+grid=smoke", f"models=[{name}]"]).models.values()

    assert IDS[name] == identity.digest(profile.semantic())[:16]


@pytest.mark.parametrize("profile", [HTTP, VLLM])
def test_a_kind_is_told_by_its_word(profile):
    document = TypeAdapter(Profile).dump_python(profile)

    assert profile == TypeAdapter(Profile).validate_python(document)


# -- folders -----------------------------------------------------------------------------------


def folder(name="model"):
    """A folder of weights; the same content under any name."""
    place = Path(name)
    (place / "part").mkdir(parents=True)
    (place / "config.json").write_text("{}")
    (place / "part" / "weights").write_bytes(bytes(3000))
    return place


def semantic(**fields):
    return contents.identified("m", replace(VLLM, **fields)).semantic()


CHANGES = {
    "a byte of the weights": lambda place: (place / "part" / "weights").write_bytes(
        bytes(2999) + b"1"
    ),
    "a name": lambda place: (place / "config.json").rename(place / "c.json"),
    "a file more": lambda place: (place / "more").touch(),
    "a file less": lambda place: (place / "config.json").unlink(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_folder_is_its_content(change):
    before = semantic(model=str(folder()))
    CHANGES[change](Path("model"))

    assert ["revision"] == identity.differing(before, semantic(model="model"))


def test_a_folders_path_decides_nothing_and_its_hidden_files_neither():
    one, other = folder(), folder("elsewhere/deep")
    (other / ".cache").mkdir()
    (other / ".cache" / "lock").write_text("now")

    assert semantic(model=str(one)) == semantic(model=str(other.absolute()))


def test_a_digest_that_is_given_is_checked_and_stands_where_there_is_no_folder():
    given = contents.digest(folder())
    here = semantic(model="model", revision=given)
    moved = semantic(model="/on/another/machine", revision=given)

    assert here == moved == semantic(model="model")
    Path("model/config.json").write_text("[]")
    with pytest.raises(ConfigError, match=rf"m.revision: expected {given}, the content of model"):
        semantic(model="model", revision=given)


def test_a_revision_that_is_no_digest_is_believed():
    assert "v3" == semantic(model=str(folder()), revision="v3")["revision"]
    assert "model" == semantic(model="model", revision="v3")["model"]


@pytest.mark.parametrize("profile", [HTTP, VLLM])
def test_what_is_not_here_stays_as_it_is(profile):
    assert profile == contents.identified("m", profile)


def test_a_chat_template_is_its_content_wherever_it_lies():
    for name, text in {"one": "a", "same": "a", "other": "b"}.items():
        Path(name).write_text(text)
    one, same, other = (
        semantic(weights=Weights(chat_template=name)) for name in ("one", "same", "other")
    )

    assert one == same
    assert ["weights.chat_template"] == identity.differing(one, other)


def test_what_cannot_be_read_is_one_line():
    (folder() / "part" / "loop").symlink_to("loop")
    Path("model/unreadable").symlink_to("/proc/self/mem")

    with pytest.raises(ConfigError, match="cannot be read") as caught:
        semantic(model="model")

    assert "\n" not in str(caught.value)


def test_a_launch_freezes_the_digest_and_two_places_are_one_cell():
    base = ["+grid=smoke", "models=[llama_3_1_8b]"]
    one, other = (
        configure.sweep([*base, f"+profiles.llama_3_1_8b.model={folder(name)}"])
        for name in ("a", "b")
    )

    assert contents.digest(Path("a")) == one.models["llama_3_1_8b"].revision
    assert [c.cell_id for c in grids.expand(one, "d")] == [
        c.cell_id for c in grids.expand(other, "d")
    ]
