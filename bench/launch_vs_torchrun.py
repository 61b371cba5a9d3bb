"""From the command to the end of the first step, two ranks: `stoker run` beside torchrun with DistributedDataParallel.

Stoker's side makes the run folder, starts the recording and reads its images from a packed dataset; the other side's
images are made up in memory, so that its loader is not what is measured."""

import sys
import tempfile
import time
from pathlib import Path

from measure import conclude, in_turns, median_interval, ratio_interval
from training import prepare, pytorch_steps, stoker_steps


def main(pairs: int = 10) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)

        def ours() -> float:
            started = time.time()
            return stoker_steps(folder, steps=1).first_step - started

        def theirs() -> float:
            started = time.time()
            return pytorch_steps(folder, steps=1).first_step - started

        results = in_turns(ours, theirs, pairs)
    print(
        f"stoker run: {median_interval([a for a, _ in results])} s, torchrun: {median_interval([b for _, b in results])} s"
    )
    conclude("launch to first step, of torchrun's time", ratio_interval(results), limit=0.2)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
