// CsvReader on any text: rows of fields inside the text, or an error, and an end. And the table of
// `array.over`, whose tasks must fit a job file.
#include <cstdint>
#include <cstdlib>

#include "codec/csv.h"
#include "job/tasks.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char separator : {',', '\t'}) {
    stoker::codec::CsvReader reader(text, separator, "fuzz");
    std::size_t bytes = 0;
    std::uint64_t line = 0;
    for (;;) {
      const auto row = reader.next();
      if (!row.ok() || !row->has_value()) break;
      if ((*row)->empty() || reader.line() <= line) std::abort();
      line = reader.line();
      for (const std::string& field : **row) bytes += field.size();
      if (bytes > size) std::abort();
    }
    const auto after = reader.next();
    if (!after.ok() || after->has_value()) std::abort();  // the end is the end
  }
  for (const char* suffix : {".csv", ".json", ".yaml"}) {
    const auto tasks = stoker::job::parse_tasks("table", suffix, text);
    if (!tasks.ok()) continue;
    if (tasks->tasks.empty()) std::abort();
    for (const stoker::job::ArrayTask& task : tasks->tasks) {
      if (task.settings.size() != task.values.size()) std::abort();
    }
  }
  return 0;
}
