"""A small disk or a private network for an agent, without root. One process keeps it, and other processes enter it.

    mounting.py hold DISK FOLDER…              keep a disk until standard input ends
    mounting.py connect SOCKET SOURCE=TARGET…  keep a loopback-only network until the socket ends
    mounting.py enter HOLDER CWD COMMAND…      run the command there, in this process

Standard library only; Linux only. The disk is a tmpfs in a user and mount namespace of its own, mounted over folders.
Other processes do not see it, except below /proc/HOLDER/root.
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
"""Size of the disk before it is filled; memory is used only when files are written."""
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
    """Enter new namespaces with the same user and group ids."""
    uid, gid = os.getuid(), os.getgid()
    _checked(_libc.unshare(sum(NEW_NAMESPACES.values()) | more))
    for name, words in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123  importing pathlib slows the start
            file.write(words)
    mount("none", "/", "none", PRIVATE)


def mount_over(disk: str, folders: list[str]) -> None:
    """Create the disk and mount a part of it over each folder, with a copy of the folder's content."""
    os.mkdir(disk)  # noqa: PTH102
    mount("wedgehog", disk, "tmpfs", 0, f"size={LARGE},mode=700")
    with open(f"{disk}/first-page", "wb") as first:  # noqa: PTH123  tmpfs takes size=0 as "no limit"
        first.write(bytes(PAGE))
    for number, folder in enumerate(folders):
        shutil.copytree(folder, f"{disk}/{number}", symlinks=True)
        mount(f"{disk}/{number}", folder, "none", BIND)


def resize(disk: str, free_bytes: int) -> None:
    """Leave `free_bytes` free, rounded down to whole pages."""
    seen = os.statvfs(disk)
    used = (seen.f_blocks - seen.f_bfree) * seen.f_frsize
    mount("wedgehog", disk, "tmpfs", REMOUNT, f"size={used + free_bytes // PAGE * PAGE}")


def hold(disk: str, *folders: str) -> None:
    """Keep the disk until standard input ends; each input line is the number of bytes to leave free."""
    alone()
    mount_over(disk, list(folders))
    print(READY, flush=True)
    for line in sys.stdin:
        reply = TOO_SMALL
        with contextlib.suppress(OSError):
            resize(disk, int(line))
            reply = DONE
        print(reply, flush=True)


def connect(number: str, *mounts: str) -> None:
    """Keep a network until the socket `number` ends; create a socket for each request on it.

    A request is `stream HOST PORT` or `datagram HOST PORT`; the reply is the socket, or an error text. Each of `mounts`
    is `SOURCE=TARGET`: a file or folder that is mounted over another one.
    """
    harness = socket.socket(fileno=int(number))
    alone(NETWORK["net"])
    for pair in mounts:
        source, _, target = pair.partition("=")
        mount(source, target, "none", BIND)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh", b"lo", UP))
    harness.send(READY.encode())
    while asked := harness.recv(PAGE):
        send_socket(harness, *asked.decode().split())


def send_socket(harness: socket.socket, kind: str, host: str, port: str) -> None:
    """Send a bound (and listening) socket to the harness."""
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
    """Run the command on the disk or network that the process `holder` keeps."""
    for name, flag in (NEW_NAMESPACES | NETWORK).items():
        theirs, ours = (os.readlink(f"/proc/{whose}/ns/{name}") for whose in (holder, "self"))  # noqa: PTH115  likewise
        if theirs == ours:
            continue
        handle = os.open(f"/proc/{holder}/ns/{name}", os.O_RDONLY)
        _checked(_libc.setns(handle, flag))
        os.close(handle)
    os.chdir(cwd)
    try:
        os.execvp(command[0], command)  # noqa: S606  running it is the purpose
    except OSError as wrong:
        sys.exit(f"{command[0]}: {wrong.strerror}")


if __name__ == "__main__":
    programs: dict[str, Callable[..., None]] = {"hold": hold, "connect": connect, "enter": enter}
    programs[sys.argv[1]](*sys.argv[2:])
