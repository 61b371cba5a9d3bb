// A job file made of a batch script, whatever the script is: what is made can be read as a job file again,
// the files beside it have names of their own, and what is left behind lies in the script.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "base/file.h"
#include "explain/draft/draft.h"
#include "job/read.h"

namespace {

using namespace stoker;

// As the command takes it: with line ends of Unix, and no zero byte.
std::string script_of(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  std::erase(text, '\r');
  std::erase(text, '\0');
  return text;
}

[[noreturn]] void differ(std::string_view what, const std::string& text) {
  std::fprintf(stderr, "%.*s\n%s\n", static_cast<int>(what.size()), what.data(), text.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = script_of(data, size);
  const auto lines = static_cast<std::uint32_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  const auto draft = explain::draft_job("fuzz.sh", text, {.stem = "job", .environment = {}});
  if (!draft.ok()) return draft.error().message().empty() ? (std::abort(), 0) : 0;
  std::set<std::string> names = {"job.yaml"};
  for (const explain::DraftFile& file : draft->files) {
    if (file.name.find('/') != std::string::npos || !file.name.starts_with("job") ||
        !names.insert(file.name).second)
      std::abort();
  }
  for (const explain::LeftBehind& left : draft->left) {
    if (left.line < 1 || left.line > lines || left.why.empty()) std::abort();
  }
  static const TempDirectory box;  // a table of tasks is read with the job
  for (const explain::DraftFile& file : draft->files) {
    if (!write_file(box / file.name, file.text).ok()) std::abort();
  }
  const auto job = job::read({.name = "job.yaml", .text = draft->job, .folder = box.path()},
                             {.current_directory = box.path()});
  if (!job.ok()) differ(job.error().to_string(), draft->job);
  return 0;
}
