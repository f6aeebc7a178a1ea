"""Which worker runs which test file.

Most tests of real time wait: for a time limit, for silence, for a process that starts. So three workers for two cores
leave most of the processor time unused, and more of them would delay the moments that some of those tests measure.
The workers beyond them therefore have a low priority, and run only files that measure no moment or have time to spare:
they use the time in which the others wait.
"""

import os

from xdist.scheduler.loadfile import LoadFileScheduling
from xdist.workermanage import WorkerController

HURRIED = 3 * (os.cpu_count() or 1) // 2
"""So many workers have the usual priority, and run every file."""
NICENESS = 12
UNHURRIED = (
    "tests/conformance/",
    "tests/fake_llm/",
    "tests/fuzz/",
    "tests/harness/agents/test_callable_python",
    "tests/harness/commands/test_agents_check",
    "tests/harness/commands/test_choose_again",
    "tests/harness/commands/test_cli",
    "tests/harness/commands/test_fuzz_in_virtual_time",
    "tests/harness/commands/test_given_faults",
    "tests/harness/commands/test_provider",
    "tests/harness/commands/test_pytest_plugin",
    "tests/harness/commands/test_start_up",
    "tests/harness/commands/test_two_fault_bugs",
    "tests/harness/faults/",
    "tests/harness/invariants/",
    "tests/harness/record/",
    "tests/harness/campaign/test_campaign",
    "tests/harness/campaign/test_cluster",
    "tests/harness/campaign/test_resume",
    "tests/harness/scenario/",
    "tests/harness/search/",
    "tests/harness/sim/",
    "tests/live/side_conversations/test_compacting_agents",
    "tests/live/files/test_file_shapes",
    "tests/live/files/test_filing",
    "tests/live/side_conversations/test_planning_agents",
    "tests/live/provider/test_strict_provider",
    "tests/live/commands/test_virtual",
    "tests/properties/",
    "tests/reports/",
    "tests/scenarios/",
    "tests/sdk/",
    "tests/test_architecture",
    "tests/test_wheel",
)
"""Where the files begin whose tests may take as long as they like, or many times as long as they do alone."""

COMPUTING = (
    "tests/harness/commands/test_two_fault_bugs",
    "tests/live/side_conversations/test_compacting_agents",
    "tests/live/files/test_file_shapes",
    "tests/live/files/test_filing",
    "tests/harness/commands/test_fuzz_in_virtual_time",
    "tests/properties/",
    "tests/harness/sim/test_determinism",
    "tests/harness/search/",
)
"""Where the files begin that compute from begin to end. One of the extra workers takes them first: while the files run
that begin first, which wait, the processors would be idle; and at the end too many of these would be left."""

TOGETHER = (
    "tests/sdk/",
    "tests/fake_llm/test_azure",
    "tests/fake_llm/test_message_threads",
    "tests/fake_llm/test_over_websocket",
    "tests/fake_llm/test_realtime",
    "tests/harness/sim/test_blocking",
    "tests/harness/sim/test_clients",
)
"""Where the files begin that one worker runs, because importing the providers' SDKs takes it seconds."""


def is_extra(worker: str) -> bool:
    """Whether a worker, such as `gw3`, is one beyond those that run every file."""
    return int(worker.removeprefix("gw")) >= HURRIED


class Spread(LoadFileScheduling):
    """Gives a whole file to one worker, in the order in which the files were collected."""

    def _split_scope(self, nodeid: str) -> str:
        """The file of a test, or the first of the files that stay together."""
        return TOGETHER[0] if nodeid.startswith(TOGETHER) else str(super()._split_scope(nodeid))

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Give a worker the next file that it may run; without one, it has nothing more to do."""
        wanted = next(iter(self._files_for(node)), None)
        if wanted is None:
            return node.shutdown()
        self.workqueue.move_to_end(wanted, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        """A worker gets its next file when it has run one: see `whole_files.py`."""
        if self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)

    def _files_for(self, node: WorkerController) -> list[str]:
        unhurried = [file for file in self.workqueue if file.startswith(UNHURRIED)]
        if node.gateway.id == f"gw{HURRIED}":
            return sorted(unhurried, key=_place_among_computing)
        if is_extra(node.gateway.id):
            return unhurried
        return [file for file in self.workqueue if not file.startswith(UNHURRIED)] + unhurried


def _place_among_computing(file: str) -> int:
    return next((number for number, begin in enumerate(COMPUTING) if file.startswith(begin)), len(COMPUTING))


def give_way(worker: str) -> None:
    """Lower the priority of this process if it is that of an extra worker."""
    if is_extra(worker):
        os.nice(NICENESS)
