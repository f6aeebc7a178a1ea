"""Invariants: what must hold of every run, each a pure function of its history in a file of its own.

>>> verdict = check("paid_call_bound", history, per_step=5)
>>> verdict.status, verdict.says
('fail', 'step 1 of turn 1 was paid 7 times, 6 allowed')

Each stands in the room of its subject; beside the rooms is what they share. Importing this package registers every
invariant in it: a new file needs no list.
"""

import importlib
import pkgutil

from wedgehog.harness.invariants.registry import Invariant, InvariantError, check, find, invariant, known

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)

__all__ = ["Invariant", "InvariantError", "check", "find", "invariant", "known"]
