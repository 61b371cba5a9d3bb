// What runs in the handler is async-signal-safe: system calls, and backtrace() after its first call.
#include "base/stack_signal.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <execinfo.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace stoker {
namespace {

constexpr int kMaxFrames = 64;
constexpr int kWaits = 1000;  // of a millisecond, for another thread's lines

std::atomic_flag is_writing = ATOMIC_FLAG_INIT;

void write_text(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

void write_number(int number) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), number).ptr;
  write_text({digits.data(), static_cast<std::size_t>(end - digits.data())});
}

void write_own_stack(bool is_main) {
  for (int i = 0; i < kWaits && is_writing.test_and_set(); ++i) {
    const timespec pause{0, 1'000'000};
    ::nanosleep(&pause, nullptr);
  }
  std::array<void*, kMaxFrames> frames{};
  const int count = ::backtrace(frames.data(), kMaxFrames);
  write_text(is_main ? kMainThreadHeader : kThreadHeader);
  if (!is_main) write_number(static_cast<int>(::syscall(SYS_gettid)));
  write_text("\n");
  // The first two are functions of this file.
  if (count > 2) ::backtrace_symbols_fd(frames.data() + 2, count - 2, STDERR_FILENO);
  is_writing.clear();
}

// As getdents64(2) returns it.
struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t length;
  std::uint8_t type;
  char name[];
};

void signal_other_threads(int own) {
  const int folder = ::open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  alignas(DirectoryEntry) std::array<char, 4096> buffer{};
  while (true) {
    const long size = ::syscall(SYS_getdents64, folder, buffer.data(), buffer.size());
    if (size <= 0) break;
    for (long at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(buffer.data() + at);
      int thread = 0;
      std::from_chars(entry->name, entry->name + std::strlen(entry->name), thread);
      if (thread > 0 && thread != own) ::syscall(SYS_tgkill, own, thread, kStackSignal);
      at += entry->length;
    }
  }
  ::close(folder);
}

void handle(int /*signal*/) {
  const int kept_errno = errno;
  const int own = static_cast<int>(::syscall(SYS_gettid));
  const bool is_main = own == ::getpid();
  write_own_stack(is_main);
  if (is_main) signal_other_threads(own);
  errno = kept_errno;
}

}  // namespace

void install_stack_signal() {
  struct sigaction current{};
  if (::sigaction(kStackSignal, nullptr, &current) != 0 || current.sa_handler != SIG_DFL) return;
  void* frame = nullptr;
  (void)::backtrace(&frame, 1);  // loads what it needs
  struct sigaction action{};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  ::sigaction(kStackSignal, &action, nullptr);
}

}  // namespace stoker
