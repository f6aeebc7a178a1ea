"""What an agent gets for itself without root: a small disk, a network. Somebody holds it, and others enter it.

    mounting.py hold DISK FOLDER…              a disk, until standard input ends
    mounting.py connect SOCKET SOURCE=TARGET…  a network with nothing but loopback, until the socket ends
    mounting.py enter HOLDER CWD COMMAND…      become the command there

Standard library only; Linux only. The disk is a tmpfs in a user and mount namespace of its own, laid over folders of
whoever is started there; for everybody else it does not exist, except below /proc/HOLDER/root.
"""

import contextlib
import ctypes
import fcntl
import os
import shutil
import socket
import struct
import sys
from collections.abc import Callable

NEW_NAMESPACES = {"user": 0x10000000, "mnt": 0x00020000}
NETWORK = {"net": 0x40000000}
REMOUNT, BIND, PRIVATE = 32, 4096, (1 << 18) | (1 << 14)
PAGE = 4096
LARGE = 256 * 2**20
"""What the disk can hold until it is made full; nothing is taken for it before it is used."""
READY, DONE, TOO_SMALL = "ready", "done", "it cannot be made that small"
SET_FLAGS, UP = 0x8914, 0x41

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """mount(2)."""
    _checked(_libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode()))


def alone(more: int = 0) -> None:
    """Go into namespaces of our own, as the user that we are."""
    uid, gid = os.getuid(), os.getgid()
    _checked(_libc.unshare(sum(NEW_NAMESPACES.values()) | more))
    for name, words in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123  pathlib would make the start slower
            file.write(words)
    mount("none", "/", "none", PRIVATE)


def lay(disk: str, folders: list[str]) -> None:
    """Make the disk, and lay a part of it over each folder; what lay there is copied."""
    os.mkdir(disk)  # noqa: PTH102
    mount("wedgehog", disk, "tmpfs", 0, f"size={LARGE},mode=700")
    with open(f"{disk}/first-page", "wb") as first:  # noqa: PTH123  a size of nothing would mean: no limit
        first.write(bytes(PAGE))
    for number, folder in enumerate(folders):
        shutil.copytree(folder, f"{disk}/{number}", symlinks=True)
        mount(f"{disk}/{number}", folder, "none", BIND)


def resize(disk: str, free_bytes: int) -> None:
    """Leave room for so much more."""
    seen = os.statvfs(disk)
    used = (seen.f_blocks - seen.f_bfree) * seen.f_frsize
    mount("wedgehog", disk, "tmpfs", REMOUNT, f"size={used + free_bytes // PAGE * PAGE}")


def hold(disk: str, *folders: str) -> None:
    """Keep the disk until standard input ends; each line of it is how much room there shall be."""
    alone()
    lay(disk, list(folders))
    print(READY, flush=True)
    for line in sys.stdin:
        said = TOO_SMALL
        with contextlib.suppress(OSError):
            resize(disk, int(line))
            said = DONE
        print(said, flush=True)


def connect(number: str, *laid: str) -> None:
    """Keep a network until the socket `number` ends, and hand out sockets of it: each message asks for one.

    It says `stream HOST PORT` or `datagram HOST PORT`; what comes back is the socket, or why there is none. Each of
    `laid` is `SOURCE=TARGET`: a file or a folder that lies over another one there.
    """
    harness = socket.socket(fileno=int(number))
    alone(NETWORK["net"])
    for pair in laid:
        source, _, target = pair.partition("=")
        mount(source, target, "none", BIND)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh", b"lo", UP))
    harness.send(READY.encode())
    while asked := harness.recv(PAGE):
        hand_out(harness, *asked.decode().split())


def hand_out(harness: socket.socket, kind: str, host: str, port: str) -> None:
    """A socket that is bound there (and listens), to whoever asked."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "stream" else socket.SOCK_DGRAM) as made:
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((host, int(port)))
            if kind == "stream":
                made.listen(128)
        except OSError as wrong:
            harness.send(f"{host}:{port}: {wrong.strerror}".encode())
        else:
            socket.send_fds(harness, [DONE.encode()], [made.fileno()])


def enter(holder: str, cwd: str, *command: str) -> None:
    """Become the command, on the disk or the network that the process `holder` keeps."""
    for name, flag in (NEW_NAMESPACES | NETWORK).items():
        theirs, ours = (os.readlink(f"/proc/{whose}/ns/{name}") for whose in (holder, "self"))  # noqa: PTH115  likewise
        if theirs == ours:
            continue
        handle = os.open(f"/proc/{holder}/ns/{name}", os.O_RDONLY)
        _checked(_libc.setns(handle, flag))
        os.close(handle)
    os.chdir(cwd)
    try:
        os.execvp(command[0], command)  # noqa: S606  it is what we are here for
    except OSError as wrong:
        sys.exit(f"{command[0]}: {wrong.strerror}")


if __name__ == "__main__":
    programs: dict[str, Callable[..., None]] = {"hold": hold, "connect": connect, "enter": enter}
    programs[sys.argv[1]](*sys.argv[2:])
