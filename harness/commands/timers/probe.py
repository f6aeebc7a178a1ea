"""The probes: the ways in which the provider stalls an agent."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wedgehog.harness.run.deadline import LONGEST_STRETCH_S
from wedgehog.harness.scenario.document import read
from wedgehog.harness.scenario.fault_config import FaultConfig

PACE_S = 0.5
TEXT = "A small animal that rolls itself up when it is worried, and goes to sleep in winter. {nonce}"


@dataclass(frozen=True, slots=True)
class Probe:
    """One way in which the provider stalls an agent; `name` is the timer that should end it."""

    name: str
    does: str
    """What the provider does."""
    fault: str = ""
    """Its line in the fault plan of a scenario file."""
    repeats: bool = False
    """Whether it measures retries: each request is refused at once."""
    long: bool = False
    """Whether it needs a long reply."""

    @property
    def scenario(self) -> str:
        """The name of its scenario."""
        return f"timer-{self.name}"

    @property
    def stops_requests(self) -> bool:
        """Whether its fault is in the request, so that the request does not arrive."""
        return bool(self.fault) and FaultConfig.model_validate(self._line()).planned().trigger.in_request

    def _line(self) -> dict[str, Any]:
        return dict(read(self.fault, Path(self.name)).data)

    def write(self, folder: Path, look_out_s: float) -> Path:
        """Write its scenario file, with a time limit of `look_out_s` seconds."""
        # (A turn is watched for longer on a busy machine: an endless reply must not end meanwhile.)
        long = {"text": "and so on " * round((2 * look_out_s + LONGEST_STRETCH_S) / PACE_S)}
        reply = long | {"pace_ms": 1000 * PACE_S} if not self.fault else long if self.long else {"text": TEXT}
        words = {
            "name": self.scenario,
            "why": f"The provider {self.does}.",
            "turns": [{"user": "What is a hedgehog?", "model": [reply]}],
            "faults": [{**self._line(), "times": "always"}] if self.fault else [],
            "invariants": {"turn_deadline": {"turn_s": look_out_s}},
        }
        file = folder / f"{self.scenario}.yaml"
        file.write_text(json.dumps(words, indent=1) + "\n", encoding="utf-8")  # JSON is YAML
        return file


CONNECT = Probe("connect", "never accepts a connection")
"""Not a scenario: a proxy accepts connections itself."""
TOTAL = Probe("total", "replies without an end, some words each half second")
PROBES = (
    TOTAL,
    Probe("refused", "refuses every connection", "{at: {phase: connect}, do: refuse}"),
    Probe("upload", "takes 60 bytes of the request and no more", "{at: {phase: request, byte: 60}, do: stall}"),
    Probe("headers", "takes the request and says nothing", "{at: {phase: headers}, do: stall}"),
    Probe("body", "sends the head of its reply and nothing more", "{at: {phase: body}, do: stall}"),
    Probe("idle", "stops in the middle of its reply", "{at: {byte: 200}, do: stall}"),
    Probe("trickle", "sends its reply a byte each half second", "{at: {byte: 0}, do: {drip: 0.5}}", long=True),
    Probe("pings", "stops in the middle, but for keep-alives", "{at: {event: 4}, do: {pings_only: 1}}"),
    Probe("429", "answers each request with 429", "{do: {status: 429}}", repeats=True),
    Probe("500", "answers each request with 500", "{do: {status: 500}}", repeats=True),
)
