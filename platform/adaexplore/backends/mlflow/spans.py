"""A conversation as MLflow keeps it: a trace with its spans, at ids and times of our choosing.

MLflow's public functions for traces stamp their own ids and times, and hold what they send in global
state; what stands behind them takes both from us, so the same trace twice is one.
"""

import json
from typing import Any, Final

from mlflow.entities import Span as MlflowSpan
from mlflow.entities import TraceInfo, TraceLocation, TraceState
from mlflow.tracing.client import TracingClient
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from adaexplore.backends.mlflow.service import Conversation, Span

PREVIEW: Final = 1000
_NS: Final = 1_000_000


def keep(uri: str, experiment_id: str, conversation: Conversation) -> None:
    """Keep a trace at an address."""
    client = TracingClient(uri)
    first = conversation.spans[0]
    info = TraceInfo(
        trace_id=f"tr-{conversation.trace_id}",
        trace_location=TraceLocation.from_experiment_id(experiment_id),
        request_time=first.start_ms,
        execution_duration=first.end_ms - first.start_ms,
        state=TraceState.OK,
        request_preview=_preview(first, "mlflow.spanInputs"),
        response_preview=_preview(first, "mlflow.spanOutputs"),
        trace_metadata={"mlflow.sourceRun": conversation.run_id},
        tags={"mlflow.traceName": first.name, **conversation.tags},
    )
    client.start_trace(info)
    made = [_span(conversation, n, experiment_id) for n in range(len(conversation.spans))]
    client.log_spans(experiment_id, made)


def _span(conversation: Conversation, number: int, experiment_id: str) -> MlflowSpan:
    span = conversation.spans[number]
    attributes = {
        "mlflow.traceRequestId": f"tr-{conversation.trace_id}",
        "mlflow.experimentId": experiment_id,
        **span.attributes,
    }
    return MlflowSpan(
        ReadableSpan(
            name=span.name,
            context=_context(conversation, number),
            parent=_context(conversation, 0) if span.parent else None,
            resource=Resource.get_empty(),
            attributes={key: json.dumps(value) for key, value in attributes.items()},
            status=Status(StatusCode.OK),
            start_time=span.start_ms * _NS,
            end_time=span.end_ms * _NS,
        )
    )


def _context(conversation: Conversation, number: int) -> SpanContext:
    trace_id = int(conversation.trace_id, 16)
    span_id = (trace_id + number) % 2**64 or 1
    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=TraceFlags(1))


def _preview(span: Span, key: str) -> str:
    said: Any = span.attributes[key]
    return json.dumps(said)[:PREVIEW]
