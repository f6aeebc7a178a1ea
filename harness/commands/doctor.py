"""`wedgehog doctor`: the requirements of a run, and which of them are missing."""

import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from wedgehog.harness.network.tcp_diag import TcpDiag
from wedgehog.harness.network.toxiproxy.server import cache_path, locate
from wedgehog.harness.sandbox.disk import disk_unavailable_reason
from wedgehog.harness.sandbox.hosts.private_hosts import hosts_unavailable_reason
from wedgehog.harness.sandbox.stacks import stacks_unavailable_reason
from wedgehog.harness.services.mcp.host import tools_unavailable_reason


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The result of one check."""

    what: str
    ok: bool
    says: str
    optional: bool = False


def findings() -> Iterator[DoctorFinding]:
    """Check the requirements of a run, in the order of their use."""
    yield DoctorFinding("python", sys.version_info >= (3, 11), f"{platform.python_version()} at {sys.executable}")
    try:
        yield DoctorFinding("wedgehog", True, version("wedgehog"))
    except PackageNotFoundError:
        yield DoctorFinding("wedgehog", False, "runs from source, not installed", optional=True)
    yield _toxiproxy()
    if (counts := TcpDiag.open()) is not None:
        counts.close()
    says = "the kernel's byte counts can be read: every wire fault is proven" if counts else "this system has no counts"
    yield DoctorFinding("proof", counts is not None, says, optional=True)
    for what, why, says in (
        ("disk full", disk_unavailable_reason(), "a small disk can be made full, without root"),
        ("private hosts", hosts_unavailable_reason(), "https hosts can be redirected for an agent, without root"),
        ("tool host", tools_unavailable_reason(), "tools can be served over MCP, with faults"),
        ("stacks", stacks_unavailable_reason(), "py-spy can show where a Python agent hangs"),
    ):
        yield DoctorFinding(what, not why, why or says, optional=True)
    linux = sys.platform == "linux"
    says = "subreaper and process marks" if linux else "process marks only"
    yield DoctorFinding("processes", linux, says, optional=True)


def _toxiproxy() -> DoctorFinding:
    found = locate()
    if found.path is not None:
        return DoctorFinding("toxiproxy", True, f"{found.version} at {found.path} ({found.how})")
    tried = "; ".join(found.tried)
    says = f"none yet ({tried}); the first run fetches it to {cache_path()}, else the embedded relay is used"
    return DoctorFinding("toxiproxy", False, says, optional=True)
