"""Start agent processes in a process group of their own, mark them, and end all of them with the run.

tree = Tree("campaign/run")
owned = await tree.start(["agent", "hello"], env=env, cwd=folder, log=folder / "agent.log")
exit_code = await owned.finished()
await tree.end()                       # also the tools that left the process group
"""

from wedgehog.harness.sandbox.cleanup import RUN_VARIABLE, carrying, end_all, lies_below
from wedgehog.harness.sandbox.owned import Owned, Tree
from wedgehog.harness.sandbox.run_queue import RunQueue, held_up_s, processors
from wedgehog.harness.sandbox.started import Started, what_imports, what_runs
from wedgehog.harness.sandbox.watchdog_process import WatchdogProcess

__all__ = [
    "RUN_VARIABLE",
    "Owned",
    "RunQueue",
    "Started",
    "Tree",
    "WatchdogProcess",
    "carrying",
    "end_all",
    "held_up_s",
    "lies_below",
    "processors",
    "what_imports",
    "what_runs",
]
