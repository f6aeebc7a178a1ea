"""The proxy's event loop: both streams, the control connection and the signals."""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable
from typing import NoReturn

from wedgehog.harness.stdio_proxy.child import FORWARDED, Child, exit_like
from wedgehog.harness.stdio_proxy.guard import Guard
from wedgehog.harness.stdio_proxy.harness_connection import HarnessConnection, HarnessGoneError
from wedgehog.harness.stdio_proxy.stream import NOW, ProxyStream

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
END_TIMEOUT_S = 0.5
"""After a signal that ends COMMAND, its last bytes may take this long to cross the link; later ones are dropped."""


class Signals:
    """Received signals as a descriptor for poll; a signal that was ignored at start stays ignored, also for COMMAND."""

    def __init__(self) -> None:
        self.descriptor, wake = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (*FORWARDED, signal.SIGCHLD):
            if number is signal.SIGCHLD or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda *_: None)

    def received(self) -> bytes:
        """The numbers of the signals received since the last call."""
        with contextlib.suppress(BlockingIOError):
            return os.read(self.descriptor, 256)
        return b""


class ProxyLoop:
    """Proxies both pipes of one COMMAND until it has ended and its output has crossed."""

    def __init__(
        self,
        control: HarnessConnection,
        child: Child,
        guard: Guard,
        signals: Signals,
        outward: ProxyStream,
        inward: ProxyStream,
    ) -> None:
        """`outward` carries COMMAND's stdout, `inward` its stdin."""
        self.control, self.child, self.guard, self.signals = control, child, guard, signals
        self.outward, self.inward = outward, inward
        self.streams: dict[str, ProxyStream] = {outward.name: outward, inward.name: inward}
        self._poll = select.poll()
        self._masks: dict[int, int] = {}
        self._reported: set[str] = set()
        self._end_requested = False
        self._dead_s = 0.0

    def run(self) -> NoReturn:
        """Proxy until COMMAND ends, then end this process with its status."""
        try:
            self._handle(self.control.buffered())
            self._on_signals()  # signals that arrived while we connected to the harness
            while not self._over():
                self._turn()
                self._report()
                self._die_of_reset()
        except HarnessGoneError:
            self._give_up()
        self._leave()

    # ---- one iteration

    def _turn(self) -> None:
        actions = self._wanted()
        for descriptor, happened in self._poll.poll(self._timeout_ms()):
            if act := actions.get(descriptor):
                act(happened)

    def _wanted(self) -> dict[int, Callable[[int], None]]:
        """The callback of each descriptor; registers with poll what has changed since the last call."""
        actions: dict[int, Callable[[int], None]] = {
            self.signals.descriptor: self._on_signals,
            self.control.socket.fileno(): self._on_control,
        }
        masks = dict.fromkeys(actions, select.POLLIN)
        for stream in (self.outward, self.inward):
            for descriptor, mask, act in stream.interests():
                actions[descriptor], masks[descriptor] = act, mask
        if masks != self._masks:
            for descriptor in self._masks.keys() - masks.keys():
                self._poll.unregister(descriptor)
            for descriptor, mask in masks.items():
                if self._masks.get(descriptor) != mask:
                    self._poll.register(descriptor, mask)
            self._masks = masks
        return actions

    def _timeout_ms(self) -> int | None:
        """How long poll may wait; None for no limit."""
        if self.child.status is None or not self._end_requested:
            return None
        return max(0, round((self._dead_s + END_TIMEOUT_S - time.monotonic()) * 1000))

    # ---- signals

    def _on_signals(self, _: int = 0) -> None:
        for number in self.signals.received():
            if number == signal.SIGCHLD:
                self._poll_child()
            elif self.child.status is not None and number in ENDING:
                self._end(-number)  # COMMAND has ended, so the signal is for us
            else:
                self._pass_on(number)
        self._poll_child()

    def _poll_child(self) -> None:
        if self.child.status is None:
            self.child.poll()
            self._dead_s = time.monotonic()

    def _pass_on(self, number: int) -> None:
        self._end_requested |= number in ENDING
        if not self.guard.went_to_group(number):
            self.child.send_signal(number)
        if number == signal.SIGTSTP:
            ours = signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)  # stops here until SIGCONT (an orphaned process group does not stop)
            signal.signal(number, ours)

    # ---- the harness

    def _on_control(self, _: int = 0) -> None:
        self._handle(self.control.received())

    def _handle(self, lines: list[list[str]]) -> None:
        for word, *rest in filter(None, lines):
            if word == "until":
                name, byte, asked = rest
                self.streams[name].stop({"none": None, "now": NOW}[byte] if byte.isalpha() else int(byte), asked)
        self._report()

    def _report(self) -> None:
        """Report what the harness waits for: a stop that was reached, a closed reader, a link that ended early."""
        if self.outward.abandoned and "abandoned" not in self._reported:
            self._reported.add("abandoned")
            self.control.say("abandoned")
        for stream in (self.outward, self.inward):
            if stream.stopped and stream.asked:
                self.control.say("stopped", stream.name, stream.sent, stream.asked)
                stream.asked = ""
            if stream.ended and stream.name not in self._reported:
                self._reported.add(stream.name)
                self.control.say("ended", stream.name, stream.ended, stream.received)

    # ---- the end

    def _over(self) -> bool:
        """Whether COMMAND has ended and its output has crossed, or cannot cross any more."""
        if self.child.status is None:
            return False
        if self._end_requested and time.monotonic() >= self._dead_s + END_TIMEOUT_S:
            return True
        source = self.outward.source
        silent = source is None or (self.outward.crossed and not source.ready())
        return self.outward.finished or silent

    def _die_of_reset(self) -> None:
        """Kill this process if a link was reset, so that COMMAND sees both of its pipes closed."""
        if any(stream.reset for stream in (self.outward, self.inward)):
            self._say_closed()
            self.guard.dismiss(wait=False)
            os.kill(os.getpid(), signal.SIGKILL)

    def _give_up(self) -> NoReturn:
        """Kill COMMAND and exit: without a harness, the run is over."""
        self.child.send_signal(signal.SIGKILL)
        self.guard.dismiss(wait=False)
        os._exit(70)

    def _leave(self) -> NoReturn:
        """Exit with COMMAND's status. A forked copy stays while COMMAND's descendants still use its pipes."""
        self.control.say("exit", self.child.status)
        self.guard.dismiss()
        if self._still_held() and os.fork() == 0:
            self._stay()
        else:
            if not self._still_held():
                self._say_closed()
            exit_like(self.child.status or 0)

    def _still_held(self) -> bool:
        """Whether a descendant of COMMAND may still write to or read from its pipes."""
        if self._end_requested and not self.outward.crossed:
            return False
        stdin = self.inward.sink
        return not self.outward.finished or (stdin is not None and stdin.has_reader())

    def _stay(self) -> NoReturn:
        self._end_requested = False
        for number in FORWARDED:
            signal.signal(number, signal.SIG_DFL)
        try:
            while not (self.outward.finished and self.inward.finished):
                self._turn()
                self._report()
                self._die_of_reset()
        except HarnessGoneError:
            os._exit(70)
        self._say_closed()
        os._exit(0)

    def _end(self, status: int) -> NoReturn:
        """Exit at once."""
        self.control.say("exit", status)
        self._say_closed()
        self.guard.dismiss()
        exit_like(status)

    def _say_closed(self) -> None:
        self.control.say("closed", self.outward.delivered, self.inward.delivered)
