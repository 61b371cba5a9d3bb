#include <atomic>
#include <unistd.h>

#include "record/test_fsync.h"

static std::atomic<int> fsync_calls = 0;

// A program's own function comes before the one of the C library.
extern "C" int fsync(int fd) {
  ++fsync_calls;
  return ::fdatasync(fd);
}

int stoker::record::synced_files() { return fsync_calls; }
