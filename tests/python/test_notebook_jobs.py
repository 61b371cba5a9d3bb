"""gpu_jobs_submitter and display_slurm_queue: the scripts, the refusals, and a real cluster."""

import json
import sys
from pathlib import Path

import pytest
from conftest import MODULE
from labs import Lab
from stoker import InvalidError, NotFoundError, UnavailableError, command
from stoker.notebook import display_slurm_queue, gpu_jobs_submitter


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The batch scripts that would be submitted on Jean Zay, without Slurm."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("")
    site = command.run_json("site", "show", "jean-zay")
    submitted: list[str] = []

    def run_json(*words: str, notes=None) -> dict:
        if words[:2] == ("site", "show"):
            return site
        assert words[0] == "submit"
        submitted.append(Path(words[1]).read_text())
        notes("slow: --time: not set")
        return {"job": str(len(submitted))}

    monkeypatch.setattr(command, "run_json", run_json)
    return submitted


def options(script: str) -> list[str]:
    """The #SBATCH lines without the names of job and logs."""
    lines = [line.removeprefix("#SBATCH ") for line in script.splitlines() if line.startswith("#SBATCH ")]
    return [line for line in lines if not line.startswith(("--job-name", "--output", "--error"))]


def test_a_job_gets_the_nodes_of_its_account(scripts, capsys):
    gpu_jobs_submitter("train.py -b 128", n_gpu=16, module="pytorch-gpu/py3/2.4.0", name="pseudo", account="for@a100")
    assert options(scripts[0]) == [
        *("--gres=gpu:8", "--nodes=2", "--ntasks-per-node=8", "--time=02:00:00", "--cpus-per-task=8"),
        *("-C a100", "--hint=nomultithread", "--account=for@a100"),
    ]
    assert "\nmodule purge\nmodule load arch/a100\nmodule load pytorch-gpu/py3/2.4.0\n" in scripts[0]
    assert "\ntime srun python -u train.py -b 128\n" in scripts[0]
    shape = "16 GPUs distributed on 2 nodes with 8 tasks / 8 gpus per node and 8 cpus per task"
    assert capsys.readouterr().out == f"batch job 0: {shape}\nslow: --time: not set\nSubmitted batch job 1\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({}, ["--gres=gpu:4", "--nodes=1", "--ntasks-per-node=4", "--cpus-per-task=10"]),
        ({"account": "for@v100"}, ["--gres=gpu:4", "--cpus-per-task=10"]),
        ({"account": "for@h100"}, ["--gres=gpu:4", "-C h100", "--cpus-per-task=24"]),
        ({"partition": "gpu_p2l"}, ["--gres=gpu:4", "--partition=gpu_p2l", "--cpus-per-task=3"]),
        ({"constraint": "v100-32g"}, ["-C v100-32g", "--cpus-per-task=10"]),
        ({"n_gpu_per_task": 2}, ["--ntasks-per-node=2", "--cpus-per-task=20"]),
        (
            {"cpus_per_task": 5, "exclusive": True, "qos": "qos_gpu-dev"},
            ["--cpus-per-task=5", "--exclusive", "--qos=qos_gpu-dev"],
        ),
        ({"email": "a@b.fr", "time_max": "00:10:00"}, ["--mail-user=a@b.fr", "--mail-type=ALL", "--time=00:10:00"]),
        ({"slurm_addon": "#SBATCH --reservation=tp"}, ["--reservation=tp"]),
    ],
)
def test_arguments_become_options(scripts, words, expected):
    gpu_jobs_submitter("train.py", 4, **words)
    found = [option.replace("--constraint=", "-C ") for option in options(scripts[0])]
    assert set(expected) <= set(found)
    assert len([option for option in found if option.startswith("-C ")]) <= 1


def test_each_command_runs_with_each_number_of_gpus(scripts):
    assert gpu_jobs_submitter(["train.py -b 1", "nvidia-smi"], n_gpu=[1, 8], name="pseudo") == ["1", "2", "3", "4"]
    starts = [next(line for line in script.splitlines() if line.startswith("time srun ")) for script in scripts]
    assert starts == ["time srun python -u train.py -b 1", "time srun nvidia-smi"] * 2
    assert ["--gres=gpu:1" in options(script) for script in scripts] == [True, True, False, False]
    assert "#SBATCH --output=slurm/log/pseudo@JZ_%j_2nodes_4tasks_" in scripts[2]


