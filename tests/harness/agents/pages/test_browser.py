"""Which browser opens pages."""

from pathlib import Path

import pytest

pytest.importorskip("playwright")

from wedgehog.harness.agents.pages.browser import VARIABLE, find_browser


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


def _put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o755)
    return path


@pytest.mark.parametrize("inside", ["chrome-linux64/chrome", "chrome-mac/Chromium.app/Contents/MacOS/Chromium"])
@pytest.mark.parametrize(
    "shell", ["chrome-headless-shell-linux64/chrome-headless-shell", "chrome-linux/headless_shell"]
)
def test_a_headless_shell_comes_before_chromium(tmp_path: Path, inside: str, shell: str):
    """It does the same for less processor time. Playwright downloads both, or one; the system's come after them."""
    downloaded = tmp_path / "chromium-12" / inside
    assert find_browser(downloaded) is None
    system = [str(_put(tmp_path / name)) for name in ("chromium", "chromium-headless-shell")]
    assert find_browser(downloaded) == system[1]
    _put(tmp_path / "chromium_headless_shell-11" / shell)
    assert find_browser(_put(downloaded)) == str(downloaded), "the shell is of another release"
    right = _put(tmp_path / "chromium_headless_shell-12" / shell)
    assert find_browser(downloaded) == str(right)
    downloaded.unlink()
    assert find_browser(downloaded) == str(right)


def test_the_browser_that_is_named_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Whatever else is there."""
    monkeypatch.setenv(VARIABLE, "/opt/browser")
    assert find_browser(_put(tmp_path / "chromium-12" / "chrome-linux64" / "chrome")) == "/opt/browser"
