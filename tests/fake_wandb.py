"""A fake server of Weights & Biases that records what `wandb sync` sends. It answers the few GraphQL operations
that a sync needs; it is no proof that the real server accepts the run."""

import gzip
import json
from http.server import BaseHTTPRequestHandler
from urllib.parse import unquote

from fake_server import FakeServer


class FakeWandb(FakeServer):
    """with FakeWandb() as server: server.url, then server.runs, rows("wandb-history.jsonl"), ..."""

    def __init__(self):
        self.runs: list[dict] = []  # variables of UpsertBucket
        self.lines: dict[str, dict[int, str]] = {}  # of each file, by number
        self.exit_codes: list[int] = []
        self.uploads: dict[str, bytes] = {}  # files, by name

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        if handler.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        answer = json.dumps(self.answer_to(handler.path, body)).encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer)

    def answer_to(self, path: str, body: bytes) -> dict:
        if path.endswith("/file_stream"):
            sent = json.loads(body)
            for name, part in (sent.get("files") or {}).items():
                for i, line in enumerate(part["content"]):
                    self.lines.setdefault(name, {})[part["offset"] + i] = line
            if sent.get("complete"):
                self.exit_codes.append(sent["exitcode"])
            return {}
        if path.startswith("/upload/"):
            self.uploads[unquote(path.removeprefix("/upload/"))] = body
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
