"""The functions of stoker.notebook on runs of Stoker, and in a real notebook."""

import json
import os
from pathlib import Path

import pytest
from conftest import MODULE
from course_logs import HEAD, PERFORMANCE, shown, times, write_log
from stoker.notebook import (
    BatchNorm_view,
    comm_profiler,
    compare,
    controle_technique,
    metric_compute_log,
    search_log,
    turbo_profiler,
)

__all__ = ["shown"]

SCRIPT = """
import os
rank = os.environ["RANK"]
print(f"n1:{7 + int(rank)}:99 [{rank}] NCCL INFO AllReduce: opCount 1 sendbuff 0x1 recvbuff 0x2 count 4 datatype 7 op 0 "
      "root 0 comm 0xa [nranks=2] stream 0x3")
print(f"Step 1 - After metric compute GPU{rank}: loss: 1.5, accuracy: 0.5")
if rank == "0":
    print(open("lines.txt").read())
"""


def test_a_script_of_the_course_is_read_in_a_run(stoker, shown, capsys):
    folder = stoker.folder
    (folder / "train.py").write_text(SCRIPT)
    (folder / "lines.txt").write_text(HEAD + PERFORMANCE + times([1.0, 0.1], [0.5, 0.02]))
    (folder / "job.yaml").write_text("name: course\nrun: python3 train.py\nresources: {ranks_per_node: 2}\n")
    stoker("run", "job.yaml", code=0)
    (course_run,) = os.listdir(folder / "runs")
    controle_technique(course_run)
    assert "Train throughput: 8533.33 images/second\n" in capsys.readouterr().out
    assert search_log(contains=course_run) == [f"runs/{course_run}/attempts/1/rank-{rank:04}.log" for rank in (0, 1)]
    # The name of a log gives the rank where no communicator does.
    assert comm_profiler("last")["global_rank"].tolist() == [0, 1]
    capsys.readouterr()
    metric_compute_log(course_run[-4:])
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        f"Step 1 - After metric compute GPU{rank}" for rank in (0, 1)
    ]
    trial = turbo_profiler("last", dataloader_info=True)
    assert trial["1st_step_loading_time"].tolist() == [0.5]
    assert trial["CPU_memory_usage(GB)"][0] is None or trial["CPU_memory_usage(GB)"][0] > 0
    compare(course_run, f"runs/{course_run}")
    assert course_run[-4:] in capsys.readouterr().out


def test_a_failed_run_shows_its_cause(stoker, shown, capsys):
    (stoker.folder / "job.yaml").write_text("name: course\nrun: {shell: 'trainer'}\n")
    stoker("run", "job.yaml")
    controle_technique("last")
    assert "Some error: the shell does not find command trainer" in capsys.readouterr().out


def test_the_trainer_of_stoker_has_its_records_shown(stoker, shown, example_dataset, capsys):
    (stoker.folder / "job.yaml").write_text(
        "name: resnet\n"
        "train: {model: cifar-resnet20, batch: 4, steps: 4}\n"
        f"data: {{train: {{source: {example_dataset}, split: train}}}}\n"
        "resources: {ranks_per_node: 1, cpus_per_rank: 1}\n"
        "checkpoint: {every: 2 steps}\n"
    )
    stoker("run", "job.yaml", code=0)
    controle_technique("last")
    printed = capsys.readouterr().out
    assert "samples/second\nCPU throughput: " in printed
    assert "training step time mean " in printed and "torch.cuda" not in printed
    turbo_profiler("last")
    (file,) = stoker.folder.glob("runs/*/attempts/1/metrics-0000.csv")
    columns, *rows = [line.split(",") for line in file.read_text().splitlines()]
    waits = [float(row[columns.index("data_s")]) for row in rows]
    (axes,) = shown[-1].axes
    assert [bar.get_height() for bar in axes.containers[1]] == pytest.approx(waits) and len(waits) == 4

    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bn1 = torch.nn.BatchNorm2d(16)

    shown.clear()
    BatchNorm_view("last", Net())
    values = {axes.get_title(): list(axes.lines[0].get_ydata()) for axes in shown[0].axes}
    assert values["weight"] == pytest.approx([1.0], abs=0.1)
    assert values["running_mean"] != [0.0]


CELLS = [
    "from stoker.notebook import *\nfrom stoker.notebook import search_log",
    "controle_technique(['123'])",
    "trial = turbo_profiler(['123'], dataloader_info=True)\ntrial",
    "compare('a.py', 'b.py')",
    "display_slurm_queue('pseudo', timestep=0.1)",
    "%cat {search_log(contains='123')[0]}",
]


@pytest.mark.needs("ipykernel")
@pytest.mark.timeout(300)
def test_figures_tables_and_the_queue_appear_in_a_notebook(tmp_path, monkeypatch):
    import nbclient
    import nbformat

    monkeypatch.chdir(tmp_path)
    write_log(HEAD + PERFORMANCE + times([1.0, 0.1], [0.5, 0.02]))
    Path("a.py").write_text("lr = 0.1\n")
    Path("b.py").write_text("lr = 0.2\n")
    Path("squeue").write_text("#!/bin/sh\necho JOBID; [ -e shown ] && exit; echo 7; touch shown\n")
    Path("squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(MODULE))
    monkeypatch.delenv("MPLBACKEND", raising=False)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(notebook, timeout=250, kernel_name="python3").execute()
    seen = [json.dumps(cell.outputs) for cell in notebook.cells]
    kinds = [{kind for output in cell.outputs for kind in output.get("data", {})} for cell in notebook.cells]
    assert kinds[0] == set()
    assert {"image/png", "text/markdown"} <= kinds[1]
    assert "Train throughput: 8533.33 images/second" in seen[1]
    assert {"image/png", "text/html"} <= kinds[2] and "num_workers" in seen[2]
    assert "text/html" in kinds[3] and "lr = 0.<b>2</b>" in seen[3]
    assert "Done!" in seen[4]
    assert "global batch size" in seen[5]
