"""What the simulated world cannot do, and what stops in it for ever.

SimError
├── SimDeadlockError       every task waits, and no timer will wake one of them
├── SimHorizonError        the next timer lies behind the end of the simulated time
└── SimUnsupportedError    real sockets, processes, threads, signals: these need the live world
"""

LIVE = "it needs the live world (`--world live`)"


class SimError(RuntimeError):
    """Base class of the errors of the simulated world."""


class SimDeadlockError(SimError):
    """Every task waits, and no timer will wake one of them; the message has a line for each task."""


class SimHorizonError(SimError):
    """The next timer lies behind the end of the simulated time."""


class SimUnsupportedError(SimError, NotImplementedError):
    """Something that the simulated world does not have; `what` names it.

    It is a NotImplementedError too: libraries expect that from an event loop without signals or child processes.
    """

    def __init__(self, what: str) -> None:
        """`what` is the subject of the sentence."""
        super().__init__(f"{what} is not simulated: {LIVE}")
        self.what = what
