"""Unreadable input: logs for `stoker explain` and scripts for `stoker check` that are binary, very large or in an unexpected
encoding."""

import gzip
import json
import os
import random
import subprocess
import time
import unicodedata
from pathlib import Path

import pytest
import run_folders

FULL = b"OSError: [Errno 28] No space left on device: '/a'\n"
SCRIPT = "#!/bin/bash\n#SBATCH --time=1:00:00\nsrun hostname\n"


def noise(size: int) -> bytes:
    return random.Random(7).randbytes(size)


def diagnosis(stoker, name: str, **options) -> dict:
    return json.loads(stoker("explain", name, "--json", timeout=60, **options).out)["diagnosis"]


def control_letters(output: str) -> set[str]:
    """The characters that move the cursor, set a colour, or change the direction of the following text."""
    turning = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    return {each for each in output if (unicodedata.category(each) == "Cc" or each in turning) and each != "\n"}


LOGS = {
    "binary before it": noise(300_000) + b"\n" + FULL,
    "binary around it": noise(1000) + b"\n" + FULL + noise(1000),
    "zero bytes": b"\0" * 100_000 + b"\n" + FULL,
    "latin-1": b"d\xe9marrage \xe0 l'\xe9cole\n" + FULL,
    "utf-8 with a mark": b"\xef\xbb\xbf" + FULL,
    "utf-16": ("starting\n" + FULL.decode()).encode("utf-16"),
    "utf-16 the other way": b"\xfe\xff" + ("starting\n" + FULL.decode()).encode("utf-16-be"),
    "line ends of dos": b"starting\r\n" + FULL.replace(b"\n", b"\r\n"),
    "a bar that writes over itself": b"\r".join(b"%3d %% |#####" % i for i in range(101)) + b"\n" + FULL,
    "a line without an end": b"x" * 5_000_000 + b"\n" + FULL,
    "colours": b"\x1b[31m" + FULL.rstrip() + b"\x1b[0m\n",
    "no last line end": FULL.rstrip(),
}


@pytest.mark.parametrize("name", LOGS)
def test_a_cause_is_found_in_any_context(stoker, tmp_path, name):
    (tmp_path / "log").write_bytes(LOGS[name])
    found = diagnosis(stoker, "log", code=0)
    assert found["rule"] == "disk-full"
    assert found["evidence"][-1]["text"].endswith("No space left on device: '/a'")


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"\0", b"\xff\xfe", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", noise(100_000), b"\xff" * 10_000]
)
def test_an_uninformative_log_has_no_cause(stoker, tmp_path, content):
    (tmp_path / "log").write_bytes(content)
    done = stoker("explain", "log", "--json", timeout=60, code=None)
    assert done.code in (0, 1)
    assert json.loads(done.out)["diagnosis"]["certainty"] == "unknown"
    output = stoker("explain", "log", timeout=60, code=None).out
    assert control_letters(output) == set()


