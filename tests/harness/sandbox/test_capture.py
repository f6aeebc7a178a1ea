"""What is kept of the output of a process."""

import os
from pathlib import Path

from wedgehog.harness.sandbox.arrivals import TAIL_BYTES
from wedgehog.harness.sandbox.capture import HEAD_BYTES, Capture


async def _captured(tmp_path: Path, *parts: bytes) -> str:
    capture = Capture(tmp_path / "agent.log")
    for part in parts:
        for start in range(0, len(part), 50_000):
            os.write(capture.write_end, part[start : start + 50_000])
            capture.read_now()
    await capture.drained(0)
    capture.close()
    return capture.text()


async def test_one_long_line_does_not_hide_what_was_said_before_it(tmp_path: Path):
    """The beginning and the last megabyte are kept, and all is in the log."""
    long = b"x" * 3_000_000 + b"\n"
    text = await _captured(tmp_path, b"Done nonce-1\n", long, b"bye\n")
    assert text.startswith("Done nonce-1\nxxx") and text.endswith("xxx\nbye\n")
    assert text.count("\n[… the middle is in the log]\n") == 1
    assert len(text) < HEAD_BYTES + TAIL_BYTES + 100
    assert (tmp_path / "agent.log").stat().st_size == 3_000_018


async def test_output_that_fits_is_kept_whole(tmp_path: Path):
    """Also a letter of several bytes where the beginning ends, and nothing is left out."""
    said = "é" * (HEAD_BYTES // 2) + "a" + "é" * 9
    assert await _captured(tmp_path, b"a" + said.encode()) == "a" + said


async def test_a_turn_begins_without_the_text_of_the_one_before(tmp_path: Path):
    """Neither its beginning nor its end."""
    capture = Capture(tmp_path / "agent.log")
    os.write(capture.write_end, b"one")
    capture.forget()
    os.write(capture.write_end, b"two")
    await capture.drained(0)
    capture.close()
    assert capture.text() == "two"
