"""The nemesis: enacts the fault plan, proves that each fault fired, and always heals.

```
Nemesis ── Board          what is planned, which call stands where, what has fired
   ├────── WireStrikes    harm to bytes, while the fake provider holds a reply at its gate or before a request
   ├────── ReplyFaults    harm to what the model says
   ├────── ActorFaults    harm to processes and what people do
   └────── Healing        proof of what struck, and the end of it
```
"""

from wedgehog.harness.inject.fault_state import Cut, Demand, How, limited_by
from wedgehog.harness.inject.injector import Nemesis
from wedgehog.harness.inject.state import SETTLE_S, Board
from wedgehog.harness.inject.targets import Hit, KillServer, Nobody, Sessions, Victims

__all__ = [
    "SETTLE_S",
    "Board",
    "Cut",
    "Demand",
    "Hit",
    "How",
    "KillServer",
    "Nemesis",
    "Nobody",
    "Sessions",
    "Victims",
    "limited_by",
]
