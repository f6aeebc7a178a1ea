"""What `wedgehog init` reads in a project, and what it proposes."""

import venv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from wedgehog.harness.agents.callables.callable_python import python_of
from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.commands.cli import app
from wedgehog.harness.commands.first_spec.propose import Proposal, propose

MAIN = "if __name__ == '__main__': ...\n"
REPL = 'while True: print(input("you> "))'
SERVICE = """
import argparse, http.server
def ask(text): ...
parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int)
http.server.HTTPServer(("", parser.parse_args().port), Handler).serve_forever()
"""

BY_VARIABLE = """
import json, os
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/healthz":
            self.reply({"state": "fine"})
    def do_POST(self):
        if self.path != "/ask":
            return self.send_error(404)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.wfile.write(json.dumps({"reply": model(body["text"])["message"]}).encode())
HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"""
AT_ANY_PATH = """
class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.say(answer(json.load(self.rfile).get("message")))
HTTPServer(("", int(os.getenv("PORT", "8000"))), Handler).serve_forever()
"""

NODE_LINES = "const lines = require('readline').createInterface({input: process.stdin}); lines.on('line', ask)"
NODE_CHAT = "import readline from 'node:readline'; const rl = readline.createInterface(f); rl.question('> ', ask)"
JSON_LINES = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    try:
        print(json.dumps({"reply": model(asked["question"])["message"], "cost": 1}), flush=True)
    except OSError as wrong:
        print(json.dumps({"error": str(wrong)}), flush=True)
"""
AT_ONCE = """
for line in sys.stdin:
    print(json.dumps({"text": answer(json.loads(line)["prompt"])}), flush=True)
"""
AS_A_STREAM = """
async def serve():
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        asked = json.loads(line)
        print(json.dumps({"reply": await model(asked["text"])}), flush=True)
"""
BY_METHODS = """
class Desk:
    async def post(self, request):
        text = (await request.json())["text"]
        return web.json_response({"reply": await self.turn(request.match_info["id"], text)})
async def healthz(_): ...
desk = Desk()
app = web.Application()
app.router.add_post("/v1/sessions/{id}/messages", desk.post)
app.router.add_get("/healthz", healthz)
web.run_app(app, port=int(os.environ["PORT"]))
"""
FASTAPI = """
class Question(BaseModel):
    question: str
app = FastAPI()
@app.get("/healthz")
def healthz(): return {"message": "fine"}
@app.post("/chat")
async def chat(asked: Question) -> Answer:
    said = await model({"messages": [{"role": "user", "content": asked.question}]})
    return Answer(answer=said["message"]["content"], cost=1)
"""
FLASK = """
app = Flask(__name__)
@app.route("/ask", methods=["POST"])
def ask():
    body = request.get_json()
    return jsonify({"reply": model(body["text"])["message"]})
