"""stoker.checkpoint: the steps in a folder: retention, the choice of the loaded one, and failed saves."""

import errno
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy
import pytest
import stoker
import torch
from stoker import checkpoint


@pytest.fixture(autouse=True)
def closed():
    yield
    checkpoint.close()


@pytest.mark.parametrize("step", [-1, 1.5, True, "3"])
def test_a_step_must_be_a_whole_number(tmp_path, step):
    with pytest.raises(stoker.InvalidError, match="is not a whole number of at least 0"):
        checkpoint.save({}, tmp_path, step=step)


@pytest.mark.parametrize("step", [numpy.int64(3), numpy.uint8(3), torch.tensor(3)])
def test_a_step_may_be_an_integer_of_a_library(tmp_path, step):
    assert checkpoint.save({"a": 1}, tmp_path, step=step) == tmp_path / "step-3"
    assert checkpoint.load(tmp_path, step=step).step == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"step": 2**63}, "step: 9223372036854775808 is not at most 9223372036854775807"),
        ({"step": torch.ones(2)}, "step: tensor([1., 1.]) is not a whole number of at least 0"),
        ({"keep_last": "2"}, "keep_last: '2' is not a whole number of at least 0"),
        ({"keep_last": 2**40}, "keep_last: 1099511627776 is not at most 2147483647"),
        ({"keep_last": 1, "keep_every": "1h"}, "keep_every: '1h' is not a number of seconds"),
        ({"metric": 5}, "metric: 5 is not a str"),
        ({"timeout": None}, "timeout: None is not a number of seconds"),
        ({"timeout": math.nan}, "timeout: nan is not a number of seconds"),
        ({"run": 5}, "run: 5 is not a str"),
        ({"run": ""}, "run '' is empty or not plain text"),
        ({"writer": 5}, "writer: 5 is not 1 to 40 letters, digits, '-' or '_'"),
        ({"folder": None}, "folder: None is not a path"),
        ({"folder": "a\0b"}, "folder: 'a\\x00b' is not a path"),
        ({"rank_state": [1]}, "rank_state is list, expected a dict"),
        ({"rank_state": {"a": 2**64}}, "rank_state: 'a' is 18446744073709551616, which is not a 64-bit number"),
        ({"hyper_parameters": {1: 2}}, "hyper_parameters: key 1 is int, expected str"),
        (
            {"hyper_parameters": {"lr": numpy.float64(1)}},
            "hyper_parameters: 'lr' is float64, expected a number, str or bytes\n  try: its .item()",
        ),
    ],
)
def test_arguments_of_a_wrong_type_are_named(tmp_path, arguments, message):
    given = {"folder": tmp_path, "step": 1} | arguments
    with pytest.raises(stoker.InvalidError, match=f"^checkpoint: {re.escape(message)}$"):
        checkpoint.save({"a": 1}, given.pop("folder"), **given)
    assert not list(tmp_path.glob("*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"step": "1"}, "step: '1' is not a whole number of at least 0"),
        ({"only": 5}, "only: 5 is not a str or a list of them"),
        ({"into": [1]}, "into is list, expected a dict"),
        ({"timeout": 0}, "timeout: 0 is not a number of seconds"),
        ({"folder": 5}, "folder: 5 is not a path"),
    ],
)
def test_arguments_of_a_load_of_a_wrong_type_are_named(tmp_path, arguments, message):
    checkpoint.save({"a": 1}, tmp_path, step=1)
    given = {"folder": tmp_path} | arguments
    with pytest.raises(stoker.InvalidError, match=f"^checkpoint: {re.escape(message)}$"):
        checkpoint.load(given.pop("folder"), **given)


def test_a_removed_folder_is_created_again(tmp_path):
    folder = tmp_path / "runs/ckpt"
    for step in range(1, 4):
        checkpoint.save({"a": step}, folder, step=step)
        shutil.rmtree(tmp_path / "runs")
    saving = checkpoint.async_save({"a": 4}, folder, step=4)
    assert saving.wait() == folder / "step-4" and os.listdir(folder) == ["step-4"]
    assert checkpoint.load(folder)["a"] == 4


