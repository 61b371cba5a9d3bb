"""Helpers for benchmarks of checkpoints: synchronized ranks of bench/checkpoint_save_bench.cc."""

import subprocess
from pathlib import Path
from types import TracebackType

from measure import BIN, REPOSITORY

TENSORS = 2405  # five ResNet-50 with momentum


class Ranks:
    """`world` processes with the same tensors. `local`: a node-local disk to save through."""

    def __init__(self, folder: Path, size: int, count: int, world: int, local: Path | None = None):
        self.world = world
        build = ["cmake", "--build", REPOSITORY / "build/release", "--target", "checkpoint_save_bench"]
        subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
        pipe = subprocess.PIPE
        self._children = [
            subprocess.Popen(
                [
                    BIN / "checkpoint_save_bench",
                    folder,
                    str(size),
                    str(count),
                    str(rank),
                    str(world),
                    *([local] if local else []),
                ],
                stdin=pipe,
                stdout=pipe,
                text=True,
            )
            for rank in range(world)
        ]
        for child in self._children:
            assert child.stdout is not None and child.stdout.readline() == "ready\n"

    def __enter__(self) -> "Ranks":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for child in self._children:
            assert child.stdin is not None
            child.stdin.close()
        for child in self._children:
            child.wait(timeout=60)

    def tell(self, word: str, rank: int | None = None) -> list[float]:
        """Answers of all ranks, or one: the maximum of each number over ranks."""
        asked = self._children if rank is None else [self._children[rank]]
        for child in asked:
            assert child.stdin is not None
            child.stdin.write(word + "\n")
            child.stdin.flush()
        answers = []
        for child in asked:
            assert child.stdout is not None
            answers.append([float(number) for number in child.stdout.readline().split()])
        return [max(numbers) for numbers in zip(*answers, strict=True)]
