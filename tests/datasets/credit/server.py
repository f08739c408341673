"""A judge behind a real HTTP server, which counts what it is asked."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from .making import steps


class JudgeServer:
    """Answers chat completions with the same key steps. Use it as a context manager."""

    def __init__(self, *, pause_s: float = 0.0, answer: str = "", status: int = 200) -> None:
        self.asked: Counter[str] = Counter()
        """Requests by the hash of their prompt, as a credit notes it."""
        self.bodies: list[dict[str, object]] = []
        """Every request."""
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler(pause_s, answer or ANSWER, status))
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        """What --base-url takes."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> JudgeServer:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def note(self, body: dict[str, object]) -> None:
        """One more request."""
        messages = body["messages"]
        assert isinstance(messages, list)
        prompt = "\0".join(message["content"] for message in messages[:2])
        with self._lock:
            self.asked[hashlib.sha256(prompt.encode()).hexdigest()] += 1
            self.bodies.append(body)

    def _handler(self, pause_s: float, answer: str, status: int) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.note(body)
                time.sleep(pause_s)
                data = json.dumps(_completion(answer) if status == 200 else {"error": {"message": "no key"}})
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data.encode())
                except OSError:
                    return  # whoever asked was killed

            def log_message(self, *_: object) -> None:
                """Nothing."""

        return Handler


ANSWER = steps((0, 0.2), (1, 0.6), (3, 0.1))


def _completion(answer: str) -> dict[str, object]:
    message = {"role": "assistant", "content": answer}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "judge",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100},
    }
