"""Every configuration file composes and fits the records it becomes."""

from pathlib import Path

import pytest
import yaml

from adaexplore import assemble, configure
from adaexplore.errors import ConfigError

CONF = Path(__file__).parent.parent / "conf"


def names(group):
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


@pytest.mark.parametrize("grid", names("grid"))
def test_every_grid_composes(grid):
    config = configure.sweep([f"+grid={grid}"])

    assert grid == config.grid
    assert config.models
    assert config.settings
    assemble.check_models(config)


@pytest.mark.parametrize("model", names("model"))
def test_every_model_composes(model):
    config = configure.sweep(["+grid=smoke", f"models={model}"])
    document = yaml.safe_load((CONF / "model" / f"{model}.yaml").read_text())

    assert document.get("members", [model]) == list(config.models)
    if all(getattr(profile, "model", "known") for profile in config.models.values()):
        assemble.check_models(config)
    else:
        with pytest.raises(ConfigError, match=r"add \+profiles\.\w+\.model=NAME"):
            assemble.check_models(config)


@pytest.mark.parametrize("setting", names("setting"))
def test_every_setting_composes(setting):
    config = configure.sweep(["+grid=smoke", f"settings={setting}"])

    assert [setting] == [s.name for s in config.settings]


NEEDED = {
    ("store", "s3"): ["store.bucket=b"],
    ("serving", "kubernetes"): ["serving.kubernetes.image=r.example/engine:1"],
}
"""What has no default."""


@pytest.mark.parametrize(
    ("group", "name"),
    [
        (group, name)
        for group in ("dataset", "backend", "store", "tracking", "protocol", "serving")
        for name in names(group)
    ],
)
def test_every_other_file_composes(group, name):
    assert configure.sweep(["+grid=smoke", f"{group}={name}", *NEEDED.get((group, name), [])])


STORE_FAULTS = [
    (["store=s3"], r"store 's3' needs the name of a bucket: add store\.bucket=NAME"),
    (["+store.bucket=b"], r"store 'folder' takes no bucket: did you mean store=s3\?"),
    (["store=s3", "store.bucket=b", "store.prefix=/a"], r"'store\.prefix'"),
    (["store=s3", "store.bucket=b", "+store.key=K"], r"'store\.key': there is no such key"),
    (["store=s3", "store.bucket=b", "store.endpoint=host:1"], r"'store\.endpoint': expected http"),
]


@pytest.mark.parametrize(("words", "message"), STORE_FAULTS)
def test_a_store_that_cannot_be_is_refused(words, message):
    with pytest.raises(ConfigError, match=message):
        configure.sweep(["+grid=smoke", *words])


def test_a_key_in_the_address_of_a_store_is_refused_and_not_repeated():
    words = ["store=s3", "store.bucket=b", "store.endpoint=http://id:canary@host"]
    with pytest.raises(ConfigError, match="keys come from the environment") as caught:
        configure.sweep(["+grid=smoke", *words])

    assert "canary" not in str(caught.value)


def test_command_line_overrides_a_grid():
    config = configure.sweep(
        [
            "+grid=diagnostics",
            "models=[random,reference]",
            "settings=[default]",
            "seeds=[0,1,2]",
            "dataset.limit=8",
        ]
    )

    assert ["random", "constant", "feedback_only", "one_factor", "scientist", "oracle"] == list(
        config.models
    )
    assert ["default"] == [setting.name for setting in config.settings]
    assert [0, 1, 2] == config.seeds
    assert 8 == config.dataset.limit


def test_a_folder_of_ones_own_comes_first(tmp_path, monkeypatch):
    """A researcher adds a setting by writing a file."""
    (tmp_path / "own" / "setting").mkdir(parents=True)
    text = (
        (CONF / "setting" / "forced_probe.yaml")
        .read_text()
        .replace("min_probes: 1", "min_probes: 4")
    )
    (tmp_path / "own" / "setting" / "four_probes.yaml").write_text(text)
    monkeypatch.setenv("ADAEXPLORE_CONF", str(tmp_path / "own"))

    config = configure.sweep(["+grid=smoke", "settings=[default,four_probes]"])

    assert [1, 4] == [setting.min_probes for setting in config.settings]


