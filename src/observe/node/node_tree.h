// For tests: the /proc and /sys of a node, in a temporary folder. One thread.
#pragma once

#include <string_view>

#include "base/file.h"
#include "observe/node/counter.h"

namespace stoker::observe {

class NodeTree {
 public:
  NodeRoots roots() const { return {box_ / "proc", box_ / "sys"}; }
  void proc(std::string_view name, std::string_view content) { put(box_ / "proc" / name, content); }
  void sys(std::string_view name, std::string_view content) { put(box_ / "sys" / name, content); }

  /// A process with these values in its stat file. It started `started` ticks after boot.
  void process(int pid, int parent, int user_ticks, int pages, int started = 99) {
    proc(format("{}/stat", pid),
         format("{} (python) S {} 1 1 0 -1 0 0 0 0 0 {} 10 20 30 20 0 4 0 {} 0 {} 0\n", pid, parent,
                user_ticks, started, pages));
  }
  void io(int pid, int asked, int read, int write) {
    proc(format("{}/io", pid),
         format("rchar: {}\nwchar: 1\nsyscr: {}\nsyscw: 2\nread_bytes: {}\nwrite_bytes: {}\n", asked,
                asked / 100, read, write));
  }
  /// The ticks of all cores, and 1000 kB of memory with 400 available.
  void host(int busy, int idle) {
    proc("stat", format("cpu  {} 0 0 {} 0 0 0 0 0 0\ncpu0 {} 0 0 {} 0\n", busy, idle, busy, idle));
    proc("meminfo", "MemTotal:  1000 kB\nMemFree:  10 kB\nMemAvailable:  400 kB\n");
  }

 private:
  static void put(const Path& file, std::string_view content) {
    STOKER_CHECK(make_directories(file.parent_path()).ok());
    STOKER_CHECK(write_file(file, content).ok());
  }

  TempDirectory box_;
};

}  // namespace stoker::observe
