"""Azure's paths and its key's header, by the official SDK; what the body lacks, the path says."""

import json
import urllib.request
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from wedgehog import Provider

if TYPE_CHECKING:  # each worker collects all tests, and the import takes more than a second
    import openai

SCRIPT = {"replies": [{"reply": {"text": "It is 21 °C."}}]}


@pytest.fixture
def llm() -> Iterator[Provider]:
    with Provider(SCRIPT, models=["my-deployment"]) as provider:
        yield provider


@pytest.fixture
def client(llm: Provider) -> "Iterator[openai.AzureOpenAI]":
    import openai

    with openai.AzureOpenAI(azure_endpoint=llm.url, api_key="secret", api_version="2024-10-21") as client:
        yield client


def test_a_deployment_answers_the_official_sdk(llm: Provider, client: "openai.AzureOpenAI"):
    reply = client.chat.completions.create(model="my-deployment", messages=[{"role": "user", "content": "hi"}])
    (entry,) = llm.ledger()
    assert reply.choices[0].message.content == "It is 21 °C."
    assert entry["path"] == "/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21"


def test_responses_are_at_their_own_path(client: "openai.AzureOpenAI"):
    assert client.responses.create(model="my-deployment", input="hi").output_text == "It is 21 °C."


def test_an_unknown_deployment_is_refused(client: "openai.AzureOpenAI"):
    import openai

    with pytest.raises(openai.NotFoundError, match="does not exist"):
        client.chat.completions.create(model="another", messages=[{"role": "user", "content": "hi"}])


def test_the_deployment_is_the_model_of_a_body_without_one(llm: Provider):
    body = json.dumps({"messages": [{"role": "user", "content": "hi"}]}).encode()
    path = "/openai/deployments/my-deployment/chat/completions"
    request = urllib.request.Request(llm.url + path, body, {"api-key": "secret"})
    with urllib.request.urlopen(request) as response:
        assert json.load(response)["model"] == "my-deployment"


def test_the_key_names_the_session(llm: Provider, client: "openai.AzureOpenAI"):
    client.models.list()
    (entry,) = llm.ledger()
    assert entry["session"].startswith("key-")
    assert "secret" not in json.dumps(entry)
