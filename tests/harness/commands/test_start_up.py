"""What a command imports before it does anything."""

import subprocess
import sys

DEAR = ("aiohttp", "genai_prices", "hypothesis", "mcp", "pandas", "requests", "toxiproxy", "uvloop")
"""Packages that take a tenth of a second and more to import."""


def test_a_campaign_starts_without_what_only_some_runs_need():
    """An HTTP client or server is imported where an agent, a service or Toxiproxy needs it."""
    code = f"import sys, wedgehog.harness.run.campaign; print(*sorted({set(DEAR)} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
