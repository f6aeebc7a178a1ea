"""Finds or fetches a Toxiproxy server of the pinned version, and runs it.

The search order is: `$WEDGEHOG_TOXIPROXY`, `toxiproxy-server` on PATH, our cache. If none is found, it is fetched into
the cache: the official release binary, else `go install` where Go is installed (Go's checksum database verifies that).

The release binary's SHA-256 is pinned for the four common platforms; several unrelated public projects pin the same
values. For other platforms the release's own `checksums.txt` is read over https, which detects an incomplete download,
but not a changed release. The download has been tested against a local server only.
"""

import asyncio
import contextlib
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from urllib.parse import urlsplit

import platformdirs
import requests

from wedgehog.harness.network.base import Address, NetworkError
from wedgehog.harness.network.ports import HOST, free_port
from wedgehog.harness.network.toxiproxy.api import ToxiproxyApi, ToxiproxyGoneError

VERSION = "2.12.0"
BUILT_BY_GO = "git"  # the version that a server built by `go install` reports
RELEASE = f"https://github.com/Shopify/toxiproxy/releases/download/v{VERSION}"
MODULE = f"github.com/Shopify/toxiproxy/v2/cmd/server@v{VERSION}"
SHA256 = {
    "toxiproxy-server-linux-amd64": "556d891134a3c582dc1e1a3f7335fd55142e5965769855a00b944e13e48302fc",
    "toxiproxy-server-linux-arm64": "53e770c1c3035b5a9f1bc629fce537db1f95f62b26f4ebe6e756afd701cf077c",
    "toxiproxy-server-darwin-amd64": "9625bba4bd96117eedae49f982aba4c2f462b268dd406c9ff18186f9b1ef8afe",
    "toxiproxy-server-darwin-arm64": "aa299966b52f16a8594f1cd0d1e9049dc2e8fe2c04a90c19860e2719b2b95d15",
}
MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
FETCH_S, START_S = 180.0, 10.0
ENDS_WITH_US = """\
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
"""Asks the kernel for a signal at our death, then becomes the program, unless we died meanwhile.

A `preexec_fn` would run Python between fork and exec, which can deadlock where there are threads.
"""

Say = Callable[[str], None]


class NoServerError(NetworkError):
    """Toxiproxy is required and not available; the message says what was tried and what to do."""


@dataclass(frozen=True, slots=True)
class Located:
    """Where a server was found: `how` names the place, `tried` lists the places without one, in order."""

    path: Path | None
    how: str
    version: str | None
    tried: tuple[str, ...]


def locate() -> Located:
    """Find a server of the pinned version on this machine; download nothing."""
    tried: list[str] = []
    cached = cache_path()
    places = {
        "$WEDGEHOG_TOXIPROXY": os.environ.get("WEDGEHOG_TOXIPROXY"),
        "PATH": shutil.which("toxiproxy-server"),
        "cache": cached if cached.exists() else None,
    }
    for how, found in places.items():
        if not found:
            tried.append(f"{how}: nothing there")
            continue
        path = Path(found)
        version = version_of(path)
        if version in (VERSION, BUILT_BY_GO):
            return Located(path, how, version, tuple(tried))
        tried.append(f"{how}: {path} {_unfit(version)}")
    return Located(None, "not found", None, tuple(tried))


def _unfit(version: str | None) -> str:
    return f"is version {version}, not {VERSION}" if version else "does not run"


def cache_path() -> Path:
    """Return the path of a fetched server."""
    name = "toxiproxy-server.exe" if sys.platform == "win32" else "toxiproxy-server"
    return Path(platformdirs.user_cache_dir("wedgehog")) / "toxiproxy" / VERSION / name


def version_of(path: Path) -> str | None:
    """Return the version that a binary reports, `git` for one that Go built; None if it does not run."""
    try:
        done = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"version (\S+)", done.stdout)
    return found.group(1) if found and done.returncode == 0 else None


def fetch(say: Say) -> Located:
    """Fetch a server into the cache: the release binary, else one built by Go. Raises NoServerError."""
    if os.environ.get("WEDGEHOG_OFFLINE") == "1":
        raise NoServerError("WEDGEHOG_OFFLINE=1 forbids the download of Toxiproxy")
    tried: list[str] = []
    for how, way in (("release", download), ("go install", build)):
        try:
            path = way(say, FETCH_S)
        except (NoServerError, OSError, subprocess.SubprocessError) as error:
            tried.append(f"{how}: {_in_words(error)}")
        else:
            return Located(path, how, version_of(path), tuple(tried))
    raise NoServerError("Toxiproxy could not be fetched: " + "; ".join(tried))


def _in_words(error: Exception) -> str:
    match error:
        case requests.ConnectionError(request=requests.PreparedRequest(url=str(url))):
            return f"{urlsplit(url).hostname} cannot be reached"
        case subprocess.TimeoutExpired(timeout=limit_s):
            return f"it took longer than {limit_s:g} s, and goes on from there in the next run"
    return shorten(str(error).partition("\n")[0], 200, placeholder=" …") or type(error).__name__


def asset() -> str:
    """Return the name of the release's file for this platform."""
    machine = platform.machine().lower()
    suffix = ".exe" if sys.platform == "win32" else ""
    return f"toxiproxy-server-{platform.system().lower()}-{MACHINES.get(machine, machine)}{suffix}"


