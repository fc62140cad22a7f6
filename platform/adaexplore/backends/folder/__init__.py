"""The folder store: plain files below one folder, for one machine or a shared file system."""

from adaexplore.backends.folder.faults import store_error
from adaexplore.backends.folder.store import FolderStore

__all__ = ["FolderStore", "store_error"]
