"""The pieces of the host that need no server: leases, reasons, counters, progress, words, template."""

import asyncio
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.backends.vllm import commands, fingerprints, gpus
from adaexplore.errors import ConfigError, ServingError
from adaexplore.models import contents
from adaexplore.models.engines import asking, reasons
from adaexplore.models.engines.asking import Counters
from adaexplore.models.engines.progress import Progress
from adaexplore.models.profiles import Hosting, VllmProfile, Weights

# -- leases ------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 4), min_size=1, max_size=12))
def test_no_gpu_is_ever_leased_twice_and_everybody_is_served(sizes):
    held, served = [], []

    async def main():
        leases = gpus.Leases(["a", "b", "c", "d"])

        async def use(number, size):
            async with leases.lease(size) as granted:
                assert size == len(set(granted))
                assert set(held).isdisjoint(granted)
                held.extend(granted)
                for _ in range(number % 3 + 1):
                    await asyncio.sleep(0)
                for name in granted:
                    held.remove(name)
                served.append(number)

        await asyncio.gather(*(use(*pair) for pair in enumerate(sizes)))

    asyncio.run(main())

    assert list(range(len(sizes))) == sorted(served)


def test_leases_are_given_in_order_except_that_one_that_fits_goes_ahead():
    order = []

    async def main():
        leases = gpus.Leases(["a", "b"])

        async def use(name, size, end):
            async with leases.lease(size) as granted:
                order.append((name, granted))
                await end.wait()

        ends = [asyncio.Event() for _ in range(4)]
        sizes = [("first", 1), ("wide", 2), ("small", 1), ("last", 1)]
        tasks = [
            asyncio.create_task(use(name, size, end))
            for (name, size), end in zip(sizes, ends, strict=True)
        ]
        await asyncio.sleep(0)
        for end in (ends[0], ends[2], ends[3], ends[1]):
            end.set()
            for _ in range(5):
                await asyncio.sleep(0)
        await asyncio.gather(*tasks)

    asyncio.run(main())

    assert [("first", ("a",)), ("small", ("b",)), ("last", ("a",)), ("wide", ("a", "b"))] == order


def test_whoever_gives_up_waiting_holds_nothing():
    async def main():
        leases = gpus.Leases(["a"])

        async def use():
            async with leases.lease(1):
                await asyncio.sleep(0)

        async with leases.lease(1):
            tasks = [asyncio.create_task(use()) for _ in range(2)]
            await asyncio.sleep(0)
            tasks[0].cancel()
        tasks[1].cancel()  # granted by now, not yet awake
        await asyncio.gather(*tasks, return_exceptions=True)
        async with leases.lease(1) as granted:
            return granted

    assert ("a",) == asyncio.run(main())


def test_a_machine_without_gpus_leases_itself():
    async def main():
        leases = gpus.Leases([])
        async with leases.lease(1) as granted:
            return leases.cpu, granted

    assert (True, ("cpu",)) == asyncio.run(main())


