"""Whether a cluster can play a sweep, found out before anything is created in it.

What is asked needs no right that a launcher should not have: whether a Secret exists is asked by a
creation that is only tried (its answer tells that the name is taken, and no content), and what may not be
looked at is said to be unknown. Each refusal names the command that mends it.

Source: Kubernetes API concepts (dry-run, SelfSubjectAccessReview), KubeRay's installation.
"""

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Final

from adaexplore.backends.kubernetes import capacities, clients
from adaexplore.backends.kubernetes.calls import FORBIDDEN, MISSING
from adaexplore.backends.kubernetes.capacities import Needs
from adaexplore.backends.kubernetes.clients import Cluster, ConflictError, RefusedError
from adaexplore.errors import ClusterError, ConfigError
from adaexplore.experiments import findings
from adaexplore.experiments.findings import Check, Finding, UnseenError
from adaexplore.experiments.placements import KubernetesConfig

PATIENCE_S: Final = 10.0
"""How long an answer is waited for."""
RIGHTS: Final = (
    ("create", "ray.io", "rayjobs", ""),
    ("get", "ray.io", "rayjobs", ""),
    ("list", "ray.io", "rayjobs", ""),
    ("delete", "ray.io", "rayjobs", ""),
    ("list", "", "pods", ""),
    ("get", "", "pods", "log"),
    ("list", "", "events", ""),
)
"""(verb, group, resource, subresource) that a launcher needs in the namespace."""


async def look(needs: Needs) -> AsyncIterator[Finding]:
    """The findings about a cluster, one after another; the first that it does not answer is the last."""
    try:
        connected = _connected(needs)
    except (ConfigError, ClusterError) as error:
        yield Finding(name="cluster", state="WRONG", told=str(error))
        return
    async with connected as cluster:
        for check in _checks(cluster, needs):
            found = await findings.found(check)
            yield found
            if check.name == "cluster" and found.state == "WRONG":
                return


async def require(needs: Needs) -> None:
    """Refuse a cluster that cannot play a sweep, with the first reason (ConfigError or ClusterError)."""
    async with _connected(needs) as cluster:
        for check in _checks(cluster, needs):
            await findings.required(check)


def _connected(needs: Needs) -> Cluster:
    return clients.connect(needs.pods.namespace, needs.pods.context, patience_s=PATIENCE_S)


def _checks(cluster: Cluster, needs: Needs) -> Iterator[Check]:
    pods, serving = needs.pods, needs.serving
    yield Check(name="cluster", look=partial(_answers, cluster))
    yield Check(name="namespace", look=partial(_namespace, cluster))
    yield Check(name="RayJob", look=partial(_definition, cluster))
    for right in RIGHTS:
        named = f"{right[2]}/{right[3]}".rstrip("/")
        yield Check(name=f"right to {right[0]} {named}", look=partial(_allowed, cluster, right))
    accounts = [pods.service_account, pods.worker_service_account]
    accounts += [serving.service_account] if serving else []
    for account in dict.fromkeys(accounts):
        yield Check(name=f"service account {account}", look=partial(_account, cluster, account))
    for secret in _secrets(needs):
        yield Check(name=f"secret {secret}", look=partial(_secret, cluster, secret))
    for queue in dict.fromkeys(q for q in (pods.queue, serving and serving.queue) if q):
        yield Check(name=f"queue {queue}", look=partial(_queue, cluster, queue))
    yield Check(name="image", look=partial(_image, pods))
    yield Check(name="quota", look=partial(_quotas, cluster, needs))
    yield Check(name="nodes", look=partial(_nodes, cluster, needs))


def _secrets(needs: Needs) -> list[str]:
    pods, serving = needs.pods, needs.serving
    named = [
        *pods.secrets,
        *pods.image_pull_secrets,
        *([pods.auth_secret] if pods.auth_secret else []),
    ]
    if serving is not None:
        named += serving.image_pull_secrets
        named += [serving.api_key_secret.name] if serving.api_key_secret else []
    return list(dict.fromkeys(named))


# -- the cluster and the namespace -------------------------------------------------------------


