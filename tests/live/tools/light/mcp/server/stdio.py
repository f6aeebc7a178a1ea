"""Lines of stdin, and what writes to stdout."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def stdio_server(stdout: Any) -> AsyncIterator[tuple[asyncio.StreamReader, Any]]:
    reader = asyncio.StreamReader(limit=2**24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    yield reader, stdout
