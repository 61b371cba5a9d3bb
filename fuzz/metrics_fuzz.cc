// Damaged or foreign metrics files: the reader returns a table whose columns have one length, or an error
// that names the file; the table survives a round trip.
#include <cstdint>
#include <string_view>

#include "record/metrics.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using stoker::record::MetricTable;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto table =
      stoker::record::parse_metrics("fuzz", text, {.columns = 64, .rows = 1000, .line_bytes = 4096});
  if (!table) {
    STOKER_CHECK(table.status().code() == stoker::Code::corrupt &&
                 table.status().message().starts_with("fuzz: "));
    return 0;
  }
  STOKER_CHECK(!table->columns.empty() && table->columns.size() == table->values.size());
  for (const auto& column : table->values) STOKER_CHECK(column.size() == table->rows());
  for (const auto& name : table->columns) STOKER_CHECK(table->column(name).size() == table->rows());
  STOKER_CHECK(table->rows() <= 1000);
  return 0;
}