"""


def proposed(folder: Path, **files: str) -> Proposal:
    """The proposal for a project with these files; `__` in a name without a folder is a dot."""
    for name, text in files.items():
        path = folder / (name if "/" in name else name.replace("__", "."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return propose(folder)


@pytest.mark.parametrize(
    ("text", "wire"),
    [
        ("from anthropic import AsyncAnthropic", "anthropic"),
        ("from google import genai", "gemini"),
        ("import ollama", "ollama"),
        ("import json, anthropic", "anthropic"),
        ("client.responses.create(model='m')", "openai-responses"),
        ("client.chat.completions.create()", "openai-chat"),
        ("import requests; requests.post(f'{base}/v1/messages')", "anthropic"),
        ("requests.post(base + '/api/chat', json=asked)", "ollama"),
        ("@app.post('/api/chat')\ndef chat(message): return client.chat.completions.create()", "openai-chat"),
        ("print('nothing of the kind')", "openai-chat"),
    ],
)
def test_the_wire_is_that_of_the_client(tmp_path: Path, text: str, wire: str):
    assert proposed(tmp_path, agent__py=text).wire == wire


@pytest.mark.parametrize(
    ("files", "wire"),
    [
        ({"agent__pl": "my $url = $ENV{BASE} . '/v1/messages';"}, "anthropic"),
        ({"src/main.rs": 'post(format!("{base}/v1/responses"))'}, "openai-responses"),
        ({"Main__java": 'base + "/chat/completions"', "README__md": "as with /v1/messages"}, "openai-chat"),
        ({"agent__rb": "ENV['ANTHROPIC_API_KEY']"}, "anthropic"),
        ({"agent__py": "litellm.completion(key=os.environ['GEMINI_API_KEY'])"}, "gemini"),
        ({"main__go": "os.Getenv(name)", "config__toml": 'key = "OLLAMA_HOST"'}, "ollama"),
        ({"main__go": "no word of it"}, "openai-chat"),
    ],
)
def test_a_program_in_any_language_shows_its_wire(tmp_path: Path, files: dict[str, str], wire: str):
    """By the path of the API, or by the variable of its key; settings and notes count if no source shows one."""
    assert proposed(tmp_path, **files).wire == wire


def test_the_wire_of_most_files_wins(tmp_path: Path):
    found = proposed(tmp_path, a__py="import ollama", b__py="import anthropic", c__py="import anthropic")
    assert found.wire == "anthropic"


@pytest.mark.parametrize(
    ("files", "kind", "command"),
    [
        ({"agent__py": MAIN, "zebra__py": MAIN}, "command", "python agent.py {message}"),
        ({"index__js": "main()"}, "command", "node index.js {message}"),
        (
            {"pyproject__toml": '[project]\nname = "bot"\n[project.scripts]\nbot = "bot:main"', "main__py": MAIN},
            "command",
            "bot {message}",
        ),
        (
            {"app__py": "app = FastAPI()", "main__py": MAIN},
            "http",
            "python -m uvicorn --app-dir . app:app --port {port}",
        ),
        (
            {"web__py": "import flask\nsite = flask.Flask(__name__)"},
            "http",
            "python -m flask --app web.py run --port {port}",
        ),
        ({"agent__py": "import sys\nmain(*sys.argv[1:])"}, "command", "python agent.py {message}"),
        ({"repl__py": REPL}, "lines", "python repl.py"),
        ({"main__py": f"def main():\n    {REPL}\n{MAIN}"}, "lines", "python main.py"),
        ({"app__py": SERVICE}, "http", "python app.py --port {port}"),
        ({"server__py": BY_VARIABLE}, "http", "PORT={port} python server.py"),
        ({"index__js": "http.createServer(f).listen(process.env.PORT)"}, "http", "PORT={port} node index.js"),
        ({"index__js": NODE_LINES}, "lines", "node index.js"),
        ({"index__js": f"{NODE_LINES}; ask(process.argv[2])"}, "command", "node index.js {message}"),
        ({"index__js": f"{NODE_LINES}; process.argv.includes('--fast')"}, "lines", "node index.js"),
        ({"chat__mjs": f"const FILE = process.argv[2] ?? 's.json'; {NODE_CHAT}"}, "lines", "node chat.mjs"),
        ({"chat__mjs": f"const prompt = process.argv[2]; {NODE_CHAT}"}, "command", "node chat.mjs {message}"),
        ({"chat__mjs": f"ask(process.argv[2]); {NODE_CHAT}"}, "command", "node chat.mjs {message}"),
        ({"agent__pl": "my ($file, $message) = @ARGV;"}, "command", "perl agent.pl {message}"),
        ({"main__rb": "ask(ARGV.join(' ')) # the prompt"}, "command", "ruby main.rb {message}"),
        ({"bin/chat.php": "<?php $text = $argv[1];"}, "command", "php bin/chat.php {message}"),
        (
            {"agent__sh": "message=$1", "agent__py": f"import sys\nsys.argv\n{MAIN}"},
            "command",
            "python agent.py {message}",
        ),
        (
            {"package__json": '{"bin": {"bot": "./go.mjs"}}', "go__mjs": "main()", "util__js": ""},
            "command",
            "node go.mjs {message}",
        ),
        ({"package__json": '{"bin": "go.js"}', "go__js": NODE_LINES}, "lines", "node go.js"),
        ({"speaks__py": "from acp import Agent, run_agent\nasyncio.run(run_agent(Mine()))"}, "acp", "python speaks.py"),
        ({"main__py": f"import acp\n{MAIN}"}, "command", "python main.py {message}"),
        (
            {"a__mjs": 'import * as acp from "@agentclientprotocol/sdk"; new acp.AgentSideConnection(f)'},
            "acp",
            "node a.mjs",
        ),
        ({"agent__py": f"port = os.environ['PORT']\n{MAIN}"}, "command", "python agent.py {message}"),
        ({"bot__py": "from aiogram import Bot"}, "chat", "python bot.py"),
        ({"main__py": f"from telegram.ext import Application\n{MAIN}", "a__py": ""}, "chat", "python main.py"),
        ({"bot__js": 'import { Bot } from "grammy"'}, "chat", "node bot.js"),
        ({"app__py": "from slack_bolt import App"}, "chat", "PORT={port} python app.py"),
        (
            {"app__py": f"from slack_bolt import App\nSocketModeHandler(app)\n{MAIN}"},
            "chat",
            "python app.py",
        ),
        ({"loop__py": JSON_LINES}, "lines", "python loop.py"),
        ({"loop__py": AT_ONCE}, "lines", "python loop.py"),
        ({"loop__py": AS_A_STREAM}, "lines", "python loop.py"),
        ({"crew__py": f"import sys\nmain(sys.argv[1])\n{MAIN}", "util__py": ""}, "command", "python crew.py {message}"),
        ({"core__py": "def _hidden(message): ...\nasync def reply(message, *, key): ..."}, "callable", "core.py:reply"),
        ({"core__py": "def parts(text): ...\ndef ask(text): ..."}, "callable", "core.py:ask"),
        ({"core__py": "def shorten(message): ...\ndef answer(message): ..."}, "callable", "core.py:answer"),
        (
            {"mine__py": "API = environ['API']\nasync def parts(text): ...\npost(f'{API}/getUpdates')"},
            "chat",
            "python mine.py",
        ),
    ],
)
def test_the_start_is_what_the_files_say(tmp_path: Path, files: dict[str, str], kind: str, command: str):
    found = proposed(tmp_path, **files)
    assert (found.kind, found.command) == (kind, command)
    assert (tmp_path / found.because).is_file()


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"agent__py": "def broken(:"},
        {"notes__md": "app = FastAPI()"},
        {"build__sh": "message=$1"},
        {"agent__pl": "print 'no message is read'"},
        {"core__py": "def reply(message): ...\nServer(8000).serve_forever()"},
        {"core__py": "def reply(message): ...\nasyncio.run(main())"},
        {"core__py": "def parts(text, most=4000): ..."},
        {"core__py": "def reply(message): ...\nwhile True: print(reply(input()))"},
        {"core__py": f"import argparse, sys\np = argparse.ArgumentParser()\nmain(sys.argv[1])\n{MAIN}"},
        {"a__py": f"import sys\nmain(sys.argv[1])\n{MAIN}", "b__py": f"import sys\nmain(sys.argv[1])\n{MAIN}"},
        {"core__py": "async def serve():\n    while line := await reader.readline(): ask(json.loads(line)['text'])"},
    ],
)
def test_a_project_that_says_nothing_gets_no_start(tmp_path: Path, files: dict[str, str]):
    assert proposed(tmp_path, **files).command is None


def test_a_file_that_is_no_text_is_left_out(tmp_path: Path):
    (tmp_path / "agent.py").write_bytes(b"\xff\xfe\x00")
    assert propose(tmp_path).command is None


@pytest.mark.parametrize(("given", "name"), [("My Bot!", "My-Bot"), ("???", "my-agent")])
def test_the_name_is_the_projects(tmp_path: Path, given: str, name: str):
    assert proposed(tmp_path, pyproject__toml=f'[project]\nname = "{given}"').name == name


def test_init_proposes_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An empty answer takes the proposal; an option that contradicts it takes none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text("import anthropic\n" + MAIN)
    ran = CliRunner().invoke(app, ["init", "one.yaml"], input="\n\n\n")
    spec = load_spec(tmp_path / "one.yaml")
    assert "agent.py suggests: python agent.py {message}" in ran.stderr
    assert (spec.wire, spec.command) == ("anthropic", ("{python}", "{here}/agent.py", "{message}"))
    assert CliRunner().invoke(app, ["init", "two.yaml", "--kind", "callable"], input="\n\n\n").exit_code == 2


@pytest.mark.parametrize(
    ("code", "flag"),
    [
        ("parser.add_argument('--continue', dest='go_on', action='store_true')", "--continue"),
        ("parser.add_argument('-c', '--continue-last', action='store_true')", "--continue-last"),
        ("parser.add_argument('--resume')", ""),  # it takes the name of a session
        ("parser.add_argument('--verbose', action='store_true')", ""),
        ("@click.option('-r', '--resume', is_flag=True)\ndef main(resume): ...", "--resume"),
    ],
)
def test_a_flag_that_goes_on_with_the_last_conversation_is_for_the_next_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, flag: str
):
    """With `--yes` too; `--resume ''` and a command line of the user's own take none."""
    monkeypatch.chdir(tmp_path)
    code = f"import argparse\nparser.add_argument('message')\n{code}\n{MAIN}"
    found = proposed(tmp_path, agent__py=code)
    assert found.resume == (f"python agent.py {{message}} {flag}" if flag else "")
    for name, options in {"a": [], "b": ["--resume", ""], "c": ["--command", "python agent.py -v {message}"]}.items():
        assert CliRunner().invoke(app, ["init", f"{name}.yaml", "--yes", *options]).exit_code == 0
    specs = [load_spec(tmp_path / f"{name}.yaml") for name in "abc"]
    resumed = ("{python}", "{here}/agent.py", "{message}", flag) if flag else None
    assert [spec.resume for spec in specs] == [resumed, None, None]


