"""The shim at work: one loop over both streams, the control connection and the signals."""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable

from wedgehog.harness.stdio_proxy.child import FORWARDED, Child, die_like
from wedgehog.harness.stdio_proxy.guard import Guard
from wedgehog.harness.stdio_proxy.harness_connection import HarnessConnection, HarnessGoneError
from wedgehog.harness.stdio_proxy.stream import NOW, ProxyStream

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
HURRY_S = 0.5
"""Whoever tells a tool to end expects it to: its last bytes may take this long to cross, then it is gone without."""


class Signals:
    """Signals as something to poll for; one that we were started to ignore stays ignored, by COMMAND too."""

    def __init__(self) -> None:
        """Listen from here on."""
        self.descriptor, wake = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (*FORWARDED, signal.SIGCHLD):
            if number is signal.SIGCHLD or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda *_: None)

    def come(self) -> bytes:
        """Numbers of the signals that have come."""
        with contextlib.suppress(BlockingIOError):
            return os.read(self.descriptor, 256)
        return b""


class ProxyLoop:
    """Both directions of one COMMAND's pipe, until it is dead and all that it said has crossed."""

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
        self._told_to_end = False
        self._dead_s = 0.0

    def run(self) -> None:
        """Never returns: it ends as COMMAND ends."""
        try:
            self._obey(self.control.left())
            self._signalled()  # what came while we were calling the harness
            while not self._over():
                self._turn()
                self._report()
                self._die_of_reset()
        except HarnessGoneError:
            self._give_up()
        self._leave()

    # ---- one turn of the loop

    def _turn(self) -> None:
        actions = self._wanted()
        for descriptor, happened in self._poll.poll(self._patience()):
            if act := actions.get(descriptor):
                act(happened)

    def _wanted(self) -> dict[int, Callable[[int], None]]:
        """What to do for each descriptor; poll is told only what has changed since the last time."""
        actions: dict[int, Callable[[int], None]] = {
            self.signals.descriptor: self._signalled,
            self.control.socket.fileno(): self._told,
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

    def _patience(self) -> int | None:
        """How long to wait for something to happen, in milliseconds."""
        if self.child.status is None or not self._told_to_end:
            return None
        return max(0, round((self._dead_s + HURRY_S - time.monotonic()) * 1000))

    # ---- signals

    def _signalled(self, _: int = 0) -> None:
        for number in self.signals.come():
            if number == signal.SIGCHLD:
                self._look()
            elif self.child.status is not None and number in ENDING:
                self._end(-number)  # what is left of COMMAND is us
            else:
                self._pass_on(number)
        self._look()

    def _look(self) -> None:
        if self.child.status is None:
            self.child.look()
            self._dead_s = time.monotonic()

    def _pass_on(self, number: int) -> None:
        self._told_to_end |= number in ENDING
        if not self.guard.went_to_group(number):
            self.child.tell(number)
        if number == signal.SIGTSTP:
            ours = signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)  # and here we stand, unless we are an orphan, until SIGCONT
            signal.signal(number, ours)

    # ---- the harness

    def _told(self, _: int = 0) -> None:
        self._obey(self.control.heard())

    def _obey(self, lines: list[list[str]]) -> None:
        for word, *rest in filter(None, lines):
            if word == "until":
                name, byte, asked = rest
                self.streams[name].stop({"none": None, "now": NOW}[byte] if byte.isalpha() else int(byte), asked)
        self._report()

    def _report(self) -> None:
        """Tell what the harness waits for: who stands, who was left, and which link ended before its time."""
        if self.outward.abandoned and "abandoned" not in self._reported:
            self._reported.add("abandoned")
            self.control.say("abandoned")
        for stream in (self.outward, self.inward):
            if stream.stands and stream.asked:
                self.control.say("stands", stream.name, stream.sent, stream.asked)
                stream.asked = ""
            if stream.ended and stream.name not in self._reported:
                self._reported.add(stream.name)
                self.control.say("ended", stream.name, stream.ended, stream.received)

    # ---- the end

    def _over(self) -> bool:
        """Whether COMMAND is dead and all that it had said has crossed, or cannot any more."""
        if self.child.status is None:
            return False
        if self._told_to_end and time.monotonic() >= self._dead_s + HURRY_S:
            return True
        source = self.outward.source
        silent = source is None or (self.outward.crossed and not source.ready())
        return self.outward.finished or silent

    def _die_of_reset(self) -> None:
        """A reset pipe is a dead process: both ends closed, no goodbye; COMMAND finds out as it would."""
        if any(stream.reset for stream in (self.outward, self.inward)):
            self._say_closed()
            self.guard.dismiss(wait=False)
            os.kill(os.getpid(), signal.SIGKILL)

    def _give_up(self) -> None:
        """Without a harness there is no run any more, and nothing of it may stay."""
        self.child.tell(signal.SIGKILL)
        self.guard.dismiss(wait=False)
        os._exit(70)

    def _leave(self) -> None:
        """Go as COMMAND went. What it left behind with its pipes in hand still needs them: a copy of us stays."""
        self.control.say("exit", self.child.status)
        self.guard.dismiss()
        if self._still_held() and os.fork() == 0:
            self._stay()
        else:
            if not self._still_held():
                self._say_closed()
            die_like(self.child.status or 0)

    def _still_held(self) -> bool:
        """Whether a descendant of COMMAND may still write to or read from its pipes."""
        if self._told_to_end and not self.outward.crossed:
            return False
        stdin = self.inward.sink
        return not self.outward.finished or (stdin is not None and stdin.read_by_somebody())

    def _stay(self) -> None:
        self._told_to_end = False
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

    def _end(self, status: int) -> None:
        """Go at once."""
        self.control.say("exit", status)
        self._say_closed()
        self.guard.dismiss()
        die_like(status)

    def _say_closed(self) -> None:
        self.control.say("closed", self.outward.delivered, self.inward.delivered)
