// A job file drafted from any batch script: it parses as a job file, the files beside it have different
// names, and skipped lines refer to the script.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "base/file.h"
#include "draft/draft.h"
#include "job/read_job.h"

namespace {

using namespace stoker;

// As the command reads it: with Unix line ends, and without zero bytes.
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
  const auto draft = draft::draft_job("fuzz.sh", text, {.stem = "job", .environment = {}});
  if (!draft.ok()) return draft.error().message().empty() ? (std::abort(), 0) : 0;
  std::set<std::string> names = {"job.yaml"};
  for (const draft::DraftFile& file : draft->files) {
    if (file.name.find('/') != std::string::npos || !file.name.starts_with("job") ||
        !names.insert(file.name).second)
      std::abort();
  }
  for (const draft::Unconverted& left : draft->unconverted) {
    if (left.line < 1 || left.line > lines || left.why.empty()) std::abort();
  }
  static const TempDirectory box;  // a table of tasks is read with the job
  for (const draft::DraftFile& file : draft->files) {
    if (!write_file(box / file.name, file.text).ok()) std::abort();
  }
  const auto job = job::read_job({.name = "job.yaml", .text = draft->job, .folder = box.path()},
                                 {.current_directory = box.path()});
  if (!job.ok()) differ(job.error().to_string(), draft->job);
  return 0;
}
