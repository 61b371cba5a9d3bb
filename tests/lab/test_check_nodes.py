"""stoker check --on-nodes: what the nodes of a real cluster see of a job's paths, disks and clocks."""

import json

import pytest
from labs import Lab
from submitted import Runs

pytestmark = pytest.mark.needs("slurm", "namespaces")

JOB = """\
name: looks
run: python3 train.py
resources: {{nodes: 2}}
data: {{train: {{source: {data}}}}}
"""


@pytest.fixture
def looks(lab: Lab, example_dataset) -> Runs:
    folder = lab.shared / "looks"
    folder.mkdir()
    (folder / "train.py").write_text("print('hello')\n")
    lab.run("cp", "-r", example_dataset, folder / "data")
    (folder / "job.yaml").write_text(JOB.format(data="data"))
    return Runs(lab, folder)


def test_nodes_that_see_all_are_shown_with_their_disks_and_clocks(looks: Runs):
    done = looks.stoker("check", "job.yaml", "--on-nodes", "--json")
    value = json.loads(done.out)
    assert value["ready"] is True, value["findings"]
    steps = {step["name"]: step for step in value["nodes"]["checks"]}
    assert steps["storage"]["state"] == "passed"
    assert steps["storage"]["text"] == "3 paths the same on 2 ranks"
    assert steps["all-reduce"]["state"] == "passed"
    hosts = value["nodes"]["hosts"]
    assert len({host["host"] for host in hosts}) == 2
    assert all(host["local_free"] > 0 and abs(host["clock_s"]) < 60 for host in hosts)
    # Nothing is left of the look, but for what `--production` asks for.
    assert sorted(path.name for path in looks.folder.iterdir()) == ["data", "job.yaml", "runs", "train.py"]
    assert [path.name for path in (looks.folder / "runs").iterdir()] == ["hello.json"]
    points = json.loads(looks.stoker("check", "job.yaml", "--production", "--json", code=None).out)["points"]
    met = {point["name"]: point for point in points}["all-reduced"]
    assert met["answer"] == "yes"


def test_a_path_that_one_node_does_not_see_is_named_with_the_node(looks: Runs):
    """A list on node-local disks: it exists here and on the first node, but not on the second."""
    lab = looks.lab
    seeing, blind = lab.nodes[:2]
    path = lab.folder / "local" / "list.txt"
    make = ["sh", "-c", f"mkdir -p {path.parent} && touch -d @1700000000 {path}"]
    lab.run(*make)
    looks.stoker("lab", "shell", seeing, "--name", lab.name, "--", *make)
    with (looks.folder / "job.yaml").open("a") as job:
        job.write(f"stage: {{copy: [{path}]}}\n")
    done = looks.stoker(
        "check", "job.yaml", "--on-nodes", "--set", f"slurm.extra=--nodelist={seeing},{blind}", code=1, timeout=120
    )
    output = done.out.splitlines()
    at = output.index(f"stage.copy: {path} on {blind}: is not there")
    assert output[at + 1] == f"  ok on {seeing}"
    assert output[at + 2].startswith(f'  try: slurm: {{extra: ["--exclude={blind}"]}}')
    remove = ["rm", path]
    lab.run(*remove)
    looks.stoker("lab", "shell", seeing, "--name", lab.name, "--", *remove)