def test_a_prompt_says_when_the_turn_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The spec works as it was proposed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "repl.py").write_text(REPL)
    ran = CliRunner().invoke(app, ["init"], input="\n\n\n")
    assert ran.exit_code == 0, ran.output
    spec = load_spec(tmp_path / "agent.yaml")
    assert spec.lines is not None
    assert (spec.lines.ready, spec.lines.done, spec.lines.send) == ("^you> $", "^you> $", "{message}")


def test_a_program_of_json_lines_shows_its_messages_and_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The spec works as it was proposed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.py").write_text(JSON_LINES)
    assert CliRunner().invoke(app, ["init", "--yes"]).exit_code == 0
    spec = load_spec(tmp_path / "agent.yaml")
    assert spec.lines is not None
    assert (spec.lines.send, spec.lines.done) == ({"question": "{message}"}, '"(reply|error)":.*}$')
    assert (spec.lines.answer, spec.lines.error) == ("jsonl:reply", "jsonl:error")


@pytest.mark.parametrize(
    ("code", "talks"),
    [
        (FASTAPI, {"ready": "/healthz", "url": "/chat", "body": {"question": "{message}"}, "answer": "json:answer"}),
        (FLASK, {"url": "/ask", "body": {"text": "{message}"}, "answer": "json:reply"}),
        ("app = FastAPI()\n@app.post('/chats/{id}')\ndef chat(id, body: dict): return body['message']", {}),
        (
            "app = FastAPI()\n@app.post('/say')\ndef say(body: dict): return model(body['message'])",
            {"url": "/say", "body": {"message": "{message}"}},
        ),
        (
            "app = FastAPI()\n@app.post('/say')\ndef say(body: dict):\n"
            "    return JSONResponse(content={'reply': model(body['message'])}, status_code=200)",
            {"url": "/say", "body": {"message": "{message}"}, "answer": "json:reply"},
        ),
        (
            "app = FastAPI()\n@app.post('/say')\ndef say(body: dict):\n"
            "    return ChatResponse(data={'reply': model(body['message'])}, id=1)",
            {"url": "/say", "body": {"message": "{message}"}, "answer": "json:data.reply"},
        ),
        (BY_VARIABLE, {"ready": "/healthz", "url": "/ask", "body": {"text": "{message}"}, "answer": "json:reply"}),
        (AT_ANY_PATH, {"url": "/", "body": {"message": "{message}"}}),
        (
            BY_METHODS,
            {
                "ready": "/healthz",
                "url": "/v1/sessions/{session}/messages",
                "body": {"text": "{message}"},
                "answer": "json:reply",
            },
        ),
        (BY_METHODS + "\nclass Model:\n    def post(self, body): return 1", {}),  # which one is not known
    ],
)
def test_a_service_shows_where_it_takes_a_message(tmp_path: Path, code: str, talks: dict[str, object]):
    """With the names that its route reads and returns."""
    assert proposed(tmp_path, app__py=code).talks == talks


