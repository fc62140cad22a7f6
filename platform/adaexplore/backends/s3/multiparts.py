"""Large objects in several requests: one that breaks is sent again alone.

The object appears when the upload is completed, whole; until then, and after an abort, there is
nothing. Completing is the one step whose lost answer needs care: the second try may find the upload
gone because the first was carried out, which a mark on the object tells.
"""

from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

from adaexplore.backends.s3.calls import Calls
from adaexplore.errors import StoreError

LARGE_BYTES: Final = 16 * 1024 * 1024
"""More than this is sent in parts of this size; the least that services take is 5 MiB."""
MOST_PARTS: Final = 10_000
_GONE: Final = frozenset({404})


def put(calls: Calls, key: str, data: bytes) -> None:
    """Write a large object; StoreError if it cannot be, and then the old one is still there."""
    mark = uuid4().hex
    begun = calls.ask("create_multipart_upload", key, Metadata={"mark": mark})
    upload = begun.body["UploadId"]
    try:
        parts = _send(calls, key, upload, data)
        answer = calls.ask(
            "complete_multipart_upload",
            key,
            expected=_GONE,
            UploadId=upload,
            MultipartUpload={"Parts": parts},
        )
        if answer.refused:
            _must_be_ours(calls, key, mark)
    except BaseException:
        # Parts of an unfinished upload are paid for and are in no list of objects.
        with suppress(StoreError):
            calls.ask("abort_multipart_upload", key, UploadId=upload, attempts=2)
        raise


def _send(calls: Calls, key: str, upload: str, data: bytes) -> list[dict[str, Any]]:
    size = max(LARGE_BYTES, -(-len(data) // MOST_PARTS))
    view = memoryview(data)
    parts = []
    for number, begin in enumerate(range(0, len(data), size), start=1):
        piece = bytes(view[begin : begin + size])
        answer = calls.ask("upload_part", key, UploadId=upload, PartNumber=number, Body=piece)
        parts.append({"PartNumber": number, "ETag": answer.body["ETag"]})
    return parts


def _must_be_ours(calls: Calls, key: str, mark: str) -> None:
    answer = calls.ask("head_object", key, expected=_GONE)
    if answer.body.get("Metadata", {}).get("mark") != mark:
        raise StoreError(f"{calls.locate(key)}: the upload was removed by somebody; launch again")
