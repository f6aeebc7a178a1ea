"""An agent that is a service, in virtual time: its `simulate` function runs on the harness's own event loop."""

import asyncio
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from wedgehog.harness.agents.base import AgentContext, Outcome, Stimulus
from wedgehog.harness.agents.callable_host import load
from wedgehog.harness.agents.http import HttpSession
from wedgehog.harness.agents.sim_host import SERVICE, SimHost
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.surroundings import Surroundings
from wedgehog.harness.sandbox import Owned, Tree


class SimService:
    """The service's task, with what HttpSession asks of the process that it is live."""

    pid: int | None = None

    def __init__(self, target: str, argv: Sequence[str], host: SimHost) -> None:
        """Start `target`, an async function, with the arguments that its program would get."""
        self._host = host
        self._task = asyncio.create_task(self._serve(target, list(argv)), name=SERVICE)

    async def _serve(self, target: str, argv: list[str]) -> int:
        try:
            await load(target)(argv)
        except asyncio.CancelledError:
            raise
        except BaseException:
            traceback.print_exc()
            return 1
        return 0

    @property
    def exit_code(self) -> int | None:
        """0 or 1 when it has ended."""
        if not self._task.done():
            return None
        return 0 if self._task.cancelled() else self._task.result()

    async def ended(self) -> int:
        """Wait for its end."""
        await asyncio.wait({self._task})
        return self.exit_code or 0

    finished = ended

    def output(self) -> tuple[str, str]:
        """What it printed."""
        return self._host.output()

    def forget_output(self) -> None:
        """Begin again."""
        self._host.forget_output()

    async def end(self) -> None:
        """Cancel it."""
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=1.0)


class SimTree:
    """Starts the service; the counterpart of `sandbox.Tree`."""

    def __init__(self, target: str, host: SimHost) -> None:
        """Nothing runs yet."""
        self._target, self._host = target, host
        self._services: list[SimService] = []

    async def start(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path) -> SimService:
        """Start the service: what follows the program and its script in `argv` are its arguments."""
        service = SimService(self._target, argv[2:], self._host)
        self._services.append(service)
        return service

    async def end(self) -> None:
        """End every service."""
        for service in self._services:
            await service.end()


class SimHttpSession(HttpSession):
    """The same requests over simulated TCP; nothing here has a process."""

    def __init__(self, spec: AgentSpec, place: AgentContext, around: Surroundings, host: SimHost) -> None:
        """Nothing is started yet."""
        assert spec.http is not None and spec.http.simulate is not None  # noqa: S101  `why_not_simulated` checks it
        self._sim_tree, self._host = SimTree(around.fill(spec.http.simulate), host), host
        super().__init__(spec, place, around, cast(Tree, self._sim_tree))

    @property
    def leader(self) -> Owned | None:
        """There is no process."""
        return None

    async def say(self, text: str, *, kind: Stimulus = "user", first: bool) -> Outcome:
        """Send the message. Raises AgentError for a service that needs what is not simulated."""
        outcome = await super().say(text, kind=kind, first=first)
        self._host.check()
        return outcome

    async def close(self) -> None:
        """End the service."""
        await super().close()
        await self._sim_tree.end()