@pytest.mark.parametrize(
    ("code", "url"),
    [
        ("app = FastAPI()\n@app.post('/chat/{thread_id}')\ndef chat(thread_id: str, body: dict):", "/chat/{session}"),
        ("app = FastAPI()\n@app.post('/chat/{thread_id}')\ndef chat(thread_id: int, body: dict):", ""),
        ("app = FastAPI()\n@app.post('/chat/{thread_id:path}')\ndef chat(thread_id, body: dict):", ""),
        ("app = FastAPI()\n@app.post('/chat/{thread_id}/{day}')\ndef chat(thread_id, day, body: dict):", ""),
        (
            "app = Flask('a')\n@app.post('/<thread_id>/ask')\ndef ask(thread_id):\n  body = request.json",
            "/{session}/ask",
        ),
        ("app = Flask('a')\n@app.post('/<string:chat_id>')\ndef ask(chat_id):\n  body = request.json", "/{session}"),
        ("app = Flask('a')\n@app.post('/<int:thread_id>/ask')\ndef ask(thread_id):\n  body = request.json", ""),
    ],
)
def test_a_parameter_of_a_path_that_names_a_session_is_the_session(tmp_path: Path, code: str, url: str):
    """A route with another parameter, or one that is no text, is left out."""
    talks = {"url": url, "body": {"text": "{message}"}, "answer": "json:reply"}
    returned = "\n  return {'reply': model(body['text'])}"
    assert proposed(tmp_path, app__py=code + returned).talks == (talks if url else {})


