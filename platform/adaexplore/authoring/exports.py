"""Exports: a dataset as Parquet files, or as a folder that Hugging Face's `datasets` reads.

One Parquet file a split holds the episode documents column by column, nested as they are, so that
reading a row back gives the document and with it an equal episode. The Hugging Face layout adds a
card whose header says which file is which split, the schema and the licence. Parquet is written by
pyarrow, imported only here and only when it is needed.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import yaml

from adaexplore.authoring import builds, datasets, episode_forms
from adaexplore.benchmark.world import episodes

if TYPE_CHECKING:
    import pyarrow as pa

Format = Literal["parquet", "hf"]
FORMATS: Final[tuple[Format, ...]] = ("parquet", "hf")


def export(name_or_path: str, form: Format, folder: Path) -> list[Path]:
    """Write a dataset in a format; returns the files.

    Args:
        name_or_path: A packaged dataset, or a dataset folder (with a slash).
        form: `parquet` is one file a split; `hf` the layout with a card.
        folder: Where to write.

    Raises:
        DatasetError: The dataset is not what its manifest says.
    """
    manifest = datasets.read_manifest(datasets.folder_of(name_or_path))
    files: dict[str, bytes] = {}
    for split in manifest["splits"]:
        loaded = datasets.load(name_or_path, split)
        documents = [episodes.to_document(world) for world in loaded.worlds]
        name = f"{split}.parquet" if form == "parquet" else _file(split)
        files[name] = parquet(documents, manifest)
    if form == "hf":
        files["README.md"] = card(manifest).encode()
        files["episode.schema.json"] = schema_file()
        files["LICENSE"] = _licence(manifest).encode()
    for name, data in files.items():
        builds.write(folder / name, data)
    return [folder / name for name in files]


def schema_file() -> bytes:
    """The published JSON Schema of an episode, as a file."""
    return (json.dumps(episode_forms.schema(), indent=2) + "\n").encode()


def _file(split: str) -> str:
    return f"data/{split}-00000-of-00001.parquet"


# -- Parquet -----------------------------------------------------------------------------------


def parquet(documents: list[dict[str, Any]], manifest: Mapping[str, Any]) -> bytes:
    """Episode documents as a Parquet file; name and canary of the dataset are in its metadata."""
    import pyarrow as pa  # noqa: PLC0415 (a large library that only exports need)
    import pyarrow.parquet as pq  # noqa: PLC0415

    note = {"dataset": str(manifest["name"]), "canary": str(manifest["canary"])}
    table = pa.Table.from_pylist(documents, schema=_columns().with_metadata(note))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    data: bytes = sink.getvalue().to_pybytes()
    return data


def read_parquet(path: Path) -> list[dict[str, Any]]:
    """Episode documents of a Parquet file that `parquet` made."""
    import pyarrow.parquet as pq  # noqa: PLC0415 (a large library that only exports need)

    documents: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return documents


def _columns() -> "pa.Schema":
    import pyarrow as pa  # noqa: PLC0415 (a large library that only exports need)

    text, real, batches = pa.string(), pa.float64(), pa.list_(pa.list_(pa.list_(pa.float64())))
    slot = {"field_id": text, "direction": pa.int8(), "weight": real, "threshold": real}
    rule = {"family": text, "band": real, "slots": pa.list_(_struct(slot))}
    names = ("event_id", "outgoing", "incoming", "reversed", "trigger_event", "change_reason")
    scores = ("field_realism", "rule_change_realism", "distractor_quality")
    return pa.schema(
        {
            "episode_id": text,
            "domain_id": text,
            "visible_fields": pa.list_(text),
            "change_batch": pa.int8(),
            "transition": _struct(dict.fromkeys(names, text)),
            "pre": _struct(rule),
            "post": _struct(rule),
            "calibration": _struct(dict.fromkeys(("q25", "q50", "q75"), real)),
            "review": _struct(dict.fromkeys(scores, real)),
            "cases": batches,
            "iid_cases": batches,
        }
    )


def _struct(columns: dict[str, Any]) -> Any:
    import pyarrow as pa  # noqa: PLC0415 (a large library that only exports need)

    return pa.struct(list(columns.items()))


# -- the card ----------------------------------------------------------------------------------


def card(manifest: Mapping[str, Any]) -> str:
    """Dataset card: a YAML header that Hugging Face reads, and a page that people read."""
    splits = manifest["splits"]
    header = {
        "license": str(manifest["licence"]).lower(),
        "language": ["en"],
        "pretty_name": f"AdaExploreBench {manifest['name']}",
        "tags": ["benchmark", "llm-agents", "exploration", "concept-drift"],
        "size_categories": ["n<1K"],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": split, "path": _file(split)} for split in splits],
            }
        ],
    }
    counts = "\n".join(f"| `{name}` | {found['episodes']} |" for name, found in splits.items())
    shown = yaml.safe_dump(header, sort_keys=False)
    return _CARD.format(
        header=shown, name=manifest["name"], counts=counts, canary=manifest["canary"]
    )


def _licence(manifest: Mapping[str, Any]) -> str:
    return f"SPDX-License-Identifier: {manifest['licence']}\nCopyright (c) 2026 AdaExploreBench maintainers\n"


_CARD: Final = """\
---
{header}---

# AdaExploreBench: {name}

Episodes of a benchmark for agents that must explore, decide and adapt when a hidden rule drifts. Each
row is one episode, **hidden side included**: the rule before and after the drift, the event that
explains it, and the cases. An agent under test must never see a row; it plays through the
benchmark's environment, which shows it fields, cases and outcomes only.

| split | episodes |
|---|---|
{counts}

A split that is a part of another (`lite` of `test`) repeats its rows under the same ids; `dev`, where
there is one, shares no episode with them. The form of a row is in `episode.schema.json`: columns of
`cases` follow `visible_fields`, batches count from 1, and the rule changes after `change_batch`.

Made by seeded search over authored domains; nothing in it was measured on real people, patients,
networks or plants. Review scores are null until a review has been made.

Please keep this line with every copy, and out of training data:

    {canary}
"""
