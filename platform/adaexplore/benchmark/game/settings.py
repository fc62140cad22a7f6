"""Settings: the conditions under which the same episodes are played.

A setting is data, one file in `conf/setting/`; a researcher adds one by writing a file. Source:
paper, experimental settings and ablations.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What distinguishes one condition from another."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}  # configuration files know no other keys

    name: str
    drifts: bool
    """Whether the rule changes after the change batch. The prompt never tells."""
    cases: Literal["controlled", "iid"]
    """`controlled`: half of every batch are flip cases; `iid`: drawn without that control."""
    evidence: Literal["rewritten", "outcome", "full"]
    """`rewritten`: a finished batch is replaced by its outcome. `outcome`: nothing is taken out, so
    cases and the utilities of the chosen actions accumulate. `full`: with all four utilities."""
    probing: Literal["optional", "forced"]
    """`forced`: a batch is revealed only by probing, unless the window's repair failed."""
    min_probes: int
    """Fewest probes in one `probe_batch` call, 1 to the protocol's limit."""

    def __post_init__(self) -> None:
        """Refuse a policy that no call could satisfy (ValueError)."""
        if self.min_probes < 1:
            raise ValueError(f"expected min_probes of at least 1, got {self.min_probes}")
