// Any bytes as a sweep file, a constraint, a study.json and a journal: no crash and no hang; a definition and
// a record survive a round trip.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "sweep/file/sweep_file.h"
#include "sweep/study/definition.h"
#include "sweep/study/journal.h"

using namespace stoker;

namespace {

[[noreturn]] void differ(std::string_view what, const std::string& text) {
  std::fprintf(stderr, "%.*s\n%s\n", static_cast<int>(what.size()), what.data(), text.c_str());
  std::abort();
}

void check_definition(const sweep::Definition& definition) {
  const std::string written = to_json(definition);
  const auto read = sweep::definition_from_json(written, "study.json");
  if (!read.ok()) differ(read.error().to_string(), written);
  if (to_json(*read) != written) differ("the definition differs", written);
}

void check_journal(std::string_view text) {
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    if (const auto record = sweep::record_of(text.substr(0, end))) {
      std::string line = line_of(*record);
      line.pop_back();
      const auto again = sweep::record_of(line);
      if (!again || line_of(*again) != line + "\n") differ("the record differs", line);
    }
    text.remove_prefix(end + 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)sweep::Expression::parse(text);
  check_journal(text);
  if (const auto definition = sweep::definition_from_json(text, "study.json"); definition.ok())
    check_definition(*definition);
  if (auto file = sweep::parse_sweep("lr.yaml", text); file.ok()) {
    file->definition.id = "x";
    check_definition(file->definition);
  }
  return 0;
}
