"""Arrays: one job file, many tasks with separate values, on a real cluster."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
from fake_mlflow import FakeMlflow
from lab_jobs import COUNTER
from running import wait_until
from submitted import Runs

pytestmark = [pytest.mark.needs("slurm"), pytest.mark.timeout(600)]


def write(runs: Runs, tasks: int, run: str, array: str, more: str = "") -> None:
    (runs.folder / "configs.csv").write_text("n,word\n" + "".join(f"{n},w{n}\n" for n in range(1, tasks + 1)))
    (runs.folder / "job.yaml").write_text(
        f"name: many\nrun: {{shell: {json.dumps(run)}}}\narray: {{over: configs.csv, {array}}}\n{more}"
    )


def submit(runs: Runs, *words: str, command: str = "submit", **options) -> dict:
    return json.loads(runs.stoker(command, *(words or ("job.yaml",)), "--json", **options).out)


def spans(run: Path) -> list[tuple[float, float]]:
    """When each task began and ended, from its records."""
    found = []
    for file in sorted((run / "tasks").glob("*.jsonl")):
        events = [json.loads(line) for line in file.read_text().splitlines()]
        assert [event["kind"] for event in events] == ["task_started", "task_ended"]
        found.append((events[0]["time"], events[1]["time"]))
    return found


def most_at_once(times: list[tuple[float, float]]) -> int:
    changes = sorted([(begin, 1) for begin, _ in times] + [(end, -1) for _, end in times])
    now = most = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


def run_many(runs: Runs, wrapper, tasks: int, at_once: int) -> None:
    path = wrapper("sbatch", f'echo call >> {runs.folder}/calls; exec /usr/bin/sbatch "$@"')
    write(
        runs, tasks, "sleep 0.2; echo ${params.n} ${params.word} $STOKER_TASK $RANK/$WORLD_SIZE", f"at_once: {at_once}"
    )
    output = submit(runs, env={"PATH": f"{path.split(':')[0]}:{runs.lab.env['PATH']}"})
    assert (output["tasks"], output["bundle"]) == (tasks, 1)
    run = Path(output["folder"])
    assert runs.stoker("wait", run, timeout=500).out == f"run {run.name}: done ({tasks} of {tasks} done)\n"
    assert (runs.folder / "calls").read_text() == "call\n"
    times = spans(run)
    assert len(times) == tasks
    assert most_at_once(times) <= at_once
    assert [(run / f"tasks/{n:05}.log").read_text() for n in range(1, tasks + 1)] == [
        f"{n} w{n} {n} 0/1\n" for n in range(1, tasks + 1)
    ]
    assert len(list((run / "tasks").iterdir())) == 2 * tasks


def test_never_more_tasks_run_than_may(runs: Runs, wrapper):
    run_many(runs, wrapper, 40, 4)


@pytest.mark.soak
def test_of_three_hundred_tasks_never_more_than_twenty_run(runs: Runs, wrapper):
    run_many(runs, wrapper, 300, 20)


def test_only_the_tasks_that_failed_run_again(runs: Runs):
    log = "echo ,1,0.${params.n},accuracy >> $STOKER_ATTEMPT_DIR/points-000$STOKER_TASK-echo.csv"
    run = f"{log}; test ${{params.n}} != 2 -a ${{params.n}} != 5 -o -e mended && echo ran ${{params.n}}"
    write(runs, 6, run, "at_once: 4")
    output = runs.stoker("submit", "job.yaml").out
    assert re.match(r"submitted \d+ \(6 tasks, 4 at once, 1 node x 1 rank\)\n", output)
    assert "\n  logs  runs/" in output
    assert runs.wait(code=1) == f"run {runs.run.name}: failed (4 of 6 done, 2 failed (2, 5))\n"
    assert runs.status()["state"] == "failed"
    assert "task 2: exit code 1" in runs.batch_log()
    (report,) = json.loads(runs.stoker("report", "last", "--format", "json").out)["runs"]
    assert [task["state"] for task in report["tasks"]] == ["done", "failed", "done", "done", "failed", "done"]
    assert report["tasks"][1]["values"] == {"n": "2", "word": "w2"} and report["tasks"][1]["exit_code"] == 1
    assert [task["results"] for task in report["tasks"]] == [{"accuracy": n / 10} for n in range(1, 7)]
    assert report["metrics"] == []
    text = runs.stoker("report", "last", "--format", "text").out
    assert re.search(r"\n  task 2 +2 +w2 +0\.200 +[\d.]+ m?s +failed: exit code 1\n", text), text
    assert text.index("\n  task 6 ") < text.index("\n  task 1 ")
    (runs.folder / "mended").touch()
    again = submit(runs, "last", command="resume")
    assert (again["tasks"], again["attempt"]) == (2, 2)
    assert runs.wait() == f"run {runs.run.name}: done (6 of 6 done)\n"
    logs = [(runs.run / f"tasks/{n:05}.log").read_text() for n in range(1, 7)]
    assert logs == [f"ran {n}\n" for n in range(1, 7)]
    nothing = runs.stoker("resume", "last", code=2).err
    assert nothing == (
        f"run {runs.run.name}: is done, there is nothing to resume\n"
        f"  try: stoker rerun {runs.run.name}      (starts a new run)\n"
    )


def test_metrics_of_tasks_are_read_from_their_output_and_trackers(runs: Runs):
    program = """
