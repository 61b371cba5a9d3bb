#include "archive/streams/stream_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/encode.h"
#include "base/json/json.h"
#include "codec/load.h"
#include "stoker/text.h"

namespace stoker::archive {

namespace {

std::uint64_t unsigned_at(std::span<const std::byte> bytes, std::size_t at, std::size_t width) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, width);
  return value;
}

// MDS's numbers of types.
std::optional<DType> mds_type(unsigned number) {
  switch (number) {
    case 8:
      return DType::u8;
    case 9:
      return DType::i8;
    case 16:
      return DType::u16;
    case 17:
      return DType::i16;
    case 18:
      return DType::f16;
    case 32:
      return DType::u32;
    case 33:
      return DType::i32;
    case 34:
      return DType::f32;
    case 64:
      return DType::u64;
    case 65:
      return DType::i64;
    case 66:
      return DType::f64;
    default:
      return std::nullopt;
  }
}

// The elements must end with the value.
Status check_length(const ArrayValue& array, std::size_t bytes, const std::string& subject) {
  std::uint64_t left = bytes - array.data_offset;
  const bool is_empty = std::find(array.shape.begin(), array.shape.end(), 0U) != array.shape.end();
  std::uint64_t size = size_of(array.type);
  for (const std::uint64_t dimension : array.shape) {
    if (is_empty || dimension > left / size) {
      size = is_empty ? 0 : left + 1;
      break;
    }
    size *= dimension;
  }
  if (size == left) return {};
  return corrupt("{}: an array of {} bytes contradicts its shape", subject, left);
}

Status read_mds_array(const StreamColumn& column, std::span<const std::byte> value,
                      const std::string& subject, ArrayValue& array) {
  const Status ends = corrupt("{}: an array ends inside its shape", subject);
  std::size_t at = 0;
  if (column.type) {
    array.type = *column.type;
  } else {
    if (value.empty()) return ends;
    const std::optional<DType> type = mds_type(static_cast<unsigned>(value[at++]));
    if (!type) return corrupt("{}: an array of unknown type", subject);
    array.type = *type;
  }
  array.shape = column.shape;
  if (column.shape.empty()) {
    if (at >= value.size()) return ends;
    const auto head = static_cast<unsigned>(value[at++]);
    const std::size_t width = std::size_t{1} << (head & 3U);
    for (unsigned i = 0; i < head >> 2; ++i) {
      if (width > value.size() - at) return ends;
      array.shape.push_back(unsigned_at(value, at, width));
      at += width;
    }
  }
  array.data_offset = at;
  return {};
}

Status read_litdata_array(const StreamColumn& column, std::span<const std::byte> value,
                          const std::string& subject, ArrayValue& array) {
  const bool is_tensor = column.kind == ColumnKind::tensor;
  const auto word = [&](std::size_t i) {
    const auto number = codec::load<std::uint32_t>(value, i * kStreamWord);
    return is_tensor ? __builtin_bswap32(number) : number;
  };
  constexpr std::size_t kHead = 2;
  if (value.size() < kHead * kStreamWord) return corrupt("{}: an array ends inside its shape", subject);
  const std::optional<DType> type = is_tensor ? litdata_tensor_type(word(0)) : litdata_numpy_type(word(0));
  if (!type)
    return invalid("{}: an array of type {}: not supported by .npy (complex, bfloat16, objects)", subject,
                   word(0));
  const std::uint64_t dimensions = word(1);
  if (dimensions > kMaxStreamDimensions || (kHead + dimensions) * kStreamWord > value.size())
    return corrupt("{}: an array of {} dimensions in {} bytes", subject, dimensions, value.size());
  array.type = *type;
  for (std::size_t i = 0; i < dimensions; ++i) array.shape.push_back(word(kHead + i));
  array.data_offset = (kHead + dimensions) * kStreamWord;
  return {};
}

