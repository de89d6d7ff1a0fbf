"""A service on loopback that speaks Chat Completions, and remembers what it was asked."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Service:
    """``with Service("Hello", "again") as service``: each request gets the next text, the last one for ever."""

    def __init__(self, *texts):
        self.texts = list(texts)
        self.asked = []
        """``(path, headers, body)`` of each request; names of headers in lower case."""
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                text = service.texts[min(len(service.asked), len(service.texts) - 1)]
                service.asked.append((self.path, headers, body))
                answer = service.answer(text)
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    @staticmethod
    def answer(text):
        chunk = {"id": "r1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        pieces = [
            {"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}},
        ]
        lines = [f"data: {json.dumps({**chunk, **piece})}\n\n" for piece in pieces]
        return "".join([*lines, "data: [DONE]\n\n"]).encode()

    def models(self, provider="acme", **more):
        """A configuration with the model ``PROVIDER/m``."""
        model = {"id": "m", "contextWindow": 32768, "maxTokens": 1000}
        settings = {"baseUrl": self.url, "api": "openai-completions", "models": [model], **more}
        return {"providers": {provider: settings}}

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
