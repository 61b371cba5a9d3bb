"""A fake MLflow server with the faults of real ones. It stores each metric that it receives, also one that it has
already, so that a test counts what arrives twice. Limits and messages follow MLflow's REST API."""

import json
import threading
import time
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlparse

from fake_server import FakeServer

API = "/api/2.0/mlflow/"
LARGEST_BATCH = 1000
LARGEST_BODY = 1_000_000


class RefusedError(Exception):
    def __init__(self, status: int, code: str, message: str):
        super().__init__(message)
        self.status, self.code = status, code


class FakeMlflow(FakeServer):
    """with FakeMlflow() as server: server.url ... server.fail(CALL, FAULT, ...) uses up one fault for each further request
    of that call, or of any call for "". Faults:

    500, 429, 413, ...  that status, with a page in HTML
    "close"             the connection ends without an answer, nothing is stored
    "store, close"      the same, but the request is stored before
    "half"              half of the answer, after the request is stored
    "garbage"           200 and a page in HTML
    "hang"              no answer for `hang_s` seconds, nothing is stored"""

    def __init__(self):
        self.experiments: dict[str, str] = {}
        self.runs: dict[str, dict] = {}
        self.metrics: list[dict] = []
        self.params: dict[str, str] = {}  # of the last run
        self.params_of: dict[str, dict[str, str]] = {}  # by the name of the run
        self.files: dict[str, bytes] = {}
        self.datasets: list[dict] = []
        self.models: dict[str, list[dict]] = {}  # versions, by name
        self.requests: list[tuple[str, dict]] = []
        self.headers: list[dict] = []
        self.faults: dict[str, list] = {}
        self.hang_s = 2.0
        self.delay_s = 0.0
        self.most_metrics = LARGEST_BATCH
        self.refused_keys: set[str] = set()
        self._lock = threading.Lock()

    def fail(self, call: str, *faults) -> None:
        self.faults.setdefault(call, []).extend(faults)

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        call = urlparse(handler.path).path.removeprefix(API)
        time.sleep(self.delay_s)
        with self._lock:
            faults = self.faults.get(call) or self.faults.get("")
            fault = faults.pop(0) if faults else None
            self.headers.append(dict(handler.headers))
        if fault == "hang":
            time.sleep(self.hang_s)
        if fault in ("close", "hang"):
            handler.close_connection = True
            return
        if isinstance(fault, int):
            return self.send(handler, fault, b"<html>fault</html>")
        if fault == "garbage":
            return self.send(handler, 200, b"<html>welcome</html>")
        try:
            status, answer = 200, self.store(handler.command, handler.path, body)
        except LookupError:
            return self.send(handler, 404, b"<html>not found</html>")
        except RefusedError as refused:
            status, answer = refused.status, {"error_code": refused.code, "message": str(refused)}
        if fault == "store, close":
            handler.close_connection = True
            return
        self.send(handler, status, json.dumps(answer).encode(), half=fault == "half")

    def send(self, handler: BaseHTTPRequestHandler, status: int, body: bytes, half: bool = False) -> None:
        with suppress(ConnectionError):
            handler.send_response(status)
            handler.send_header("Content-Length", str(len(body) + (100 if half else 0)))
            handler.end_headers()
            handler.wfile.write(body)
            handler.close_connection = half

    def store(self, method: str, path: str, body: bytes) -> dict:
        url = urlparse(path)
        if method == "PUT":
            self.files[url.path.removeprefix("/api/2.0/mlflow-artifacts/artifacts/")] = body
            return {}
        if not url.path.startswith(API):
            raise LookupError(url.path)
        if len(body) > LARGEST_BODY:
            raise RefusedError(400, "BAD_REQUEST", "request too large")
        call = url.path.removeprefix(API)
        request = json.loads(body) if body else {name: values[0] for name, values in parse_qs(url.query).items()}
        with self._lock:
            self.requests.append((call, request))
            return getattr(self, "_" + call.replace("/", "_").replace("-", "_"))(request)

    def _experiments_get_by_name(self, request: dict) -> dict:
        name = request["experiment_name"]
        if name not in self.experiments:
            raise RefusedError(404, "RESOURCE_DOES_NOT_EXIST", f"no experiment {name}")
        return {"experiment": {"experiment_id": self.experiments[name], "name": name, "lifecycle_stage": "active"}}

    def _experiments_create(self, request: dict) -> dict:
        if request["name"] in self.experiments:
            raise RefusedError(400, "RESOURCE_ALREADY_EXISTS", "exists")
        self.experiments[request["name"]] = str(len(self.experiments) + 1)
        return {"experiment_id": self.experiments[request["name"]]}

    def _runs_search(self, request: dict) -> dict:
        name, value = request["filter"].removeprefix("tags.`").removesuffix("'").split("` = '")
        found = [run for run in self.runs.values() if run["tags"].get(name) == value]
        return {"runs": [self._run(run) for run in found]} if found else {}

    def _run(self, run: dict) -> dict:
        tags = [{"key": key, "value": value} for key, value in run["tags"].items()]
        return {"info": run["info"], "data": {"tags": tags}}

    def _runs_create(self, request: dict) -> dict:
        number = f"{len(self.runs):032x}"
        info = {name: request[name] for name in ("experiment_id", "run_name", "user_id", "start_time")}
        info |= {"run_id": number, "status": "RUNNING", "lifecycle_stage": "active"}
        info["artifact_uri"] = f"mlflow-artifacts:/{request['experiment_id']}/{number}/artifacts"
        self.runs[number] = {"info": info, "tags": {tag["key"]: tag["value"] for tag in request["tags"]}}
        return {"run": self._run(self.runs[number])}

    def _found(self, request: dict) -> dict:
        if request["run_id"] not in self.runs:
            raise RefusedError(404, "RESOURCE_DOES_NOT_EXIST", f"Run with id={request['run_id']} not found")
        return self.runs[request["run_id"]]

    def _runs_get(self, request: dict) -> dict:
        return {"run": self._run(self._found(request))}

    def _runs_update(self, request: dict) -> dict:
        run = self._found(request)
        run["info"] |= {name: request[name] for name in ("status", "end_time") if name in request}
        return {"run_info": run["info"]}

    def _runs_log_batch(self, request: dict) -> dict:
        run = self._found(request)
        if run["info"]["lifecycle_stage"] != "active":
            raise RefusedError(400, "INVALID_PARAMETER_VALUE", "The run must be in the 'active' state")
        metrics, params = request.get("metrics", []), request.get("params", [])
        if len(metrics) > self.most_metrics:
            raise RefusedError(413, "BAD_REQUEST", "Request Entity Too Large")
        if len(metrics) + len(params) + len(request.get("tags", [])) > LARGEST_BATCH or len(params) > 100:
            raise RefusedError(
                400, "INVALID_PARAMETER_VALUE", "A batch logging request can contain at most 1000 metrics"
            )
        for item in metrics + params:
            if item["key"] in self.refused_keys:
                raise RefusedError(400, "INVALID_PARAMETER_VALUE", f"Invalid value for {item['key']}")
        if params:
            self.params = self.params_of.setdefault(run["info"]["run_name"], {})
        for param in params:
            if self.params.setdefault(param["key"], param["value"]) != param["value"]:
                raise RefusedError(400, "INVALID_PARAMETER_VALUE", "Changing param values is not allowed")
        self.metrics += metrics
        run["tags"] |= {tag["key"]: tag["value"] for tag in request.get("tags", [])}
        return {}

    def _runs_log_inputs(self, request: dict) -> dict:
        self._found(request)
        self.datasets += request["datasets"]
        return {}

    def _registered_models_get(self, request: dict) -> dict:
        if request["name"] not in self.models:
            raise RefusedError(
                404, "RESOURCE_DOES_NOT_EXIST", f"Registered Model with name={request['name']} not found"
            )
        return {"registered_model": {"name": request["name"]}}

    def _registered_models_create(self, request: dict) -> dict:
        if request["name"] in self.models:
            raise RefusedError(400, "RESOURCE_ALREADY_EXISTS", "exists")
        self.models[request["name"]] = []
        return self._registered_models_get(request)

    def _model_versions_search(self, request: dict) -> dict:
        run = request["filter"].removeprefix("run_id='").removesuffix("'")
        found = [version for versions in self.models.values() for version in versions if version["run_id"] == run]
        return {"model_versions": found} if found else {}

    def _model_versions_create(self, request: dict) -> dict:
        versions = self.models[request["name"]]
        versions.append(request | {"version": str(len(versions) + 1)})
        return {"model_version": versions[-1]}

    def values(self, key: str) -> list[tuple[int, float]]:
        """Step and value of a metric, in the order of arrival."""
        with self._lock:
            return [(metric["step"], metric["value"]) for metric in self.metrics if metric["key"] == key]

    def repeated(self) -> list[tuple]:
        """Metrics that arrived several times."""
        counts = Counter(tuple(sorted((name, str(value)) for name, value in metric.items())) for metric in self.metrics)
        return [metric for metric, count in counts.items() if count > 1]