def driver(tmp_path, monkeypatch, text):
    """A driver's tool that says something."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{text}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_the_driver_is_asked_for_gpus(tmp_path, monkeypatch):
    driver(tmp_path, monkeypatch, "echo 0; echo 1")

    assert ["0", "1"] == gpus.installed()


@pytest.mark.parametrize(("value", "ids"), [("2, 3", ["2", "3"]), ("", []), ("-1", [])])
def test_a_scheduler_that_gave_us_some_gpus_is_obeyed(value, ids, tmp_path, monkeypatch):
    driver(tmp_path, monkeypatch, "echo 0; echo 1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)

    assert ids == gpus.installed()


def test_a_broken_driver_is_not_taken_for_no_gpu(tmp_path, monkeypatch):
    driver(tmp_path, monkeypatch, "echo Failed to initialize NVML; exit 255")

    with pytest.raises(ServingError, match=r"nvidia-smi failed .*serving.gpus"):
        gpus.installed()


# -- reasons -----------------------------------------------------------------------------------

LOGS = [
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "out of GPU memory"),
    ("ValueError: No available memory for the cache blocks.", "out of GPU memory"),
    (
        "ValueError: Free memory on device cuda:0 (3.2/47.5 GiB) on startup is less than desired",
        "it says: Free memory on device cuda:0 (3.2/47.5 GiB)",
    ),
    ("RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory", "host memory"),
    ("OSError: [Errno 28] No space left on device", "no space left"),
    ("huggingface_hub.errors.GatedRepoError: 403 Client Error", "HF_TOKEN"),
    ("huggingface_hub.errors.RepositoryNotFoundError: 404", "the model was not found"),
    ("ImportError: libcuda.so.1: cannot open shared object file", "this machine's driver"),
    ("RuntimeError: Failed to infer device type", "no device"),
    ("api_server.py: error: unrecognized arguments: --maximum", "refuses its configuration"),
    ("/usr/bin/python3: No module named vllm", "has no vllm"),
    ("OSError: [Errno 98] Address already in use", "port is in use"),
]


@pytest.mark.parametrize(("log", "reason"), LOGS, ids=[reason for _, reason in LOGS])
def test_a_log_is_explained(log, reason):
    text = f"INFO starting\n{log}\nRuntimeError: Engine core initialization failed.\n"

    assert reason in reasons.explain(1, text)
    assert "\n" not in reasons.explain(1, text)


def test_what_has_no_mark_is_shown():
    assert "its last lines: b / c / d" == reasons.explain(1, "a\nb\n\nc\n  d \n")
    wrapped = (
        "(EngineCore pid=7) ERROR 11-30 00:54:20 [core.py:1510] AssertionError: too few nodes\n"
        "RuntimeError: Engine core initialization failed. See root cause above.\n"
    )
    assert "it says: AssertionError: too few nodes" == reasons.explain(1, wrapped)
    assert "it wrote nothing" == reasons.explain(None, "")
    assert "want of host memory" in reasons.explain(137, "INFO loading\n")


# -- counters and progress ---------------------------------------------------------------------


def test_samples_are_summed_over_labels_and_what_is_no_number_is_left_out():
    page = (
        "# HELP a_total Something 7\n# TYPE a_total counter\n"
        'a_total{engine="0",model="x y} 3"} 1.5\na_total{engine="1"} 2e1\n'
        "b 3 1700000000\nc NaN\nd +Inf\n"
    )

    assert {"a_total": 21.5, "b": 3.0} == asking.totals(page)


def counters(*moving, requests=0):
    return Counters(moving=moving, requests=requests)


def test_only_movement_counts_as_progress():
    progress = Progress(timeout_s=10, moved_at=0)
    progress.note(counters(1.0, 0.0, requests=2), 1)
    progress.note(counters(1.0, 0.0, requests=3), 4)
    progress.note(None, 5)

    assert not progress.doubtful(5.9)
    assert progress.doubtful(6)
    assert not progress.stuck(10.9)
    assert progress.stuck(11)
    assert "nothing moved for 10 s (requests in the engine: 3)" == progress.story()


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_an_engine_is_stuck_only_after_a_whole_time_without_movement(moves):
    """Against the definition: one sample a second, three seconds allowed."""
    progress, value = Progress(timeout_s=3, moved_at=0), 0.0
    progress.note(counters(value), 0)
    for second, moved in enumerate(moves, start=1):
        value += moved
        progress.note(counters(value), second)
        still = second >= 3 and not any(moves[second - 3 : second])
        assert still == progress.stuck(second)


# -- words and fingerprints --------------------------------------------------------------------


def test_everything_semantic_reaches_the_command_line(tmp_path):
    (tmp_path / "weights").mkdir()
    weights = Weights(
        dtype="bfloat16", quantization="fp8", max_model_len=99, tokenizer="t", chat_template="c"
    )
    profile = VllmProfile(
        kind="vllm", provider="p", model="weights", revision="r", weights=weights,
        hosting=Hosting(tensor_parallel=2, arguments=["--last"]),
    )  # fmt: skip

    assert [
        "--host", "127.0.0.1", "--port", "1", "--model", str(tmp_path / "weights"),
        "--served-model-name", "weights", "--revision", "r", "--dtype", "bfloat16",
        "--quantization", "fp8", "--max-model-len", "99", "--tokenizer", "t",
        "--chat-template", str(tmp_path / "c"), "--tensor-parallel-size", "2",
        "--enable-prompt-tokens-details", "--last",
    ] == commands.words(profile, 1)  # fmt: skip


def test_weights_are_found_in_the_hubs_cache_by_the_commit_of_a_revision(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    repository = tmp_path / "models--an--model"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc")
    (repository / "snapshots" / "abc").mkdir(parents=True)
    profile = VllmProfile(kind="vllm", provider="p", model="an/model")

    assert repository / "snapshots" / "abc" == fingerprints.weights_folder(profile)
    assert "abc" == fingerprints.revision(profile, "m")


def test_a_folders_revision_is_its_content():
    """Found by itself, and checked where it was found at launch; the engine is told neither."""
    folder = Path("model")
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    profile = VllmProfile(kind="vllm", provider="p", model="model")
    found = contents.digest(folder)
    pinned = replace(profile, revision=found)

    assert found == fingerprints.revision(profile, "m") == fingerprints.revision(pinned, "m")
    assert commands.words(profile, 1) == commands.words(pinned, 1)
    (folder / "config.json").write_text("[]")
    with pytest.raises(ConfigError, match=rf"m.revision: expected {found}, the content"):
        fingerprints.revision(pinned, "m")


def test_a_chat_template_is_found_wherever_it_stands():
    folder = Path("model")
    folder.mkdir()
    profile = VllmProfile(kind="vllm", provider="p", model="model")
    digests = [fingerprints.template_digest(profile)]
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "in tokenizer"}))
    digests.append(fingerprints.template_digest(profile))
    (folder / "chat_template.jinja").write_text("in file")
    digests.append(fingerprints.template_digest(profile))
    Path("own").write_text("own")
    own = VllmProfile(
        kind="vllm", provider="p", model="model", weights=Weights(chat_template="own")
    )
    digests.append(fingerprints.template_digest(own))

    texts = ["in tokenizer", "in file", "own"]
    assert [None, *(hashlib.sha256(t.encode()).hexdigest() for t in texts)] == digests
