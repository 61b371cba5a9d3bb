"""Every harness of fuzz/ begins with whole inputs of its kind."""

import subprocess
import sys
from pathlib import Path

SEEDS = Path(__file__).resolve().parents[2] / "script/lib/fuzz_seeds.py"


def test_every_harness_has_seeds(tmp_path):
    done = subprocess.run([sys.executable, SEEDS, tmp_path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
    assert (tmp_path / "frame_fuzz/seed-0").read_bytes().startswith(b"STK1")
