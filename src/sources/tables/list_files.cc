#include "sources/tables/list_files.h"

#include <algorithm>

#include "base/encode.h"
#include "image/decode/decode.h"
#include "stoker/text.h"

namespace stoker::sources {

using parquet::ParquetLeaf;
using parquet::ParquetValues;

namespace {

constexpr std::size_t kLongestJson = std::size_t{1} << 30;

bool is_called_text(const ParquetLeaf& leaf) {
  return leaf.logical == "text" || leaf.logical == "json" || leaf.logical == "enum";
}

class JsonList {
 public:
  explicit JsonList(const ParquetValues& values) : values_(values) {}

  // The list or slot `number` of `level`.
  Status add(std::size_t level, std::uint64_t number) {
    if (text_.size() > kLongestJson) return invalid("would be over 1 GiB of JSON");
    if (level == values_.lists.size()) return add_text(number);
    const ParquetValues::List& list = values_.lists[level];
    if (!list.present.empty() && list.present[number] == 0) {
      text_ += "null";
      return {};
    }
    text_ += '[';
    for (std::uint64_t i = list.offsets[number]; i < list.offsets[number + 1]; ++i) {
      if (i > list.offsets[number]) text_ += ',';
      STOKER_RETURN_IF_ERROR(add(level + 1, i));
    }
    text_ += ']';
    return {};
  }

  std::string take() { return std::move(text_); }

 private:
  Status add_text(std::uint64_t slot) {
    const std::string_view text = values_.texts[slot];
    if (!values_.is_present(slot)) {
      text_ += "null";
      return {};
    }
    if (!is_utf8(text)) return invalid("has text that is not UTF-8, which JSON requires");
    text_ += json_string(text);
    return {};
  }

  const ParquetValues& values_;
  std::string text_;
};

}  // namespace

bool is_list_of_texts(const ParquetLeaf& leaf) {
  return leaf.type == ParquetLeaf::Type::bytes && leaf.lists > 0 && is_called_text(leaf);
}

bool is_list_of_bytes(const ParquetLeaf& leaf) {
  return leaf.type == ParquetLeaf::Type::bytes && leaf.lists == 1 && !is_called_text(leaf);
}

Result<std::optional<std::string>> json_of_list(const ParquetValues& values, std::uint64_t row) {
  if (!values.is_row_present(row)) return std::optional<std::string>();
  JsonList list(values);
  STOKER_RETURN_IF_ERROR(list.add(0, row));
  return std::optional(list.take());
}

SlotRange slots_of(const ParquetValues& values, std::uint64_t row) {
  return {values.lists[0].offsets[row], values.lists[0].offsets[row + 1]};
}

std::string extension_of_item(const std::string& name, std::uint64_t number,
                              std::span<const std::byte> bytes) {
  const std::string_view image =
      image::image_extension(bytes.first(std::min(bytes.size(), image::kImageHeaderBytes)));
  return format("{}.{}{}{}", name, number, image.empty() ? "" : ".", image);
}

}  // namespace stoker::sources
