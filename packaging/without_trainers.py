"""Copies wheels without their trainers, for auditwheel: it knows no libtorch.

python packaging/without_trainers.py FOLDER WHEEL..."""

import sys
import zipfile
from pathlib import Path

TRAINERS = b"/data/libexec/stoker/"


def main() -> int:
    target, *wheels = map(Path, sys.argv[1:])
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(target / wheel.name, "w") as copy:
            for item in source.infolist():
                content = source.read(item)
                if item.filename.endswith(".dist-info/RECORD"):
                    content = b"".join(line for line in content.splitlines(True) if TRAINERS not in line)
                if TRAINERS not in item.filename.encode():
                    copy.writestr(item, content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
