"""What a pod serves, as far as it can be known: kept with every attempt, never part of an identity.

A tag of an image says little, so the digest that its node has pulled is kept. Nothing here differs
between replicas, or between a pod and the one that took its place.
"""

import re
from typing import Any

from adaexplore.backends.kubernetes.manifests import servers as manifests
from adaexplore.backends.kubernetes.servers import Server
from adaexplore.models.profiles import VllmProfile


async def collect(server: Server, profile: VllmProfile) -> dict[str, Any]:
    """The fingerprint of a server that is ready: plain data."""
    models = await server.engine.models() or []
    dtype = re.search(r"dtype=torch\.(\w+)", await server.output())
    spec = server.plan.spec
    return {
        "engine": "vllm",
        "version": await server.engine.version(),
        "models": [
            {key: model.get(key) for key in ("id", "root", "max_model_len")} for model in models
        ],
        "words": list(spec.command),
        "image": spec.serving.image,
        "image_id": _image_id(server),
        "revision": profile.revision,
        "dtype": profile.weights.dtype if dtype is None else dtype[1],
        "max_model_len": models[0].get("max_model_len") if models else None,
        "gpu": spec.serving.gpu_product,
        "tensor_parallel": spec.tensor_parallel,
    }


def _image_id(server: Server) -> str | None:
    """What the node says that it runs."""
    status = {} if server.pod is None else server.pod.get("status", {})
    for container in status.get("containerStatuses") or []:
        if container["name"] == manifests.CONTAINER:
            return str(container.get("imageID") or "") or None
    return None