struct PillowMode {
  std::string_view name;
  DType type;
  std::uint32_t channels;
};
constexpr PillowMode kModes[] = {{"L", DType::u8, 1},     {"P", DType::u8, 1},     {"LA", DType::u8, 2},
                                 {"RGB", DType::u8, 3},   {"YCbCr", DType::u8, 3}, {"LAB", DType::u8, 3},
                                 {"HSV", DType::u8, 3},   {"RGBA", DType::u8, 4},  {"CMYK", DType::u8, 4},
                                 {"I;16", DType::u16, 1}, {"I", DType::i32, 1},    {"F", DType::f32, 1}};

// Converts a half to a float.
float from_half(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) return fraction == 0 ? sign * std::numeric_limits<float>::infinity() : std::nanf("");
  const int whole = exponent == 0 ? fraction : fraction + 1024;
  return sign * std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - 25);
}

std::int64_t signed_of(std::span<const std::byte> value) {
  const auto bits = static_cast<unsigned>(8 * value.size());
  return static_cast<std::int64_t>(unsigned_at(value, 0, value.size()) << (64 - bits)) >> (64 - bits);
}

std::size_t width_of(const StreamColumn& column) {
  if (column.bytes != 0) return column.bytes;
  return column.kind == ColumnKind::boolean ? 1 : 8;  // LitData's sizes
}

// LitData's encoding of lists and objects: a type byte, then the value.

using OrderedJson = nlohmann::ordered_json;

constexpr int kDeepestJson = 32;

enum Tag : unsigned {
  kJson,
  kTexts,
  kIntegers,
  kReals,
  kBooleans,
  kObject,
  kRecords,
  kText,
  kInteger,
  kReal,
  kBoolean,
  kNone,
  kRecord = 0x10,  // in records: 0x10 + none, text, integer, real, boolean
};

class NestedReader {
 public:
  explicit NestedReader(std::span<const std::byte> bytes) : left_(bytes) {}

  bool is_at_end() const { return left_.empty(); }

  // False for damage.
  bool read(OrderedJson& into, int depth) {
    if (left_.empty() || depth > kDeepestJson) return false;
    return value(take<std::uint8_t>(), into, depth);
  }

 private:
  template <typename T>
  T take() {
    const T number = codec::load<T>(left_, 0);
    left_ = left_.subspan(sizeof(T));
    return number;
  }
  template <typename T>
  bool number(OrderedJson& into) {
    if (left_.size() < sizeof(T)) return false;
    into = take<T>();
    return true;
  }
  bool text(std::string& into) {
    if (left_.size() < kStreamWord) return false;
    const auto bytes = take<std::uint32_t>();
    if (bytes > left_.size()) return false;
    into.assign(reinterpret_cast<const char*>(left_.data()), bytes);
    left_ = left_.subspan(bytes);
    return true;
  }
  bool text(OrderedJson& into) {
    std::string found;
    if (!text(found)) return false;
    into = std::move(found);
    return true;
  }
  bool boolean(OrderedJson& into) {
    if (left_.empty()) return false;
    into = take<std::uint8_t>() != 0;
    return true;
  }

  bool value(unsigned tag, OrderedJson& into, int depth) {
    switch (tag) {
      case kText:
      case kRecord + 1:
        return text(into);
      case kInteger:
      case kRecord + 2:
        return number<std::int64_t>(into);
      case kReal:
      case kRecord + 3:
        return number<double>(into);
      case kBoolean:
      case kRecord + 4:
        return boolean(into);
      case kNone:
      case kRecord:
        into = nullptr;
        return true;
      default:
        return tag <= kRecords && read_container(tag, into, depth);
    }
  }

