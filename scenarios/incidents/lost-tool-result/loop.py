"""The agent loop: what must be in the log before a message is read, and when events are written."""

import sys
import time
from collections.abc import Callable
from typing import Any

from exec_tool import Exec
from model import Model, ModelError
from session import LOST, Session, tool_calls, tool_result, user

ROUNDS = 10
TURN_S = 75.0
LEAST_TURN_S = 5.0  # also where a time scale leaves less: a slow start on a busy machine is no stalled provider
LOOK_EVERY_S = 0.02

Json = dict[str, Any]


class Loop:
    """Plays the messages of one session. One of the fixes is here: the repair of lost results at load."""

    def __init__(
        self, session: Session, model: Model, tool: Exec, fixes: frozenset[str], time_scale: float = 1.0
    ) -> None:
        self._turn_s = max(LEAST_TURN_S, TURN_S / time_scale)
        self._session = session
        self._model = model
        self._exec = tool
        self._guards = "guard-at-load" in fixes
        self._tool_writes = "exec-deadline" in fixes

    def answer(self, text: str, reader_left: Callable[[], bool] = lambda: False) -> str:
        """One message, from its arrival to the model's last reply. Errors: ModelError, OSError.

        No model call goes on beyond the turn's budget of 75 s, and none follows a tool for a reader who has left. Both
        have no part in the incident.
        """
        if self._guards:
            self._inject_lost_results()
        self._wait_for_results()
        ends_s = time.monotonic() + self._turn_s
        self._session.append(user(text))
        context = self._session.messages
        unsaved: list[Json] = []
        for _round in range(ROUNDS):
            reply = self._model.complete(context, ends_s)
            self._save(*unsaved, reply)
            calls = tool_calls(reply)
            if not calls:
                return "".join(block["text"] for block in reply["content"] if block["type"] == "text")
            results = [self._exec.run(call) for call in calls]
            context = [*context, reply, *results]
            unsaved = [] if self._tool_writes else results
            if reader_left():
                self._save(*unsaved)
                raise ModelError("the reader of the answer has left")
        raise ModelError(f"no answer after {ROUNDS} rounds of tools")

    def _wait_for_results(self) -> None:
        """Wait until the results of all calls are in the log; any process may write them."""
        while self._session.pending:
            time.sleep(LOOK_EVERY_S)

    def _inject_lost_results(self) -> None:
        """No tool runs while a session is loaded, so a call without a result will never get one."""
        for call in self._session.pending:
            self._session.append(tool_result(call, LOST, is_error=True))

    def _save(self, *messages: Json) -> None:
        """A round's results are written together with the reply to them. A failed write is only logged."""
        try:
            self._session.append(*messages)
        except OSError as error:
            print(f"session write failed: {error}", file=sys.stderr)
