"""How the API server is reached: with a pod's own token, or as a kubeconfig says.

Both are found as `kubectl` finds them. The library's own retries are off: how long to go on trying is
for callers to say. One pool of connections serves many threads; tokens that are rotated, and commands
that fetch one, are the library's concern.
"""

import os
import warnings
from pathlib import Path
from typing import Any, Final

from adaexplore.errors import ClusterError, ConfigError

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where every pod finds its token, unless it asks for none."""
HOST: Final = "KUBERNETES_SERVICE_HOST"
CONNECTIONS: Final = 16


class Connection:
    """One API server, as one user."""

    def __init__(self, api: Any, name: str) -> None:
        """Of an `ApiClient`; `name` is what people call the cluster."""
        self.name = name
        self.server: str = api.configuration.host
        self._api = api

    def headers(self, method: str, path: str) -> dict[str, str]:
        """Who asks."""
        found = {"Accept": "application/json, */*", "User-Agent": "adaexplore"}
        self._api.update_params_for_auth(found, [], ["BearerToken"], path, method, None)
        return found

    def request(self, method: str, path: str, **more: Any) -> Any:
        """The answer, whatever its status; urllib3's errors where there is none."""
        return self._api.rest_client.pool_manager.request(
            method, self.server + path, redirect=False, **more
        )

    def close(self) -> None:
        """Let the connections go."""
        self._api.rest_client.pool_manager.clear()


def in_cluster() -> bool:
    """Whether this process runs in a pod that may speak to its cluster."""
    return bool(os.environ.get(HOST)) and (ACCOUNT / "token").is_file()


def own_namespace() -> str:
    """The namespace of the pod in which this process runs.

    Raises:
        ClusterError: It runs in none.
    """
    try:
        return (ACCOUNT / "namespace").read_text().strip()
    except OSError:
        raise ClusterError(
            "expected to run in a pod with a service account, found no namespace at "
            f"{ACCOUNT}; this is for the driver in the cluster"
        ) from None


def connect(context: str | None = None) -> Connection:
    """The cluster of a pod or, with a context or outside of one, of the kubeconfig.

    Raises:
        ConfigError: The library is not installed; there is no such context.
        ClusterError: There is no kubeconfig, or it cannot be used.
    """
    client, config = _library()
    settings = client.Configuration()
    try:
        if context is None and in_cluster():
            config.load_incluster_config(client_configuration=settings)
            name = "this cluster"
        else:
            name = _context(context)
            config.load_kube_config(_file(), context=name, client_configuration=settings)
    except config.ConfigException as error:
        raise ClusterError(_unusable(error)) from None
    settings.retries = False
    settings.connection_pool_maxsize = CONNECTIONS
    return Connection(client.ApiClient(settings), name)


def contexts() -> tuple[list[str], str | None]:
    """The kubeconfig's contexts, and its current one.

    Raises:
        ConfigError: The library is not installed.
        ClusterError: There is no kubeconfig, or it cannot be read.
    """
    _, config = _library()
    try:
        listed, current = config.list_kube_config_contexts(_file())
    except config.ConfigException as error:
        raise ClusterError(_unusable(error)) from None
    return [str(one["name"]) for one in listed], str(current["name"]) if current else None


def _file() -> str | None:
    """The kubeconfig that the environment names now; the library looks only when it is imported."""
    return os.environ.get("KUBECONFIG") or None


def _context(asked: str | None) -> str:
    """The context to use, which exists."""
    listed, current = contexts()
    chosen = asked or current
    if chosen in listed:
        return str(chosen)
    known = ", ".join(listed) or "none"
    raise ConfigError(
        f"backend.kubernetes.context={chosen}: the kubeconfig has no such context; it has {known}"
    )


def _unusable(error: Exception) -> str:
    said = " ".join(str(error).split())[:200]
    return (
        f"no cluster: {said}; set KUBECONFIG to the file of one that 'kubectl get pods' reaches, or "
        "take backend=local"
    )


def _library() -> tuple[Any, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            from kubernetes import client, config
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"Kubernetes needs the module {error.name}: pip install 'adaexplore[kubernetes]'"
        ) from error
    return client, config
