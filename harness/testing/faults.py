"""The conformance suite for wire faults, stock ones and those of plugins, on every network.

```python
@pytest.mark.parametrize("case", conformance_cases("my_fault"), ids=str)
def test_my_fault(case):
    case.run()
```

Each case plays small agents against the real fake provider, through a real network, with the recorder of a real run. It
compares the delivered bytes in the history with the bytes that the agent's socket received.
"""

import asyncio
import itertools
import math
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import MISSING, dataclass
from typing import TypeVar

from wedgehog.harness.faults.base import Fault, WireFault, parameters, registered
from wedgehog.harness.faults.parameters import FaultError, Parameter, choices
from wedgehog.harness.network.base import Network, NetworkName
from wedgehog.harness.network.choose import choose_network
from wedgehog.harness.sim.network import SimNetwork
from wedgehog.harness.sim.world import simulate
from wedgehog.harness.testing.fault_checks import CLOSED, OPEN
from wedgehog.harness.testing.fault_trial import Bench

SomeFault = TypeVar("SomeFault", bound=Fault)

NETWORKS: tuple[NetworkName, ...] = ("embedded", "toxiproxy", "sim")


def examples(cls: type[SomeFault]) -> Iterator[SomeFault]:
    """The fault with each combination of its options; a required number is 1 s or the smallest allowed one.

    A fault that accepts no such combination, because it needs one of several numbers, comes with each of them alone.
    """
    known = parameters(cls)
    given = (dict(zip(known, values, strict=True)) for values in itertools.product(*map(_values, known.values())))
    try:
        return iter([cls(**values) for values in given])
    except FaultError:
        return iter([cls(**{name: _smallest(parameter)}) for name, parameter in known.items()])


def _values(parameter: Parameter) -> Sequence[object]:
    if "anyOf" not in parameter.schema and (words := choices(parameter.schema)):
        return words
    return (_smallest(parameter) if parameter.default is MISSING else parameter.default,)


def _smallest(parameter: Parameter) -> float:
    options = parameter.schema.get("anyOf", [parameter.schema])
    return 1.0 if parameter.seconds else math.ceil(next((it["minimum"] for it in options if "minimum" in it), 1))


@dataclass(frozen=True)
class Case:
    """One fault on one network."""

    fault: WireFault
    network: NetworkName

    def __str__(self) -> str:
        """`stall(for_s='forever')-embedded`"""
        told = ", ".join(f"{name}={getattr(self.fault, name)!r}" for name in parameters(type(self.fault)))
        return f"{self.fault.name}({told})-{self.network}"

    def run(self) -> None:
        """Run every check that fits the fault; AssertionError has a note with the check that failed."""
        if self.network == "sim":
            simulate(self._run)
        else:
            asyncio.run(self._run())

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Network]:
        if self.network == "sim":
            async with SimNetwork() as simulated:
                yield simulated
        else:
            async with choose_network(self.network, lambda said: None) as network:
                yield network

    async def _run(self) -> None:
        async with self._opened() as network:
            for check in CLOSED if self.fault.closes_port else OPEN:
                try:
                    await check(Bench(network, self.fault))
                except Exception as wrong:
                    wrong.add_note(f"{self}: {check.__doc__}")
                    raise


def conformance_cases(*names: str, networks: Sequence[NetworkName] = NETWORKS) -> list[Case]:
    """Each example of the registered wire faults with these names (default: all), on each network."""
    classes = (cls for name, cls in registered("wire").items() if name in (names or registered("wire")))
    wire = (cls for cls in classes if issubclass(cls, WireFault))
    return [Case(fault, network) for cls in wire for fault in examples(cls) for network in networks]