  bool read_container(unsigned tag, OrderedJson& into, int depth) {
    if (tag == kJson) {
      std::string found;
      if (!text(found)) return false;
      into = parse_json<OrderedJson>(found);
      return !into.is_discarded();
    }
    if (left_.size() < kStreamWord) return false;
    const auto count = take<std::uint32_t>();
    if (count > left_.size()) return false;  // each takes at least a byte
    if (tag == kRecords) return records(count, into);
    into = tag == kObject ? OrderedJson::object() : OrderedJson::array();
    for (std::uint32_t i = 0; i < count; ++i) {
      std::string key;
      if (tag == kObject && (!text(key) || !read(into[key], depth + 1))) return false;
      if (tag == kObject) continue;
      const unsigned each = tag == kTexts      ? kText
                            : tag == kIntegers ? kInteger
                            : tag == kReals    ? kReal
                                               : kBoolean;
      if (!value(each, into.emplace_back(), depth + 1)) return false;
    }
    return true;
  }

  bool records(std::uint32_t count, OrderedJson& into) {
    if (left_.size() < kStreamWord) return false;
    const auto keys = take<std::uint32_t>();
    if (keys == 0 || keys > left_.size()) return false;
    std::vector<std::string> names(keys);
    for (std::string& name : names) {
      if (!text(name)) return false;
    }
    into = OrderedJson::array();
    for (std::uint32_t i = 0; i < count; ++i) {
      OrderedJson& row = into.emplace_back(OrderedJson::object());
      for (const std::string& name : names) {
        if (left_.empty()) return false;
        const unsigned tag = take<std::uint8_t>();
        if (tag < kRecord || !value(tag, row[name], 0)) return false;
      }
    }
    return true;
  }

  std::span<const std::byte> left_;
};

}  // namespace

Result<ArrayValue> read_array_value(const StreamColumn& column, std::span<const std::byte> value,
                                    const std::string& subject) {
  ArrayValue array;
  if (column.kind == ColumnKind::elements) {
    array.type = *column.type;
    array.shape = {value.size() / size_of(array.type)};
  } else if (column.kind == ColumnKind::array) {
    STOKER_RETURN_IF_ERROR(read_mds_array(column, value, subject, array));
  } else {
    STOKER_RETURN_IF_ERROR(read_litdata_array(column, value, subject, array));
  }
  if (array.shape.size() > kMaxStreamDimensions)
    return invalid("{}: an array of {} dimensions (at most 32)", subject, array.shape.size());
  STOKER_RETURN_IF_ERROR(check_length(array, value.size(), subject));
  return array;
}

Result<PixelValue> read_pixel_value(std::span<const std::byte> value, const std::string& subject) {
  constexpr std::size_t kHead = 3 * kStreamWord;
  constexpr std::uint32_t kLongest = 16;
  if (value.size() < kHead) return corrupt("{}: pixels end inside their size", subject);
  PixelValue image{.width = codec::load<std::uint32_t>(value, 0),
                   .height = codec::load<std::uint32_t>(value, kStreamWord)};
  const auto letters = codec::load<std::uint32_t>(value, 2 * kStreamWord);
  if (letters > kLongest || letters > value.size() - kHead)
    return corrupt("{}: pixels whose mode has a name of {} bytes", subject, letters);
  image.mode.assign(reinterpret_cast<const char*>(value.data()) + kHead, letters);
  image.data_offset = kHead + letters;
  const auto* mode = std::find_if(std::begin(kModes), std::end(kModes),
                                  [&](const PillowMode& m) { return m.name == image.mode; });
  if (mode == std::end(kModes))
    return invalid("{}: pixels of mode '{}' are not supported", subject, printable(image.mode))
        .cure("write them again as jpeg or png");
  image.type = mode->type;
  image.channels = mode->channels;
  const std::uint64_t left = value.size() - image.data_offset;
  const std::uint64_t pixels = std::uint64_t{image.width} * image.height;
  const std::uint64_t each = size_of(image.type) * image.channels;
  if (pixels == 0 || pixels > left / each || pixels * each != left)
    return corrupt("{}: {} bytes are not {}x{} pixels of mode {}", subject, left, image.width, image.height,
                   image.mode);
  return image;
}

