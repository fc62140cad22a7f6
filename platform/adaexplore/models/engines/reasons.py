"""Why a server did not start: what its last words mean, and what a user can do about it.

A launcher that says "timed out" or "exit code 1" sends its user into a log of a thousand lines. The
causes met in practice are few, and each leaves a mark; the first mark found, in the order below,
is the reason, because an engine that fails for one of the early ones goes on to print later ones.
What leaves no known mark is shown as it is: the last error that says more than that there was one
before it, or else the last lines.
"""

import re
from typing import Final, NamedTuple

KILLED: Final = 128 + 9
LAST_LINES: Final = 3
_ERROR: Final = re.compile(
    r"^(?:\([^)\n]*\) )?(?:ERROR [^\]\n]*\] )?(\w*(?:Error|Exception): .+)$", re.MULTILINE
)
_WRAPPER: Final = "See root cause above"


class Mark(NamedTuple):
    """What a log shows, and what that means."""

    pattern: str
    """Regular expression; its group `what`, if it has one, is quoted to the user."""
    meaning: str
    """The cause, and what to do."""


MARKS: Final = (
    Mark(
        r"guard: cannot run (?P<what>[^\n]*)",
        "the interpreter cannot be run; set serving.python to the engine's own python",
    ),
    Mark(
        r"No module named '?vllm\b",
        "this interpreter has no vllm; set serving.python to the environment that has it "
        "(make vllm-env builds one)",
    ),
    Mark(
        r"(?P<what>Address already in use)|\[Errno 98\]",
        "the port is in use; set serving.port_start to a free range",
    ),
    Mark(
        r"CUDA driver version is insufficient|NVIDIA driver on your system is too old"
        r"|Found no NVIDIA driver|libcuda\.so|no kernel image is available",
        "the CUDA build does not match this machine's driver; install an engine built for it, or "
        "update the driver",
    ),
    Mark(
        r"Failed to infer device type|Torch not compiled with CUDA",
        "the engine finds no device that its build supports; use the CUDA build on a machine with "
        "GPUs and the CPU build elsewhere",
    ),
    Mark(
        r"(?P<what>CUDA out of memory|torch\.(?:cuda\.)?OutOfMemoryError"
        r"|No available memory for the cache blocks|Free memory on device[^\n]{0,120}"
        r"|[^\n]{0,60}KV cache[^\n]{0,40}larger than the available[^\n]{0,60})",
        "out of GPU memory; lower weights.max_model_len or --gpu-memory-utilization, raise "
        "hosting.tensor_parallel, or free the GPU",
    ),
    Mark(
        r"(?P<what>Cannot allocate memory|can't allocate memory|\bMemoryError\b|[Oo]ut of memory)",
        "out of host memory; use a smaller model or cache (VLLM_CPU_KVCACHE_SPACE on CPU)",
    ),
    Mark(
        r"No space left on device",
        "no space left on a disk or in /dev/shm; free some",
    ),
    Mark(
        r"(?P<what>GatedRepo\w*|gated repo|401 Client Error|403 Client Error)",
        "the model needs access that this account has not; accept its terms and set HF_TOKEN",
    ),
    Mark(
        r"(?P<what>RepositoryNotFoundError|Repository Not Found|LocalEntryNotFoundError"
        r"|Invalid repository ID or local directory[^\n]{0,80}|HFValidationError"
        r"|not a valid model identifier|does not appear to have a file named[^\n]{0,60}"
        r"|[Cc]an't load the configuration of[^\n]{0,80}|No config format found[^\n]{0,60}"
        r"|couldn't connect to[^\n]{0,60}|OfflineModeIsEnabled|RevisionNotFoundError)",
        "the model was not found; check the profile's model and revision, or its folder",
    ),
    Mark(
        r"(?P<what>unrecognized arguments[^\n]*|error: argument [^\n]*"
        r"|validation errors? for \w+|Model architectures? [^\n]{0,80} (?:are|is) not supported"
        r"|User-specified max_model_len[^\n]{0,120}|must be divisible by[^\n]{0,60})",
        "the engine refuses its configuration; mend the profile's weights or hosting.arguments",
    ),
    Mark(
        r"EngineDeadError",
        "the engine behind the server died; the log may say of what",
    ),
)
"""The deeper cause first."""


def explain(code: int | None, log: str) -> str:
    """Why a server ended (or, with no code, does not answer), in one line."""
    for pattern, meaning in MARKS:
        if found := re.search(pattern, log):
            what = " ".join((found.groupdict().get("what") or "").split())
            return f"{meaning} (it says: {what})" if what else meaning
    if code == KILLED:
        return "it was killed, most likely by the system for want of host memory"
    errors = [found for found in _ERROR.findall(log) if _WRAPPER not in found]
    if errors:
        return f"it says: {' '.join(errors[-1].split())[:300]}"
    lines = [" ".join(line.split()) for line in log.splitlines() if line.strip()]
    last = " / ".join(line[:160] for line in lines[-LAST_LINES:])
    return f"its last lines: {last}" if last else "it wrote nothing"
