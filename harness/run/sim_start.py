"""Starts the worker of the simulated world: `python -m … SOCKET SHARED [PLUGIN…]`.

The worker is no main module, so a fork that is sent one of its classes does not import it a second time.
"""

from wedgehog.harness.sim.garbage import search_rarely


def main() -> None:
    """Import and run the worker; searches for garbage are rare already during its imports."""
    search_rarely()
    from wedgehog.harness.run import sim_worker

    sim_worker.main()


if __name__ == "__main__":
    main()
