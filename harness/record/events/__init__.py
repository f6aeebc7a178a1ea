"""The events of a run: timestamped facts. Checks and reports see nothing else.

Events are frozen plain data. history.jsonl tags them with their class name in snake case (`request_arrived`).
`History.add` sets `id`, the index in the history, and `at_s`, seconds since the start of the run.

Importing this package registers every event in it under its tag.
"""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
