"""What is in a cluster before anything else: the custom resources and the rights of the stand-ins.

They are made before the controllers start, since the garbage collector learns of new kinds only twice
a minute.
"""

from collections.abc import Iterable
from typing import Final

from k8s.testbed import crds
from k8s.testbed.api import Api, Json, holds, path
from k8s.testbed.control_planes import OPERATOR

SERVED_S: Final = 180.0
LOST: Final = "node.kubernetes.io/"
"""Beginning of the taints that controllers set."""


def create(admin: Api) -> None:
    """Make them, and wait until the custom resources are served."""
    definitions = crds.documents()
    for document in (*_bindings(), *definitions):
        admin.create(document)
    for document in definitions:
        where = path("CustomResourceDefinition", name=document["metadata"]["name"])
        admin.wait(
            where,
            lambda found: holds(found, "Established"),
            SERVED_S,
            "the definition to be served",
        )


def is_ready(node: Json | None) -> bool:
    """Whether pods are put on a node: it says so, and no controller thinks otherwise."""
    taints = (node or {}).get("spec", {}).get("taints") or []
    return holds(node, "Ready") and not any(one["key"].startswith(LOST) for one in taints)


def _bindings() -> Iterable[Json]:
    """Nodes may see services, as kube-proxy may; the operator may do what its own role says."""
    group = "rbac.authorization.k8s.io"
    yield {
        "kind": "ClusterRoleBinding",
        "apiVersion": f"{group}/v1",
        "metadata": {"name": "testbed-nodes"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "system:node-proxier"},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:nodes"}],
    }
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
    yield {
        "kind": "ClusterRole",
        "apiVersion": f"{group}/v1",
        "metadata": {"name": OPERATOR},
        "rules": [
            {"apiGroups": ["ray.io"], "resources": ["*"], "verbs": verbs},
            {"apiGroups": [""], "resources": ["pods", "services", "secrets"], "verbs": verbs},
            {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": verbs},
        ],
    }
    yield {
        "kind": "ClusterRoleBinding",
        "apiVersion": f"{group}/v1",
        "metadata": {"name": OPERATOR},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": OPERATOR},
        "subjects": [{"apiGroup": group, "kind": "User", "name": OPERATOR}],
    }
