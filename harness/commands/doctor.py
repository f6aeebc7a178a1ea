"""Where everything is, and what is missing."""

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
    """One thing that was looked for."""

    what: str
    ok: bool
    says: str
    optional: bool = False


def findings() -> Iterator[DoctorFinding]:
    """Everything that a run needs, in the order in which it needs it."""
    yield DoctorFinding("python", sys.version_info >= (3, 11), f"{platform.python_version()} at {sys.executable}")
    try:
        yield DoctorFinding("wedgehog", True, version("wedgehog"))
    except PackageNotFoundError:
        yield DoctorFinding("wedgehog", False, "runs from source, not installed", optional=True)
    yield _toxiproxy()
    counts = TcpDiag.open()
    kernel = counts is not None
    if counts is not None:
        counts.close()
    says = (
        "the kernel's byte counts can be read: every wire fault is proven" if kernel else "not to be had on this system"
    )
    yield DoctorFinding("proof", kernel, says, optional=True)
    for what, why, says in (
        ("disk full", disk_unavailable_reason(), "a small disk can be made full, without root"),
        ("private hosts", hosts_unavailable_reason(), "an agent can have https hosts of its own, without root"),
        ("tool host", tools_unavailable_reason(), "tools of our own can be served over MCP, and harmed"),
        ("stacks", stacks_unavailable_reason(), "where a Python agent hangs can be seen, by py-spy"),
    ):
        yield DoctorFinding(what, not why, why or says, optional=True)
    linux = sys.platform == "linux"
    yield DoctorFinding(
        "processes", linux, "subreaper and process marks" if linux else "process marks only", optional=True
    )


def _toxiproxy() -> DoctorFinding:
    found = locate()
    if found.path is not None:
        return DoctorFinding("toxiproxy", True, f"{found.version} at {found.path} ({found.how})")
    tried = "; ".join(found.tried)
    says = f"none yet ({tried}); the first run fetches it to {cache_path()}, else the embedded relay is used"
    return DoctorFinding("toxiproxy", False, says, optional=True)
