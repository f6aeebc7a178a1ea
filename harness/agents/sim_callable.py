"""An agent that is a Python function, in virtual time: on the harness's own event loop, in a greenlet if it blocks."""

import asyncio
import inspect
import signal
import traceback
from collections.abc import Callable
from typing import Any, cast

from wedgehog.harness.agents.base import (
    AgentContext,
    AgentError,
    DeliveredSignal,
    Outcome,
    Session,
    Stimulus,
    Surroundings,
    TurnEnding,
)
from wedgehog.harness.agents.callable_host import load, text_of
from wedgehog.harness.agents.sim_host import CALL, SimHost
from wedgehog.harness.agents.sim_process import SimTree
from wedgehog.harness.agents.sources import OutputSource
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.sandbox.owned import Tree
from wedgehog.harness.sandbox.started import what_imports
from wedgehog.harness.sim.blocking import BlockingError, run_blocking
from wedgehog.harness.sim.blocking_socket import blocking_connections


class SimCallableSession(Session):
    """One call is one turn, as a task. A signal that would end a live agent's process ends its task."""

    def __init__(self, spec: AgentSpec, place: AgentContext, around: Surroundings, host: SimHost) -> None:
        """Nothing is imported yet."""
        super().__init__(spec, place, around, cast(Tree, SimTree("", host)))
        self._host = host
        self._target = around.fill(spec.callable or "")
        self._function: Callable[..., Any] | None = None
        self._call: asyncio.Task[str] | None = None
        self._signal: signal.Signals | None = None
        self.started = what_imports(self._target, [str(spec.here)])

    async def open(self) -> None:
        """The first message imports the function, so an import error belongs to that turn."""

    async def close(self) -> None:
        """End a call that runs on."""
        if self._call is not None:
            self._call.cancel()
            await asyncio.wait({self._call}, timeout=1.0)

    async def say(self, text: str, *, kind: Stimulus = "user", first: bool) -> Outcome:
        """Call the function. Raises AgentError for one that needs what is not simulated."""
        if kind == "wake_up":
            raise AgentError(f"{self._spec.path}: a callable has no wake_up")
        self._host.forget_output()
        self._ended, self._signal = "by itself", None
        call = self._call = asyncio.create_task(self._answer(text), name=CALL)
        try:
            await asyncio.wait({call})
        except asyncio.CancelledError:
            call.cancel()
            raise
        self._host.check()
        return self._outcome(call)

    async def _answer(self, text: str) -> str:
        try:
            function = self._function = self._function or load(self._target)
            place = self._place
            given = {"session_dir": str(place.session_dir), "llm_url": place.llm_url, "key": place.key}
            if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
                return text_of(await function(text, **given))
            with blocking_connections():
                return text_of(await run_blocking(function, text, **given))
        except BlockingError as missing:
            raise self._host.refused(missing) from None
        except BaseException:
            traceback.print_exc()
            raise

    async def abort(self) -> None:
        """What the spec's signal does to a live agent: SIGINT cancels the call, others end the process."""
        number = signal.Signals[self._spec.abort]
        self._cancel("aborted", None if number == signal.SIGINT else number)

    async def give_up(self) -> None:
        """End the call, as a user who stops waiting does."""
        await self._end("gave up", 5.0)

    async def end_turn(self, grace_s: float = 5.0) -> None:
        """Cancel, `grace_s` for the call to return; then its process would be killed."""
        await self._end("deadline", grace_s)

    @property
    def leader(self) -> None:
        """There is no process."""

    def beside(self) -> None:
        """None: it makes one call at a time."""

    def signalled(self, delivered: DeliveredSignal) -> None:
        """There is no process."""

    async def _end(self, ended: TurnEnding, grace_s: float) -> None:
        call = self._cancel(ended, None)
        if call is None:
            return
        await asyncio.wait({call}, timeout=grace_s)
        while not call.done():
            self._signal = signal.SIGKILL
            call.cancel()
            await asyncio.wait({call}, timeout=0.1)

    def _cancel(self, ended: TurnEnding, number: signal.Signals | None) -> "asyncio.Task[str] | None":
        if self._call is None or self._call.done():
            return None
        self._ended, self._signal = ended, number
        self._call.cancel()
        return self._call

    def _outcome(self, call: "asyncio.Task[str]") -> Outcome:
        raised = answer = ""
        code: int | None = None
        if self._signal is not None:  # the process would have ended
            self._function, code = None, -self._signal
            raised = f"the process ended with exit code {code}"
        elif call.cancelled():
            raised = "KeyboardInterrupt"
        elif error := call.exception():
            if isinstance(error, AgentError):
                raise error
            raised = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        else:
            answer = call.result()
        return self._told(answer, raised, code)

    def _told(self, answer: str, raised: str, code: int | None) -> Outcome:
        out, err = self._host.output()
        error = raised
        if "error" in self._spec.model_fields_set and not raised:
            source = OutputSource.parse(self._spec.error)
            error = err if source.kind == "stderr" else source.within(out)
        return Outcome(answer, error, code, raised=raised or None, stdout=out, stderr=err, ended=self._ended)
