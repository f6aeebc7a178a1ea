"""Pages for a chat are known by the library that they import."""

from pathlib import Path

import pytest
import yaml

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.commands.first_spec.propose import propose
from wedgehog.harness.commands.first_spec.spec_text import spec_text

STREAMLIT = "import streamlit as st\nif prompt := st.chat_input('Hi'):\n    answer(prompt)\n"
GRADIO = "import gradio as gr\ngr.ChatInterface(answer).launch()\n"
CHAINLIT = "import chainlit as cl\n@cl.on_message\nasync def main(message): ...\n"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (STREAMLIT, ["streamlit run", "--server.port {port}"]),
        (GRADIO, ["GRADIO_SERVER_PORT={port}"]),
        (CHAINLIT, ["chainlit run", "--port {port}"]),
    ],
)
def test_a_page_is_proposed_with_its_port_and_the_places_of_its_answers(tmp_path: Path, source: str, words: list[str]):
    """The spec that is written is valid."""
    (tmp_path / "app.py").write_text(source)
    found = propose(tmp_path)
    assert found.kind == "page" and found.command and all(word in found.command for word in words)
    text = spec_text("agent.yaml", "a", "openai-chat", found.command, kind="page", talks=found.talks)
    spec = AgentSpec.model_validate(yaml.safe_load(text))
    assert spec.page is not None and spec.page.answer and spec.page.stop


@pytest.mark.parametrize("source", ["import streamlit as st\nst.title('Report')\n", "import gradio as gr\n"])
def test_a_page_without_a_chat_is_no_agent(tmp_path: Path, source: str):
    """It shows a chart, or is a part of another program."""
    (tmp_path / "app.py").write_text(source)
    assert propose(tmp_path).kind != "page"
