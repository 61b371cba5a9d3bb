#include "rank/stacks/thread_states.h"

#include <filesystem>
#include <sys/syscall.h>

#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::rank {
namespace {

struct Process {
  TempDirectory proc;

  void add_thread(int id, const char* name, char state, const std::string& call,
                  const std::string& place) const {
    const Path folder = proc / "7/task" / std::to_string(id);
    std::filesystem::create_directories(folder);
    std::string stat = format("{} ({}) {} 1", id, name, state);
    for (int i = 0; i < 48; ++i) stat += " 0";
    (void)write_file(folder / "stat", stat + "\n");
    (void)write_file(folder / "syscall", call);
    (void)write_file(folder / "wchan", place);
  }
};

TEST(ThreadStates, threads_in_one_place_are_one_line) {
  const Process process;
  std::filesystem::create_directories(process.proc / "7/fd");
  std::filesystem::create_symlink("/lustre/train-000001.tar", process.proc / "7/fd/31");
  process.add_thread(7, "python", 'D', format("{} 0x1f 0x7f8 0x1000\n", SYS_pread64), "0");
  for (const int id : {8, 9, 10, 11})
    process.add_thread(id, "pt_autograd_0", 'S', format("{} 0x7f8 0x189\n", SYS_futex), "futex_do_wait");
  process.add_thread(12, "cuda-EvtHandlr", 'S', "", "do_sys_poll");
  process.add_thread(13, "busy", 'R', "running\n", "0");
  EXPECT_EQ(thread_states(7, process.proc.path()),
            "  4 threads (pt_autograd_0, pt_autograd_0, pt_autograd_0, ...): asleep in futex\n"
            "  1 thread (cuda-EvtHandlr): asleep in the kernel's do_sys_poll\n"
            "  1 thread (python): in a call that cannot be interrupted in pread of /lustre/train-000001.tar\n"
            "  1 thread (busy): running\n");
}

TEST(ThreadStates, unreadable_text_is_left_out) {
  const Process process;
  for (const char* call :
       {"", "-1 0x0 0x0\n", "x\n", "0\n", "0 zz\n", "99999 0x1\n", "0 0xffffffffffffffffff\n"})
    process.add_thread(static_cast<int>(20 + std::string(call).size()), "python", 'S', call, "");
  EXPECT_NE(thread_states(7, process.proc.path()).find("asleep"), std::string::npos);
  EXPECT_EQ(thread_states(8, process.proc.path()), "");
}

}  // namespace
}  // namespace stoker::rank