RAISES = "\ndef load(id):\n    raise HTTPException(404, 'no such thread')\n"
SAID = "    return JSONResponse({'detail': 'no'}, status_code=503)\n"


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (FASTAPI, None),
        (FASTAPI + RAISES, "json:detail"),
        (FASTAPI + SAID, "json:detail"),
        (FASTAPI + SAID.replace("detail", "error"), "json:error"),
        (FASTAPI + SAID.replace("detail", "error") + RAISES, "json:error"),
        (FLASK + RAISES, None),
        (FLASK + "    return {'error': 'no'}, 503", "json:error"),
    ],
)
def test_a_service_shows_where_it_says_an_error(tmp_path: Path, code: str, error: str | None):
    """FastAPI writes what an `HTTPException` says under `detail`; the route's own words come first."""
    assert proposed(tmp_path, app__py=code).talks.get("error") == error


PACKAGE = {
    "app/main.py": """
from fastapi import FastAPI
from app.api import health
from .api.routes import api_router as api
from app.core.config import settings
app: FastAPI = FastAPI()
app.include_router(health.router)
app.include_router(api, prefix=settings.API_V1)
""",
    "app/core/config.py": "class Settings:\n    API_V1: str = '/api/v1'\nsettings = Settings()",
    "app/api/__init__.py": "",
    "app/api/health.py": "router = APIRouter()\n@router.get('/healthz')\ndef alive(): return 'fine'",
    "app/api/routes/__init__.py": """
from . import chat
api_router = APIRouter()
api_router.include_router(chat.router, prefix="/v2", tags=["chat"])
""",
    "app/api/routes/chat.py": """
from app.models import Asked, Said
router = APIRouter(prefix="/chat")
@router.post("/feedback")
def feedback(it: Asked): ...
@router.post("", response_model=Said)
async def chat(it: Asked): return await answer(it)
""",
    "app/models.py": """
class Asked(BaseModel):
    session_id: str
    text: str = Field(..., min_length=1)
    thread: str | None
    chat_id: str = Field(default="x")
class Said(BaseModel):
    answer: str
""",
    "tests/conftest.py": "app = FastAPI()",
}
FACTORY = {
    "src/shop/api.py": """
router = APIRouter(prefix="/v1")
@router.post("/messages")
def messages(it: dict) -> dict:
    it["text"]
    return {"data": {"answer": 1}}
def create_app():
    app = FastAPI(); app.include_router(router); return app
""",
}
BLUEPRINT = {
    "web/__init__.py": """
def create_app(config=None):
    app = Flask(__name__)
    from .chat import bp
    app.register_blueprint(bp, url_prefix="/api")
    @app.get("/health")
    def health(): return "fine"
    return app
""",
    "web/chat.py": """
bp = Blueprint("chat", __name__, url_prefix="/unused")
@bp.route("/ask", methods=["POST"])
def ask():
    said = {"reply": model(request.get_json()["question"])}
    return said
""",
    "wsgi.py": "from web import create_app\napp = create_app()",
}
AIOHTTP = {
    "server.py": """
async def chat(request):
    asked = await request.json()
    return web.json_response({"reply": model(asked["conversation_id"], asked["message"])})
app = web.Application()
app.router.add_post("/chat", chat)
web.run_app(app, port=int(os.environ["PORT"]))
""",
}


