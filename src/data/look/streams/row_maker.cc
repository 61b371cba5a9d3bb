#include "data/look/streams/row_maker.h"

#include <algorithm>
#include <cstring>

#include "base/json/json.h"
#include "data/components/npy.h"
#include "data/look/foreign_example.h"
#include "data/pack/shard/encode.h"

namespace stoker::data {

namespace {

using formats::ColumnKind;
using formats::StreamColumn;
using formats::StreamValue;

// Places in what is made, beside those in the shard.
constexpr std::uint64_t kMade = std::uint64_t{1} << 63;

bool is_number(const StreamColumn& column) {
  switch (column.kind) {
    case ColumnKind::integer:
    case ColumnKind::natural:
    case ColumnKind::real:
    case ColumnKind::boolean:
    case ColumnKind::digits:
      return true;
    default:
      return false;
  }
}

bool is_list(const StreamColumn& column) {
  return column.kind == ColumnKind::files || column.kind == ColumnKind::long_files;
}

// As examples and data sets of both tools call it, else the one number that is called so in some way.
const StreamColumn* label_of(const std::vector<StreamColumn>& columns) {
  std::vector<const StreamColumn*> numbers;
  for (const StreamColumn& column : columns) {
    const bool can_be = column.kind == ColumnKind::integer || column.kind == ColumnKind::natural ||
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

// "caption" and "json" as "caption.json"; "json" as it is.
std::string with_ending(std::string_view name, std::string_view ending) {
  const std::string lower = to_lower(name);
  if (ending.empty() || lower == ending || lower.ends_with("." + std::string(ending)))
    return std::string(name);
  return format("{}.{}", name, ending);
}

}  // namespace

RowMaker::RowMaker(const std::vector<StreamColumn>& columns, formats::ReadAt read, File* made,
                   std::string subject)
    : columns_(columns),
      read_(std::move(read)),
      made_(made),
      subject_(std::move(subject)),
      label_(label_of(columns)) {
  const bool is_taken = std::any_of(columns.begin(), columns.end(), [](const StreamColumn& column) {
    return !is_number(column) && to_lower(column.name) == "json";
  });
  numbers_name_ = is_taken ? "numbers.json" : "json";
}

Status RowMaker::read_any(std::uint64_t offset, std::span<std::byte> out) const {
  if ((offset & kMade) == 0) return read_(offset, out);
  const std::uint64_t at = offset & ~kMade;
  if (at < written_) return made_->read_at(at, out);
  std::memcpy(out.data(), held_.data() + (at - written_), out.size());
  return {};
}

Result<std::span<const std::byte>> RowMaker::bytes_of(const StreamValue& value) {
  value_.resize(value.bytes);
  RETURN_IF_ERROR(read_(value.offset, value_));
  return std::span<const std::byte>(value_);
}

void RowMaker::put(std::string name, std::string_view first, std::span<const std::byte> second,
                   formats::ExampleRecord& record) {
  const std::uint64_t at = written_ + held_.size();
  held_ += first;
  held_.append(reinterpret_cast<const char*>(second.data()), second.size());
  record.files.push_back(
      {.name = std::move(name), .offset = kMade | at, .bytes = first.size() + second.size()});
}

Status RowMaker::add_made(const StreamColumn& column, const StreamValue& value,
                          formats::ExampleRecord& record) {
  OK_OR_RETURN(bytes, bytes_of(value));
  if (column.kind == ColumnKind::nested) {
    OK_OR_RETURN(text, formats::nested_to_json(bytes, subject_));
    put(with_ending(column.name, "json"), text, {}, record);
    return {};
  }
  if (column.kind == ColumnKind::pixels) {
    OK_OR_RETURN(image, formats::read_pixel_value(bytes, subject_));
    const auto pixels = bytes.subspan(image.data_at);
    if (image.mode == "L" || image.mode == "LA" || image.mode == "RGB" || image.mode == "RGBA") {
      OK_OR_RETURN(png, encode_png(image.width, image.height, image.channels, pixels));
      put(column.name, {}, png, record);
      return {};
    }
    Shape shape = {image.height, image.width};
    if (image.channels > 1) shape.push_back(image.channels);
    put(with_ending(column.name, "npy"), npy_header(image.type, shape), pixels, record);
    return {};
  }
  OK_OR_RETURN(array, formats::read_array_value(column, bytes, subject_));
  const Shape shape(array.shape.begin(), array.shape.end());
  put(with_ending(column.name, "npy"), npy_header(array.type, shape), bytes.subspan(array.data_at), record);
  return {};
}

Status RowMaker::add_value(const StreamColumn& column, const StreamValue& value,
                           formats::ExampleRecord& record) {
  if (column.kind == ColumnKind::file || column.kind == ColumnKind::json) {
    const std::string_view ending =
        column.kind == ColumnKind::json ? "json" : std::string_view(column.ending);
    record.files.push_back(
        {.name = with_ending(column.name, ending), .offset = value.offset, .bytes = value.bytes});
    return {};
  }
  if (made_) return add_made(column, value, record);
  return invalid("{}: column '{}' ({}) holds no files as they lie: no sample of it can be read by itself",
                 subject_, printable(column.name), printable(column.encoding));
}

Status RowMaker::add_number(const StreamColumn& column, const StreamValue& value,
                            formats::ExampleRecord& record, NotTaken& not_taken) {
  OK_OR_RETURN(bytes, bytes_of(value));
  if (&column == label_) {
    record.label = formats::whole_number(column, bytes);
    if (!record.label)
      return invalid("{}: column '{}' holds what is no label", subject_, printable(column.name));
    return {};
  }
  if (!made_) {
    ++not_taken[printable(column.name)];
    return {};
  }
  OK_OR_RETURN(text, formats::number_to_json(column, bytes, subject_));
  add_to_numbers(column, text);
  return {};
}

void RowMaker::add_to_numbers(const StreamColumn& column, std::string_view text) {
  const nlohmann::json name = column.name;
  numbers_ += format("{}{}:{}", numbers_.empty() ? "{" : ",", json_text(name), text);
}

Status RowMaker::add_list(const StreamColumn& column, const StreamValue& value, ShardSample& sample) {
  OK_OR_RETURN(files, formats::read_file_list(column, value, read_, subject_));
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::string extension = format("{}.{}.{}", extension_of_feature(column.name), i, column.ending);
    sample.members.push_back({.name = format("{}.{}", sample.key, extension),
                              .extension = std::move(extension),
                              .header_offset = files[i].offset,
                              .data_offset = files[i].offset,
                              .bytes = files[i].bytes});
  }
  return {};
}

Result<ShardSample> RowMaker::sample(const std::vector<StreamValue>& values, const std::string& fallback_key,
                                     NotTaken& not_taken) {
  constexpr std::size_t kHeld = 4u << 20;
  formats::ExampleRecord record;
  numbers_.clear();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const StreamColumn& column = columns_[i];
    if (is_list(column)) continue;
    if (values[i].is_missing) {
      if (is_number(column) && &column != label_) add_to_numbers(column, "null");
      continue;
    }
    RETURN_IF_ERROR(is_number(column) ? add_number(column, values[i], record, not_taken)
                                      : add_value(column, values[i], record));
  }
  if (!numbers_.empty()) put(numbers_name_, numbers_ + "}", {}, record);
  const formats::ReadAt read = [this](std::uint64_t offset, std::span<std::byte> out) {
    return read_any(offset, out);
  };
  Result<ShardSample> sample = sample_of_example(record, read, fallback_key, not_taken);
  if (!sample.ok()) return sample;
  for (ShardMember& member : sample->members) {
    member.is_made = (member.data_offset & kMade) != 0;
    member.data_offset &= ~kMade;
    member.header_offset = member.data_offset;
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (is_list(columns_[i])) RETURN_IF_ERROR(add_list(columns_[i], values[i], *sample));
  }
  if (held_.size() >= kHeld) RETURN_IF_ERROR(finish());
  return sample;
}

Status RowMaker::finish() {
  if (held_.empty()) return {};
  RETURN_IF_ERROR(made_->write(held_));
  written_ += held_.size();
  held_.clear();
  return {};
}

}  // namespace stoker::data
