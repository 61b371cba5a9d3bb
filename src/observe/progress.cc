#include "observe/progress.h"

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "record/metrics.h"

namespace stoker::observe {
namespace {

constexpr std::uint64_t kTail = 16 * 1024;

// The header and the last lines of a CSV file as one small table; nothing if it is absent or no table.
std::optional<record::MetricTable> read_tail(const Path& path) {
  const auto file = File::open_read(path);
  if (!file) return std::nullopt;
  const auto size = file->size();
  if (!size) return std::nullopt;
  std::string head(std::min<std::uint64_t>(*size, 4096), '\0');
  if (!file->read_at(0, std::as_writable_bytes(std::span(head))).ok()) return std::nullopt;
  const std::size_t header_end = head.find('\n');
  if (header_end == std::string::npos) return std::nullopt;
  const std::uint64_t begin = std::max<std::uint64_t>(header_end + 1, *size - std::min(*size, kTail));
  std::string tail(*size - begin, '\0');
  if (!file->read_at(begin, std::as_writable_bytes(std::span(tail))).ok()) return std::nullopt;
  // The tail begins inside a line unless it is the whole file.
  if (begin > header_end + 1) tail.erase(0, tail.find('\n') + 1);
  auto table = record::parse_metrics(path.filename().string(), head.substr(0, header_end + 1) + tail);
  if (!table || table->rows() == 0) return std::nullopt;
  return std::move(*table);
}

std::optional<double> last(const record::MetricTable& table, std::string_view column) {
  const auto values = table.column(column);
  if (values.empty() || std::isnan(values.back())) return std::nullopt;
  return values.back();
}

std::optional<std::int64_t> last_integer(const record::MetricTable& table, std::string_view column) {
  const auto value = last(table, column);
  if (!value || std::abs(*value) > 9e15) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::optional<double> rate(const record::MetricTable& table) {
  const auto time = table.column("time");
  const auto samples = table.column("samples");
  if (time.size() < 2 || samples.size() != time.size()) return std::nullopt;
  double sum = 0;
  for (const double count : samples.subspan(1)) sum += count;
  const double seconds = time.back() - time.front();
  if (!(seconds > 0) || !(sum > 0)) return std::nullopt;
  return sum / seconds;
}

}  // namespace

RunProgress read_progress(const record::Attempt& attempt, int world_size) {
  RunProgress progress;
  if (const auto steps = read_tail(attempt.metrics(0))) {
    progress.epoch = last_integer(*steps, "epoch");
    progress.step = last_integer(*steps, "step");
    progress.loss = last(*steps, "loss");
    if (const auto samples_per_s = rate(*steps)) progress.samples_per_s = *samples_per_s * world_size;
  }
  if (const auto epochs = read_tail(attempt.epochs())) progress.validation_top1 = last(*epochs, "val_top1");
  return progress;
}

}  // namespace stoker::observe
