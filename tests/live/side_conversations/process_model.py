"""What the programs with a process for each subagent share: their tools, and a request for the model."""

import json
import urllib.request

TEXT = {"type": "string"}


def tools(**more):
    """A shell, and a tool that gives a task to a subagent, with these further arguments."""
    shell = {"type": "object", "properties": {"command": TEXT}, "required": ["command"]}
    task = {"type": "object", "properties": {"prompt": TEXT, **more}, "required": ["prompt"]}
    return [
        {"name": "bash", "description": "Runs a command.", "input_schema": shell},
        {"name": "task", "description": "Gives a task to a subagent.", "input_schema": task},
    ]


def asked(url, said, offered):
    """The parts of the model's reply."""
    body = {"model": "m", "max_tokens": 2000, "messages": said, "tools": offered}
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01", "content-type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/messages", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.loads(reply.read())["content"]
