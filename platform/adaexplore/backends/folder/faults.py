"""What a user is told of a file system fault: where, what, and how to mend it."""

import errno
from pathlib import Path

from adaexplore.errors import StoreError

_MENDS = {
    errno.ENOSPC: "free some space and launch again: nothing that was acknowledged is lost",
    errno.EDQUOT: "free some of the quota and launch again: nothing that was acknowledged is lost",
    errno.EFBIG: "raise the file size limit and launch again: nothing that was acknowledged is lost",
    errno.ENOENT: "choose another folder with {option}",
    errno.EROFS: "choose another folder with {option}",
    errno.EACCES: "choose another folder with {option}, or give yourself write access",
    errno.EPERM: "choose another folder with {option}, or give yourself write access",
    errno.ENOTDIR: "choose another folder with {option}: a part of the path is a file",
    errno.EEXIST: "choose another folder with {option}: a part of the path is a file",
}


def store_error(path: Path, error: OSError, *, option: str = "runs_dir=...") -> StoreError:
    """The one line for a fault.

    Args:
        path: What could not be read or written.
        error: The fault.
        option: What the user gives to choose another folder.
    """
    mend = _MENDS.get(error.errno or 0, "mend the file system and launch again")
    return StoreError(f"{path}: {error.strerror or error}; {mend.format(option=option)}")
