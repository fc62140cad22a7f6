"""Relocations: a sweep as it is seen from inside the cluster that plays it.

A launch sends one frozen file. The driver that reads it stands elsewhere: on the head of a Ray of its
own, where services have other addresses and this machine's folders do not exist. None of that decides
a result, so the translation is a function of the configuration alone, and what is written down about
the sweep stays as the user gave it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, Literal
from urllib.parse import urlsplit

from adaexplore.experiments.config import SweepConfig
from adaexplore.models.profiles import RemoteProfile, ScriptedProfile, VllmProfile

FOLDER: Final = "/tmp/adaexplore/runs"  # noqa: S108 (inside a pod, whose disk ends with it)
"""Of logs and of what MLflow has not been shown yet; the sweep itself is in the store."""
ROOM_S: Final = 300.0
"""A driver that begins again on a new head is there before the workers are."""
ENDPOINT_VARIABLES: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
"""Where the address of a bucket's service comes from when the configuration names none."""
_LOOPBACK: Final = ("localhost", "0.0.0.0", "::1", "::")  # noqa: S104 (names of this machine)


def in_cluster(config: SweepConfig) -> SweepConfig:
    """The configuration with which the driver in the cluster plays.

    An embedded tracker is left out: its database would end with the pod, and the launch that follows
    shows the runs in its own from the store.
    """
    backend, store, tracking = config.backend, config.store, config.tracking
    auth: Literal["token", "none"] = "none" if backend.pods.auth_secret is None else "token"
    room_s = max(backend.rays.room_s, ROOM_S)
    rays = replace(backend.rays, address="auto", auth=auth, room_s=room_s)
    if tracking.kind == "sqlite":
        tracking = replace(tracking, kind="none")
    elif tracking.kind == "server":
        tracking = replace(tracking, uri=tracking.uri_in_cluster or tracking.uri)
    return replace(
        config,
        backend=replace(backend, kind="ray", ray=rays, kubernetes=None),
        store=replace(store, endpoint=store.endpoint_in_cluster or store.endpoint),
        tracking=tracking,
        runs_dir=FOLDER,
    )


def is_loopback(address: str) -> bool:
    """Whether an address means the machine that asks, so that in a pod it means the pod."""
    host = (urlsplit(address).hostname or "").lower().rstrip(".")
    return host in _LOOPBACK or host.startswith("127.") or host.endswith(".localhost")


def endpoint(config: SweepConfig, environment: Mapping[str, str]) -> str | None:
    """Address of the bucket's service as pods see it; None means AWS."""
    store = config.store
    named = next((environment[n] for n in ENDPOINT_VARIABLES if environment.get(n)), None)
    return store.endpoint_in_cluster or store.endpoint or named


# -- what cannot be played in a cluster --------------------------------------------------------


def refusals(config: SweepConfig, environment: Mapping[str, str]) -> list[str]:
    """Why pods could not play a configuration, a line each with what to do; nothing if they could.

    `environment` are the variables of whoever launches: an address may come from there.
    """
    return [
        *_placed(config),
        *_services(config, environment),
        *(
            line
            for name, profile in config.models.items()
            for line in _model(name, profile, config)
        ),
    ]


def _placed(config: SweepConfig) -> Iterator[str]:
    if config.backend.pods.image is None:
        yield (
            "backend.kubernetes.image: expected the address of this project's image, got none: build it "
            "(Dockerfile), push it, and add backend.kubernetes.image=REPOSITORY@sha256:DIGEST"
        )
    name = config.dataset.name
    if "/" in name and not name.startswith("/"):
        yield (
            f"dataset '{name}' is a folder of this machine: expected a packaged dataset, or the absolute "
            "path of a folder that is in the image"
        )


def _services(config: SweepConfig, environment: Mapping[str, str]) -> Iterator[str]:
    if config.store.kind != "s3":
        yield (
            "store=folder is a folder of this machine, which pods do not see: add store=s3 "
            "store.bucket=NAME"
        )
    address = endpoint(config, environment)
    if config.store.kind == "s3" and address is not None and is_loopback(address):
        yield (
            f"store.endpoint={address} means the pod itself when a pod asks it: add "
            "store.endpoint_in_cluster=http://HOST:PORT with the address that pods reach it by"
        )
    tracking = config.tracking
    address = tracking.uri_in_cluster or tracking.uri
    if address is not None and is_loopback(address):
        yield (
            f"tracking.uri={address} means the pod itself when a pod asks it: add "
            "tracking.uri_in_cluster=http://HOST:PORT, or tracking=none"
        )


def _model(
    name: str, profile: ScriptedProfile | RemoteProfile, config: SweepConfig
) -> Iterator[str]:
    if isinstance(profile, ScriptedProfile):
        return
    address = profile.route.base_url
    if address is not None and is_loopback(address):
        yield (
            f"model '{name}': route.base_url={address} means the pod itself when a pod asks it: give "
            "the address that pods reach it by"
        )
    if address is None and isinstance(profile, VllmProfile) and config.serving.kind != "kubernetes":
        yield (
            f"model '{name}': nothing in the cluster serves it (serving={config.serving.kind}): add "
            f"serving=kubernetes, or +profiles.{name}.route.base_url=http://.../v1"
        )
    if profile.auth.key_file is not None:
        yield (
            f"model '{name}': auth.key_file is a file of this machine: name a variable in "
            f"+profiles.{name}.auth.key_env and a Secret with it in backend.kubernetes.secrets"
        )
    named = [v for v in (profile.auth.key_env, *profile.dialect.header_env.values()) if v]
    if named and not config.backend.pods.secrets:
        yield (
            f"model '{name}': no pod would have the variable {named[0]}: put it into a Secret (kubectl "
            f"create secret generic NAME --from-literal={named[0]}=...) and add "
            "backend.kubernetes.secrets=[NAME]"
        )