def test_the_environment_comes_before_the_command(scripts):
    gpu_jobs_submitter("./train.py", singularity="torch.sif", verbose=1, script_addon="export OMP_NUM_THREADS=1")
    assert "#SBATCH --job-name=train\n" in scripts[0]
    assert scripts[0].partition("\n\n")[2] == (
        "export NCCL_DEBUG=INFO\nexport NCCL_DEBUG_SUBSYS=INIT,COLL\n\n"
        "module purge\nmodule load singularity\n\n"
        "export OMP_NUM_THREADS=1\n\n"
        "set -x\n"
        "time srun singularity exec --nv $SINGULARITY_ALLOWED_DIR/torch.sif python -u ./train.py\n"
        "status=$?\ndate\nexit $status\n"
    )


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ({"n_gpu": 6}, "n_gpu=6: must be a multiple of 4, the GPUs of a node\n  try: n_gpu=4"),
        ({"n_gpu": -1}, "n_gpu=-1: must be an integer from 0"),
        ({"n_gpu": 2, "n_gpu_per_task": 4}, "n_gpu_per_task=4: 2 GPUs of a node cannot be divided by it"),
        ({"name": "my job"}, "name='my job': letters, digits and . _ + - only"),
        ({"name": "a@b"}, "name='a@b': letters"),
        ({"module": "m", "singularity": "s.sif"}, "module and singularity: give one of them"),
        ({"singularity": "s"}, "singularity='s': must be an image whose name ends in .sif"),
        ({"account": "a b"}, "account='a b': must be one word"),
        ({"qos": "q\n#SBATCH --nodes=9"}, "qos='q\\n#SBATCH --nodes=9': must be one word"),
        ({"slurm_addon": "--reservation=tp"}, "slurm_addon: '--reservation=tp' is no line of the form"),
        ({"srun_commands": "a\nb"}, "'a\\nb' is not a command of one line"),
        ({"srun_commands": ""}, "'' is not a command of one line"),
    ],
)
def test_wrong_arguments_submit_nothing(scripts, words, error):
    with pytest.raises(InvalidError) as refused:
        gpu_jobs_submitter(**({"srun_commands": "train.py"} | words))
    assert f"gpu_jobs_submitter: {error}" in str(refused.value)
    assert scripts == []


def test_a_missing_script_is_found_before_the_queue(scripts):
    with pytest.raises(NotFoundError, match=r"trian\.py: no such file in "):
        gpu_jobs_submitter(["train.py", "trian.py"])
    assert scripts == []


@pytest.fixture
def squeue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """squeue(body) puts a squeue in PATH. The line `turn N` of the body counts its calls."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def write(body: str) -> None:
        count = f'turn=$(cat {tmp_path}/turn 2>/dev/null || echo 0); echo $((turn + 1)) > {tmp_path}/turn; echo "$*" > {tmp_path}/words\n'
        (tmp_path / "squeue").write_text(f"#!/bin/sh\n{count}{body}\n")
        (tmp_path / "squeue").chmod(0o755)

    return write


def test_the_queue_is_shown_until_it_is_empty(squeue, tmp_path, capsys):
    squeue("echo JOBID NAME; [ $turn -ge 3 ] || echo $((turn / 2)) pseudo")
    display_slurm_queue("pseudo", timestep=0.01)
    assert capsys.readouterr().out == "JOBID NAME\n0 pseudo\nJOBID NAME\n1 pseudo\n\n Done!\n"
    assert "--name=pseudo" in (tmp_path / "words").read_text()


def test_a_job_that_cannot_start_is_named(squeue, capsys):
    squeue("echo JOBID; [ $turn -ge 1 ] || printf '  7 gpu (Priority)\\n  8 gpu train (PartitionConfig)\\n'")
    display_slurm_queue(timestep=0.01)
    table = "JOBID\n  7 gpu (Priority)\n  8 gpu train (PartitionConfig)\n"
    note = "job 8 does not start: PartitionConfig      stoker explain 8\n"
    assert capsys.readouterr().out == f"{table}{note}\n Done!\n"


def test_a_busy_controller_does_not_end_the_display(squeue, capsys):
    squeue("[ $turn = 1 ] && exit 1; echo JOBID; [ $turn -ge 3 ] || echo 7")
    display_slurm_queue(timestep=0.01)
    assert capsys.readouterr().out == "JOBID\n7\n\n Done!\n"


def test_an_unreachable_controller_is_no_empty_queue(squeue, capsys):
    squeue("echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(UnavailableError, match="squeue: slurm_load_jobs error: Unable to contact"):
        display_slurm_queue(timestep=0.01)
    assert "Done" not in capsys.readouterr().out


def test_an_interrupt_leaves_the_jobs_and_the_signal_handlers(squeue, capsys):
    import signal

    before = signal.getsignal(signal.SIGINT)
    squeue("echo JOBID; echo 7; [ $turn -lt 2 ] || kill -INT $PPID")
    display_slurm_queue(timestep=0.2)
    assert capsys.readouterr().out.endswith("interrupted: the jobs continue\n")
    assert signal.getsignal(signal.SIGINT) is before


def test_a_machine_without_slurm_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match=r"squeue: program not found in PATH .*\n  try: stoker lab up"):
        display_slurm_queue()
    with pytest.raises(InvalidError, match="timestep=0: must be a number of seconds above 0"):
        display_slurm_queue(timestep=0)


TRAIN = """
import os, sys
rank = os.environ["SLURM_PROCID"]
if "--wrong" in sys.argv:
    raise SystemExit("ModuleNotFoundError: No module named 'apex'")
