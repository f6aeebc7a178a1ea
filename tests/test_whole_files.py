"""What is wrong with a file that is collected when its turn comes is told as if it were collected at the start."""

import subprocess
import sys
from pathlib import Path

CONFTEST = """
import pytest
from tests.whole_files import collect_late

def pytest_configure(config):
    if hasattr(config, "workerinput"):
        collect_late(config)

@pytest.fixture(scope="session")
def left_open():
    yield
    raise RuntimeError("the session's end")

@pytest.fixture(scope="module")
def kept():
    yield
    raise RuntimeError("the file's end")
"""
FILES = {
    "conftest.py": CONFTEST,
    "test_one.py": "def test_right(left_open): pass\ndef test_wrong(): assert 1 == 2",
    "test_not_importable.py": "import nothing_of_this_name",
    "test_without_tests.py": "",
    "test_kept.py": "def test_right(kept): pass",
    "test_skipped.py": "import pytest; pytest.importorskip('nothing_of_this_name')",
}


def test_each_failure_and_error_of_a_file_that_is_collected_late_is_told(tmp_path: Path):
    """Of a test, of an import, of what a file's tests share and of what all tests share."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    words = ["-p", "xdist", "-n", "1", "--dist", "loadfile", "--import-mode=importlib", "--rootdir", str(tmp_path)]
    path = {"PYTHONPATH": str(Path(__file__).parents[1])}
    argv = [sys.executable, "-m", "pytest", *words]
    done = subprocess.run(argv, cwd=tmp_path, env=path, capture_output=True, check=False)
    says = done.stdout.decode()
    assert done.returncode == 1, says
    assert "== 1 failed, 2 passed, 1 skipped, 3 errors in" in says
    for what in ("assert 1 == 2", "No module named 'nothing_of_this_name'", "the file's end", "the session's end"):
        assert what in says
