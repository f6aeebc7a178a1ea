"""The drivers' only tool: a shell command, its output, and its exit code if that is not 0."""

import subprocess

TIMEOUT_S = 60


def bash(command: str) -> str:
    """Run a shell command and return its output."""
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    output = done.stdout + done.stderr
    return output if done.returncode == 0 else f"{output}\n(exit code {done.returncode})"
