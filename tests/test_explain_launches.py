"""stoker explain of runs whose command or batch script starts ranks in a way that does not add up: as the cause of a
failure, or as a note. The run folders are made from docs/formats/run.md."""

import json
import os
from pathlib import Path

import pytest
from run_folders import BEGIN, RunFolder

ALONE = "run: torchrun --nproc-per-node 4 t.py\nresources: {nodes: 2, ranks_per_node: 1}\n"
RENDEZVOUS = "starting\ntorch.distributed.elastic.rendezvous.api.RendezvousTimeoutError\n"
TEXT = "Stoker starts 2 copies of torchrun, and each one trains separately (--nnodes is 1)"
CURE = "run: python t.py    resources: {nodes: 2, ranks_per_node: 4}"
ONE_RANK_0 = (
    "run: torchrun --nnodes 2 --node-rank 0 --master-addr n1 --nproc-per-node 4 t.py\n"
    "resources: {nodes: 2, ranks_per_node: 1}\n"
)
SCRIPT = (
    "#!/bin/bash\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=4\n\n"
    "srun torchrun --standalone --nproc-per-node=4 t.py\n"
)
# What each ending records.
DONE = {"outcome": "done", "exit_code": 0}
FAILED = {
    "outcome": "failed",
    "exit_code": 1,
    "first_rank": 1,
    "reason": "rank 1 (node2) exited after 10 min: exit code 1",
}
OUT_OF_TIME = {"outcome": "stopped", "exit_code": 1, "reason": "time limit 2h (resources.time)"}


def run_of_job(folder: Path, job: str, logs: tuple[str, str], ending: dict) -> RunFolder:
    """A run of two ranks in that folder, with this job file and these logs."""
    run = RunFolder.create(folder / "runs", "digits", working_directory=str(folder), params={})
    run.started(1, BEGIN)
    run.ended(1, BEGIN + 600, **ending)
    for rank, text in enumerate(logs):
        run.log(1, rank, text)
    (run.attempt(1) / "job.yaml").write_text(f"name: digits\n{job}working_directory: {folder}\n")
    (folder / "job.yaml").write_text(f"name: digits\n{job}")
    return run


def run_of_script(folder: Path, log: str, ending: dict, options: str = "--nodes=2") -> RunFolder:
    """A run of SCRIPT, submitted with these options."""
    changes = {"job_file": "", "command": ["train.sh"], "world_size": 1, "params": {}}
    run = RunFolder.create(folder / "runs", "train", working_directory=str(folder), **changes)
    run.started(1, BEGIN)
    run.ended(1, BEGIN + 600, **ending)
    run.log(1, 0, log)
    (run.attempt(1) / "slurm_script").write_text(SCRIPT)
    (run.attempt(1) / "job.sbatch").write_text(f"#!/bin/bash\n#SBATCH {options}\n\nexec stoker run {run.attempt(1)}\n")
    (folder / "train.sh").write_text(SCRIPT)
    return run


def explain(stoker, code: int = 0) -> str:
    return stoker("explain", "last", code=code).out.replace("2025-11-21T10-03-11_3f2c1aa_resnet20_k7q2", "ID")


def diagnosis(stoker, code: int = 0) -> dict:
    return json.loads(stoker("explain", "last", "--json", code=code).out)["diagnosis"]


def of_check(stoker, file: str) -> dict[str, dict]:
    """What stoker check finds in the file, by rule."""
    return {each["rule"]: each for each in json.loads(stoker("check", file, "--json").out)["findings"]}


def test_a_run_that_was_two_separate_trainings_has_a_note(stoker, tmp_path: Path):
    run_of_job(tmp_path, ALONE, ("rank 0/4\ndone\n", "rank 0/4\ndone\n"), DONE)
    assert explain(stoker) == (
        "run ID: done\n"
        "  cause      none: its logs contain no failure\n"
        f"  note       this run was 2 separate trainings: {TEXT} (job.yaml)\n"
        f"             try: {CURE}\n"
    )
    found = diagnosis(stoker)
    assert (found["certainty"], found["notes"]) == ("unknown", [])
    assert found["also"] == [
        {
            "rule": "separate-trainings",
            "level": "job",
            "text": f"this run was 2 separate trainings: {TEXT}",
            "evidence": [{"where": "job.yaml", "text": "run: torchrun --nproc-per-node 4 t.py"}],
            "cure": CURE,
        }
    ]
    finding = of_check(stoker, "job.yaml")["separate-trainings"]
    assert (finding["what"], finding["cure"]) == (f"run: {TEXT}", CURE)


