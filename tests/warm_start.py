"""`warm_start.py SOCKET WORDS…`: has `python WORDS…` run by `warm_python.py`, and ends as it ends.

It passes SIGINT and SIGTERM on to the program.
"""

import json
import os
import signal
import socket
import sys

signal.signal(signal.SIGINT, signal.SIG_DFL)
PASSED_ON = (signal.SIGINT, signal.SIGTERM)
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect(sys.argv[1])
    told = {"words": sys.argv[2:], "folder": os.getcwd(), "environment": dict(os.environ)}  # noqa: PTH109
    told["niceness"] = os.getpriority(os.PRIO_PROCESS, 0)
    socket.send_fds(server, [json.dumps(told).encode()], [0, 1, 2])
    os.closerange(0, 3)  # the program has them now, and may close them
    for passed_on in PASSED_ON:
        signal.signal(passed_on, lambda number, _: server.send(str(number).encode()))
    code = int(server.recv(99) or 1)
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
