"""The nemesis: enacts the fault plan, proves that each fault fired, and always heals.

```
Nemesis ── Board          what is planned, which call stands where, what has fired
   ├────── WireStrikes    harm to bytes, while the fake provider holds a reply at its gate or before a request
   ├────── ReplyFaults    harm to what the model says
   ├────── ActorFaults    harm to processes and what people do
   └────── Healing        proof of what struck, and the end of it
```
"""

from wedgehog.harness.inject.fault_state import LimitKind, PartialDelivery
from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.inject.state import SETTLE_S, InjectorState
from wedgehog.harness.inject.targets import Hit, NoTargets, ProcessTargets, SessionFileTargets, Targets

__all__ = [
    "SETTLE_S",
    "Hit",
    "Injector",
    "InjectorState",
    "LimitKind",
    "NoTargets",
    "PartialDelivery",
    "ProcessTargets",
    "SessionFileTargets",
    "Targets",
]
