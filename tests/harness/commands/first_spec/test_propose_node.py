"""What `wedgehog init` proposes for services that Node runs."""

import re
from pathlib import Path

import pytest

from wedgehog.harness.commands.first_spec.propose import Proposal, propose

EXPRESS = """
import express from "express";
import OpenAI from "openai";
const app = express(), client = new OpenAI();
app.use(express.json());
app.get("/", (req, res) => res.send("hello"));
app.get("/healthz", (req, res) => res.json({ status: "ok", message: "fine" }));
app.get("/history/:id", (req, res) => res.json({ messages: load(req.params.id) }));
app.post("/feedback", (req, res) => { store(req.body.text); res.sendStatus(204); });
app.post("/chat", async (req, res) => {
  const { message, sessionId, stream = false } = req.body;
  if (!message) return res.status(400).json({ error: "no message" });
  const done = await client.chat.completions.create({ model: "m", messages: [{ role: "user", content: message }] });
  res.json({ reply: done.choices[0].message.content, sessionId });
});
app.listen(process.env.PORT || 3000);
"""
ROUTER = """
const { Router } = require("express");
const router = Router();
async function answer(req, res) {
  const said = await ask(req.body.prompt);
  return res.send({ output: said });
}
router.post("/messages", answer);
module.exports = router;
"""
MOUNTS = """
const express = require("express");
const chat = require("./routes/chat");
const app = express();
app.use("/api/v1", chat);
app.get("/live", (req, res) => res.end());
module.exports = { app };
"""
SERVER = """
const { PORT = 8080 } = process.env;
const { app } = require("./app");
app.listen(PORT, () => console.log("up"));
"""
FASTIFY = """
import Fastify from "fastify";
const server = Fastify();
server.post<{ Body: Asked }>("/ignored", async () => ({ ok: true }));
// server.post('/chat', async (request) => ({ answer: request.body.message }));
/* server.post('/prompt', async (request) => ({ answer: request.body.message })); */
server.post<{ Body: { question: string } }>('/ask', async (request, reply) => {
  const body = request.body as Asked;
  const answer = await run(body.question, body.thread_id);
  return { answer };
});
await server.listen({ port: Number(process.env.PORT), host: "127.0.0.1" });
"""
HONO = """
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
const chat = new Hono()
chat.post('/', async (c) => {
  const asked = await c.req.json()
  const r = await fetch(`${process.env.OLLAMA_HOST}/api/chat`, { method: 'POST', body: JSON.stringify({ model }) })
  const data = await r.json()
  return c.json({ text: data.message.content, error: null, id: asked.query })
})
const app = new Hono()
app.route('/chat', chat)
serve({ fetch: app.fetch, port: +process.env.PORT! })
"""
PLAIN = """
const http = require('http')
http.createServer((req, res) => {
  if (req.url === '/ready') return res.end('yes')
  if (req.method === 'POST' && req.url === '/run') {
    let raw = ''
    req.on('data', it => raw += it).on('end', async () => {
      const { input } = JSON.parse(raw)
      res.end(JSON.stringify({ result: await agent(input) }))
    })
  }
}).listen(process.env.PORT)
"""


def proposed(folder: Path, files: dict[str, str]) -> Proposal:
    """The proposal for a folder with these files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return propose(folder)


@pytest.mark.parametrize(
    ("files", "command", "talks"),
    [
        (
            {"index.mjs": EXPRESS},
            "PORT={port} node index.mjs",
            {
                "ready": "/healthz",
                "url": "/chat",
                "body": {"message": "{message}", "sessionId": "{session}"},
                "answer": "json:reply",
                "error": "json:error",
            },
        ),
        (
            {"src/server.js": SERVER, "src/app.js": MOUNTS, "src/routes/chat.js": ROUTER},
            "PORT={port} node src/server.js",
            {"ready": "/live", "url": "/api/v1/messages", "body": {"prompt": "{message}"}, "answer": "json:output"},
        ),
        (
            {"api.ts": FASTIFY, "package.json": '{"scripts": {"start": "tsx api.ts"}}', "node_modules/.bin/tsx": ""},
            "PORT={port} node_modules/.bin/tsx api.ts",
            {"url": "/ask", "body": {"question": "{message}", "thread_id": "{session}"}, "answer": "json:answer"},
        ),
        (
            {"src/index.ts": HONO, "package.json": '{"scripts": {"start": "node --env-file=.env dist/index.js"}}'},
            "PORT={port} node --env-file=.env dist/index.js",
            {"url": "/chat", "body": {"query": "{message}"}, "answer": "json:text", "error": "json:error"},
        ),
        (
            {"go.js": PLAIN, "package.json": '{"scripts": {"start": "node go.js && rm -rf x"}}'},
            "PORT={port} node go.js",
            {"ready": "/ready", "url": "/run", "body": {"input": "{message}"}, "answer": "json:result"},
        ),
    ],
)
def test_a_service_shows_how_it_starts_and_where_it_takes_a_message(
    tmp_path: Path, files: dict[str, str], command: str, talks: dict[str, object]
):
    """Express with and without a router, Fastify, Hono and `node:http`."""
    found = proposed(tmp_path, files)
    assert (found.kind, found.command, found.talks) == ("http", command, talks)


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("/api/chat/:conversationId", "/api/chat/{session}"),
        ("/threads/:thread_id/ask", "/threads/{session}/ask"),
        ("/users/:name/ask", ""),
        ("/threads/:thread_id/:part", ""),
        ("/threads/:threadId(\\\\d+)", ""),
        ("/chats/{:chatId}", ""),
    ],
)
def test_a_parameter_of_a_route_that_names_a_session_is_the_session(tmp_path: Path, path: str, url: str):
    """A route with another parameter is left out. The keys beside text with braces are read too."""
    code = """
