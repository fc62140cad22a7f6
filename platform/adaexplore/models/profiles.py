"""Model profiles: what a file in `conf/model/` says about one model.

A profile has a *semantic* part, which decides what the model answers and so enters a cell's
identity, and a transport part, which does not. Scripted profiles are the reference agents: they
run in process and speak the same messages and JSON as a language model.
"""

from typing import Any, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class ScriptedProfile:
    """A reference agent."""

    kind: Literal["scripted"]
    agent: str
    """Name of the agent in the registry of reference agents."""
    version: int = Field(ge=1)
    """Version of the agent's behaviour; the launch refuses a profile whose agent has moved on."""

    def semantic(self) -> dict[str, Any]:
        """The part that decides what is answered."""
        return {"kind": self.kind, "agent": self.agent, "version": self.version}


Profile = ScriptedProfile
"""Every kind of profile; the kinds that need a network join it as they land."""