@pytest.mark.needs("mount")
def test_a_read_only_filesystem_is_an_os_error(tmpfs):
    disk = tmpfs("12M")
    checkpoint.save({"a": 1}, disk / "ckpt", step=1)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    for folder in (disk / "ckpt", disk / "new"):
        with pytest.raises(OSError, match=r"read-only file system$") as raised:
            checkpoint.save({"a": 2}, folder, step=2)
        assert isinstance(raised.value, stoker.InvalidError) and raised.value.errno == errno.EROFS
    assert checkpoint.load(disk / "ckpt")["a"] == 1


def test_leftovers_without_a_readable_lease_are_removed(tmp_path):
    old = time.time() - 600
    for name, content in ((".step-5.x.0", ""), (".step-6.x.0", "{torn"), (".step-7.x.0", None)):
        (tmp_path / name).mkdir()
        if content is not None:
            (tmp_path / name / "lease.json").write_text(content)
        os.utime(tmp_path / name, (old, old))
    (tmp_path / ".step-8.x.0").mkdir()
    (tmp_path / ".step-8.x.0/lease.json").touch()
    checkpoint.save({"a": 1}, tmp_path, step=1)
    # The third may be new to its writer; the fourth has just been written.
    assert sorted(os.listdir(tmp_path)) == [".step-7.x.0", ".step-8.x.0", "step-1"]
    for name in (".step-7.x.0", ".step-8.x.0"):
        os.utime(tmp_path / name, (old - 3600, old - 3600))
    checkpoint.save({"a": 2}, tmp_path, step=2)  # the same writer
    assert sorted(os.listdir(tmp_path)) == ["step-1", "step-2"]


SAVING = """
import sys
from stoker import checkpoint
for line in sys.stdin:
    try:
        checkpoint.save({"a": "other"}, sys.argv[1], step=int(line))
        print("saved", flush=True)
    except Exception as error:
        print(type(error).__name__, str(error).replace("\\n", " "), flush=True)
"""