def test_terminal_control_characters_are_neutralised(stoker, tmp_path):
    evil = "RuntimeError: \u009b2J\u202egnihton\u2066 \x1b]0;x\x07 \x1b[31mred\n"
    (tmp_path / "log").write_text(evil)
    output = stoker("explain", "log", code=None).out
    assert "RuntimeError" in output and control_letters(output) == set()
    (tmp_path / "x.sh").write_text(f"#!/bin/bash\n#SBATCH --tine={evil[14:]}")
    assert control_letters(stoker("check", "x.sh", code=1).out) == set()


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_a_truncated_or_damaged_compressed_log_is_read_up_to_the_damage(stoker, tmp_path, kind):
    text = FULL + b"".join(b"%d\n" % (i * 7919 % 100_003) for i in range(300))
    packed = (
        gzip.compress(text)
        if kind == "gzip"
        else subprocess.run(["zstd", "-c"], input=text, capture_output=True).stdout
    )
    name = {"gzip": "log.gz", "zstd": "log.zst"}[kind]
    (tmp_path / name).write_bytes(packed[:-6])
    found = diagnosis(stoker, name, code=None)
    assert found["notes"], found
    damaged = bytearray(packed)
    damaged[len(damaged) // 2] ^= 0xFF
    (tmp_path / name).write_bytes(damaged)
    assert diagnosis(stoker, name, code=None)["certainty"] in ("known", "unknown")


def test_ranks_mixed_in_one_file_are_distinguished(stoker, tmp_path):
    lines = []
    for step in range(50):
        lines += [f"[rank{rank}]: step {step} loss 0.{step:02}" for rank in (2, 0, 3, 1)]
    lines += [
        "[rank2]: Traceback (most recent call last):",
        "[rank0]: step 50 loss 0.50",
        '[rank2]:   File "train.py", line 7, in <module>',
        "[rank3]: step 50 loss 0.50",
        "[rank2]: KeyError: 'label'",
        "[rank0]: RuntimeError: [pair.cc:534] Connection closed by peer [10.0.0.2]:44750",
        "[rank3]: RuntimeError: [pair.cc:534] Connection closed by peer [10.0.0.2]:44750",
    ]
    (tmp_path / "all.log").write_text("\n".join(lines) + "\n")
    found = diagnosis(stoker, "all.log", code=0)
    assert (found["rank"], found["cause"]) == (2, "the program raised KeyError: 'label' (train.py:7)")


def test_a_sparse_file_of_ten_gigabytes_is_handled_quickly(stoker, tmp_path):
    with (tmp_path / "log").open("wb") as log:
        log.write(b"starting\n")
        log.truncate(10_000_000_000)
        log.seek(0, os.SEEK_END)
        log.write(b"\n" + FULL)
    started = time.monotonic()
    assert diagnosis(stoker, "log", code=0)["rule"] == "disk-full"
    assert time.monotonic() - started < 100


SCRIPTS = [
    (SCRIPT.encode("utf-16"), 2, "x.sh: is UTF-16, which neither Slurm nor the shell reads"),
    (SCRIPT.encode("utf-16-le"), 2, "x.sh: is UTF-16, which neither Slurm nor the shell reads"),
    (SCRIPT.encode() + b"\0", 2, "x.sh: a zero byte at byte 49, and Slurm rejects such a script"),
    (b"\x7fELF\2\1\1\0", 2, "x.sh: a zero byte at byte 7, and Slurm rejects such a script"),
]


@pytest.mark.parametrize(("content", "code", "message"), SCRIPTS)
@pytest.mark.parametrize("words", [("check", "x.sh"), ("init", "job.yaml", "--from", "x.sh")], ids=["check", "init"])
def test_a_file_that_is_not_a_script_is_refused_in_one_line(stoker, tmp_path, content, code, message, words):
    (tmp_path / "x.sh").write_bytes(content)
    assert stoker(*words, code=code).err.splitlines()[0] == message
    assert not (tmp_path / "job.yaml").exists()


def rules(stoker, name: str) -> list[str]:
    return [f["rule"] for f in json.loads(stoker("check", name, "--json", timeout=30, code=None).out)["findings"]]


def test_a_script_with_other_encodings_or_line_endings_is_read(stoker, tmp_path):
    plain = rules(stoker, write(tmp_path, SCRIPT.encode()))
    assert rules(stoker, write(tmp_path, SCRIPT.replace("hostname", "./a caf\xe9").encode("latin-1"))) == plain
    assert rules(stoker, write(tmp_path, SCRIPT.replace("\n", "\r\n").encode())) == ["dos-line-ends", *plain]
    assert rules(stoker, write(tmp_path, SCRIPT.replace("\n", "\r").encode())) == ["dos-line-ends", *plain]
    stoker("check", "x.sh", "--in-place", code=0)
    assert (tmp_path / "x.sh").read_bytes() == SCRIPT.encode()
    assert rules(stoker, write(tmp_path, b"\xef\xbb\xbf" + SCRIPT.encode()))[0] == "no-interpreter"


def test_a_binary_or_huge_script_is_handled_quickly(stoker, tmp_path):
    bytes_but_zero = noise(400_000).replace(b"\0", b"x")
    assert "no-interpreter" in rules(stoker, write(tmp_path, bytes_but_zero))
    output = stoker("check", "x.sh", timeout=30, code=1).out
    assert control_letters(output) == set()
    with (tmp_path / "x.sh").open("wb") as script:
        script.truncate(1 << 30)
    started = time.monotonic()
    expected = "x.sh: 1073741824 bytes, Slurm accepts scripts of at most 4194304\n"
    assert stoker("check", "x.sh", code=2).err == expected
    assert time.monotonic() - started < 60


def write(folder: Path, content: bytes) -> str:
    (folder / "x.sh").write_bytes(content)
    return "x.sh"


@pytest.mark.parametrize("where", ["run.json", "attempts/1/metrics-0000.csv", "attempts/1/rank-0000.log"])
def test_a_pipe_in_a_run_folder_blocks_no_command(stoker, tmp_path, where):
    folder = run_folders.killed_and_resumed(tmp_path / "runs").path
    pipe = folder / where
    assert pipe.parent.is_dir()
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    for command in ("status", "report", "logs"):  # whatever they print
        stoker(command, "--runs", "runs") if command == "status" else stoker(command, folder, timeout=30)
    stoker("status", folder, timeout=30)
