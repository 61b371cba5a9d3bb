"""`stoker schema job`: the JSON Schema accepts the job files of the examples and docs, and refuses what the reader refuses."""

import json
import re
from typing import ClassVar

import jsonschema
import pytest
import yaml
from conftest import REPOSITORY


class Yaml12Loader(yaml.SafeLoader):
    """The core schema of YAML 1.2, as editors and Stoker read it: 1:30:00 and 2026-01-01 are texts, 1e-3 is a number."""

    yaml_implicit_resolvers: ClassVar[dict] = {}


Yaml12Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf"))
Yaml12Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?[0-9]+$"), list("-+0123456789"))
Yaml12Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$"),
    list("-+.0123456789"),
)
Yaml12Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^(?:~|null|)$"), ["~", "n", ""])
Yaml12Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(node.value))


def load(text: str):
    return yaml.load(text, Loader=Yaml12Loader)


def job_files() -> dict[str, str]:
    """The job files of the examples, and the blocks of docs and README that run something, by place."""
    files = {
        str(path.relative_to(REPOSITORY)): path.read_text() for path in (REPOSITORY / "examples").rglob("job.yaml")
    }
    pages = [REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / "examples").rglob("*.md")]
    for page in pages:
        text = page.read_text()
        for block in re.finditer(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            is_job = re.search(r"^(?:run|train):", block[1], re.MULTILINE)
            if is_job and not block[1].startswith("# wrong.yaml"):
                line = text.count("\n", 0, block.start()) + 1
                files[f"{page.relative_to(REPOSITORY)}:{line}"] = block[1]
    return files


@pytest.fixture
def validator(stoker):
    schema = json.loads(stoker("schema", "job", code=0).out)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_schema_accepts_every_job_file_of_examples_and_docs(validator):
    files = job_files()
    assert len(files) > 20
    wrong = {place: [error.message for error in validator.iter_errors(load(text))] for place, text in files.items()}
    assert {place: errors for place, errors in wrong.items() if errors} == {}


@pytest.mark.parametrize(
    "text",
    [
        "run: python train.py",
        "run: [python, train.py, --epochs, 3]",
        "run: {shell: 'cd src && python train.py'}",
        "{run: a, resources: {memory_per_node: 64GB, time: 20h}}",
        "{run: a, resources: {memory_per_node: 1.5 TiB, time: 1:30:00}}",
        "{run: a, resources: {time: 2-12:00:00, nodes: '${params.n}'}, params: {n: 2, name: x, fast: true}}",
        "{run: a, checkpoint: {every: 100 steps, keep_every: 1h30m}}",
        "{run: a, checkpoint: {every: never}}",
        "{run: a, checkpoint: {every: auto, mtbf: 12h}}",
        "{run: a, name: 2026, resources: {nodes: null}, environment: {variables: {OMP_PROC_BIND: true, N: 3}}}",
        "{train: {model: resnet18, optimizer: {lr: 1e-3}, schedule: {drop_at: [30, '${params.end}']}}}",
        "{train: {model: mlp}, data: {train: {source: a, split: train}, my-set: {source: b}}}",
        "{run: a, after: [first.yaml, last], slurm: {extra: --exclusive}}",
    ],
)
def test_the_schema_accepts_all_forms_of_a_value(validator, text):
    assert [error.message for error in validator.iter_errors(load(text))] == []


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("{run: a, resorces: {nodes: 2}}", []),
        ("{run: a, resources: {node: 2}}", ["resources"]),
        ("{run: a, resources: {nodes: two}}", ["resources", "nodes"]),
        ("{run: a, resources: {nodes: '2'}}", ["resources", "nodes"]),
        ("{run: a, resources: {nodes: 0}}", ["resources", "nodes"]),
        ("{run: a, resources: {memory_per_node: 64}}", ["resources", "memory_per_node"]),
        ("{run: a, resources: {memory_per_node: 64 apples}}", ["resources", "memory_per_node"]),
        ("{run: a, resources: {time: 20}}", ["resources", "time"]),
        ("{run: a, resources: {time: 20 hours}}", ["resources", "time"]),
        ("{run: a, checkpoint: {every: 100}}", ["checkpoint", "every"]),
        ("{run: a, launcher: mpirun}", ["launcher"]),
        ("{run: a, code: {snapshot: 'yes'}}", ["code", "snapshot"]),
        ("{run: {command: a}}", ["run"]),
        ("{run: a, data: {1st: {source: b}}}", ["data"]),
        ("{run: a, data: {train: b}}", ["data", "train"]),
        ("{run: a, train: {optimizer: {lr: fast}}}", ["train", "optimizer", "lr"]),
    ],
)
def test_the_schema_refuses_unknown_keys_and_wrong_values_like_the_reader(validator, stoker, tmp_path, text, key):
    places = [list(error.absolute_path) for error in validator.iter_errors(load(text))]
    assert places == [key]
    (tmp_path / "job.yaml").write_text(text)
    assert stoker("check", "job.yaml").code == 2


def test_the_schema_accepts_the_job_file_of_init(validator, stoker, tmp_path):
    stoker("init", code=0)
    assert [error.message for error in validator.iter_errors(load((tmp_path / "job.yaml").read_text()))] == []


def test_every_key_of_check_is_in_the_schema_with_its_default(stoker):
    schema = json.loads(stoker("schema", "job", code=0).out)
    for setting in json.loads(stoker("check", "--keys", "--json", code=0).out)["keys"]:
        at = schema
        for name in setting["key"].split("."):
            at = at["anyOf"][1] if "anyOf" in at and "properties" in at["anyOf"][1] else at
            at = at["additionalProperties"] if name == "*" else at["properties"][name]
        if "properties" in at.get("anyOf", [{}, {}])[-1]:
            at = at["anyOf"][0]  # `run` takes a command or a map
        assert at["description"].startswith(setting["what"]), setting["key"]
        default = at.get("default", "")
        text = str(default).lower() if isinstance(default, bool) else str(default)
        assert text == setting["default"], setting["key"]


def test_json_is_the_schema(stoker):
    assert json.loads(stoker("schema", "job", "--json", code=0).out) == json.loads(stoker("schema", "job", code=0).out)


def test_an_unknown_kind_is_refused(stoker):
    refused = stoker("schema", "site", code=2)
    assert refused.err == "schema: KIND: unknown value 'site' (one of: job)\n"