async def _answers(cluster: Cluster) -> str:
    version = await cluster.call("GET", "/version")
    return f"{cluster.server} answers: Kubernetes {version.get('gitVersion')}"


async def _namespace(cluster: Cluster) -> str:
    name = cluster.namespace
    try:
        await cluster.call("GET", cluster.path("namespaces", name, everywhere=True))
    except RefusedError as error:
        if error.status == MISSING:
            raise ConfigError(
                f"backend.kubernetes.namespace={name}: the cluster has no such namespace: kubectl create "
                f"namespace {name}, then install the chart there"
            ) from None
        raise _unseen(error) from None
    return f"{name} is there"


async def _definition(cluster: Cluster) -> str:
    """Discovery may be read by everybody who may log in."""
    try:
        served = await cluster.call("GET", "/apis/ray.io/v1")
        kinds = {one["kind"] for one in served.get("resources", ())}
    except RefusedError as error:
        if error.status != MISSING:
            raise _unseen(error) from None
        kinds = set()
    if "RayJob" not in kinds:
        raise ConfigError(
            f"cluster {cluster.server} knows no RayJob (rayjobs.ray.io, v1): install KubeRay 1.6 or "
            "newer: helm install kuberay-operator kuberay/kuberay-operator -n kuberay --create-namespace"
        )
    return "is known"


async def _allowed(cluster: Cluster, right: tuple[str, str, str, str]) -> str:
    verb, group, resource, below = right
    if await cluster.allowed(verb, group, resource, below):
        return "is there"
    named = f"{resource}{f'.{group}' if group else ''}{f'/{below}' if below else ''}"
    raise ConfigError(
        f"you may not {verb} {named} in namespace {cluster.namespace}: ask its owner for a RoleBinding to "
        f"the chart's launcher Role (kubectl auth can-i {verb} {named} -n {cluster.namespace})"
    )


async def _account(cluster: Cluster, name: str) -> str:
    try:
        found = await cluster.find("serviceaccounts", name)
    except RefusedError as error:
        raise _unseen(error) from None
    if found is None:
        raise ConfigError(
            f"namespace {cluster.namespace} has no service account {name}: install the chart there (helm "
            f"install adaexplore charts/adaexplore -n {cluster.namespace}), or name another"
        )
    return "is there"


async def _secret(cluster: Cluster, name: str) -> str:
    """A creation that is only tried: a name that is taken is refused, whatever it holds."""
    document = {
        "kind": "Secret",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": cluster.namespace},
    }
    try:
        await cluster.create("secrets", document, dry_run=True)
    except ConflictError:
        return "is there"
    except RefusedError as error:
        raise _unseen(error) from None
    raise ConfigError(
        f"namespace {cluster.namespace} has no Secret {name}: kubectl create secret generic {name} "
        f"-n {cluster.namespace} --from-literal=NAME=VALUE ..."
    )


async def _queue(cluster: Cluster, name: str) -> str:
    try:
        found = await cluster.find("localqueues", name)
    except RefusedError as error:
        raise _unseen(error) from None
    if found is None:
        raise ConfigError(
            f"namespace {cluster.namespace} has no LocalQueue {name}: install Kueue and create it, or "
            "leave the queue out (queue=null)"
        )
    return "is there"


async def _image(pods: KubernetesConfig) -> str:
    if pods.image is None:
        raise ConfigError("backend.kubernetes.image: expected the address of an image, got none")
    return pods.image if "@" in pods.image else f"{pods.image} (a tag may move: name a digest)"


async def _quotas(cluster: Cluster, needs: Needs) -> str:
    try:
        found = await cluster.items("resourcequotas")
    except RefusedError as error:
        raise _unseen(error) from None
    return capacities.within_quotas(found, needs)


async def _nodes(cluster: Cluster, needs: Needs) -> str:
    try:
        found = (await cluster.call("GET", cluster.path("nodes", everywhere=True)))["items"]
    except RefusedError as error:
        raise _unseen(error) from None
    return capacities.on_nodes(found, needs)


def _unseen(error: RefusedError) -> Exception:
    """What may not be looked at is unknown; any other refusal is told as it is."""
    if error.status == FORBIDDEN:
        return UnseenError("could not look: you may not")
    return error
