"""AdaExploreBench and its experiment platform."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adaexplore.authoring.datasets import Dataset

__all__ = ["load_dataset"]


def load_dataset(name_or_path: str, split: str = "test") -> "Dataset":
    """One split of a packaged dataset, or of a dataset folder (a path with a slash).

    Returns:
        Its episodes bound to their domains (`worlds`), in dataset order, with name and digest.

    Raises:
        DatasetError: No such dataset or split, or a file is not what the manifest says.
    """
    from adaexplore.authoring import datasets  # noqa: PLC0415 (`import adaexplore` stays cheap)

    return datasets.load(name_or_path, split)
