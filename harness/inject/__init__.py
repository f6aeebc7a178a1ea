"""The injector: carries out the fault plan, proves that each fault fired, and always heals.

```
Injector ── InjectorState   what is planned, which call has which place, what is armed
   ├─────── Armer           faults of bytes: on what is held, before a request, on a whole link
   ├─────── ProcessFaults   faults on processes, and what people do
   ├─────── ServiceFaults   when our own tools are held, and what becomes of their results
   ├─────── StdioFaults     when a pipe is held
   └─────── Healer          proof of what fired, and its end
```
"""

from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.inject.limited_reply import LimitKind, PartialDelivery
from wedgehog.harness.inject.processes import Hit, ServerTarget, Targets

__all__ = ["Hit", "Injector", "LimitKind", "PartialDelivery", "ServerTarget", "Targets"]
