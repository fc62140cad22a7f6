"""Preflight: what can be known to fail is found before the first episode, not in the middle.

The endpoint is asked once for its list of models: an address that does not answer, a refused key
and a wrong name show there. A context that cannot hold even the first prompt is refused with the
numbers.
"""

from typing import Final

import orjson

from adaexplore.errors import ConfigError
from adaexplore.models import faults
from adaexplore.models.client import Account
from adaexplore.models.faults import CallFaultError, FaultKind
from adaexplore.models.profiles import RemoteProfile
from adaexplore.models.transport import HttpAnswer, HttpCall, address

TIMEOUT_S: Final = 30.0
TYPICAL_CHARS_PER_TOKEN: Final = 4.0


def check_profile(name: str, profile: RemoteProfile, *, first_prompt_chars: int) -> None:
    """Refuse a profile that no call could be made with (ConfigError naming the line to add)."""
    if profile.model is None:
        raise ConfigError(
            f"model '{name}': the provider's name of the model is not known to this project; "
            f"add +profiles.{name}.model=NAME"
        )
    if profile.route.base_url is None and profile.kind != "vllm":
        raise ConfigError(
            f"model '{name}': no address; add +profiles.{name}.route.base_url=https://.../v1"
        )
    context = profile.limits.context_tokens
    prompt = int(first_prompt_chars / TYPICAL_CHARS_PER_TOKEN)
    if context is not None and prompt + profile.sampling.max_output_tokens > context:
        raise ConfigError(
            f"model '{name}': the first prompt (about {prompt} tokens) and one reply "
            f"(up to {profile.sampling.max_output_tokens}) do not fit the context of {context} tokens; "
            f"lower +profiles.{name}.sampling.max_output_tokens or serve a longer context"
        )


async def check_endpoint(name: str, account: Account, base_url: str) -> None:
    """Ask the endpoint for its models.

    Raises:
        ConfigError: It does not answer, refuses the key, or does not know the model.
    """
    url = address(base_url, "/models", account.profile.dialect.query)
    call = HttpCall(method="GET", url=url, headers=account.headers, body=None, timeout_s=TIMEOUT_S)
    try:
        answer = await account.transport.send(call)
    except CallFaultError as caught:
        told = faults.scrubbed(caught.fault.message, list(account.secrets))
        raise ConfigError(f"model '{name}': {base_url} does not answer: {told}") from None
    if answer.status in (401, 403):
        fault = faults.classify(answer.status, answer.headers, answer.body, now_s=account.epoch())
        if fault.kind is FaultKind.AUTH:
            told = faults.scrubbed(fault.message, list(account.secrets))
            key = account.profile.auth.key_env or account.profile.auth.key_file or "no key"
            raise ConfigError(f"model '{name}': {base_url} refuses the key ({key}): {told}")
    known = _listed(answer)
    wanted = account.profile.model
    if known and wanted not in known and f"models/{wanted}" not in known:
        shown = ", ".join(sorted(known)[:8])
        raise ConfigError(f"model '{name}': {base_url} has no model '{wanted}'; it has {shown}")


def _listed(answer: HttpAnswer) -> set[str]:
    """Model ids of the answer; empty where the endpoint keeps no list."""
    if answer.status != 200:
        return set()
    try:
        document = orjson.loads(answer.body)
        return {str(model["id"]) for model in document["data"]}
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return set()
