"""The raw conversation of an episode, folded: every turn with what was asked, said and spent.

History is rewritten while an episode is played, so a turn shows the last message of its request, which
is what was new to the agent, and not the whole conversation again.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from adaexplore.benchmark.game import prompts, replies
from adaexplore.benchmark.game.protocol import Request
from adaexplore.reports.episodes.runs import EpisodeRun, Exchange
from adaexplore.reports.markup import Markup, element, join

CLIP: Final = 20_000
"""Characters of one text that are shown."""
_ASIDE: Final = "(the last message again, and below it:)"


def conversation(run: EpisodeRun) -> Markup:
    """All turns, each folded."""
    first = next((e.request for e in run.exchanges if e.request is not None), None)
    opening = None if first is None else _opening(first)
    return join(opening, *(_turn(run, exchange) for exchange in run.exchanges))


def clipped(text: str) -> str:
    """A text, cut where it is too long to be read, which is said."""
    if len(text) <= CLIP:
        return text
    return f"{text[:CLIP]}\n[... {len(text) - CLIP} more characters; the journal holds them all]"


def _opening(first: Request) -> Markup:
    system, *_ = first.messages
    return element("details", element("summary", "system message"), _said("system", system.content))


def _turn(run: EpisodeRun, exchange: Exchange) -> Markup:
    asked = [] if exchange.request is None else [_said("environment", _new(exchange.request))]
    reply = exchange.reply
    thought = [_said("reasoning, never sent back", reply.reasoning)] if reply.reasoning else []
    summary = element("summary", _headline(run, exchange))
    return element("details", summary, *asked, *thought, _said("agent", reply.text), class_="turn")


def _said(who: str, text: str) -> Markup:
    return join(
        element("p", who, class_="who"), element("pre", clipped(text) or "(nothing)", dir="auto")
    )


def _new(request: Request) -> str:
    """What the request says that the one before did not."""
    last = request.messages[-1].content
    question = prompts.assessment()
    return f"{_ASIDE}{question}" if last.endswith(question) else last


def _headline(run: EpisodeRun, exchange: Exchange) -> Markup:
    reply = exchange.reply
    window = "" if exchange.request is None else f"window {exchange.request.batch_number} \u00b7 "
    tokens = f"{reply.input_tokens} tokens in, {reply.output_tokens} out"
    spent = [f"{exchange.seconds:.1f} s", tokens]
    if failed := exchange.meta.get("attempts"):
        spent.append(f"{len(failed)} failed attempts before it")
    if reply.finish_reason != "stop":
        spent.append(f"ended by {reply.finish_reason}")
    return join(
        element("b", f"turn {exchange.number}"),
        f" \u00b7 {window}{_what(run, exchange)} ",
        element("span", " \u00b7 ".join(spent), class_="soft small"),
    )


def _what(run: EpisodeRun, exchange: Exchange) -> str:
    """What kind of reply it is."""
    if exchange.request is not None and _forked(exchange.request):
        return "assessment"
    protocol = run.cell.semantic.get("protocol", {})
    parsing = protocol.get("reply_parsing", "strict")
    try:
        call = replies.read_call(exchange.reply.text, parsing=parsing, max_chars=CLIP)
    except replies.RejectedError:
        return "not a call"
    probes = call.arguments.get("probes")
    return f"{call.tool} ({len(probes)})" if isinstance(probes, list) else call.tool


def _forked(request: Request) -> bool:
    question = prompts.assessment()
    return any(message.content.endswith(question) for message in request.messages)


def spent(exchanges: Sequence[Exchange]) -> Iterable[tuple[str, str]]:
    """(what, how much) of all turns together."""
    said = [exchange.reply for exchange in exchanges]
    yield "turns", str(len(said))
    yield "time", f"{sum(exchange.seconds for exchange in exchanges):.1f} s in calls"
    tokens = (
        f"{sum(r.input_tokens for r in said)} in ({sum(r.cached_tokens for r in said)} cached), "
    )
    tokens += f"{sum(r.output_tokens for r in said)} out"
    yield "tokens", f"{tokens} ({sum(r.reasoning_tokens for r in said)} of reasoning)"