def download(say: Say, deadline_s: float, release: str = RELEASE) -> Path:
    """Download the release binary, verify its checksum, and move it into the cache atomically."""
    name, target = asset(), cache_path()
    say(f"fetching {name} {VERSION} from {release}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        part = Path(folder) / name
        digest = _stream(f"{release}/{name}", part, say, deadline_s)
        expected = SHA256.get(name) or _published(release, name)
        if digest != expected:
            raise NoServerError(f"{name} has checksum {digest}, expected {expected}")
        _install(part, target)
    return target


def _stream(url: str, into: Path, say: Say, deadline_s: float) -> str:
    """Write a URL's body to a file and return its SHA-256."""
    digest, got, shown = hashlib.sha256(), 0, 0
    with (
        requests.get(url, stream=True, timeout=(10, 30)) as answer,
        _closed_after(answer, url, deadline_s),
        into.open("wb") as file,
    ):
        if answer.status_code != requests.codes.ok:
            raise NoServerError(f"{url} answered {answer.status_code}")
        for chunk in answer.iter_content(1 << 16):
            file.write(chunk)
            digest.update(chunk)
            got += len(chunk)
            if got - shown >= 1 << 21:
                shown = got
                say(f"fetched {got >> 20} MB")
    return digest.hexdigest()


@contextlib.contextmanager
def _closed_after(answer: requests.Response, url: str, deadline_s: float) -> Iterator[None]:
    """Close the connection at the deadline; NoServerError if the body then ended without an error."""
    over = threading.Event()

    def give_up() -> None:
        over.set()
        answer.close()

    alarm = threading.Timer(deadline_s, give_up)
    alarm.daemon = True
    alarm.start()
    try:
        yield
    finally:
        alarm.cancel()
    if over.is_set():
        raise NoServerError(f"{url} took longer than {deadline_s:g} s")


def _published(release: str, name: str) -> str:
    """Return the checksum of a file from the release's `checksums.txt`."""
    text = requests.get(f"{release}/checksums.txt", timeout=(10, 30)).text
    rows = (line.split() for line in text.splitlines())
    found = next((row[0] for row in rows if row[1:] == [name]), None)
    if found is None:
        raise NoServerError(f"the release has no {name}")
    return found


def build(say: Say, deadline_s: float) -> Path:
    """Build the server by `go install`; Go verifies the module checksums."""
    go = shutil.which("go")
    if go is None:
        raise NoServerError("no Go toolchain on PATH")
    say(f"building Toxiproxy {VERSION} with {go}, once; it takes about a minute (--network embedded needs none)")
    target = cache_path()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        env = {**os.environ, "GOBIN": folder}
        done = subprocess.run(
            [go, "install", MODULE], env=env, capture_output=True, text=True, timeout=deadline_s, check=False
        )
        if done.returncode != 0:
            raise NoServerError((done.stderr.strip().splitlines() or ["go install failed"])[-1])
        _install(Path(folder) / ("server.exe" if sys.platform == "win32" else "server"), target)
    return target


def _install(file: Path, target: Path) -> None:
    file.chmod(0o755)
    version = version_of(file)
    if version not in (VERSION, BUILT_BY_GO):
        raise NoServerError(f"the fetched server {_unfit(version)}")
    file.replace(target)


@dataclass(frozen=True, slots=True)
class ToxiproxyServer:
    """A running server that we started."""

    address: Address
    pid: int


@contextlib.asynccontextmanager
async def start(
    binary: Path, *, env: Mapping[str, str] | None = None, log: Path | None = None
) -> AsyncIterator[ToxiproxyServer]:
    """Run a server on loopback until the block ends, or until we die; `env` may set its mark. Errors: NoServerError."""
    bare = {key: os.environ[key] for key in ("PATH", "SYSTEMROOT") if key in os.environ}
    address = (HOST, free_port())
    args = [str(binary), "-host", HOST, "-port", str(address[1]), "-proxy-metrics"]
    with (log or Path(os.devnull)).open("ab") as sink:
        process = await asyncio.create_subprocess_exec(
            *ends_with_us(args),
            env={**bare, **(env or {})},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    try:
        await _answers(address, process)
        yield ToxiproxyServer(address, process.pid)
    finally:
        await asyncio.shield(_end(process))


async def _answers(address: Address, process: asyncio.subprocess.Process) -> None:
    api = ToxiproxyApi(address, timeout_s=1.0)
    for _ in range(round(START_S / 0.02)):
        if process.returncode is not None:
            raise NoServerError(f"the Toxiproxy server ended at once with status {process.returncode}")
        with contextlib.suppress(ToxiproxyGoneError):
            await api.version()
            return
        await asyncio.sleep(0.02)
    raise NoServerError(f"the Toxiproxy server did not respond within {START_S:g} s")


async def _end(process: asyncio.subprocess.Process) -> None:
    """Send SIGTERM, and SIGKILL after two seconds."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), 2.0)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def ends_with_us(argv: Sequence[str]) -> list[str]:
    """The command for a program that gets SIGKILL when the thread that starts it ends. Its pid stays the same."""
    if sys.platform != "linux":
        return list(argv)
    return [sys.executable, "-I", "-S", "-c", ENDS_WITH_US, str(os.getpid()), *argv]
