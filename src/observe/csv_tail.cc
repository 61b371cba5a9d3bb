#include "observe/csv_tail.h"

#include <algorithm>

#include "base/file.h"

namespace stoker::observe {
namespace {

constexpr std::uint64_t kLongestHeader = 64 * 1024;  // a node with many ranks and GPUs has many columns

}  // namespace

std::optional<record::MetricTable> read_tail(const Path& path, std::uint64_t bytes) {
  const auto file = File::open_regular(path);
  if (!file) return std::nullopt;
  const auto size = file->size();
  if (!size) return std::nullopt;
  std::string head(std::min(*size, kLongestHeader), '\0');
  if (!file->read_at(0, std::as_writable_bytes(std::span(head))).ok()) return std::nullopt;
  const std::size_t header_end = head.find('\n');
  if (header_end == std::string::npos) return std::nullopt;
  const std::uint64_t begin = std::max<std::uint64_t>(header_end + 1, *size - std::min(*size, bytes));
  std::string tail(*size - begin, '\0');
  if (!file->read_at(begin, std::as_writable_bytes(std::span(tail))).ok()) return std::nullopt;
  // The tail starts within a line unless it is the whole file.
  if (begin > header_end + 1) tail.erase(0, tail.find('\n') + 1);
  auto table = record::parse_metrics(path.filename().string(), head.substr(0, header_end + 1) + tail);
  if (!table || table->rows() == 0) return std::nullopt;
  return std::move(*table);
}

}  // namespace stoker::observe
