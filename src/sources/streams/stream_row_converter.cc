#include "sources/streams/stream_row_converter.h"

#include <algorithm>
#include <cstring>

#include "base/json/json.h"
#include "codec/npy.h"
#include "image/encode.h"
#include "sources/foreign_example.h"

namespace stoker::sources {

namespace {

using archive::ColumnKind;
using archive::StreamColumn;
using archive::StreamValue;

// Marks offsets in converted data; other offsets are in the shard.
constexpr std::uint64_t kConverted = std::uint64_t{1} << 63;

bool is_number(const StreamColumn& column) {
  switch (column.kind) {
    case ColumnKind::integer:
    case ColumnKind::unsigned_integer:
    case ColumnKind::floating:
    case ColumnKind::boolean:
    case ColumnKind::decimal_text:
      return true;
    default:
      return false;
  }
}

bool is_list(const StreamColumn& column) {
  return column.kind == ColumnKind::files || column.kind == ColumnKind::prefixed_files;
}

// By the names in examples and datasets of both tools, else the only number whose name ends in "label".
const StreamColumn* label_of(const std::vector<StreamColumn>& columns) {
  std::vector<const StreamColumn*> numbers;
  for (const StreamColumn& column : columns) {
    const bool can_be = column.kind == ColumnKind::integer || column.kind == ColumnKind::unsigned_integer ||
                        column.encoding == "str_int";
    if (can_be) numbers.push_back(&column);
  }
  for (const std::string_view name : {"label", "cls", "class", "y", "target"}) {
    for (const StreamColumn* column : numbers) {
      if (to_lower(column->name) == name) return column;
    }
  }
  // A pair (image, label) has no names.
  std::erase_if(numbers, [](const StreamColumn* column) {
    return column->is_named && !to_lower(column->name).ends_with("label");
  });
  return numbers.size() == 1 ? numbers[0] : nullptr;
}

// "caption" and "json" as "caption.json"; "json" unchanged.
std::string with_extension(std::string_view name, std::string_view ending) {
  const std::string lower = to_lower(name);
  if (ending.empty() || lower == ending || lower.ends_with("." + std::string(ending)))
    return std::string(name);
  return format("{}.{}", name, ending);
}

}  // namespace

StreamRowConverter::StreamRowConverter(const std::vector<StreamColumn>& columns, archive::ReadAt read,
                                       File* converted, std::string subject)
    : columns_(columns),
      read_(std::move(read)),
      converted_(converted),
      subject_(std::move(subject)),
      label_(label_of(columns)) {
  const bool is_taken = std::any_of(columns.begin(), columns.end(), [](const StreamColumn& column) {
    return !is_number(column) && to_lower(column.name) == "json";
  });
  numbers_name_ = is_taken ? "numbers.json" : "json";
}

Status StreamRowConverter::read_any(std::uint64_t offset, std::span<std::byte> out) const {
  if ((offset & kConverted) == 0) return read_(offset, out);
  const std::uint64_t at = offset & ~kConverted;
  if (at < written_) return converted_->read_at(at, out);
  std::memcpy(out.data(), pending_.data() + (at - written_), out.size());
  return {};
}

Result<std::span<const std::byte>> StreamRowConverter::bytes_of(const StreamValue& value) {
  value_.resize(value.bytes);
  STOKER_RETURN_IF_ERROR(read_(value.offset, value_));
  return std::span<const std::byte>(value_);
}

void StreamRowConverter::put(std::string name, std::string_view first, std::span<const std::byte> second,
                             archive::ExampleRecord& record) {
  const std::uint64_t at = written_ + pending_.size();
  pending_ += first;
  pending_.append(reinterpret_cast<const char*>(second.data()), second.size());
  record.files.push_back(
      {.name = std::move(name), .offset = kConverted | at, .bytes = first.size() + second.size()});
}

Status StreamRowConverter::add_converted(const StreamColumn& column, const StreamValue& value,
                                         archive::ExampleRecord& record) {
  STOKER_ASSIGN_OR_RETURN(bytes, bytes_of(value));
  if (column.kind == ColumnKind::nested) {
    STOKER_ASSIGN_OR_RETURN(text, archive::nested_to_json(bytes, subject_));
    put(with_extension(column.name, "json"), text, {}, record);
    return {};
  }
  if (column.kind == ColumnKind::pixels) {
    STOKER_ASSIGN_OR_RETURN(image, archive::read_pixel_value(bytes, subject_));
    const auto pixels = bytes.subspan(image.data_offset);
    if (image.mode == "L" || image.mode == "LA" || image.mode == "RGB" || image.mode == "RGBA") {
      STOKER_ASSIGN_OR_RETURN(png, image::encode_png(image.width, image.height, image.channels, pixels));
      put(column.name, {}, png, record);
      return {};
    }
    Shape shape = {image.height, image.width};
    if (image.channels > 1) shape.push_back(image.channels);
    put(with_extension(column.name, "npy"), codec::npy_header(image.type, shape), pixels, record);
    return {};
  }
  STOKER_ASSIGN_OR_RETURN(array, archive::read_array_value(column, bytes, subject_));
  const Shape shape(array.shape.begin(), array.shape.end());
  put(with_extension(column.name, "npy"), codec::npy_header(array.type, shape),
      bytes.subspan(array.data_offset), record);
  return {};
}

Status StreamRowConverter::add_value(const StreamColumn& column, const StreamValue& value,
                                     archive::ExampleRecord& record) {
  if (column.kind == ColumnKind::file || column.kind == ColumnKind::json) {
    const std::string_view ending =
        column.kind == ColumnKind::json ? "json" : std::string_view(column.extension);
    record.files.push_back(
        {.name = with_extension(column.name, ending), .offset = value.offset, .bytes = value.bytes});
    return {};
  }
  if (converted_) return add_converted(column, value, record);
  return invalid("{}: column '{}' ({}) needs conversion: its samples cannot be read individually", subject_,
                 printable(column.name), printable(column.encoding));
}

Status StreamRowConverter::add_number(const StreamColumn& column, const StreamValue& value,
                                      archive::ExampleRecord& record, SkippedFields& skipped_fields) {
  STOKER_ASSIGN_OR_RETURN(bytes, bytes_of(value));
  if (&column == label_) {
    record.label = archive::whole_number(column, bytes);
    if (!record.label)
      return invalid("{}: column '{}' has a value that is not a label", subject_, printable(column.name));
    return {};
  }
  if (!converted_) {
    ++skipped_fields[printable(column.name)];
    return {};
  }
  STOKER_ASSIGN_OR_RETURN(text, archive::number_to_json(column, bytes, subject_));
  add_to_numbers(column, text);
  return {};
}

void StreamRowConverter::add_to_numbers(const StreamColumn& column, std::string_view text) {
  const nlohmann::json name = column.name;
  numbers_ += format("{}{}:{}", numbers_.empty() ? "{" : ",", json_text(name), text);
}

Status StreamRowConverter::add_list(const StreamColumn& column, const StreamValue& value,
                                    ShardSample& sample) {
  STOKER_ASSIGN_OR_RETURN(files, archive::read_file_list(column, value, read_, subject_));
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::string extension = format("{}.{}.{}", extension_for_feature(column.name), i, column.extension);
    sample.members.push_back({.name = format("{}.{}", sample.key, extension),
                              .extension = std::move(extension),
                              .header_offset = files[i].offset,
                              .data_offset = files[i].offset,
                              .bytes = files[i].bytes});
  }
  return {};
}