@pytest.fixture
def other_training(tmp_path, module_environment):
    """other_training(step) saves a step to tmp_path/ckpt in a different process, which keeps running."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-W", "ignore", "-c", SAVING, tmp_path / "ckpt"]
    process = subprocess.Popen(command, env=module_environment, stdin=pipe, stdout=pipe, text=True)

    def save(step):
        process.stdin.write(f"{step}\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    save.process = process
    yield save
    process.kill()
    process.communicate()


def test_a_step_of_a_running_training_is_not_replaced(tmp_path, other_training):
    assert other_training(10) == "saved"
    pid, folder = other_training.process.pid, tmp_path / "ckpt"
    refused = f"{folder}/step-10: was saved by process {pid}, which is still running"
    with (
        pytest.warns(
            RuntimeWarning, match=rf"process {pid} on .* is running and also saves to this folder \(step 10\)"
        ),
        pytest.raises(stoker.ExistsError, match=f"^checkpoint step 10: {re.escape(refused)}\n  try: a separate folder"),
    ):
        checkpoint.save({"a": "own"}, folder, step=10)
    assert checkpoint.load(folder)["a"] == "other"
    checkpoint.save({"a": "own"}, folder, step=20)
    answer = other_training(20)
    assert answer.startswith(
        f"ExistsError checkpoint step 20: {folder}/step-20: was saved by process {os.getpid()}, which"
    )
    other_training.process.kill()
    other_training.process.wait()
    checkpoint.save({"a": "own"}, folder, step=10)  # a resumed training replaces the steps of its earlier attempt
    assert checkpoint.load(folder, step=10)["a"] == "own"


def test_a_training_is_warned_of_later_steps_of_an_earlier_one(tmp_path, recwarn):
    checkpoint.save({"a": "old"}, tmp_path, step=40)
    checkpoint.save({"a": "old"}, tmp_path, step=50)
    checkpoint.close()
    assert not recwarn.list
    with pytest.warns(
        RuntimeWarning, match=r": step-50 is newer than step 10, so load\(\) returns step 50 if it is intact\n  try: "
    ):
        checkpoint.save({"a": "new"}, tmp_path, step=10)
    recwarn.clear()
    checkpoint.save({"a": "new"}, tmp_path, step=20)
    assert not recwarn.list  # once
    with pytest.warns(RuntimeWarning, match="step-50 is newer than step 20"):
        checkpoint.save({"a": "new"}, tmp_path, step=20)  # begun again
    checkpoint.save({"a": "resumed"}, tmp_path, step=60)
    checkpoint.close()
    recwarn.clear()
    checkpoint.save({"a": "resumed"}, tmp_path, step=70)
    assert not recwarn.list and checkpoint.load(tmp_path).step == 70


def test_the_newest_valid_step_is_loaded_and_skipped_ones_are_named(tmp_path):
    for step in (1, 2, 3):
        checkpoint.save({"model": {"w": torch.full((40,), step)}}, tmp_path, step=step)
    file = next((tmp_path / "step-3/model").iterdir())
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    (tmp_path / "step-2/manifest.json").unlink()
    state = checkpoint.load(tmp_path)
    assert state.step == 1 and state["model"]["w"].tolist() == [1] * 40
    (third, why_third), (second, why_second) = state.skipped
    assert (third, second) == (tmp_path / "step-3", tmp_path / "step-2")
    assert re.search(r"shard-00001.*: damaged between bytes 0 and \d+ \(crc32c .*: 'w', written by rank 0$", why_third)
    assert why_second.endswith("has no manifest, so it is not a whole checkpoint")
    assert checkpoint.load(tmp_path, step=1).step == 1
    with pytest.raises(stoker.CorruptError, match="damaged between bytes"):
        checkpoint.load(tmp_path, step=3)
    with pytest.raises(stoker.NotFoundError, match="step-9: no such checkpoint"):
        checkpoint.load(tmp_path, step=9)
    (tmp_path / "step-1/manifest.json").unlink()
    with pytest.raises(stoker.NotFoundError, match=r"no valid checkpoint \(.*step-3.*; .*step-2.*; .*step-1"):
        checkpoint.load(tmp_path)
    with pytest.raises(stoker.NotFoundError, match=r"nothing: no checkpoint$"):
        checkpoint.load(tmp_path / "nothing")


def test_keep_last_removes_old_steps(tmp_path):
    for step in range(5):
        checkpoint.save({"a": step}, tmp_path, step=step, keep_last=2)
    assert sorted(os.listdir(tmp_path)) == ["step-3", "step-4"]
    checkpoint.save({"a": 5}, tmp_path, step=5)  # different options start a new writer, which keeps all
    assert sorted(os.listdir(tmp_path)) == ["step-3", "step-4", "step-5"]


def test_a_step_saved_below_a_damaged_one_is_kept(tmp_path):
    for step in (200, 300):
        checkpoint.save({"model": {"w": torch.full((1000, 100), float(step))}}, tmp_path, step=step, keep_last=2)
    file = next((tmp_path / "step-300/model").iterdir())
    content = bytearray(file.read_bytes())
    content[5000] ^= 1
    file.write_bytes(content)
    assert checkpoint.load(tmp_path).step == 200
    checkpoint.save({"model": {"w": torch.full((1000, 100), 250.0)}}, tmp_path, step=250, keep_last=1)
    assert sorted(os.listdir(tmp_path)) == ["step-250", "step-300"]
    assert checkpoint.load(tmp_path).step == 250


def test_the_best_steps_are_kept(tmp_path):
    for step, loss in enumerate([0.9, 0.2, 0.5, math.nan, 0.4]):
        options = {"keep_last": 1, "keep_best": 2, "metric": "val_loss"}
        checkpoint.save({"val_loss": loss, "w": torch.ones(2)}, tmp_path, step=step, **options)
    assert sorted(os.listdir(tmp_path)) == ["step-1", "step-4"]  # the second of the two best is the newest
    for options, message in [
        (
            {"keep_best": 1, "metric": "a"},
            "checkpoint: keep_every and keep_best require keep_last: without it all steps are kept",
        ),
        ({"keep_last": 1, "keep_best": 1}, "checkpoint: keep_best and metric: set both or neither"),
        ({"keep_last": -1}, "checkpoint: keep_last: -1 is negative"),
    ]:
        with pytest.raises(stoker.InvalidError, match=f"^{re.escape(message)}$"):
            checkpoint.save({}, tmp_path, step=9, **options)


def test_an_existing_step_is_replaced(tmp_path):
    for value in (1, 2):
        checkpoint.save({"a": value}, tmp_path, step=7)
    assert checkpoint.load(tmp_path)["a"] == 2 and os.listdir(tmp_path) == ["step-7"]


def test_a_background_save_uses_the_values_at_the_call(tmp_path):
    tensor = torch.zeros(1 << 20)
    checkpoint.reserve({"model": {"w": tensor}}, tmp_path)
    savings = []
    for step in (1, 2, 3):
        tensor.fill_(step)
        savings.append(checkpoint.async_save({"model": {"w": tensor}}, tmp_path, step=step))
    tensor.fill_(9)
    for step, saving in enumerate(savings, 1):
        assert saving.wait() == tmp_path / f"step-{step}" and saving.done()
        assert (checkpoint.load(tmp_path, step=step)["model"]["w"] == step).all()


def test_a_background_save_is_completed_at_exit(python, tmp_path):
    code = """
