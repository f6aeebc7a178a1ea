"""`wedgehog doctor`: the requirements of a run, and which of them are missing."""

import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from wedgehog.harness.commands.console import CheckFinding
from wedgehog.harness.network.tcp_diag import TcpDiag
from wedgehog.harness.network.toxiproxy.server import cache_path, locate
from wedgehog.harness.sandbox.disk import disk_unavailable_reason
from wedgehog.harness.sandbox.hosts.private_hosts import hosts_unavailable_reason
from wedgehog.harness.sandbox.stacks import stacks_unavailable_reason
from wedgehog.harness.services.mcp.host import tools_unavailable_reason


def findings() -> Iterator[CheckFinding]:
    """Check the requirements of a run, in the order of their use."""
    yield CheckFinding(sys.version_info >= (3, 11), f"{platform.python_version()} at {sys.executable}", what="python")
    try:
        yield CheckFinding(True, version("wedgehog"), what="wedgehog")
    except PackageNotFoundError:
        yield CheckFinding(False, "runs from source, not installed", optional=True, what="wedgehog")
    yield _toxiproxy()
    if (counts := TcpDiag.open()) is not None:
        counts.close()
    says = "the kernel's byte counts can be read: every wire fault is proven" if counts else "this system has no counts"
    yield CheckFinding(counts is not None, says, optional=True, what="proof")
    for what, why, says in (
        ("disk full", disk_unavailable_reason(), "a small disk can be made full, without root"),
        ("private hosts", hosts_unavailable_reason(), "https hosts can be redirected for an agent, without root"),
        ("tool host", tools_unavailable_reason(), "tools can be served over MCP, with faults"),
        ("stacks", stacks_unavailable_reason(), "py-spy can show where a Python agent hangs"),
    ):
        yield CheckFinding(not why, why or says, optional=True, what=what)
    linux = sys.platform == "linux"
    says = "subreaper and process marks" if linux else "process marks only"
    yield CheckFinding(linux, says, optional=True, what="processes")


def _toxiproxy() -> CheckFinding:
    found = locate()
    if found.path is not None:
        return CheckFinding(True, f"{found.version} at {found.path} ({found.how})", what="toxiproxy")
    tried = "; ".join(found.tried)
    says = f"none yet ({tried}); the first run fetches it to {cache_path()}, else the embedded relay is used"
    return CheckFinding(False, says, optional=True, what="toxiproxy")
