"""A fake server of Weights & Biases that records what `wandb sync` sends. It answers the few GraphQL operations
that a sync needs; it is no proof that the real server accepts the run."""

import gzip
import json
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FakeWandb:
    """with FakeWandb() as server: server.url, then server.runs, rows("wandb-history.jsonl"), ..."""

    def __init__(self):
        self.runs: list[dict] = []  # variables of UpsertBucket
        self.lines: dict[str, dict[int, str]] = {}  # of each file, by number
        self.exit_codes: list[int] = []

    def __enter__(self) -> "FakeWandb":
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle(self):
                with suppress(ConnectionError):  # of a killed client
                    super().handle()

            def handle_request(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                answer = json.dumps(outer.answer(self.path, body)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_POST = do_PUT = handle_request  # noqa: N815

            def log_message(self, *arguments):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error):
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, body: bytes) -> dict:
        if path.endswith("/file_stream"):
            sent = json.loads(body)
            for name, part in (sent.get("files") or {}).items():
                for i, line in enumerate(part["content"]):
                    self.lines.setdefault(name, {})[part["offset"] + i] = line
            if sent.get("complete"):
                self.exit_codes.append(sent["exitcode"])
            return {}
        if path != "/graphql":
            return {}
        request = json.loads(body)
        query, variables = request["query"], request.get("variables") or {}
        if "upsertBucket" in query:
            self.runs.append(variables)
            project = {"id": "p", "name": variables["project"], "entity": {"id": "e", "name": "me"}}
            bucket = {"id": "b", "name": variables["name"], "displayName": variables["displayName"], "project": project}
            return {"data": {"upsertBucket": {"bucket": bucket | {"historyLineCount": 0}, "inserted": True}}}
        if "createRunFiles" in query:
            files = [{"name": name, "uploadUrl": f"{self.url}/upload/{name}"} for name in variables["files"]]
            return {"data": {"createRunFiles": {"runID": "b", "uploadHeaders": [], "files": files}}}
        return {"data": {"viewer": {"id": "u", "entity": "me", "flags": "{}"}, "serverInfo": {}}}

    def rows(self, file: str) -> list[dict]:
        lines = self.lines.get(file, {})
        assert sorted(lines) == list(range(len(lines)))
        return [json.loads(lines[number]) for number in sorted(lines)]
