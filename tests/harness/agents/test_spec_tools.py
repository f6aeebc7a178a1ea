"""A spec says how the agent finds our tool host, or one line says what is missing."""

from pathlib import Path

import pytest

from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.scenario.document import BadFileError


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        (
            'tools: http\ncommand: [x, "{message}"]\n',
            "a.yaml:3: no key contains {tool_url}, so the agent cannot find the tool host",
        ),
        ('tools: stdio\ncommand: [x, "{tool_url}"]\n', "{tool_url} has a value only with `tools: http`"),
        ('command: [x, "{tool_url}", "{message}"]\n', "{tool_url} has a value only with `tools: http`"),
        ('tools: http\ncommand: [x, "{tool_url}", "{tool_command}"]\n', "{tool_command} has a value only with"),
        ('tools: mcp\ncommand: [x, "{tool_url}", "{message}"]\n', "expected 'http' or 'stdio', found 'mcp'"),
    ],
)
def test_the_way_and_its_template_go_together(tmp_path: Path, rest: str, said: str):
    """Otherwise the agent would get an empty address."""
    (tmp_path / "a.yaml").write_text(f"name: a\nwire: anthropic\n{rest}")
    with pytest.raises(BadFileError) as caught:
        load_spec(tmp_path / "a.yaml")
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_the_template_may_be_used_in_every_key_with_templates(tmp_path: Path):
    """For example in a configuration file; `{store_url}` needs no other key."""
    words = "name: a\nwire: anthropic\ncommand: [x]\ntools: http\nenv: {DB: '{store_url}'}\n"
    (tmp_path / "a.yaml").write_text(words + "files: {'{home}/mcp.json': '{\"url\": \"{tool_url}\"}'}\n")
    spec = load_spec(tmp_path / "a.yaml")
    assert (spec.tools, spec.uses_store) == ("http", True)
