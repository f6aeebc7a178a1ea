"""An agent, a service, whose memory is a table in PostgreSQL, over a pool of two connections (psycopg_pool).

python remembering.py PORT             two seconds for a query, then another connection
python remembering.py PORT --patient   waits for a query for ever
python remembering.py PORT --leak      a connection whose query failed is not given back
"""

import contextlib
import json
import os
import socket
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg
from psycopg_pool import ConnectionPool

PATIENT, LEAKS = "--patient" in sys.argv, "--leak" in sys.argv
SESSION = os.environ["SESSION"]
POOL = ConnectionPool(os.environ["DATABASE_URL"], min_size=2, max_size=2, timeout=30 if LEAKS else 1, open=True)
POOL.wait(30)  # else a fault may strike a connection that is still being opened, and no query waits for that one


def hang_up(connection):
    """Break the connection under a query: libpq has no time limit of its own."""
    with socket.socket(fileno=os.dup(connection.fileno())) as other:
        other.shutdown(socket.SHUT_RDWR)


def asked(connection, sql, *values):
    watch = threading.Timer(1.0, hang_up, [connection])
    if not PATIENT:
        watch.start()
    try:
        found = connection.execute(sql, values)
        rows = found.fetchall() if found.description else []
        connection.commit()
        return rows
    finally:
        watch.cancel()


def query(sql, *values):
    if LEAKS:
        connection = POOL.getconn()
        rows = asked(connection, sql, *values)
        POOL.putconn(connection)
        return rows
    for last in (False, False, True):
        try:
            with POOL.connection() as connection:
                return asked(connection, sql, *values)
        except psycopg.OperationalError:
            if last:
                raise


def answer(text):
    messages = [json.loads(row[0]) for row in query("SELECT said FROM memory WHERE session = %s ORDER BY id", SESSION)]
    mine = {"role": "user", "content": text}
    body = json.dumps({"model": "gpt-4.1-mini", "messages": [*messages, mine]}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=20) as reply:
        said = json.load(reply)["choices"][0]["message"]["content"]
    rows = [json.dumps(mine), json.dumps({"role": "assistant", "content": said})]
    query("INSERT INTO memory (session, said) SELECT %s, unnest(%s::text[])", SESSION, rows)
    return said


class Service(BaseHTTPRequestHandler):
    def do_GET(self):
        self.say(200, {"status": "up"})

    def do_POST(self):
        text = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"]
        try:
            self.say(200, {"answer": answer(text)})
        except (psycopg.Error, OSError) as wrong:
            self.say(500, {"error": f"I cannot answer now: {wrong}"})

    def say(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


made_at_once = (psycopg.errors.UniqueViolation, psycopg.errors.DuplicateTable)  # by two agents
with contextlib.suppress(*made_at_once), POOL.connection() as first:
    first.execute("CREATE TABLE IF NOT EXISTS memory (id serial, session text, said text)")
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Service).serve_forever()