app.post("PATH", async (req, res) => {
  const { prompt } = req.body;
  try {
    res.json({ reply: await model(prompt), usage: { tokens: 3, answer: 2 } });
  } catch (e) {
    res.status(502).json({ error: `Error: ${e.message}` });
  }
});
app.listen(process.env.PORT || 3000);
"""
    talks = {"url": url, "body": {"prompt": "{message}"}, "answer": "json:reply", "error": "json:error"}
    assert proposed(tmp_path, {"server.js": code.replace("PATH", path)}).talks == (talks if url else {})


@pytest.mark.parametrize(
    ("change", "by"),
    [
        (r"process\.env\.PORT \|\| 3000", "3000"),
        (r"app\.listen\(.*\);", "export default app;"),
    ],
)
def test_a_service_without_a_port_of_its_own_has_no_start(tmp_path: Path, change: str, by: str):
    """A fixed port may be taken, and a program that listens elsewhere is another file."""
    found = proposed(tmp_path, {"server.mjs": re.sub(change, by, EXPRESS)})
    assert found.kind != "http"
    assert by == "export default app;" or found.command is None, "a service takes no message on its command line"


def test_routers_that_mount_each_other_come_to_an_end(tmp_path: Path):
    """As `/x/x/x…`; the patterns find no more than the first few."""
    loop = (
        "const a = require('./b'); app.use('/x', a); app.post('/m', (req, res) => res.json({ text: req.body.text }));"
    )
    found = proposed(
        tmp_path, {"main.js": f"{loop} app.listen(process.env.PORT)", "b.js": loop.replace("./b", "./main")}
    )
    assert found.talks == {"url": "/m", "body": {"text": "{message}"}, "answer": "json:text"}


@pytest.mark.parametrize(
    ("package", "wire"),
    [
        ("@ai-sdk/anthropic", "anthropic"),
        ("@ai-sdk/google", "gemini"),
        ("@ai-sdk/openai", "openai-responses"),
        ("@ai-sdk/openai-compatible", "openai-chat"),
        ("@openai/agents", "openai-responses"),
        ("ollama", "ollama"),
    ],
)
def test_the_wire_is_that_of_the_client_and_the_name_that_of_the_package(tmp_path: Path, package: str, wire: str):
    """A route of its own at `/api/chat` makes no program a client of Ollama."""
    files = {
        "go.js": f"const ai = require('{package}'); app.post('/api/chat', f)",
        "package.json": '{"name": "@me/bot"}',
    }
    found = proposed(tmp_path, files)
    assert (found.wire, found.name) == (wire, "me-bot")


CLI = """
import Anthropic from "@anthropic-ai/sdk";
const [file, message] = process.argv.slice(2);
console.log(await ask(file, message));
"""


@pytest.mark.parametrize(
    ("package", "others", "start"),
    [
        ('{"main": "ask-claude.mjs"}', {"other.mjs": CLI}, "node ask-claude.mjs"),
        (
            '{"scripts": {"start": "node ./ask-claude.mjs"}}',
            {"other.mjs": CLI},
            "node ./ask-claude.mjs",
        ),
        ('{"scripts": {"start": "tsx ask.ts"}}', {"ask.ts": CLI, "other.mjs": CLI}, "tsx ask.ts"),
        ('{"main": "index.js"}', {"library.mjs": "export const it = 1"}, "node ask-claude.mjs"),
    ],
)
def test_a_file_is_the_program_that_package_json_starts_or_the_only_one(
    tmp_path: Path, package: str, others: dict[str, str], start: str
):
    """`npm init` writes a `main` that need not exist."""
    found = proposed(tmp_path, {"ask-claude.mjs": CLI, "package.json": package, **others})
    assert (found.kind, found.command) == ("command", f"{start} {{session_dir}}/session {{message}}")


STREAMS = """
import { streamText } from "ai";
app.post("/api/chat", async (req, res) => {
  const { message, sessionId } = req.body;
  streamText({ model, messages: of(sessionId, message) }).SENDS(res);
});
app.listen(Number(process.argv[2]));
"""


@pytest.mark.parametrize(
    ("sends", "places"),
    [
        ("pipeUIMessageStreamToResponse", {"answer": "joined:delta", "error": "jsonl:errorText"}),
        ("toUIMessageStreamResponse", {"answer": "joined:delta", "error": "jsonl:errorText"}),
        ("pipeTextStreamToResponse", {"answer": "text"}),
    ],
)
def test_a_stream_of_the_ai_sdk_is_read_by_its_events(tmp_path: Path, sends: str, places: dict[str, str]):
    """Its text comes in `text-delta` events, an error in an event of its own; a text stream has only text."""
    found = proposed(tmp_path, {"chat-service.mjs": STREAMS.replace("SENDS", sends)})
    assert (found.kind, found.command) == ("http", "node chat-service.mjs {port}")
    body = {"message": "{message}", "sessionId": "{session}"}
    assert found.talks == {"url": "/api/chat", "body": body, **places}


EVENTS = """
app.post("/chat", async (req, res) => {
  const { session, message } = req.body;
  const send = (event) => res.write(`data: ${JSON.stringify(event)}\\n\\n`);
  res.writeHead(200, { "Content-Type": "text/event-stream" });
  try {
    for await (const part of answer(session, message)) send({ type: "text", text: part });
  } catch (error) {
    send({ type: "error", error: error.message });
  }
  res.end();
});
app.listen(process.env.PORT);
"""


def test_the_answer_in_events_of_its_own_is_joined(tmp_path: Path):
    """Each event has a piece of the answer, or the error."""
    talks = proposed(tmp_path, {"service.mjs": EVENTS}).talks
    assert (talks["answer"], talks["error"]) == ("joined:text", "jsonl:error")
