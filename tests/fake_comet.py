"""A fake server of Comet that records what `comet upload` sends. It answers what an upload needs; it is no proof that the
real server accepts the experiment."""

import gzip
import json
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qsl, urlsplit

from fake_server import FakeServer

ALREADY_EXISTS = 90999  # EXPERIMENT_ALREADY_EXISTS of comet_ml.exceptions


class FakeComet(FakeServer):
    """with FakeComet() as server: server.environment() for `comet upload`, then server.metrics, ..."""

    def __init__(self):
        self.experiments: dict[str, str] = {}  # project, by key
        self.tags: list[str] = []
        self.metrics: list[dict] = []
        self.params: dict[str, object] = {}
        self.others: dict[str, object] = {}
        self.files: list[tuple[str, dict[str, str], bytes]] = []  # kind, query and bytes
        self.errors: list[str] = []
        self.ends: list[int] = []  # milliseconds

    def environment(self) -> dict[str, str]:
        return {"COMET_URL_OVERRIDE": f"{self.url}/clientlib/", "COMET_API_KEY": 25 * "a"}

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        if handler.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        url = urlsplit(handler.path)
        if url.path.endswith("/upload"):
            head = f"Content-Type: {handler.headers['Content-Type']}\r\n\r\n".encode()
            (part,) = message_from_bytes(head + body).get_payload()
            self.files.append((url.path.split("/")[-2], dict(parse_qsl(url.query)), part.get_payload(decode=True)))
            status, reply = 200, {}
        else:
            status, reply = self.answer_to(url.path.removeprefix("/clientlib"), json.loads(body or b"{}"))
        data = json.dumps(reply).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def answer_to(self, path: str, sent: dict) -> tuple[int, dict]:
        run = {"fullName": "me/p", "runId": "r", "project_id": "p", "focusUrl": "http://comet/", "lastOffset": 0}
        if path == "/logger/add/run":
            if sent["experimentKey"] in self.experiments:
                return 400, {"sdk_error_code": ALREADY_EXISTS, "msg": "exists"}
            self.experiments[sent["experimentKey"]] = sent["projectName"]
            return 200, run
        if path == "/logger/get/run":
            assert sent["previousExperiment"] in self.experiments
            return 200, run
        if path == "/tags/add-tags-to-experiment":
            self.tags += sent["addedTags"]
        if path == "/batch/logger/experiment/metric":
            self.metrics += sent["values"]
        if path == "/batch/logger/experiment/parameter":
            self.params |= {each["parameterName"]: each["parameterValue"] for each in sent["values"]}
        if path.endswith("/experiment/log-other"):
            self.others[sent["key"]] = sent["value"]
        if path.endswith("/experiment/update-status"):
            self.errors.append(sent["error"])
        if path == "/status-report/offline-metadata":
            self.ends.append(sent["endTimestamp"])
        intervals = {f"{name}_millis": 10_000 for name in ("is_alive_beat_duration", "gpu_monitor_interval")}
        return 200, {"version": "9.9.9"} | intervals