def test_copies_that_train_separately_are_the_cause_of_a_rendezvous_timeout(stoker, tmp_path: Path):
    run_of_job(tmp_path, ALONE, ("starting\n", RENDEZVOUS), FAILED)
    assert explain(stoker) == (
        "run ID: failed (rank 1 (node2) exited after 10 min: exit code 1)\n"
        f"  cause      likely: {TEXT}\n"
        "  evidence   job.yaml         run: torchrun --nproc-per-node 4 t.py\n"
        "             rank-0001.log:2  torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError\n"
        "  followed   rank 1: some nodes did not join torchrun's rendezvous (rank-0001.log:2)\n"
        f"  cure       {CURE}\n"
        "  confirm    stoker check job.yaml\n"
    )
    found = diagnosis(stoker)
    assert (found["rule"], found["certainty"], found["rank"]) == ("separate-trainings", "likely", None)
    assert found["also"] == []


def test_two_logs_with_rank_0_prove_it(stoker, tmp_path: Path):
    run_of_job(tmp_path, ALONE, ("rank 0/4\n", "rank 0/4\n" + RENDEZVOUS), FAILED)
    found = diagnosis(stoker)
    assert (found["rule"], found["certainty"]) == ("separate-trainings", "known")
    assert [each["where"] for each in found["evidence"]] == ["job.yaml", "rank-0000.log:1", "rank-0001.log:1"]
    assert found["followed"] == "rank 1: some nodes did not join torchrun's rendezvous (rank-0001.log:3)"


def test_a_right_launch_is_not_the_cause_of_a_rendezvous_timeout(stoker, tmp_path: Path):
    launch = (
        "torchrun --nnodes=2 --nproc-per-node=4 --node-rank=$NODE_RANK --master-addr=$MASTER_ADDR "
        "--master-port=$MASTER_PORT t.py"
    )
    job = f"run: {{shell: '{launch}'}}\nresources: {{nodes: 2, ranks_per_node: 1}}\n"
    run_of_job(tmp_path, job, ("starting\n", RENDEZVOUS), FAILED)
    found = diagnosis(stoker)
    assert (found["rule"], found["certainty"], found["rank"]) == ("rendezvous-timeout", "known", 1)
    assert (found["also"], found["notes"]) == ([], [])


def test_out_of_memory_is_the_cause_and_the_launcher_a_note(stoker, tmp_path: Path):
    memory = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    run_of_job(tmp_path, ALONE, ("starting\n", memory), FAILED)
    output = explain(stoker)
    assert "\n  cause      rank 1: GPU is out of memory: 2.00 GiB more requested\n" in output
    assert output.endswith(
        f"\n  note       this run was 2 separate trainings: {TEXT} (job.yaml)\n             try: {CURE}\n"
    )
    found = diagnosis(stoker)
    assert (found["rule"], found["certainty"]) == ("gpu-out-of-memory", "known")
    assert [each["rule"] for each in found["also"]] == ["separate-trainings"]


def test_copies_with_one_rank_explain_a_wait_until_the_time_limit(stoker, tmp_path: Path):
    run_of_job(tmp_path, ONE_RANK_0, ("starting\n", "starting\n"), OUT_OF_TIME)
    assert explain(stoker).startswith("run ID: timeout (time limit 2h (resources.time))\n")
    found = diagnosis(stoker)
    assert (found["rule"], found["certainty"]) == ("rendezvous", "likely")
    assert found["cause"] == "--node-rank 0 is the same in all 2 copies of torchrun"
    assert found["followed"] == "its time limit was reached: 2h (resources.time) (records)"