Result<std::vector<StreamValue>> read_file_list(const StreamColumn& column, const StreamValue& value,
                                                const ReadAt& read, const std::string& subject) {
  constexpr std::uint32_t kMost = 4096;  // each becomes a file with a separate name
  const std::uint64_t begin = column.kind == ColumnKind::prefixed_files ? kStreamWord : 0;
  if (value.bytes < begin + kStreamWord) return corrupt("{}: a list ends inside its length", subject);
  std::uint32_t count = 0;
  STOKER_RETURN_IF_ERROR(read(value.offset + begin, std::as_writable_bytes(std::span(&count, 1))));
  std::uint64_t at = begin + kStreamWord * (std::uint64_t{count} + 1);
  if (at > value.bytes) return corrupt("{}: a list of {} files in {} bytes", subject, count, value.bytes);
  if (count > kMost) return invalid("{}: a list of {} files (at most 4096)", subject, count);
  std::vector<std::uint32_t> sizes(count);
  if (count > 0)
    STOKER_RETURN_IF_ERROR(
        read(value.offset + begin + kStreamWord, std::as_writable_bytes(std::span(sizes))));
  std::vector<StreamValue> files;
  for (const std::uint32_t size : sizes) {
    if (size > value.bytes - at) return corrupt("{}: a list's files are longer than the list", subject);
    files.push_back({value.offset + at, size});
    at += size;
  }
  if (at != value.bytes) return corrupt("{}: {} bytes after the files of a list", subject, value.bytes - at);
  return files;
}

Result<std::string> number_to_json(const StreamColumn& column, std::span<const std::byte> value,
                                   const std::string& subject) {
  if (column.kind == ColumnKind::decimal_text) {
    const std::string text(reinterpret_cast<const char*>(value.data()), value.size());
    const bool is_number = !text.empty() && text.find_first_not_of("0123456789+-.eE") == std::string::npos &&
                           !parse_json<nlohmann::json>(text).is_discarded();
    if (is_number) return text;
    return json_string(text);
  }
  if (value.size() != width_of(column))
    return corrupt("{}: column '{}': a number of {} bytes", subject, printable(column.name), value.size());
  if (column.kind == ColumnKind::boolean) return std::string(value[0] == std::byte{0} ? "false" : "true");
  if (column.kind == ColumnKind::integer) return format("{}", signed_of(value));
  if (column.kind == ColumnKind::unsigned_integer) return format("{}", unsigned_at(value, 0, value.size()));
  double number = 0;
  if (value.size() == sizeof(double)) number = codec::load<double>(value, 0);
  if (value.size() == sizeof(float)) number = static_cast<double>(codec::load<float>(value, 0));
  if (value.size() == 2) number = static_cast<double>(from_half(codec::load<std::uint16_t>(value, 0)));
  return json_text(nlohmann::json(number));
}

std::optional<std::int64_t> whole_number(const StreamColumn& column, std::span<const std::byte> value) {
  if (column.kind == ColumnKind::decimal_text) {
    std::int64_t number = 0;
    const std::string_view text(reinterpret_cast<const char*>(value.data()), value.size());
    return parse_number(text, &number) ? std::optional(number) : std::nullopt;
  }
  if (value.size() != width_of(column)) return std::nullopt;
  if (column.kind == ColumnKind::integer) return signed_of(value);
  if (column.kind != ColumnKind::unsigned_integer) return std::nullopt;
  const std::uint64_t number = unsigned_at(value, 0, value.size());
  if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

Result<std::string> nested_to_json(std::span<const std::byte> bytes, const std::string& subject) {
  constexpr unsigned kFirstOfText = 0x20;
  OrderedJson json;
  NestedReader nested(bytes);
  // Older ones are plain JSON.
  const bool is_text = !bytes.empty() && static_cast<unsigned>(bytes[0]) > kFirstOfText;
  if (is_text) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    json = parse_json<OrderedJson>(text);
  }
  if (is_text ? json.is_discarded() : !nested.read(json, 0) || !nested.is_at_end())
    return corrupt("{}: damaged lists and objects", subject);
  return json_text(json);
}

}  // namespace stoker::archive