import sys, torch
from stoker import checkpoint
checkpoint.async_save({"model": {"w": torch.ones(1 << 22)}}, sys.argv[1], step=1)
"""
    python(code, tmp_path / "ckpt")
    assert checkpoint.load(tmp_path / "ckpt")["model"]["w"].sum() == 1 << 22


@pytest.mark.needs("mount")
def test_a_full_disk_fails_only_that_save(tmpfs):
    disk = tmpfs("12M")
    big, small = {"model": {"w": torch.ones(5 << 20)}}, {"model": {"w": torch.ones(1 << 18)}}
    checkpoint.save(small, disk / "ckpt", step=1)
    with pytest.raises(stoker.NoSpaceError, match=r"^checkpoint step 2: .*no space left on device"):
        checkpoint.save(big, disk / "ckpt", step=2)
    saving = checkpoint.async_save(big, disk / "ckpt", step=3)
    while not saving.done():
        time.sleep(0.01)
    with pytest.warns(RuntimeWarning, match="step-3: not saved: checkpoint step 3: .*no space left"):
        checkpoint.save(small, disk / "ckpt", step=4)
    assert checkpoint.load(disk / "ckpt").step == 4
    assert sorted(os.listdir(disk / "ckpt")) == ["step-1", "step-4"]


def test_a_folder_of_a_different_run_is_rejected(tmp_path):
    checkpoint.save({"a": 1}, tmp_path, step=1, run="one")
    with pytest.raises(stoker.ExistsError, match="contains checkpoints of run 'one', not of 'two'"):
        checkpoint.save({"a": 1}, tmp_path, step=2, run="two")
    checkpoint.save({"a": 1}, tmp_path, step=2)
    assert checkpoint.load(tmp_path).run == "one"


def test_a_forked_child_can_save(tmp_path):
    checkpoint.save({"a": 1}, tmp_path, step=1)
    child = os.fork()
    if child == 0:
        try:
            checkpoint.save({"a": 2}, tmp_path, step=2)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert checkpoint.load(tmp_path)["a"] == 2
    checkpoint.save({"a": 3}, tmp_path, step=3)


def test_a_killed_program_keeps_the_previous_step(tmp_path, module_environment):
    code = """
import sys, torch
from stoker import checkpoint
state = {"model": {"w": torch.zeros(1 << 21)}}
for step in range(1, 10**6):
    state["model"]["w"].fill_(step)
    checkpoint.async_save(state, sys.argv[1], step=step, keep_last=2)
    print(step, flush=True)
"""
    for turn in range(4):
        command = [sys.executable, "-c", code, tmp_path / f"ckpt-{turn}"]
        child = subprocess.Popen(command, env=module_environment, stdout=subprocess.PIPE, text=True)
        while int(child.stdout.readline()) < 4 + turn:  # two at most are in flight
            pass
        child.send_signal(signal.SIGKILL)
        child.wait()
        state = checkpoint.load(tmp_path / f"ckpt-{turn}")
        assert not state.skipped and (state["model"]["w"] == state.step).all()
