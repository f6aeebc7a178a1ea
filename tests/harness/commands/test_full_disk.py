"""What a user sees of a disk that is full."""

import asyncio
import errno
import logging
from pathlib import Path

import pytest

from wedgehog.harness.commands.stop_signals import run_until_stopped
from wedgehog.harness.record.store import RunStore
from wedgehog.harness.testing import HistoryBuilder


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a system without /dev/full")
def test_a_run_that_could_not_be_written_names_its_file_at_the_end_too(tmp_path: Path):
    """What failed once is missing, even if there is space again."""
    (tmp_path / "history.jsonl").symlink_to("/dev/full")
    stored = RunStore(tmp_path, tmp_path / "bodies")
    for step in (lambda: stored.write(HistoryBuilder().seal().events[0]), stored.close):
        with pytest.raises(OSError, match="No space left") as caught:
            step()
        assert caught.value.filename == str(tmp_path / "history.jsonl")


@pytest.mark.parametrize(
    ("wrong", "told"), [(OSError(errno.ENOSPC, "No space left on device"), 0), (RuntimeError("a bug"), 1)]
)
def test_only_a_bug_has_a_stack(caplog: pytest.LogCaptureFixture, wrong: Exception, told: int):
    """A full disk ends the command with a line of its own."""

    async def work() -> None:
        asyncio.get_running_loop().call_exception_handler({"message": "a request failed", "exception": wrong})

    with caplog.at_level(logging.ERROR, "asyncio"):
        run_until_stopped(work())
    assert len(caplog.records) == told
