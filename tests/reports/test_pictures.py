"""Pictures of an agent's page in the report."""

from pathlib import Path

import pytest

from wedgehog.harness.record.views import Turn
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.reports.page.run import pictures
from wedgehog.reports.page.run.pictures import picture


def _turn(name: str) -> Turn:
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), f"Yes. {tell.nonce}")
    (turn,) = tell.end(picture=name).seal().turns
    return turn


def test_a_picture_is_a_part_of_the_page(tmp_path: Path):
    """The page loads nothing from elsewhere."""
    (tmp_path / "page-main-1.jpg").write_bytes(b"jpeg")
    shown = picture(tmp_path, _turn("page-main-1.jpg"))
    assert shown is not None and 'src="data:image/jpeg;base64,anBlZw=="' in shown
    assert 'alt="The page at the end of turn 1"' in shown


@pytest.mark.parametrize("name", ["", "page-main-2.jpg", "../secret.jpg"])
def test_what_is_not_in_the_runs_folder_is_not_shown(tmp_path: Path, name: str):
    """A turn without a picture, a file that is gone, and a name that leads out of the folder."""
    (tmp_path / "secret.jpg").write_bytes(b"jpeg")
    (tmp_path / "run").mkdir()
    assert picture(tmp_path / "run", _turn(name)) is None


def test_a_large_picture_stays_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A campaign has hundreds."""
    monkeypatch.setattr(pictures, "READ_AT_MOST", 3)
    (tmp_path / "page-main-1.jpg").write_bytes(b"jpeg")
    assert picture(tmp_path, _turn("page-main-1.jpg")) is None
