#!/usr/bin/env python3
"""Makes cifar10-6000.tar from a tar of all of CIFAR-10 as JPEG files (train/<class>/NNNN.jpg, test/<class>/NNNN.jpg).

    make_subset.py cifar10.tar cifar10-6000.tar

Takes every tenth file of each class by name, so classes stay balanced, and writes them in order of name with
nothing in the headers that depends on when or where: the same input gives the same bytes."""

import sys
import tarfile
from collections import defaultdict
from pathlib import Path

ONE_IN = 10


def chosen_names(names: list[str]) -> list[str]:
    """Every tenth of each folder's files, by name."""
    by_folder = defaultdict(list)
    for name in sorted(names):
        by_folder[name.rpartition("/")[0]].append(name)
    return sorted(name for folder in by_folder.values() for name in folder[::ONE_IN])


def make_subset(source: Path, target: Path) -> int:
    """Writes `target` and returns how many files it holds."""
    with tarfile.open(source) as whole, tarfile.open(target, "w", format=tarfile.USTAR_FORMAT) as subset:
        chosen = chosen_names([member.name for member in whole if member.isfile()])
        for name in chosen:
            member = tarfile.TarInfo(name)
            member.size = whole.getmember(name).size
            member.mode = 0o644
            subset.addfile(member, whole.extractfile(name))
    return len(chosen)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(make_subset(Path(sys.argv[1]), Path(sys.argv[2])), "files")
