"""Packing 5 000 small files, compared with the writers of webdataset and of MosaicML streaming (MDS), with one process each. Needs a
Python with these packages (STOKER_PEERS_PYTHON); a missing writer is reported and skipped."""

import json
import os
import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path

from loader_python import IMPORT_TORCHVISION
from measure import BIN, PYTHON, conclude, in_turns, ratio_interval, seconds_of
from pack_vs_tar import few_of, unpacked

# Each takes a list of (path, key, label) and a folder. Only writing is timed, without imports and the list.
WRITERS = {
    "webdataset": """
import webdataset
with webdataset.ShardWriter(out + "/%06d.tar", maxcount=100000, maxsize=3e9, verbose=0) as writer:
    for path, key, label in samples:
        writer.write({"__key__": key, "jpg": open(path, "rb").read(), "cls": label})
""",
    "streaming": """
from streaming import MDSWriter
with MDSWriter(out=out, columns={"jpg": "bytes", "cls": "int"}) as writer:
    for path, key, label in samples:
        writer.write({"jpg": open(path, "rb").read(), "cls": label})
""",
}


def imported(name: str, setup: str) -> str:
    return f"{IMPORT_TORCHVISION}\n{setup}" if name == "streaming" else setup  # streaming imports torchvision itself


def program(name: str) -> str:
    setup, loop = WRITERS[name].strip().split("\n", 1)
    return f"import json, sys, time\n{imported(name, setup)}\nsamples, out = json.load(open(sys.argv[1])), sys.argv[2]\nbegin = time.perf_counter()\n{loop}\nprint(time.perf_counter() - begin)\n"


def main() -> None:
    python = os.environ.get("STOKER_PEERS_PYTHON", str(PYTHON))
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as box:
        folder = Path(box)
        few = few_of(unpacked(folder / "images"), folder / "few")
        paths = sorted(few.rglob("*.jpg"))
        listed = [(str(path), str(path.relative_to(few).with_suffix("")), len(path.parent.name)) for path in paths]
        (folder / "list.json").write_text(json.dumps(listed))

        def pack() -> float:
            shutil.rmtree(folder / "packed", ignore_errors=True)
            return seconds_of([BIN / "stoker", "data", "pack", few, folder / "packed", "--labels", "cls"])

        def write(name: str) -> float:
            shutil.rmtree(folder / "written", ignore_errors=True)
            (folder / "written").mkdir()
            command = [python, "-c", program(name), str(folder / "list.json"), str(folder / "written")]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            return float(done.stdout.splitlines()[-1])

        closest = None
        for name in WRITERS:
            importing = imported(name, f"import {name}")
            if subprocess.run([python, "-c", importing], capture_output=True).returncode != 0:
                print(f"not measured: {python} has no {name} (STOKER_PEERS_PYTHON)")
                continue
            pairs = in_turns(pack, partial(write, name), 7)
            found = ratio_interval(pairs)
            ours, theirs = min(first for first, _ in pairs), min(second for _, second in pairs)
            rates = f"stoker {len(paths) / ours:.0f} files/s, {name} {len(paths) / theirs:.0f} files/s"
            print(f"{len(paths)} files: {rates} (best of each), time of data pack / time of {name}: {found}")
            closest = found if closest is None or found.value > closest.value else closest
        if closest is not None:
            conclude("time of data pack, start and all / time of the fastest writer", closest, limit=1)


if __name__ == "__main__":
    main()