def test_conf_in_the_working_folder_comes_before_the_packed_one(tmp_path):
    (tmp_path / "conf" / "grid").mkdir(parents=True)
    (tmp_path / "conf" / "grid" / "mine.yaml").write_text(
        "# @package _global_\nmodels: [random]\nseeds: [7]\n"
    )

    assert [7] == configure.sweep(["+grid=mine"]).seeds


BAD = [
    ([], "exactly one grid"),
    (["+grid=[smoke,main]"], "exactly one known grid"),
    (["+grid=smoke", "+grid=main"], "exactly one grid"),
    (["grid=smoke"], "write +grid=smoke"),
    (["+grid=smoek"], "did you mean 'smoke'"),
    (["+grid=smoke", "sedes=[1]"], "'sedes' (value [1]); did you mean 'seeds'"),
    (["+grid=smoke", "dataset.lmit=3"], "did you mean 'dataset.limit'"),
    (["+grid=smoke", "+foo=3"], "'foo': there is no such key"),
    (["+grid=smoke", "models=[rndom]"], "unknown model 'rndom'; did you mean 'random'"),
    (["+grid=smoke", "models=[]"], "at least one name"),
    (["+grid=smoke", "settings=[defalt]"], "unknown setting 'defalt'; did you mean 'default'"),
    (["+grid=smoke", "dataset=secnd"], "unknown dataset 'secnd'"),
    (
        ["+grid=smoke", "dataset.limit=-3"],
        "'dataset.limit': Input should be greater than or equal to 1, got -3",
    ),
    (["+grid=smoke", "dataset.limit=0"], "'dataset.limit'"),
    (["+grid=smoke", "seeds=[-1]"], "'seeds.0'"),
    (["+grid=smoke", "seeds=[]"], "'seeds'"),
    (["+grid=smoke", "seeds=[a]"], "'seeds.0'"),
    (["+grid=smoke", "backend.concurrency=0"], "'backend.concurrency'"),
    (["+grid=smoke", "protocol.max_probes=-1"], "expected max_probes of at least 1, got -1"),
    (["+grid=smoke", "protocol.batches=13"], "expected batches of 1 to 12, or null, got 13"),
    (["+grid=smoke", "protocol.repair_scope=month"], "'window' or 'decision', got 'month'"),
    (["+grid=smoke", "profiles.scientist.version=2"], "write +profiles.scientist.version=2"),
    (
        ["+grid=smoke", "+profiles.scientist.vrsion=2"],
        "'models.scientist.vrsion': there is no such key",
    ),
    (["+grid=smoke", "+profiles.nobody.version=2"], "profiles.nobody: no such model"),
    (["+grid=smoke", "name=a/b"], "'name'"),
    (["+grid=smoke", "models=["], "models=["),
    (["+grid@foo=smoke"], "write +grid=smoke, not +grid@foo=smoke"),
    (["+grid=smoke", "models=random,oracle"], "write models=[random,oracle]"),
    (["+grid=smoke", "seeds=range(0,3)"], "write seeds=[...]"),
    (["+grid=smoke", "hydra.run.dir=x"], "'hydra.run.dir=x': Hydra itself is not configured here"),
    (["+grid=smoke", "+hydra=1"], "'+hydra=1': Hydra itself"),
    (["+grid=smoke", "hydra/launcher=basic"], "'hydra/launcher=basic': Hydra itself"),
    (["+grid=smoke", "~hydra"], "'~hydra': Hydra itself"),
    (
        ["+grid=smoke", "name=${oc.env:HOME}"],
        "'name': expected a value, got one from the environment",
    ),
    (["+grid=smoke", "models=modèle"], "names are ASCII, the rest needs quotes"),
    (["+grid=smoke", 'models="modèle"'], "unknown model 'modèle'"),
]


@pytest.mark.parametrize(
    ("overrides", "message"), BAD, ids=[" ".join(words) or "nothing" for words, _ in BAD]
)
def test_bad_input_is_one_line_that_names_it(overrides, message):
    with pytest.raises(ConfigError) as caught:
        configure.sweep(overrides)

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert 2 == caught.value.exit_code


def test_a_profile_whose_agent_has_moved_on_is_refused():
    config = configure.sweep(["+grid=smoke", "models=[random]", "+profiles.random.version=99"])

    with pytest.raises(ConfigError, match="version 99 of agent 'random'"):
        assemble.check_models(config)
