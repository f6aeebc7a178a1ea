"""Starts the worker of the simulated world: `python -m … SOCKET SHARED [PLUGIN…]`.

The worker is no main module, so a fork that is sent one of its classes does not import it a second time.
"""

import gc


def main() -> None:
    """Import and run the worker. It looks for garbage once it has imported all: what it imports stays."""
    gc.disable()
    from wedgehog.harness.run.simulated import sim_worker

    sim_worker.main()


if __name__ == "__main__":
    main()
