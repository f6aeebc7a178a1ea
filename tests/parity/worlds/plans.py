"""Scenarios for every registered fault: each trigger that fits it is one turn with that fault."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from tests.parity.worlds.clients import TITLE, TOOL, Client
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.faults.base import Family, Fault, WireFault, parameters, registered
from wedgehog.harness.faults.reply_fault import ReplyFault
from wedgehog.harness.run.simulated.sim_player import why_not_in_virtual_time
from wedgehog.harness.scenario.fault_config import FaultConfig
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.scenario.trigger import CHAT, HOST
from wedgehog.harness.testing.faults import examples

SCALE = 20
MOST_TURNS = 4
LINKS = ("llm", "channel", "agent")
"""The links of an agent that talks to its model alone; a fault gets the first that it fits."""
LINGER = {"phase": "linger"}
PLACES: tuple[dict[str, Any], ...] = (
    {"phase": "connect"},
    {"phase": "request"},
    {"phase": "request", "byte": 60},
    {"byte": 7},
    {"phase": "body"},
    {"event": 2},
    {"phase": "middle"},
    {"phase": "terminal"},
    LINGER,
    {"attempt": 2, "phase": "middle"},
    {},
)
"""From the connection to behind the last byte; the second attempt; the whole call."""
BESIDE: tuple[dict[str, Any], ...] = ({"on": "background"},)
"""A call beside the conversation."""
FEW: tuple[dict[str, Any], ...] = ({"phase": "middle"}, {})
TEXT = [{"text": "你 {nonce}"}]
CALLS = [*({"tool": TOOL, "args": {"city": city}} for city in ("Ulm", "Bonn"))]


@dataclass(frozen=True)
class Spot:
    """One turn: what the model says in it, and where the fault hits."""

    link: str
    at: dict[str, Any]
    says: list[dict[str, Any]]

    @property
    def asks(self) -> str:
        """The message of the turn."""
        return f"{TITLE} Where are they?" if "on" in self.at else "Where are they?"

    def line(self, fault: Fault, turn: int) -> dict[str, Any]:
        """The fault as a line of a scenario."""
        given = {name: getattr(fault, name) for name in parameters(type(fault))}
        return {"link": self.link, "at": {"turn": turn, **self.at}, "do": {fault.name: given} if given else fault.name}


def spots(fault: Fault, *, streams: bool, few: bool = False) -> list[Spot]:
    """Where the fault may hit an agent that talks to its model alone: everywhere, or at `few` of these places."""
    link = next((link for link in LINKS if fault.aim.links is None or link in fault.aim.links), None)
    says = (TEXT, CALLS) if fault.family == "reply" else (TEXT,)
    beside = isinstance(fault, ReplyFault) and fault.beside_the_main
    places = BESIDE if beside else FEW if few else PLACES
    found = [Spot(link, at, said) for at in places for said in says] if link else []
    # Behind the last byte a person or a signal is in a race with the agent's own end.
    races = not isinstance(fault, WireFault)
    return [spot for spot in found if _fits(spot.line(fault, 1), streams) and not (races and spot.at == LINGER)]


def _fits(line: dict[str, Any], streams: bool) -> bool:
    try:
        needs = FaultConfig.model_validate(line).needs
    except ValidationError:
        return False
    return streams or "stream" not in needs


def scenarios(fault: Fault, client: Client, *, few: bool) -> Iterator[Scenario]:
    """The fault at each of its spots, a few turns to a scenario."""
    found = spots(fault, streams=client.dialect.stream, few=few)
    for start in range(0, len(found), MOST_TURNS):
        yield _scenario(fault, f"{fault.name.replace('_', '-')}-{start}", found[start : start + MOST_TURNS])


def _scenario(fault: Fault, name: str, turns: Sequence[Spot]) -> Scenario:
    return Scenario.model_validate(
        {
            "name": name,
            "why": "The client sees the same in both worlds.",
            "turns": [{"user": spot.asks, "model": [spot.says]} for spot in turns],
            "faults": [spot.line(fault, turn) for turn, spot in enumerate(turns, 1)],
            "time_scale": SCALE,
        }
    )


def why_only_live(fault: Fault) -> str:
    """Why the product simulates no scenario with this fault; empty if it does."""
    link = fault.aim.links[0] if fault.aim.links in ((HOST,), (CHAT,)) else "llm"
    given: dict[str, dict[str, Any]] = {
        HOST: {"callable": "a:b", "tools": "http", "env": {"URL": "{tool_url}"}},
        CHAT: {"chat": {"start": ["a"]}},
    }
    spec = AgentSpec(name="a", wire="anthropic", **given.get(link, {"callable": "a:b"}))
    line = Spot(link, {}, TEXT).line(fault, 1)
    scenario = Scenario.model_construct(turns=[], faults=[FaultConfig.model_construct(do=line["do"])])
    return why_not_in_virtual_time(scenario, spec)


def all_examples(family: Family | None = None) -> list[Fault]:
    """Each registered fault that is simulated, with each of its options."""
    found = [fault for cls in registered(family).values() for fault in examples(cls)]
    return [fault for fault in found if not why_only_live(fault)]