print(f"Train step 1 - rank {rank}")
if rank == "0":
    print(">>> Training on ", os.environ["SLURM_NNODES"], " nodes and ", os.environ["SLURM_NTASKS"], " processes")
    print("global batch size: 8 - mini batch size: 2")
    for name in ("Training", "Loading"):
        print(f">>> {name} performance time: min 0.4 avg 0.5 seconds (+/- 0.1)")
    print("Max Memory Allocated 0 Bytes")
"""

LESSON = """
import json, sys
from stoker.notebook import *
from stoker.notebook import gpu_jobs_submitter
import matplotlib
matplotlib.use("svg")
jobs = gpu_jobs_submitter(["train.py", "train.py --wrong"], n_gpu=4, name="pseudo", time_max="00:02:00")
display_slurm_queue("pseudo", timestep=0.5)
for job in jobs:
    controle_technique(job)
try:
    gpu_jobs_submitter("train.py", n_gpu=3)
except ValueError as error:
    print(error)
print(json.dumps({"jobs": jobs, "logs": search_log("pseudo")}), file=sys.stderr)
"""


@pytest.mark.needs("slurm")
@pytest.mark.timeout(300)
def test_jobs_run_on_a_cluster_and_their_logs_are_read(lab: Lab):
    folder = lab.shared / "lesson"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    python = Path(sys.executable).parent
    environment = {"PYTHONPATH": MODULE, "PATH": f"{python}:{lab.env['PATH']}", "PYTHONWARNINGS": "ignore"}
    done = lab.run(sys.executable, "-c", LESSON, cwd=folder, env=environment, timeout=250)
    result = json.loads(done.err.splitlines()[-1])
    first, second = result["jobs"]
    shape = "4 GPUs distributed on 2 nodes with 2 tasks / 2 gpus per node and 1 cpu per task"
    assert done.out.startswith(f"batch job 0: {shape}\nSubmitted batch job {first}\nSubmitted batch job {second}\n")
    assert "\n\n Done!\nTrain throughput: 8.00 images/second\nCPU throughput: 16.00 images/second\n" in done.out
    assert "Some error: Python finds no module apex" in done.out
    assert "n_gpu=3: must be a multiple of 2, the GPUs of a node\n  try: n_gpu=2\n" in done.out
    assert [f"@JZ_{job}_2nodes_2tasks_" in log for job, log in zip(result["jobs"], result["logs"], strict=True)] == [
        True,
        True,
    ]
    # Each job is a run, and a failed training is a failed job.
    states = [
        json.loads(lab.stoker("status", job, "--json", cwd=folder).out)["runs"][0]["state"] for job in result["jobs"]
    ]
    assert states == ["done", "failed"]
