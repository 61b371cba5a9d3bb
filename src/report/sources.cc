#include "report/sources.h"

#include <algorithm>

#include "base/file.h"

namespace stoker::report {

double AttemptSource::run_time(double unix_s) const {
  const double since = unix_s - facts->started;
  return before + (facts->started > 0 && since > 0 ? std::min(since, facts->seconds()) : 0);
}

std::vector<int> indices_of(const record::Attempt& attempt, std::string_view stem,
                            std::string_view extension) {
  std::vector<int> found;
  const auto names = list_directory(attempt.folder());
  if (!names) return found;
  for (std::string_view name : *names) {
    if (!name.starts_with(stem) || !name.ends_with(extension) ||
        name.size() <= stem.size() + extension.size())
      continue;
    const std::string_view digits = name.substr(stem.size(), name.size() - stem.size() - extension.size());
    std::int64_t index = 0;
    if (parse_number(digits, &index) && index >= 0 && index < 10'000'000)
      found.push_back(static_cast<int>(index));
  }
  std::sort(found.begin(), found.end());
  return found;
}

void note_damage(RunFacts& facts, const Path& file, std::size_t damaged, bool truncated) {
  const std::string name = printable(file.lexically_relative(facts.folder).string());
  if (damaged > 0)
    facts.notes.push_back(
        format("{}: {} damaged {} skipped", name, damaged, damaged == 1 ? "line" : "lines"));
  if (truncated) facts.notes.push_back(format("{}: too long; its end is skipped", name));
}

}  // namespace stoker::report
