"""Packing into a single shard: threads without a shard read ahead of the writing thread. All threads are compared with one thread, and
with GNU tar, which always reads files one by one:

- from a warm page cache to memory, with the default check of images, and decoded (--check decode)
- from storage that takes a millisecond to open a file, like a busy metadata server (openat() is delayed for both)"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from measure import BIN, REPOSITORY, check_limit, in_turns, ratio_interval, seconds_of

SLOW_OPEN = """
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>
static int slowly(const char* name, int folder, const char* path, int flags) {
  if ((flags & (O_DIRECTORY | O_CREAT)) == 0) usleep(1000);
  return reinterpret_cast<int (*)(int, const char*, int, ...)>(dlsym(RTLD_NEXT, name))(folder, path, flags, 0666);
}
extern "C" int openat(int folder, const char* path, int flags, ...) { return slowly("openat", folder, path, flags); }
extern "C" int __openat_2(int folder, const char* path, int flags) { return slowly("openat", folder, path, flags); }
"""


def main() -> None:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as box:
        folder = Path(box)
        with tarfile.open(REPOSITORY / "examples/cifar10/cifar10-6000.tar") as archive:
            archive.extractall(folder / "all")  # our own archive
        images = folder / "all/train"
        files = sum(1 for _ in images.rglob("*.jpg"))
        slow = folder / "slow.so"
        compiler = os.environ.get("CXX", "c++")
        subprocess.run([compiler, "-shared", "-fPIC", "-xc++", "-o", slow, "-"], input=SLOW_OPEN, text=True, check=True)

        def pack(*options: str, **more) -> float:
            shutil.rmtree(folder / "packed", ignore_errors=True)
            words = ["data", "pack", images, folder / "packed", "--shards", "1", "--hash", "crc32c", *options]
            return seconds_of([BIN / "stoker", *words], **more)

        def tar(**more) -> float:
            (folder / "x.tar").unlink(missing_ok=True)
            return seconds_of(["tar", "--format=ustar", "-C", images, "-cf", folder / "x.tar", "."], **more)

        met = True
        for what, options, limit in (("checked", (), 0.95), ("decoded", ("--check", "decode"), 0.65)):
            pairs = in_turns(lambda: pack("-j", "2", *options), lambda: pack("-j", "1", *options), 25)  # noqa: B023
            met &= check_limit(
                f"{files} images {what}, one shard: time of two threads / one", ratio_interval(pairs), limit
            )
        waits = {"env": os.environ | {"LD_PRELOAD": str(slow)}}
        pairs = in_turns(lambda: pack("-j", "16", **waits), lambda: tar(**waits), 3)
        best = files / min(ours for ours, _ in pairs)
        print(f"       opening takes 1 ms: {best:.0f} files/s with 16 threads")
        met &= check_limit("opening takes 1 ms: time of 16 threads / GNU tar", ratio_interval(pairs), 1 / 8)
        sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