def test_a_run_that_trained_until_the_time_limit_has_a_note(stoker, tmp_path: Path):
    trained = "epoch 1 loss 2.31\nepoch 2 loss 2.02\n"
    run_of_job(tmp_path, ONE_RANK_0, (trained, "starting\n"), OUT_OF_TIME)
    found = diagnosis(stoker)
    assert (found["rule"], found["certainty"]) == ("time-limit-reached", "known")
    assert [each["text"] for each in found["also"]] == ["--node-rank 0 is the same in all 2 copies of torchrun"]


def test_one_torchrun_per_task_explains_a_port_in_use(stoker, tmp_path: Path):
    port = "[W socket.cpp:426] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).\n"
    job = "run: torchrun --nproc-per-node 4 t.py\nresources: {nodes: 1, ranks_per_node: 2}\n"
    run_of_job(tmp_path, job, ("starting\n", port), FAILED)
    found = diagnosis(stoker)
    assert (found["rule"], found["certainty"]) == ("agent-per-task", "likely")
    assert found["cause"] == "2 tasks on each node start one torchrun each, with 4 ranks each: one per node is enough"
    assert found["followed"].startswith("rank 1: the rendezvous port [::]:29500 is in use")


def test_a_script_has_the_finding_of_check_with_its_line(stoker, tmp_path: Path):
    run_of_script(tmp_path, "rank 0/4\nrank 0/4\ndone\n", DONE)
    (also,) = diagnosis(stoker)["also"]
    text = "srun starts 2 copies of torchrun, and each one trains separately (--standalone)"
    assert also["text"] == f"this run was 2 separate trainings: {text}"
    line = "srun torchrun --standalone --nproc-per-node=4 t.py"
    assert also["evidence"] == [{"where": "train.sh:5", "text": line}]
    (tmp_path / "train.sh").write_text(SCRIPT.replace("#SBATCH", "#SBATCH --nodes=2\n#SBATCH", 1))
    finding = of_check(stoker, "train.sh")["separate-trainings"]
    assert (finding["text"], finding["fix"]) == (text, also["cure"])


def test_a_script_with_two_ranks_0_explains_an_unknown_failure(stoker, tmp_path: Path):
    failed = FAILED | {"first_rank": 0, "reason": "rank 0 (node1) exited after 10 min: exit code 1"}
    run_of_script(tmp_path, "rank 0/4\nrank 0/4\nthe end\n", failed)
    found = diagnosis(stoker)
    assert (found["rule"], found["certainty"]) == ("separate-trainings", "likely")
    assert [each["where"] for each in found["evidence"]] == ["train.sh:5", "rank-0000.log:1", "rank-0000.log:2"]
    assert (found["followed"], found["confirm"]) == (None, "stoker check train.sh")


def test_a_script_on_one_node_has_no_note(stoker, tmp_path: Path):
    run_of_script(tmp_path, "rank 0/4\ndone\n", DONE, "--nodes=1")
    assert diagnosis(stoker)["also"] == []


@pytest.mark.parametrize(("written", "rules"), [(BEGIN - 60, ["separate-trainings"]), (BEGIN + 60, [])])
def test_a_called_script_that_changed_since_the_start_is_not_read(stoker, tmp_path: Path, written, rules):
    (tmp_path / "alone.sh").write_text("torchrun --nproc-per-node 4 t.py\n")
    os.utime(tmp_path / "alone.sh", (written, written))
    run_of_job(tmp_path, ALONE.replace("torchrun --nproc-per-node 4 t.py", "bash alone.sh"), ("ok\n", "ok\n"), DONE)
    assert [each["rule"] for each in diagnosis(stoker)["also"]] == rules


def test_a_run_with_a_different_number_of_ranks_has_no_note(stoker, tmp_path: Path):
    run_of_job(tmp_path, ALONE.replace("nodes: 2", "nodes: 3"), ("rank 0/4\n", "rank 0/4\n"), DONE)
    assert diagnosis(stoker)["also"] == []


def test_the_log_alone_names_no_launcher(stoker, tmp_path: Path):
    run = run_of_job(tmp_path, ALONE, ("starting\n", RENDEZVOUS), FAILED)
    log = run.attempt(1) / "rank-0001.log"
    found = json.loads(stoker("explain", log, "--json", code=0).out)["diagnosis"]
    assert (found["rule"], found["also"]) == ("rendezvous-timeout", [])
