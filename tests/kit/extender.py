"""A fake extender: answers by functions, and remembers what it was asked."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Body = dict[str, Any]

#: What a verb answers: JSON, or a status code and a text.
Reply = Callable[[Body], Any]


class Status:
    """An answer that is none."""

    def __init__(self, code: int, text: str = "") -> None:
        self.code = code
        self.text = text


class FakeExtender:
    """Serves on a free port of this machine; a context manager.  ``asked`` are pairs of verb and body."""

    def __init__(self, tls: ssl.SSLContext | None = None, /, **verbs: Reply) -> None:
        self.verbs = verbs
        self.asked: list[tuple[str, Body]] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                verb = self.path.rsplit("/", 1)[-1]
                fake.asked.append((verb, body))
                answer = fake.verbs[verb](body)
                code, text = 200, ""
                if isinstance(answer, Status):
                    code, text = answer.code, answer.text
                else:
                    text = json.dumps(answer)
                self.send_response(code)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                try:
                    self.wfile.write(text.encode())
                except OSError:
                    pass  # whoever asked has given up

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that may not in
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    @property
    def url(self) -> str:
        """The URL prefix."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}/ext"

    def bodies(self, verb: str) -> list[Body]:
        """What a verb was asked."""
        return [body for each, body in self.asked if each == verb]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def names_of(body: Body) -> list[str]:
    """The nodes that a filter or prioritize call is about."""
    if body["NodeNames"] is not None:
        return list(body["NodeNames"])
    return [node["metadata"]["name"] for node in body["Nodes"]["items"]]


def keep(*wanted: str, failed: dict[str, str] | None = None, final: dict[str, str] | None = None) -> Reply:
    """A filter that lets these nodes pass, and gives reasons for others."""

    def answer(body: Body) -> Body:
        names = [name for name in names_of(body) if name in wanted]
        result: Body = {"FailedNodes": failed, "FailedAndUnresolvableNodes": final, "Error": ""}
        if body["NodeNames"] is not None:
            return result | {"NodeNames": names}
        return result | {
            "Nodes": {"items": [n for n in body["Nodes"]["items"] if n["metadata"]["name"] in names]}
        }

    return answer


def rate(**scores: int) -> Reply:
    """A prioritizer with these scores."""
    return lambda body: [{"Host": name, "Score": scores.get(name, 0)} for name in names_of(body)]
