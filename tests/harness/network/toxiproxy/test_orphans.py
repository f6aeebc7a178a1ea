"""A Toxiproxy server that we started does not outlive us, however we end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's death")

SERVER = """\
#!{python} -IS
import http.server, sys

class Version(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{{"version": "git"}}')

http.server.HTTPServer((sys.argv[2], int(sys.argv[4])), Version).serve_forever()
"""
HARNESS = """\
import asyncio, sys
from pathlib import Path
from wedgehog.harness.network.toxiproxy.server import start

async def main():
    async with start(Path(sys.argv[1])) as server:
        print(server.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def test_a_server_ends_with_a_harness_that_is_killed(tmp_path: Path):
    """Though no watchdog process is left to end it either."""
    server = tmp_path / "toxiproxy-server"
    server.write_text(SERVER.format(python=sys.executable))
    server.chmod(0o755)
    words = [sys.executable, "-c", HARNESS, str(server)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as harness:
        assert harness.stdout is not None
        child = psutil.Process(int(harness.stdout.readline()))
        assert child.is_running() and str(server) in child.cmdline()
        os.kill(harness.pid, signal.SIGKILL)
    try:
        child.wait(10)
    except psutil.TimeoutExpired:
        child.kill()
        pytest.fail("the server outlived the harness")