@pytest.mark.parametrize(
    ("files", "command", "talks"),
    [
        (
            PACKAGE,
            "python -m uvicorn --app-dir . app.main:app --port {port}",
            {
                "ready": "/healthz",
                "url": "/api/v1/v2/chat",
                "body": {"text": "{message}", "session_id": "{session}"},
                "answer": "json:answer",
            },
        ),
        (
            FACTORY,
            "python -m uvicorn --factory --app-dir ./src shop.api:create_app --port {port}",
            {"url": "/v1/messages", "body": {"text": "{message}"}, "answer": "json:data.answer"},
        ),
        (
            FACTORY | {"src/shop/asgi.py": "from shop.api import create_app\napp = create_app()"},
            "python -m uvicorn --app-dir ./src shop.asgi:app --port {port}",
            {"url": "/v1/messages", "body": {"text": "{message}"}, "answer": "json:data.answer"},
        ),
        (
            BLUEPRINT,
            "python -m flask --app wsgi.py run --port {port}",
            {"ready": "/health", "url": "/api/ask", "body": {"question": "{message}"}, "answer": "json:reply"},
        ),
        (
            AIOHTTP,
            "PORT={port} python server.py",
            {
                "url": "/chat",
                "body": {"message": "{message}", "conversation_id": "{session}"},
                "answer": "json:reply",
            },
        ),
    ],
    ids=["package", "factory", "made by a factory", "blueprint", "aiohttp"],
)
def test_the_routes_of_a_package_are_found(
    tmp_path: Path, files: dict[str, str], command: str, talks: dict[str, object]
):
    """With the prefixes of the routers that are imported from other files."""
    found = proposed(tmp_path, **files)
    assert (found.kind, found.command, found.talks) == ("http", command, talks)


CLICK = """
@click.command()
@click.option("--model")
@click.option("-m", "--message", required=True)
def main(model, message): ...
"""
GROUP = """
@click.group()
def cli(): ...
@cli.command()
@click.argument("path")
def index(path): ...
@cli.command("ask")
@click.option("-p", "prompt")
def asks(prompt): ...
"""
TYPER = """
app = typer.Typer()
@app.command()
def main(session: str, text: Annotated[str, typer.Option("--text", "-t")] = "hi"): ...
"""
TYPER_OPTION = "@app.command()\ndef main(user_input: str = ''): ..."
TYPER_TWO = "@app.command()\ndef load(file: str): ...\n@app.command()\ndef chat_once(message: str): ..."
ARGPARSE = "import argparse\nparser.add_argument('-v')\nparser.add_argument('-p', '--prompt')"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (CLICK, "--message {message}"),
        (CLICK.replace('"-m", "--message", required=True', '"-m", "message"'), "-m {message}"),
        (CLICK.replace('@click.option("-m", "--message", required=True)', '@click.argument("message")'), "{message}"),
        (GROUP, "ask -p {message}"),
        (TYPER, "--text {message}"),
        (TYPER_OPTION, "--user-input {message}"),
        (TYPER_OPTION.replace("user_input: str = ''", "message: str"), "{message}"),
        (TYPER_OPTION.replace("''", "typer.Argument('')"), "{message}"),
        (TYPER_TWO, "chat-once {message}"),
        (ARGPARSE, "--prompt {message}"),
        (ARGPARSE + "\nparser.add_argument('message', nargs='?')", "{message}"),
    ],
)
def test_a_message_goes_where_the_command_line_takes_it(tmp_path: Path, code: str, words: str):
    """Behind its option, or its subcommand; also of a program that the project installs."""
    assert proposed(tmp_path, **{"main.py": f"{code}\n{MAIN}"}).command == f"python main.py {words}"
    script = '[project]\nname = "bot"\n[project.scripts]\nbot = "main:app"'
    assert proposed(tmp_path, **{"pyproject.toml": script}).command == f"bot {words}"


