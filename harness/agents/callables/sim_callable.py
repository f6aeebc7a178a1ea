"""An agent that is a Python function, in virtual time: on the harness's own event loop, in a greenlet if it blocks."""

import asyncio
import inspect
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from wedgehog.harness.agents.base import AgentError, Outcome, Session, Stimulus
from wedgehog.harness.agents.callables.callable_host import STACK_BELOW, load, taken, text_of
from wedgehog.harness.agents.context import AgentContext, Surroundings
from wedgehog.harness.agents.output_source import OutputSource
from wedgehog.harness.agents.sim_host import CALL, SimHost
from wedgehog.harness.agents.sim_process import SimTree
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.sandbox.owned import Tree
from wedgehog.harness.sandbox.started import what_imports
from wedgehog.harness.sim.blocking import BlockingError, run_blocking
from wedgehog.harness.sim.blocking_socket import blocking_connections
from wedgehog.harness.sim.own_loop import own_loops


class SimCallableSession(Session):
    """One call is one turn, as a task. A signal that would end a live agent's process ends its task."""

    def __init__(self, spec: AgentSpec, context: AgentContext, around: Surroundings, host: SimHost) -> None:
        """Nothing is imported yet: an import error belongs to the first turn."""
        super().__init__(spec, context, around, cast(Tree, SimTree("", host)))
        self._host = host
        self._target = around.fill(spec.callable or "")
        self._function: Callable[..., Any] | None = None
        self._call: asyncio.Task[str] | None = None
        self._signal: signal.Signals | None = None
        self.started = what_imports(self._target, [str(spec.here)])

    async def close(self) -> None:
        """End a call that runs on."""
        if self._call is not None:
            self._call.cancel()
            await asyncio.wait({self._call}, timeout=1.0)

    async def _say(self, text: str, kind: Stimulus, *, first: bool) -> Outcome:
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
            context = self._context
            every = {"session_dir": str(context.session_dir), "llm_url": context.llm_url, "key": context.key}
            given = taken(function, every)
            if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
                return text_of(await function(text, **given))
            with blocking_connections(), own_loops():
                return text_of(await run_blocking(function, text, **given))
        except BlockingError as missing:
            raise self._host.refused(missing) from None
        except BaseException:
            print(STACK_BELOW, file=sys.stderr)
            traceback.print_exc()
            raise

    def _in_turn(self) -> bool:
        return self._call is not None and not self._call.done()

    async def _abort(self) -> None:
        """What the spec's signal does to a live agent: SIGINT cancels the call, others end the process."""
        number = signal.Signals[self._spec.abort]
        self._signal = None if number == signal.SIGINT else number
        if self._call is not None:
            self._call.cancel()

    async def _stop(self, grace_s: float) -> None:
        """Cancel, `grace_s` for the call to return; then its process would be killed."""
        self._signal, call = None, self._call
        while call is not None and not call.done():
            call.cancel()
            await asyncio.wait({call}, timeout=0.1 if self._signal else grace_s)
            if not call.done():
                self._signal = signal.SIGKILL

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
        told = Outcome(answer, error, code, raised=raised or None, stdout=out, stderr=err, ended=self._ended)
        return replace(told, after_answer_s=None if raised else 0.0)  # its user has what it returns
