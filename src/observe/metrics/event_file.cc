#include "observe/metrics/event_file.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/hash.h"
#include "observe/metrics/protobuf.h"

namespace stoker::observe {
namespace {

// A record: length (8 bytes), its CRC, the event, its CRC. Scalars have about 50 bytes; images and histograms
// may have megabytes.
constexpr std::size_t kHead = 12;
constexpr std::size_t kFoot = 4;
constexpr std::uint64_t kLongestRecord = 256 * 1024;
constexpr std::uint64_t kLargestRecord = std::uint64_t{1} << 40;

template <typename Number>
Number load_number(std::string_view bytes) {
  Number value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// A tensor of one number, as TensorFlow 2 writes scalars: float_val, double_val or the bytes of a float.
std::optional<double> scalar_of_tensor(std::string_view tensor) {
  std::optional<double> value;
  ProtoReader fields(tensor);
  while (const auto field = fields.next()) {
    if (field->number == 4 && field->bytes.size() == 4) value = load_number<float>(field->bytes);
    if (field->number == 4 && field->bytes.size() == 8) value = load_number<double>(field->bytes);
    if (field->number == 5)
      value = field->bytes.size() >= 4 ? load_number<float>(field->bytes) : field->as_float();
    if (field->number == 6)
      value = field->bytes.size() >= 8 ? load_number<double>(field->bytes) : field->as_double();
  }
  return value;
}

// A summary without a plug-in, or of the plug-in for scalars.
bool is_scalar(std::string_view metadata) {
  ProtoReader fields(metadata);
  while (const auto field = fields.next()) {
    if (field->number != 1) continue;
    ProtoReader plugin(field->bytes);
    while (const auto name = plugin.next()) {
      if (name->number == 1) return name->bytes == "scalars";
    }
  }
  return true;
}

void read_value(std::string_view message, record::PointLine point, const PointSink& sink) {
  std::optional<double> value;
  bool is_wanted = true;
  ProtoReader fields(message);
  while (const auto field = fields.next()) {
    if (field->number == 1) point.metric = field->bytes;
    if (field->number == 2) value = field->as_float();
    if (field->number == 8) value = scalar_of_tensor(field->bytes);
    if (field->number == 9) is_wanted = is_scalar(field->bytes);
  }
  if (!value || !is_wanted || !record::check_metric_name(point.metric).ok()) return;
  point.value = *value;
  sink(point);
}

void read_event(std::string_view event, const PointSink& sink) {
  record::PointLine point{.time = 0, .step = 0, .value = 0, .metric = {}};
  std::string_view summary;
  ProtoReader fields(event);
  while (const auto field = fields.next()) {
    if (field->number == 1) point.time = field->as_double();
    if (field->number == 2) point.step = static_cast<std::int64_t>(field->integer);
    if (field->number == 5) summary = field->bytes;
  }
  if (*point.step < 0) return;
  if (!(point.time > 0) || point.time > 1e15) point.time = 0;
  ProtoReader values(summary);
  while (const auto value = values.next()) {
    if (value->number == 1) read_value(value->bytes, point, sink);
  }
}

}  // namespace

Status EventFileReader::feed(std::string_view bytes, const PointSink& sink) {
  if (is_damaged_) return {};
  const std::size_t passed = std::min<std::uint64_t>(skipped_, bytes.size());
  skipped_ -= passed;
  offset_ += passed;
  bytes.remove_prefix(passed);
  pending_ += bytes;
  for (;;) {
    const auto is_read = read_record(sink);
    if (!is_read.ok()) {
      is_damaged_ = true;
      pending_.clear();
      return is_read.error();
    }
    if (!*is_read) return {};
  }
}

Result<bool> EventFileReader::read_record(const PointSink& sink) {
  if (pending_.size() < kHead) return false;
  const std::string_view text = pending_;
  const auto length = load_number<std::uint64_t>(text);
  if (masked_crc(crc32c(text.substr(0, 8))) != load_number<std::uint32_t>(text.substr(8)) ||
      length > kLargestRecord)
    return corrupt("a record at byte {} is damaged", offset_);
  const std::uint64_t whole = kHead + length + kFoot;
  std::uint64_t used = whole;
  if (length > kLongestRecord) {
    used = std::min<std::uint64_t>(whole, pending_.size());
    skipped_ = whole - used;
  } else if (pending_.size() < whole) {
    return false;
  } else {
    const std::string_view event = text.substr(kHead, length);
    if (masked_crc(crc32c(event)) != load_number<std::uint32_t>(text.substr(kHead + length)))
      return corrupt("a record at byte {} is damaged", offset_);
    read_event(event, sink);
  }
  pending_.erase(0, used);
  offset_ += used;
  return true;
}

}  // namespace stoker::observe