@pytest.mark.parametrize("folder", ["dist", "build", "node_modules/x", ".venv/lib", "env", "tests", "src/__tests__"])
def test_what_is_built_or_installed_is_not_proposed(tmp_path: Path, folder: str):
    """Neither are tests."""
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    files = {f"{folder}/agent.py": "app = FastAPI()", f"{folder}/index.js": "main()"}
    package = '{"bin": "./%s/index.js"}' % folder  # noqa: UP031
    assert proposed(tmp_path, **files, **{"package.json": package}).command is None


@pytest.mark.parametrize("spec", ["agent.yaml", "agents/mine.yaml"])
def test_a_function_runs_in_the_projects_own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str):
    """Its Python is written as seen from the spec."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "core.py").write_text("def reply(message, *, session_dir, llm_url, key): ...")
    (tmp_path / "agents").mkdir()
    venv.create(tmp_path / ".venv", symlinks=True)
    done = CliRunner().invoke(
        app, ["init", spec, "--name", "a", "--wire", "ollama", "--command", "core.py:reply", "--kind", "callable"]
    )
    assert done.exit_code == 0, done.output
    assert python_of(load_spec(tmp_path / spec)) == str(tmp_path / ".venv/bin/python")
    monkeypatch.setattr("sys.prefix", str(tmp_path / ".venv"))
    assert propose(tmp_path).python == "", "it is our own"


def test_without_an_environment_of_its_own_a_project_has_no_python(tmp_path: Path):
    """A folder `.venv` alone is none."""
    (tmp_path / ".venv").mkdir()
    assert proposed(tmp_path).python == ""


@pytest.mark.parametrize("name", [".venv", "venv"])
def test_yes_takes_the_proposal_and_the_projects_own_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    """Nothing is asked; a program needs the packages of its project, as a function does."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bot.py").write_text(f"import anthropic, sys\nprint(sys.argv[1])\n{MAIN}")
    venv.create(tmp_path / name, symlinks=True)
    done = CliRunner().invoke(app, ["init", "--yes"], input="")
    assert done.exit_code == 0, done.output
    spec = load_spec(tmp_path / "agent.yaml")
    assert (spec.wire, spec.command) == ("anthropic", (f"{{here}}/{name}/bin/python", "{here}/bot.py", "{message}"))
    assert "the project's own environment" in (tmp_path / "agent.yaml").read_text()


def test_yes_without_a_proposal_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Exit code 2, and no file; with the option it is enough."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["init", "-y"], input="")
    assert done.exit_code == 2 and not (tmp_path / "agent.yaml").exists()
    assert "no file in this folder shows how the agent is started; give --command: its command line" in done.stderr
    assert CliRunner().invoke(app, ["init", "-y", "--command", "bot {message}"], input="").exit_code == 0


def test_a_script_of_the_project_is_proposed_where_it_is_installed(tmp_path: Path):
    """A shell that has not activated the environment finds it only there."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "bot"\n[project.scripts]\nbot = "bot:main"\n')
    assert proposed(tmp_path).command == "bot {message}"
    script = tmp_path / ".venv" / "bin" / "bot"
    script.parent.mkdir(parents=True)
    script.touch(0o755)
    assert proposed(tmp_path).command == ".venv/bin/bot {message}"


def test_a_script_of_the_project_whose_module_takes_lines_is_a_process_that_stays(tmp_path: Path):
    """The function that the script names decides, not another file."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "bot"\n[project.scripts]\nbot = "bot.cli:main"\n')
    module = tmp_path / "src" / "bot" / "cli.py"
    module.parent.mkdir(parents=True)
    module.write_text(JSON_LINES)
    found = propose(tmp_path)
    assert (found.kind, found.command, found.because) == ("lines", "bot", "src/bot/cli.py")
    assert found.talks["send"] == {"question": "{message}"}
    module.write_text(MAIN)
    (tmp_path / "loop.py").write_text(JSON_LINES)
    assert (propose(tmp_path).kind, propose(tmp_path).command) == ("command", "bot {message}")
