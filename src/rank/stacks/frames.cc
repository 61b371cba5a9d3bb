#include "rank/stacks/frames.h"

#include <algorithm>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>
#include <optional>

#include "base/file.h"
#include "base/stack_signal.h"
#include "stoker/text.h"

namespace stoker::rank {
namespace {

constexpr std::size_t kMaxFrames = 256;
constexpr std::size_t kMaxName = 120;  // names of C++ templates have no end

struct ThreadStack {
  bool is_main = false;
  std::vector<Frame> frames;
};

std::int64_t to_number(std::string_view text) {
  std::int64_t number = 0;
  return parse_number(text, &number) ? number : 0;
}

Frame make_frame(std::string_view function, std::string_view file, std::int64_t line) {
  return {printable(function.substr(0, kMaxName)), printable(file), line};
}

// `    Queue.get (/usr/lib/python3.11/queue.py:171)`
std::optional<Frame> py_spy_frame(std::string_view line) {
  const std::size_t open = line.find(" (");
  if (!line.starts_with("    ") || open == std::string_view::npos || !line.ends_with(')'))
    return std::nullopt;
  std::string_view place = line.substr(open + 2);
  place.remove_suffix(1);
  const std::size_t colon = place.rfind(':');
  const std::string_view file = place.substr(0, colon);
  const std::int64_t number = colon == std::string_view::npos ? 0 : to_number(place.substr(colon + 1));
  return make_frame(trim(line.substr(0, open)), file, number);
}

// `  File "/usr/lib/python3.11/queue.py", line 171 in get`
std::optional<Frame> faulthandler_frame(std::string_view line) {
  constexpr std::string_view kBegin = "  File \"";
  constexpr std::string_view kLine = "\", line ";
  if (!line.starts_with(kBegin)) return std::nullopt;
  line.remove_prefix(kBegin.size());
  const std::size_t quote = line.rfind(kLine);
  if (quote == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(quote + kLine.size());
  const std::size_t in = rest.find(" in ");
  if (in == std::string_view::npos) return std::nullopt;
  return make_frame(rest.substr(in + 4), line.substr(0, quote), to_number(rest.substr(0, in)));
}

// `#5  0x00000000004f905f in PyThread_acquire_lock_timed () at x.c:12`
std::optional<Frame> gdb_frame(std::string_view line) {
  if (!line.starts_with('#')) return std::nullopt;
  line = trim(line.substr(std::min(line.find(' '), line.size())));
  if (line.starts_with("0x")) {
    const std::size_t in = line.find(" in ");
    if (in == std::string_view::npos) return std::nullopt;
    line.remove_prefix(in + 4);
  }
  const std::string_view function = line.substr(0, line.find(" ("));
  const std::size_t at = line.rfind(") at ");
  if (at == std::string_view::npos) {
    const std::size_t from = line.rfind(") from ");
    Frame frame = make_frame(function, from == std::string_view::npos ? "" : line.substr(from + 7), 0);
    frame.in_program = from == std::string_view::npos;
    return frame;
  }
  const std::string_view place = line.substr(at + 5);
  const std::size_t colon = place.rfind(':');
  return make_frame(function, place.substr(0, colon),
                    colon == std::string_view::npos ? 0 : to_number(place.substr(colon + 1)));
}

// `/opt/lib/libc10.so(_ZN3c104waitEv+0x12) [0x7f8e]`, of backtrace_symbols_fd(3)
std::optional<Frame> symbol_frame(std::string_view line) {
  const std::size_t open = line.find('(');
  const std::size_t close = line.find(')', open == std::string_view::npos ? 0 : open);
  if (!line.starts_with('/') || close == std::string_view::npos) return std::nullopt;
  const std::string_view object = line.substr(0, open);
  const std::string_view inside = line.substr(open + 1, close - open - 1);
  const std::string name(inside.substr(0, inside.find('+')));
  if (name.empty()) return make_frame(inside, object, 0);
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  const std::string_view full = status == 0 ? demangled.get() : name.c_str();
  return make_frame(full.substr(0, full.find('(')), object, 0);
}

// The line before a thread's frames. gdb's thread 1 is the main thread.
std::optional<ThreadStack> thread_header(std::string_view line) {
  if (line.starts_with("Thread 1 (")) return ThreadStack{.is_main = true, .frames = {}};
  if (line.starts_with(kMainThreadHeader)) return ThreadStack{.is_main = true, .frames = {}};
  if (line.starts_with(kThreadHeader)) return ThreadStack{};
  if (line.starts_with("Thread ") || line.starts_with("Current thread "))
    return ThreadStack{.is_main = line.ends_with("\"MainThread\""), .frames = {}};
  return std::nullopt;
}

std::optional<Frame> frame_of(std::string_view line) {
  for (const auto parse : {faulthandler_frame, py_spy_frame, gdb_frame, symbol_frame}) {
    if (auto frame = parse(line)) return frame;
  }
  return std::nullopt;
}

bool has_name(const Frame& frame) {
  return !frame.function.empty() && frame.function[0] != '+' && frame.function[0] != '?';
}

bool is_library(const Frame& frame) {
  if (frame.in_program) return false;
  if (frame.file.empty() || frame.file.starts_with('<') || frame.file.starts_with("./")) return true;
  if (frame.file.starts_with("../sysdeps/")) return true;  // of glibc
  for (std::string_view part :
       {"/site-packages/", "/dist-packages/", "/lib/python", "/usr/lib", "/lib/", ".so"}) {
    if (frame.file.find(part) != std::string::npos) return true;
  }
  return false;
}

std::string to_text(const Frame& frame) {
  const std::string file = Path(frame.file).filename().string();
  if (file.empty()) return frame.function;
  if (frame.line == 0) return format("{} ({})", frame.function, file);
  return format("{} ({}:{})", frame.function, file, frame.line);
}

}  // namespace

std::vector<Frame> main_thread_frames(std::string_view text) {
  std::vector<Frame> main;
  std::optional<ThreadStack> thread;
  const auto finish = [&] {
    if (!thread || thread->frames.empty()) return;
    // faulthandler does not mark the main thread.
    if (thread->is_main || thread->frames.back().function == "<module>") main = std::move(thread->frames);
  };
  for (std::string_view line : split(text, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (auto begun = thread_header(line)) {
      finish();
      thread = std::move(begun);
    } else if (thread && thread->frames.size() < kMaxFrames) {
      if (auto frame = frame_of(line)) thread->frames.push_back(std::move(*frame));
    }
  }
  finish();
  return main;
}

bool waits_for_child(const std::vector<Frame>& frames) {
  return std::any_of(frames.begin(),
                     frames.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(3, frames.size())),
                     [](const Frame& frame) {
                       return frame.file.ends_with("subprocess.py") || frame.file.ends_with("popen_fork.py");
                     });
}

std::string summarize(const std::vector<Frame>& frames) {
  const auto innermost = std::find_if(frames.begin(), frames.end(), has_name);
  if (innermost == frames.end()) return "";
  const auto own = std::find_if(innermost, frames.end(),
                                [](const Frame& frame) { return has_name(frame) && !is_library(frame); });
  if (own == innermost || own == frames.end()) return to_text(*innermost);
  return format("{}, called by {}", to_text(*innermost), to_text(*own));
}

}  // namespace stoker::rank
