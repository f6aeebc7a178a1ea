"""Finding, fetching and choosing, without the network."""

import hashlib
import http.server
import os
import subprocess
import threading
from pathlib import Path

import pytest
import requests

from wedgehog.harness.network import choose
from wedgehog.harness.network.toxiproxy import server
from wedgehog.harness.network.toxiproxy.server import NoServerError


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of this test's own, and no server anywhere."""
    monkeypatch.setattr(server, "cache_path", lambda: tmp_path / "cache" / "toxiproxy-server")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("WEDGEHOG_TOXIPROXY", raising=False)
    monkeypatch.delenv("WEDGEHOG_OFFLINE", raising=False)
    return server.cache_path()


def fake_server(path: Path, version: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho toxiproxy-server version {version}\n")
    path.chmod(0o755)
    return path


def test_the_named_server_wins_over_path_and_cache(tmp_path, cache, monkeypatch):
    """$WEDGEHOG_TOXIPROXY, then PATH, then the cache."""
    fake_server(cache, "2.12.0")
    assert server.locate().how == "cache"
    on_path = fake_server(tmp_path / "bin" / "toxiproxy-server", "2.12.0")
    monkeypatch.setenv("PATH", f"{on_path.parent}:/usr/bin:/bin")
    assert server.locate().path == on_path
    named = fake_server(tmp_path / "mine", "git")
    monkeypatch.setenv("WEDGEHOG_TOXIPROXY", str(named))
    found = server.locate()
    assert (found.path, found.how, found.version) == (named, "$WEDGEHOG_TOXIPROXY", "git")


def test_a_server_of_another_version_is_passed_over_and_named(tmp_path, cache, monkeypatch):
    """An old one on PATH is not used, and `tried` says why."""
    old = fake_server(tmp_path / "bin" / "toxiproxy-server", "2.1.4")
    monkeypatch.setenv("PATH", f"{old.parent}:/usr/bin:/bin")
    monkeypatch.setenv("WEDGEHOG_TOXIPROXY", "/nowhere/at/all")
    found = server.locate()
    assert found.path is None
    assert found.tried == (
        "$WEDGEHOG_TOXIPROXY: /nowhere/at/all does not run",
        f"PATH: {old} is version 2.1.4, not 2.12.0",
        "cache: nothing there",
    )


@pytest.fixture
def release(tmp_path, monkeypatch):
    """A release on a loopback web server; returns its folder and address."""
    folder = tmp_path / "release"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args) -> None:
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
        thread.start()
        yield folder, f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()
        thread.join()


def test_a_download_is_verified_and_put_into_the_cache(release, cache, monkeypatch):
    """By the pinned checksum; it runs from the cache afterwards."""
    folder, url = release
    binary = fake_server(folder / server.asset(), "2.12.0")
    monkeypatch.setattr(server, "SHA256", {server.asset(): hashlib.sha256(binary.read_bytes()).hexdigest()})
    said: list[str] = []
    assert server.download(said.append, 5, url) == cache
    assert os.access(cache, os.X_OK)
    assert said[0].startswith("fetching toxiproxy-server")
    assert server.locate().path == cache


@pytest.mark.parametrize("pinned", [True, False])
def test_a_download_with_another_checksum_is_refused(release, cache, monkeypatch, pinned):
    """Whether the checksum is pinned or the release's own, nothing reaches the cache."""
    folder, url = release
    fake_server(folder / server.asset(), "2.12.0")
    (folder / "checksums.txt").write_text(f"{'0' * 64}  {server.asset()}\n")
    monkeypatch.setattr(server, "SHA256", {server.asset(): "f" * 64} if pinned else {})
    with pytest.raises(NoServerError, match="expected ffff" if pinned else "expected 0000"):
        server.download(lambda _: None, 5, url)
    assert not cache.exists()
    assert list(cache.parent.iterdir()) == []


def test_where_no_checksum_is_pinned_the_release_states_it(release, cache, monkeypatch):
    """`checksums.txt` of the release stands in for platforms that are not pinned."""
    folder, url = release
    binary = fake_server(folder / server.asset(), "2.12.0")
    digest = hashlib.sha256(binary.read_bytes()).hexdigest()
    (folder / "checksums.txt").write_text(f"{'0' * 64}  other\n{digest}  {server.asset()}\n")
    monkeypatch.setattr(server, "SHA256", {})
    assert server.download(lambda _: None, 5, url) == cache


async def test_offline_auto_takes_the_relay_and_says_so_in_one_line(monkeypatch):
    """No server, no download: the embedded relay, with a line that gives the reason."""
    monkeypatch.setenv("WEDGEHOG_OFFLINE", "1")
    said: list[str] = []
    async with choose.choose_network("auto", said.append) as network:
        assert network.name == "embedded"
        assert await network.alive()
    assert said == [
        "network: embedded relay, because there is no Toxiproxy (WEDGEHOG_OFFLINE=1 forbids the download of Toxiproxy)"
    ]


async def test_insisting_on_toxiproxy_says_what_to_do(monkeypatch):
    """`toxiproxy` never falls back silently."""
    monkeypatch.setenv("WEDGEHOG_OFFLINE", "1")
    with pytest.raises(NoServerError, match=r"put `toxiproxy-server` 2\.12\.0 on PATH"):
        async with choose.choose_network("toxiproxy", lambda _: None):
            pass


async def test_a_server_that_ends_at_once_is_an_error_not_a_wait(tmp_path):
    """A binary that exits is reported with its status."""
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    with pytest.raises(NoServerError, match="status 3"):
        async with server.start(broken):
            pass


def test_what_keeps_toxiproxy_away_is_said_in_words(monkeypatch):
    """A host that does not answer, and a build that takes too long: what Go has compiled is kept."""

    def unreachable(*_):
        request = requests.Request("GET", "https://github.com/a/b").prepare()
        raise requests.ConnectionError("HTTPSConnectionPool(host='github.com', port=443): Max retries", request=request)

    def slow(*_):
        raise subprocess.TimeoutExpired(["go", "install", "x"], 180.0)

    monkeypatch.setattr(server, "download", unreachable)
    monkeypatch.setattr(server, "build", slow)
    with pytest.raises(NoServerError) as why:
        server.fetch(lambda _: None)
    assert str(why.value) == (
        "Toxiproxy could not be fetched: release: github.com cannot be reached; go install: it took longer than 180 s, "
        "and goes on from there in the next run"
    )
