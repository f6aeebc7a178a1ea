"""A small HTTP client for agents under test: a process that imports `urllib.request` takes 40 ms more to start.

    with post(f"{url}/v1/messages", {"model": "m"}, {"x-api-key": "k"}, timeout_s=30) as reply:
        for line in reply: …            # or json.loads(reply.read())

One connection for each request. A timeout bounds each single read, as in `urllib`. All errors are OSError.
"""

import _socket  # `socket` takes as long to import as all of this file
import json


class StatusError(OSError):
    """The reply's status is no success; `code`, `headers` and `body` are the reply's."""

    def __init__(self, code, reason, headers, body):
        super().__init__(f"HTTP Error {code}: {reason}")
        self.code, self.headers, self.body = code, headers, body


def post(url, body, headers, timeout_s=None):
    """Send `body` as JSON; the reply, whose head is there. Errors: StatusError, OSError."""
    host, _, path = url.removeprefix("http://").partition("/")
    data = json.dumps(body).encode()
    told = {"host": host, "content-type": "application/json", "content-length": len(data), "connection": "close"}
    head = "".join(f"{name}: {value}\r\n" for name, value in (told | headers).items())
    connection = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        name, _, port = host.partition(":")
        connection.connect((name, int(port)))
        connection.sendall(f"POST /{path} HTTP/1.1\r\n{head}\r\n".encode() + data)
        return Reply(connection)
    except BaseException:
        connection.close()
        raise


class Reply:
    """A reply, read line by line or whole."""

    def __init__(self, connection):
        self._connection, self._data = connection, b""
        _, self.status, reason = (self._line().decode() + "  ").split(" ", 2)
        self.status, self.headers = int(self.status or 0), {}
        while line := self._line().decode().strip():
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()
        if self.status >= 300:
            raise StatusError(self.status, reason.strip(), self.headers, self.read())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._connection.close()

    def __iter__(self):
        """The body's lines, with their ends."""
        text = b""
        for part in self._parts():
            *lines, text = (text + part).split(b"\n")
            for line in lines:
                yield line + b"\n"
        if text:
            yield text

    def read(self):
        """The rest of the body; the connection is closed."""
        with self:
            return b"".join(self._parts())

    def _parts(self):
        if "chunked" in self.headers.get("transfer-encoding", ""):
            while size := int(self._line().split(b";")[0], 16):
                yield from self._counted(size)
                self._line()
        elif "content-length" in self.headers:
            yield from self._counted(int(self.headers["content-length"]))
        else:
            while part := self._some():
                yield part

    def _counted(self, left):
        while left:
            if not (part := self._some(left)):
                raise ConnectionError(f"the reply ended {left} bytes too early")
            left -= len(part)
            yield part

    def _line(self):
        while b"\n" not in self._data:
            if not (more := self._connection.recv(65536)):
                raise ConnectionError("the connection was closed in mid reply")
            self._data += more
        line, _, self._data = self._data.partition(b"\n")
        return line

    def _some(self, most=65536):
        """What is there, and else what comes next; empty at the end."""
        found, self._data = (self._data or self._connection.recv(65536)), b""
        part, self._data = found[:most], found[most:]
        return part
