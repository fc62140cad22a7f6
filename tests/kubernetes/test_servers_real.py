"""A real engine (vLLM, CPU build) with a real small model, in a pod on a node with GPUs."""

import pytest

import model_pods
from model_pods import Driver, case, grant, left
from serving import played

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

ENGINE_S = 900.0


def test_a_real_engine_serves_from_a_pod_and_is_gone_afterwards(room):
    """Ready by its probes, a canary, a completion at the Service's address, a true fingerprint."""
    if not model_pods.VLLM.exists():
        pytest.skip("THE REAL ENGINE IS NOT TESTED IN A POD: make vllm-env builds its environment")
    grant(room)
    model = played.model_folder(model_pods.VLLM)
    pods = {
        "image": model_pods.VLLM_IMAGE, "memory": "6Gi", "shm": "1Gi", "start_limit_s": ENGINE_S,
        "command": ["python", "-m", "vllm.entrypoints.openai.api_server"], "hf_offline": True,
    }  # fmt: skip
    one = case("small", pods=pods, ready_timeout_s=ENGINE_S, stop_grace_s=10)
    environment = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_HOST_IP": "127.0.0.1"}
    hosting = {"arguments": ["--enforce-eager"], "environment": environment}
    weights = {"dtype": "bfloat16", "max_model_len": played.CONTEXT_TOKENS}
    one["profile"] |= {"model": model, "weights": weights, "hosting": hosting}
    driver = Driver(room, [one | {"timeout_s": 60}])
    driver.ended(ENGINE_S + 60)
    assert {} == driver.errors(), driver.said("note")
    assert 1 == len(driver.said("answer"))
    (fingerprint,) = driver.said("fingerprint")
    assert fingerprint["version"].startswith("0.3")
    assert ("bfloat16", played.CONTEXT_TOKENS) == (
        fingerprint["dtype"],
        fingerprint["max_model_len"],
    )
    assert f"testbed://{model_pods.VLLM_IMAGE}" == fingerprint["image_id"]
    assert [] == left(room)
