"""Loads the certificates that a TLS client trusts when it needs them, not when it is made.

httpx, openai and anthropic load about 140 certificates for each client, which takes 20 ms: as long as a whole simulated
run. Most of these clients then speak plain HTTP to the fake provider.
"""

import contextlib
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock
from weakref import WeakKeyDictionary

_LOADS = ("load_verify_locations", "load_default_certs")
_NEEDS = ("wrap_bio", "wrap_socket", "get_ca_certs", "cert_store_stats")
_Later = WeakKeyDictionary[ssl.SSLContext, list[Callable[[ssl.SSLContext], object]]]


@contextlib.contextmanager
def lazy_ca() -> Iterator[None]:
    """Load certificates late while this is open; contexts that were made meanwhile still load them afterwards."""
    later: _Later = WeakKeyDictionary()
    with contextlib.ExitStack() as stack:
        for name in _LOADS:
            stack.enter_context(mock.patch.object(ssl.SSLContext, name, _deferred(name, later)))
        for name in _NEEDS:
            stack.enter_context(mock.patch.object(ssl.SSLContext, name, _loaded_first(name, later)))
        yield
        for context in list(later):
            _load(context, later)


def _deferred(name: str, later: _Later) -> Callable[..., None]:
    real = getattr(ssl.SSLContext, name)

    def load(context: ssl.SSLContext, *args: Any, **options: Any) -> None:
        file = options.get("cafile", args[0] if args else None)
        if name == "load_default_certs" or (file is not None and Path(file).is_file()):
            later.setdefault(context, []).append(lambda it: real(it, *args, **options))
        else:
            real(context, *args, **options)  # an error belongs to this call

    return load


def _loaded_first(name: str, later: _Later) -> Callable[..., Any]:
    real = getattr(ssl.SSLContext, name)

    def use(context: ssl.SSLContext, *args: Any, **options: Any) -> Any:
        _load(context, later)
        return real(context, *args, **options)

    return use


def _load(context: ssl.SSLContext, later: _Later) -> None:
    for load in later.pop(context, ()):
        load(context)