import json, os, pathlib, sys
print("old line", flush=True)
n = int(sys.argv[1])
for step in (1, 2):
    print({"loss": n / step, "step": step}, flush=True)
    print(f"{step}/2 ", end="\\r", flush=True)
run = pathlib.Path("mlruns/0", f"{n:032x}")
(run / "metrics").mkdir(parents=True), (run / "tags").mkdir()
(run / "meta.yaml").write_text("")
(run / "tags/stoker.run").write_text(json.loads(os.environ["MLFLOW_RUN_CONTEXT"])["stoker.run"])
(run / "metrics/accuracy").write_text(f"99999999999999 0.{n} 2\\n")
print(os.environ["WANDB_RUN_ID"].partition("-task")[2], pathlib.Path(os.environ["STOKER_TENSORBOARD_DIR"]).parts[-2:])
"""
    (runs.folder / "train.py").write_text(program)
    write(runs, 2, f"{sys.executable} train.py ${{params.n}}", "at_once: 2")
    submit(runs)
    assert runs.wait() == f"run {runs.run.name}: done (2 of 2 done)\n"
    (report,) = json.loads(runs.stoker("report", "last", "--format", "json").out)["runs"]
    assert [task["results"] for task in report["tasks"]] == [
        {"accuracy": 0.1, "loss": 0.5},
        {"accuracy": 0.2, "loss": 1.0},
    ]
    assert (runs.run / "tasks/00002.log").read_text().endswith("\n2 ('tensorboard', '00002')\n")
    assert sorted(path.name for path in (runs.run / "attempts/1").glob("points-*")) == [
        f"points-000{n}-{writer}.csv" for n in (1, 2) for writer in ("log", "mlflow")
    ]


def test_each_task_is_a_run_of_the_trackers(runs: Runs):
    log = "echo ,1,0.${params.n},accuracy >> $STOKER_ATTEMPT_DIR/points-000$STOKER_TASK-echo.csv"
    run = f"{log}; test ${{params.n}} != 2 -o -e mended"
    write(runs, 2, run, "at_once: 2", "record: {csv: true, wandb: lab}\n")
    submit(runs)
    runs.wait(code=1)
    wait_until(lambda: queue_is_empty(runs), "the trackers got everything before the job ended")

    def sent(task: int) -> list[list[str]]:
        rows = (runs.run / f"track/tasks/{task:05}/points.csv").read_text().splitlines()
        return [[cell for i, cell in enumerate(row.split(",")) if i != 2] for row in rows[1:]]

    assert [sent(n) for n in (1, 2)] == [[["1", "0", "1", f"0.{n}", "accuracy", ""]] for n in (1, 2)]
    assert len(list(runs.run.glob("track/tasks/*/wandb/offline-run-*/run-*.wandb"))) == 2
    (runs.folder / "mended").touch()
    submit(runs, "last", command="resume")
    runs.wait()
    wait_until(lambda: queue_is_empty(runs), "the resumed job has ended")
    assert sent(2) == [[attempt, "0", "1", "0.2", "accuracy", ""] for attempt in ("1", "2")]
    with FakeMlflow() as server:
        done = runs.stoker("track", "push", "last", "--to", f"mlflow={server.url}").out
        assert done == "task 1: mlflow: 1 point sent, 1 in all\ntask 2: mlflow: 2 points sent, 2 in all\n"
        again = json.loads(
            runs.stoker("track", "push", "last", "--task", "2", "--to", f"mlflow={server.url}", "--json").out
        )
        assert [(row["task"], row["delivered"], row["total"]) for row in again["trackers"]] == [(2, 0, 2)]
    infos = {each["info"]["run_name"]: each["info"]["status"] for each in server.runs.values()}
    assert infos == {f"{runs.run.name}-task{n}": "FINISHED" for n in (1, 2)}
    assert server.params_of == {f"{runs.run.name}-task{n}": {"n": f"{n}", "word": f"w{n}"} for n in (1, 2)}
    refused = runs.stoker("track", "push", "last", "--follow", "--to", "csv", code=2).err
    assert refused.splitlines()[0] == f"track push: --follow: run {runs.run.name} is an array (--task)"
    missing = runs.stoker("track", "push", "last", "--task", "3", "--to", "csv", code=1).err
    assert missing == f"run {runs.run.name}: no task 3 (valid: 1 to 2)\n"


def test_logs_and_top_know_the_tasks(runs: Runs):
    run = "echo begun ${params.n}; while [ ! -e go ]; do sleep 0.1; done; echo end ${params.n}; test ${params.n} != 2"
    write(runs, 3, run, "at_once: 3")
    submit(runs)

    def last_lines() -> list[str]:
        return [task["last_line"] for task in json.loads(runs.stoker("top", "last", "--json").out)["tasks"]]

    wait_until(lambda: last_lines() == ["begun 1", "begun 2", "begun 3"], "all tasks have begun")
    head, columns, *rows = runs.stoker("top", "last").out.splitlines()
    assert head.startswith(f"{runs.run.name}: running") and "(0 of 3 done, 3 running)" in head
    assert columns.split() == ["TASK", "HOST", "RUNS", "LAST", "LINE"]
    assert [row.split()[0] for row in rows] == ["1", "2", "3"]
    single = runs.stoker("top", "last", "--task", "1", code=2).err
    assert "task 1 of run " in single and "  try: stoker logs last -f --task 1\n" in single
    (runs.folder / "go").touch()
    assert runs.stoker("logs", "last", "-f", "--task", "3").out == "begun 3\nend 3\n"
    runs.stoker("logs", "last", "-f")
    runs.wait(code=1)
    logs = runs.stoker("logs", "last")
    assert logs.out == "".join(f"[{n}] begun {n}\n[{n}] end {n}\n" for n in (1, 2, 3))
    assert logs.err == "1 of 3 tasks failed (2)   stoker logs last --task 2\n"
    assert runs.stoker("logs", "last", "--task", "2", "--grep", "^end").out == "end 2\n"
    lines = json.loads(runs.stoker("logs", "last", "--task", "2", "--json").out)["lines"]
    assert lines == [{"task": 2, "text": "begun 2"}, {"task": 2, "text": "end 2"}]
    name = runs.run.name
    assert runs.stoker("logs", "last", "--task", "4", code=1).err == f"run {name}: no task 4 (valid: 1 to 3)\n"
    assert runs.stoker("logs", "last", "--rank", "0", code=2).err == (
        f"logs: --rank: run {name} is an array with one log per task\n  try: stoker logs last --task 1\n"
    )
    assert runs.stoker("logs", "last", "--attempt", "1", code=2).err == (
        f"logs: --attempt: a task log of run {name} contains all attempts\n"
    )


def test_an_array_can_be_cancelled_and_resumed(runs: Runs):
    write(runs, 9, "test -e quick || sleep 300", "at_once: 2", "timeouts: {grace: 1s}\n")
    submit(runs)
    wait_until(lambda: len(runs.processes("sleep")) == 2, "two tasks run")
    now = runs.status()
    assert now["state"] == "running"
    assert now["reason"] == "0 of 9 done, 2 running, 7 waiting"
    runs.stoker("cancel", "--last")
    assert re.match(rf"run {runs.run.name}: cancelled \(0 of 9 done, .*2 stopped", runs.wait(code=None))
    wait_until(lambda: runs.processes("sleep") == [], "no process is left")
    (runs.folder / "quick").touch()
    assert submit(runs, "last", command="resume")["tasks"] == 9
    assert runs.wait() == f"run {runs.run.name}: done (9 of 9 done)\n"


def test_short_tasks_share_jobs_with_a_note(runs: Runs):
    write(runs, 12, "echo ${params.n}; test ${params.n} != 3", "at_once: 2", "resources: {time: 1m}\n")
    output = runs.stoker("submit", "job.yaml").out
    assert "\n  jobs  2 of 6 tasks, one after the other (1m is short for a separate job: array.bundle)\n" in output
    assert "\n#SBATCH --array=1-2\n" in (runs.run / "attempts/1/job.sbatch").read_text()
    assert runs.wait(code=1) == f"run {runs.run.name}: failed (11 of 12 done, 1 failed (3))\n"
    assert most_at_once(spans(runs.run)) <= 2


def test_tasks_with_several_ranks_are_separate_runs(runs: Runs):
    log = "echo ,1,0.${params.n},accuracy >> $STOKER_ATTEMPT_DIR/points-000$RANK-echo.csv"
    write(
        runs,
        2,
        f"{log}; echo ${{params.word}} $RANK/$WORLD_SIZE",
        "at_once: 1",
        "resources: {nodes: 2, ranks_per_node: 1}\n",
    )
    submit(runs)
    assert runs.wait() == f"run {runs.run.name}: done (2 of 2 done)\n"
    own = sorted(path for path in (runs.run / "tasks").iterdir() if path.is_dir())
    logs = sorted((path / "attempts/1/rank-0001.log").read_text() for path in own)
    assert logs == ["w1 1/2\n", "w2 1/2\n"]
    assert runs.stoker("logs", "last", "--task", "2", "--rank", "1").out == "w2 1/2\n"
    assert sorted(runs.stoker("logs", "last", "--task", "1").out.splitlines()) == ["[0] w1 0/2", "[1] w1 1/2"]
    assert "[2] [1] w2 1/2\n" in runs.stoker("logs", "last").out
    assert json.loads(runs.stoker("top", "last", "--task", "1", "--json").out)["state"] == "done"
    status = json.loads(runs.stoker("status", "--runs", runs.run / "tasks", "--json").out)["runs"]
    assert [run["state"] for run in status] == ["done", "done"]
    (report,) = json.loads(runs.stoker("report", "last", "--format", "json").out)["runs"]
    assert [task["results"]["accuracy"] for task in report["tasks"]] == [0.1, 0.2]
    # The best one first.
    text = runs.stoker("report", "last", "--format", "text").out
    assert text.index("\n  task 2 ") < text.index("\n  task 1 ")


def test_an_array_larger_than_the_cluster_s_is_split_under_one_cap(make_lab):
    lab = make_lab(f"s{os.getpid()}", "--nodes", "2", "--max-array-size", "6")
    runs = Runs(lab, lab.shared / "project")
    runs.folder.mkdir()
    write(runs, 12, "sleep 0.2; echo ${params.n}", "at_once: 2")
    output = submit(runs)
    assert len(output["jobs"]) == 3
    assert output["job"] == ",".join(output["jobs"])
    assert runs.wait() == f"run {runs.run.name}: done (12 of 12 done)\n"
    assert most_at_once(spans(runs.run)) <= 2
    assert (runs.run / "tasks/00012.log").read_text() == "12\n"


def test_a_task_that_cannot_be_a_job_is_refused_before_anything_is_written(runs: Runs):
    (runs.folder / "configs.yaml").write_text("- {lr: 0.1}\n- {lr: 0.2, timeouts: {grace: long}}\n")
    (runs.folder / "job.yaml").write_text("run: 'true'\narray: {over: configs.yaml}\n")
    refused = runs.stoker("submit", "job.yaml", code=2).err
    assert refused.startswith("configs.yaml: task 2: array timeouts.grace: timeouts.grace: 'long' is not a duration")
    assert not (runs.folder / "runs").exists()
    here = runs.stoker("run", "job.yaml", code=2).err
    assert here == ("array.over: array tasks run only under Slurm (job.yaml:2:15)\n  try: stoker submit job.yaml\n")


def test_a_resumed_task_starts_from_its_checkpoint(runs: Runs):
    write(runs, 2, f"{sys.executable} save.py ${{params.n}}", "at_once: 2")
    (runs.folder / "save.py").write_text(
        "import os, pathlib, sys\n"
        "print('from', os.path.basename(os.environ['STOKER_RESUME']))\n"
        "if os.environ['STOKER_RESUME']: sys.exit(0)\n"
        "folder = pathlib.Path(os.environ['STOKER_CHECKPOINT_DIR'])\n"
        'header = b\'{"x": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}\'\n'
        "text = len(header).to_bytes(8, 'little') + header + b'1'\n"
        "(folder / 'partial').write_bytes(text)\n"
        "(folder / 'partial').rename(folder / f'of-{sys.argv[1]}.safetensors')\n"
        "sys.exit(75)\n"
    )
    submit(runs)
    runs.wait(code=None)
    runs.stoker("resume", "last")
    assert runs.wait() == f"run {runs.run.name}: done (2 of 2 done)\n"
    logs = [(runs.run / f"tasks/{n:05}.log").read_text() for n in (1, 2)]
    assert logs == ["from \nfrom of-1.safetensors\n", "from \nfrom of-2.safetensors\n"]


# --- tasks that are chains --------------------------------------------------------------------------------------------

CHAIN = "chain: {until: done, time_per_link: 3s, links: 20}\ntimeouts: {grace: 1s}\nrestart: {without_progress: 10}\n"


def task_events(run: Path, task: int) -> list[dict]:
    return [json.loads(line) for line in (run / f"tasks/{task:05}.jsonl").read_text().splitlines()]


def times_of_links(run: Path) -> list[tuple[float, float]]:
    found = []
    for file in sorted((run / "tasks").glob("*.jsonl")):
        times = [event["time"] for event in task_events(run, int(file.stem))]
        found += list(zip(times[::2], times[1::2], strict=True))
    return found


def queue_is_empty(runs: Runs) -> bool:
    return runs.lab.run("squeue", "--noheader", "--format=%i %T").out == ""


def check_counts(runs: Runs, wanted: dict[int, int]) -> None:
    for task, count in wanted.items():
        lines = (runs.run / f"tasks/{task:05}.log").read_text().splitlines()
        starts = [int(line.split()[1]) for line in lines[:-1]]
        assert lines[-1] == f"counted to {count}"
        assert starts[0] == 0 and starts == sorted(starts)
        events = task_events(runs.run, task)
        assert [event["link"] for event in events[::2]] == list(range(1, len(starts) + 1))
        assert [event.get("goes_on", False) for event in events[1::2]] == [True] * (len(starts) - 1) + [False]
    assert len(starts) >= 2  # the longest was interrupted, and resumed


def test_every_task_is_a_separate_chain(runs: Runs):
    (runs.folder / "count.py").write_text(COUNTER)
    count = f"exec {sys.executable} count.py $(( ${{params.n}} * 15 - 5 ))"
    write(runs, 3, count, "at_once: 3", CHAIN)
    output = runs.stoker("submit", "job.yaml").out
    assert re.match(r"submitted \d+(,\d+){19} \(3 tasks, 3 at once, 1 node x 1 rank, 3s a link\)\n", output)
    assert "\n  chain 20 links of each task at most, until done (chain.links)\n" in output
    first, second = ((runs.run / f"attempts/1/{name}.sbatch").read_text() for name in ("job", "job-2"))
    assert "--dependency" not in first
    assert re.search(r"\n#SBATCH --dependency=aftercorr:\d+\n", second)
    assert runs.wait() == f"run {runs.run.name}: done (3 of 3 done)\n"
    check_counts(runs, {1: 10, 2: 25, 3: 40})
    assert runs.status()["state"] == "done"
    assert runs.stoker("logs", "last", "--task", "1").out.startswith("from 0\n")
    assert "task 3: link 1 of 20 ends here, the next one continues" in runs.batch_log()
    wait_until(lambda: queue_is_empty(runs), "links that are not needed are withdrawn", timeout=120)


def test_the_cap_of_an_array_holds_over_all_links_of_its_tasks(runs: Runs):
    (runs.folder / "count.py").write_text(COUNTER)
    write(runs, 4, f"exec {sys.executable} count.py 30", "at_once: 2", CHAIN.replace("links: 20", "links: 12"))
    runs.submit()
    second = (runs.run / "attempts/1/job-2.sbatch").read_text()
    assert re.search(r"\n#SBATCH --array=1-4%2\n", second)
    assert re.search(r"\n#SBATCH --dependency=afterany:\d+\n", second)
    assert runs.wait() == f"run {runs.run.name}: done (4 of 4 done)\n"
    assert most_at_once(times_of_links(runs.run)) == 2
    check_counts(runs, dict.fromkeys((1, 2, 3, 4), 30))
    wait_until(lambda: queue_is_empty(runs), "links that are not needed are withdrawn", timeout=120)


def test_only_a_stalled_or_failed_task_ends_and_is_resumed(runs: Runs):
    (runs.folder / "count.py").write_text(COUNTER)
    task = (
        "test -e mended && exit 0; "
        f"case ${{params.n}} in 1) exec {sys.executable} count.py 5;; 2) exit 7;; *) sleep 60;; esac"
    )
    write(runs, 3, task, "at_once: 3", CHAIN.replace("10}", "2}"))
    runs.submit()
    assert runs.wait(code=7) == f"run {runs.run.name}: failed (1 of 3 done, 1 failed (2), 1 stopped)\n"
    assert [event["reason"] for event in task_events(runs.run, 2)[1::2]] == ["exit code 7; failed (restart.failed: 0)"]
    ended = task_events(runs.run, 3)[1::2]
    assert [event["reason"] for event in ended] == [
        "time limit 3s (chain.time_per_link)",
        "time limit 3s (chain.time_per_link); 2 attempts in a row without progress: no checkpoint yet "
        "(restart.without_progress: 2)",
    ]
    wait_until(lambda: queue_is_empty(runs), "no link of it is left", timeout=120)
    (runs.folder / "mended").touch()
    again = submit(runs, "last", command="resume")
    assert (again["tasks"], again["attempt"], again["links"]) == (2, 2, 20)
    assert runs.wait() == f"run {runs.run.name}: done (3 of 3 done)\n"
    assert len(task_events(runs.run, 1)) == 2
    wait_until(lambda: queue_is_empty(runs), "links that are not needed are withdrawn", timeout=120)


def test_tasks_of_several_ranks_are_chains_too(runs: Runs):
    (runs.folder / "count.py").write_text(COUNTER)
    ranks = "resources: {nodes: 1, ranks_per_node: 2}\n"
    write(runs, 1, f"exec {sys.executable} count.py 40", "at_once: 1", CHAIN + ranks)
    submit(runs)
    assert runs.wait() == f"run {runs.run.name}: done (1 of 1 done)\n"
    (own,) = (path for path in (runs.run / "tasks").iterdir() if path.is_dir())
    logs = [(attempt / "rank-0000.log").read_text() for attempt in sorted((own / "attempts").iterdir())]
    assert len(logs) >= 2 and logs[-1].endswith("counted to 40\n")
    assert logs[1].startswith("from ") and not logs[1].startswith("from 0\n")


def test_links_of_tasks_that_may_not_withdraw_others_leave_them_nothing_to_do(runs: Runs, wrapper):
    path = wrapper("scancel", "exit 1")
    write(runs, 2, "echo ran ${params.n}; test ${params.n} = 1", "at_once: 2", CHAIN.replace("links: 20", "links: 3"))
    submit(runs, env={"PATH": f"{path.split(':')[0]}:{runs.lab.env['PATH']}"})
    assert runs.wait(code=1) == f"run {runs.run.name}: failed (1 of 2 done, 1 failed (2))\n"
    wait_until(lambda: queue_is_empty(runs), "all links have had their turn", timeout=120)
    assert [(runs.run / f"tasks/{n:05}.log").read_text() for n in (1, 2)] == ["ran 1\n", "ran 2\n"]
    assert [len(task_events(runs.run, n)) for n in (1, 2)] == [2, 2]
