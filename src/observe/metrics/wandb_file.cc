#include "observe/metrics/wandb_file.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/hashes/crc32.h"
#include "observe/metrics/protobuf.h"

namespace stoker::observe {
namespace {

// The head of the file, then the blocks of LevelDB's log with CRC-32 of zlib. The head is a part of block 0.
constexpr std::string_view kWandbHead("\x3a\x57\x26\x42\xe1\xbe\x00", 7);
constexpr std::size_t kBlock = 32768;
constexpr std::size_t kFragmentHead = 7;
// Rows of numbers have some KiB; recorded output and files may have more.
constexpr std::size_t kLongestRow = 1u << 20;
enum FragmentType : std::uint8_t { whole = 1, first = 2, middle = 3, last = 4 };

std::uint32_t little(std::string_view bytes, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t i = size; i > 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i - 1]);
  return value;
}

// JSON of Python: NaN and Infinity are words.
std::optional<double> number_of_json(std::string_view text) {
  double value = 0;
  if (text == "NaN") return std::nan("");
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  return parse_number(text, &value) ? std::optional(value) : std::nullopt;
}

struct HistoryItem {
  std::string name;
  double value = 0;
};

std::optional<HistoryItem> read_item(std::string_view message) {
  HistoryItem item;
  std::optional<double> value;
  ProtoReader fields(message);
  while (const auto field = fields.next()) {
    if (field->number == 1) item.name = field->bytes;
    if (field->number == 2) item.name += (item.name.empty() ? "" : ".") + std::string(field->bytes);
    if (field->number == 16) value = number_of_json(field->bytes);
  }
  if (!value) return std::nullopt;
  item.value = *value;
  return item;
}

// A call of wandb.log(): _step, _timestamp and _runtime are among its items.
void read_history(std::string_view message, const PointSink& sink) {
  std::vector<HistoryItem> items;
  record::PointLine point{.time = 0, .step = 0, .value = 0, .metric = {}};
  ProtoReader fields(message);
  while (const auto field = fields.next()) {
    if (field->number == 2) {
      ProtoReader step(field->bytes);
      if (const auto number = step.next(); number && number->number == 1)
        point.step = static_cast<std::int64_t>(number->integer);
    }
    if (field->number != 1) continue;
    auto item = read_item(field->bytes);
    if (!item) continue;
    if (item->name == "_step" && item->value >= 0 && item->value < 9e15)
      point.step = static_cast<std::int64_t>(item->value);
    if (item->name == "_timestamp" && item->value > 0 && item->value < 1e15) point.time = item->value;
    if (!item->name.starts_with('_')) items.push_back(*std::move(item));
  }
  if (*point.step < 0) return;
  for (const HistoryItem& item : items) {
    if (!record::check_metric_name(item.name).ok()) continue;
    point.metric = item.name;
    point.value = item.value;
    sink(point);
  }
}

void read_wandb_record(std::string_view message, const PointSink& sink) {
  ProtoReader fields(message);
  while (const auto field = fields.next()) {
    if (field->number == 2) read_history(field->bytes, sink);
  }
}

}  // namespace

Status WandbFileReader::feed(std::string_view bytes, const PointSink& sink) {
  if (is_damaged_) return {};
  pending_ += bytes;
  for (;;) {
    const auto is_read = read_fragment(sink);
    if (!is_read.ok()) {
      is_damaged_ = true;
      pending_.clear();
      record_.clear();
      return is_read.error();
    }
    if (!*is_read) return {};
  }
}

void WandbFileReader::use(std::size_t bytes) {
  pending_.erase(0, bytes);
  offset_ += bytes;
}

Result<bool> WandbFileReader::read_fragment(const PointSink& sink) {
  if (offset_ == 0) {
    if (pending_.size() < kWandbHead.size()) return false;
    if (!pending_.starts_with(kWandbHead)) return corrupt("it is not a file of W&B of this version");
    use(kWandbHead.size());
  }
  const std::size_t left = kBlock - offset_ % kBlock;
  if (left < kFragmentHead) {
    if (pending_.size() < left) return false;
    use(left);
    return true;
  }
  if (pending_.size() < kFragmentHead) return false;
  const std::string_view text = pending_;
  const std::size_t length = little(text.substr(4), 2);
  const auto type = static_cast<std::uint8_t>(text[6]);
  if (kFragmentHead + length > left || type < whole || type > last)
    return corrupt("a record at byte {} is damaged", offset_);
  if (pending_.size() < kFragmentHead + length) return false;
  const std::string_view checked = text.substr(6, 1 + length);
  if (crc32(std::as_bytes(std::span(checked))) != little(text, 4))
    return corrupt("a record at byte {} is damaged", offset_);
  if (type == whole || type == first) {
    record_.clear();
    is_large_ = false;
  }
  is_large_ = is_large_ || record_.size() + length > kLongestRow;
  if (is_large_) {
    record_.clear();
  } else {
    record_ += text.substr(kFragmentHead, length);
  }
  if ((type == whole || type == last) && !is_large_) read_wandb_record(record_, sink);
  use(kFragmentHead + length);
  return true;
}

}  // namespace stoker::observe
