#include "rank/stacks/thread_states.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <string_view>
#include <sys/syscall.h>
#include <utility>
#include <vector>

#include "base/file.h"
#include "rank/process/process_tree.h"

namespace stoker::rank {
namespace {

constexpr std::size_t kMaxThreads = 1024;
constexpr std::size_t kNamedThreads = 3;

struct SystemCall {
  std::int64_t number;
  std::string_view name;
  bool has_file;  ///< its first argument is a descriptor
};

constexpr std::array kCalls = {
    SystemCall{SYS_read, "read", true},           SystemCall{SYS_pread64, "pread", true},
    SystemCall{SYS_readv, "readv", true},         SystemCall{SYS_write, "write", true},
    SystemCall{SYS_pwrite64, "pwrite", true},     SystemCall{SYS_fsync, "fsync", true},
    SystemCall{SYS_fdatasync, "fdatasync", true}, SystemCall{SYS_recvfrom, "recv", true},
    SystemCall{SYS_recvmsg, "recvmsg", true},     SystemCall{SYS_sendto, "send", true},
    SystemCall{SYS_sendmsg, "sendmsg", true},     SystemCall{SYS_connect, "connect", true},
    SystemCall{SYS_accept4, "accept", true},      SystemCall{SYS_flock, "flock", true},
    SystemCall{SYS_fcntl, "fcntl", true},         SystemCall{SYS_openat, "open", false},
    SystemCall{SYS_ppoll, "poll", false},         SystemCall{SYS_epoll_pwait, "epoll_wait", false},
    SystemCall{SYS_futex, "futex", false},        SystemCall{SYS_wait4, "wait", false},
    SystemCall{SYS_nanosleep, "sleep", false},    SystemCall{SYS_clock_nanosleep, "sleep", false},
    SystemCall{SYS_ioctl, "ioctl", true},
#ifdef SYS_poll
    SystemCall{SYS_poll, "poll", false},          SystemCall{SYS_epoll_wait, "epoll_wait", false},
    SystemCall{SYS_select, "select", false},      SystemCall{SYS_open, "open", false},
    SystemCall{SYS_stat, "stat", false},
#endif
};

std::string_view state_word(char state) {
  switch (state) {
    case 'R':
      return "running";
    case 'D':
      return "in a call that cannot be interrupted";
    case 'T':
      return "stopped by a signal";
    case 't':
      return "stopped by a debugger";
    case 'Z':
      return "ended";
    default:
      return "asleep";
  }
}

std::string file_of(std::string_view descriptor, const Path& process) {
  std::uint64_t number = 0;
  if (!descriptor.starts_with("0x")) return "";
  if (std::from_chars(descriptor.data() + 2, descriptor.data() + descriptor.size(), number, 16).ec !=
      std::errc())
    return "";
  std::error_code failure;
  const Path target = std::filesystem::read_symlink(process / "fd" / std::to_string(number), failure);
  return failure ? "" : " of " + printable(target.string());
}

// `202 0x7f8288001420 0x189 ...`, "running", or "-1 ..." outside of a call.
std::string call_of(std::string_view text, const Path& process) {
  const std::vector<std::string_view> words = split(trim(text), ' ');
  std::int64_t number = -1;
  if (words.size() < 2 || !parse_number(words[0], &number) || number < 0) return "";
  const auto* call =
      std::find_if(kCalls.begin(), kCalls.end(), [&](const SystemCall& c) { return c.number == number; });
  if (call == kCalls.end()) return format(" in system call {}", number);
  return format(" in {}{}", call->name, call->has_file ? file_of(words[1], process) : "");
}

std::string describe(const Path& thread, const Path& process, char state) {
  std::string text(state_word(state));
  const auto call = read_pseudo_file(thread / "syscall");
  if (call.ok()) text += call_of(*call, process);
  if (!call.ok() || text.find(" in ") == std::string::npos) {
    const auto place = read_pseudo_file(thread / "wchan");
    if (place.ok() && trim(*place) != "0" && !trim(*place).empty())
      text += format(" in the kernel's {}", printable(trim(*place)));
  }
  return text;
}

}  // namespace

std::string thread_states(pid_t pid, const Path& proc) {
  const Path process = proc / std::to_string(pid);
  auto names = list_directory(process / "task");
  if (!names.ok()) return "";
  if (names->size() > kMaxThreads) names->resize(kMaxThreads);
  std::map<std::string, std::vector<std::string>> threads;  // names by place
  for (const std::string& id : *names) {
    const Path thread = process / "task" / id;
    const auto stat = read_pseudo_file(thread / "stat");
    if (!stat.ok()) continue;
    const auto facts = parse_stat(*stat);
    if (!facts.ok()) continue;
    threads[describe(thread, process, facts->state)].push_back(printable(facts->name));
  }
  std::string text;
  for (const auto& [place, members] : threads) {
    std::string listed;
    for (std::size_t i = 0; i < std::min(members.size(), kNamedThreads); ++i)
      listed += (i == 0 ? "" : ", ") + members[i];
    if (members.size() > kNamedThreads) listed += ", ...";
    text += format("  {} {} ({}): {}\n", members.size(), members.size() == 1 ? "thread" : "threads", listed,
                   place);
  }
  return text;
}

}  // namespace stoker::rank