Result<ShardSample> StreamRowConverter::sample(const std::vector<StreamValue>& values,
                                               const std::string& fallback_key,
                                               SkippedFields& skipped_fields) {
  constexpr std::size_t kMaxPending = 4u << 20;
  archive::ExampleRecord record;
  numbers_.clear();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const StreamColumn& column = columns_[i];
    if (is_list(column)) continue;
    if (values[i].is_missing) {
      if (is_number(column) && &column != label_) add_to_numbers(column, "null");
      continue;
    }
    STOKER_RETURN_IF_ERROR(is_number(column) ? add_number(column, values[i], record, skipped_fields)
                                             : add_value(column, values[i], record));
  }
  if (!numbers_.empty()) put(numbers_name_, numbers_ + "}", {}, record);
  const archive::ReadAt read = [this](std::uint64_t offset, std::span<std::byte> out) {
    return read_any(offset, out);
  };
  Result<ShardSample> sample = sample_from_example(record, read, fallback_key, skipped_fields);
  if (!sample.ok()) return sample;
  for (ShardMember& member : sample->members) {
    member.is_converted = (member.data_offset & kConverted) != 0;
    member.data_offset &= ~kConverted;
    member.header_offset = member.data_offset;
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (is_list(columns_[i])) STOKER_RETURN_IF_ERROR(add_list(columns_[i], values[i], *sample));
  }
  if (pending_.size() >= kMaxPending) STOKER_RETURN_IF_ERROR(finish());
  return sample;
}

Status StreamRowConverter::finish() {
  if (pending_.empty()) return {};
  STOKER_RETURN_IF_ERROR(converted_->write(pending_));
  written_ += pending_.size();
  pending_.clear();
  return {};
}

}  // namespace stoker::sources
