"""Faults: what can be done to bytes (`wire`), to what the model says (`reply`), and to processes (`actor`).

Importing this package registers every fault in it: a new file needs no list.
"""

import importlib
import pkgutil

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
