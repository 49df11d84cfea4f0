"""A local server that speaks the four protocols, and applies each provider's published rules.

It listens on a free loopback port. A request that keeps the rules of its provider gets the smallest
valid answer, one that breaks them a 400 in the provider's own form, as its client expects it.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from tests.judges import rules
from tests.judges.rules import Refused

Answer = dict[str, Any]

ANSWERED = "Understood."
"""What the model says to every list that it takes."""


class Provider:
    """The running server; a context manager.

    Attributes:
        url: Its address, without a path.
        bodies: The bodies it was sent, oldest first, with their paths.
    """

    def __init__(self) -> None:
        self.bodies: list[tuple[str, Answer]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "Provider":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def answer(path: str, body: Answer) -> tuple[int, Answer]:
    """The status and body of the answer to one request."""
    if path == "/v1/chat/completions":
        rule, accepted, refused = rules.openai_chat, _chat_completion, _openai_error
    elif path == "/v1/responses":
        rule, accepted, refused = rules.openai_responses, _response, _openai_error
    elif path == "/v1/messages":
        rule, accepted, refused = rules.anthropic, _anthropic_message, _anthropic_error
    elif path.endswith(":generateContent"):
        rule, accepted, refused = rules.gemini, _gemini_content, _gemini_error
    else:
        return 404, {"error": {"message": f"No such path: {path}", "type": "not_found_error"}}
    try:
        rule(body)
    except Refused as refusal:
        return 400, refused(refusal)
    return 200, accepted(body)


def _openai_error(refusal: Refused) -> Answer:
    return {
        "error": {
            "message": refusal.message,
            "type": "invalid_request_error",
            "param": refusal.place,
            "code": None,
        }
    }


def _anthropic_error(refusal: Refused) -> Answer:
    return {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": refusal.message},
        "request_id": "req_1",
    }


def _gemini_error(refusal: Refused) -> Answer:
    return {"error": {"code": 400, "message": refusal.message, "status": "INVALID_ARGUMENT"}}


def _chat_completion(body: Answer) -> Answer:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": ANSWERED, "refusal": None},
                "finish_reason": "stop",
                "logprobs": None,
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def _response(body: Answer) -> Answer:
    text = {"type": "output_text", "text": ANSWERED, "annotations": []}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": body["model"],
        "output": [
            {
                "type": "message",
                "id": "msg_1",
                "status": "completed",
                "role": "assistant",
                "content": [text],
            }
        ],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 2,
        },
    }


def _anthropic_message(body: Answer) -> Answer:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [{"type": "text", "text": ANSWERED}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _gemini_content(body: Answer) -> Answer:
    return {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": ANSWERED}]},
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 1,
            "candidatesTokenCount": 1,
            "totalTokenCount": 2,
        },
    }


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # connections stay open: thousands of requests in seconds

        def do_POST(self) -> None:
            path = self.path.partition("?")[0]
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            provider.bodies.append((path, body))
            status, answered = answer(path, body)
            content = json.dumps(answered).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            # Headers and body in one packet: two would wait for each other's acknowledgement.
            self._headers_buffer.append(b"\r\n" + content)  # type: ignore[attr-defined]
            self.flush_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing: the answers are the clients' to judge."""

    return Handler
