"""What a run puts around its agent: a small disk, a private network, and locks on its databases."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wedgehog.harness.agents.context import AgentContext
from wedgehog.harness.agents.sessions import session_folders
from wedgehog.harness.record.events.run import BadCertificateShown, HostRefused
from wedgehog.harness.record.history import History
from wedgehog.harness.run.job import Job
from wedgehog.harness.run.run_services import Links
from wedgehog.harness.sandbox.database_locks import DatabaseLocks
from wedgehog.harness.sandbox.disk import SmallDisk
from wedgehog.harness.sandbox.hosts.private_hosts import PrivateHosts


@dataclass(frozen=True)
class AgentSandbox:
    """Makes each of them where the run needs it; none is open yet."""

    job: Job
    links: Links
    history: History
    folder: Path

    def small_disk(self) -> SmallDisk | None:
        """The disk that a fault fills, if there is such a fault."""
        if "disk" not in self.job.scenario.needs:
            return None
        home = self.folder.absolute()
        folders = session_folders(self.job.agent, self.job.scenario.sessions)
        theirs = sorted({f"cwd/{name.split('/')[0]}" for name in self.job.scenario.files_named if "/" in name})
        return SmallDisk(self.folder, [home / name for name in ("home", *folders, *theirs)])

    def private_hosts(self) -> PrivateHosts | None:
        """The agent's own network, if its spec names hard-coded hosts."""
        if not self.job.agent.hosts:
            return None
        return PrivateHosts(
            self.job.agent.hosts,
            self.links.addresses(),
            self.folder,
            self._host_refused,
            self._bad_certificate,
            ask_for_names="hosts" in self.job.scenario.needs,
        )

    def databases(self, context: AgentContext, sessions: Sequence[AgentContext]) -> DatabaseLocks:
        """The databases in the folders of the agent and of its sessions."""
        folders = [context.home, context.cwd, context.session_dir, *(it.session_dir for it in sessions)]
        return DatabaseLocks([context.outside(it) for it in dict.fromkeys(folders)], f"{self.job.mark}/locks")

    def _bad_certificate(self, host: str, kind: str, *, accepted: bool) -> None:
        self.history.add_unless_sealed(BadCertificateShown(host=host, flaw=kind, accepted=accepted))

    def _host_refused(self, host: str, why: str) -> None:
        self.history.add_unless_sealed(HostRefused(host=host, why=why))
