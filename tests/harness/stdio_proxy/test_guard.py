"""The guard tells a signal to the group from one to the process, and kills the command when the proxy dies."""

import signal
import subprocess
import sys
import threading
from typing import Any

import psutil
import pytest

FORGETS = """
import os, signal
from wedgehog.harness.stdio_proxy.guard import Guard
guard = Guard()
for _ in range(300):
    assert not guard.went_to_group(signal.SIGUSR1)
    os.kill(guard.pid, signal.SIGUSR1)
    assert guard.went_to_group(signal.SIGUSR1)
os.kill(guard.pid, signal.SIGUSR2)
assert not guard.went_to_group(signal.SIGUSR1)
guard.dismiss()
print("well")
"""
DIES = """
import os, signal, subprocess, sys
from wedgehog.harness.stdio_proxy.guard import Guard
guard = Guard()
tool = subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=-3, stderr=-3)
guard.protect(tool.pid)
if sys.argv[1] == "unheard":  # an unread reply must not hide the end
    os.kill(guard.pid, signal.SIGUSR1)
    guard._send(bytes([signal.SIGUSR1]))
print(tool.pid, guard.pid, flush=True)
if sys.argv[1] == "dismissed":
    guard.dismiss()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows pending signals")
def test_a_group_signal_counts_once_and_the_next_one_is_new():
    """A pending signal is cleared before the proxy continues."""
    done = subprocess.run([sys.executable, "-c", FORGETS], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("well\n", "")


def gone(pid: int) -> bool:
    """Whether that process ends (or is a zombie) within five seconds."""
    poll = threading.Event()
    for _ in range(500):
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        poll.wait(0.01)
    return False


@pytest.mark.parametrize(("how", "lives"), [("killed", False), ("unheard", False), ("dismissed", True)])
def test_the_command_dies_with_a_killed_proxy_unless_the_guard_was_dismissed(how: str, lives: bool):
    """The guard itself ends too."""
    done: Any = subprocess.run(
        [sys.executable, "-c", DIES, how], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == -signal.SIGKILL
    tool, guard = map(int, done.stdout.split())
    assert gone(guard)
    if lives:
        assert psutil.Process(tool).status() != psutil.STATUS_ZOMBIE
        psutil.Process(tool).kill()
    assert gone(tool)
