#include "codec/npy.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "stoker/text.h"

namespace stoker::codec {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kLongestHeader = 64u << 10;
constexpr std::size_t kMaxDimensions = 32;  // NumPy's own limit
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 40;

unsigned byte_at(std::span<const std::byte> bytes, std::size_t i) { return static_cast<unsigned>(bytes[i]); }

// The header is a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 32), }
class Literal {
 public:
  explicit Literal(std::string_view text) : left_(text) {}

  bool consume(char c) {
    skip_blanks();
    if (left_.empty() || left_.front() != c) return false;
    left_.remove_prefix(1);
    return true;
  }
  std::optional<std::string_view> string() {
    skip_blanks();
    const char quote = left_.empty() ? ' ' : left_.front();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const std::size_t end = left_.find(quote, 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view found = left_.substr(1, end - 1);
    left_.remove_prefix(end + 1);
    return found;
  }
  std::optional<bool> bool_literal() {
    skip_blanks();
    for (const auto& [text, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (!left_.starts_with(text)) continue;
      left_.remove_prefix(text.size());
      return value;
    }
    return std::nullopt;
  }
  std::optional<std::uint64_t> number() {
    skip_blanks();
    const std::size_t end = std::min(left_.find_first_not_of("0123456789"), left_.size());
    std::uint64_t value = 0;
    if (!parse_number(left_.substr(0, end), &value)) return std::nullopt;
    left_.remove_prefix(end);
    if (left_.starts_with('L')) left_.remove_prefix(1);  // a long of Python 2
    return value;
  }
  bool is_at_end() {
    skip_blanks();
    return left_.empty();
  }

 private:
  void skip_blanks() { left_.remove_prefix(std::min(left_.find_first_not_of(" \t\r\n"), left_.size())); }
  std::string_view left_;
};

std::optional<Shape> read_shape(Literal& literal) {
  if (!literal.consume('(')) return std::nullopt;
  Shape shape;
  std::uint64_t elements = 1;
  while (!literal.consume(')')) {
    const std::optional<std::uint64_t> size = literal.number();
    if (!size || shape.size() == kMaxDimensions) return std::nullopt;
    if (*size > kMaxElements || (*size > 0 && elements > kMaxElements / *size)) return std::nullopt;
    elements *= std::max<std::uint64_t>(1, *size);
    shape.push_back(static_cast<std::int64_t>(*size));
    if (!literal.consume(',')) return literal.consume(')') ? std::optional(shape) : std::nullopt;
  }
  return shape;
}

struct NpyHeader {
  std::string_view descr;
  bool is_fortran = false;
  Shape shape;
};

std::optional<NpyHeader> read_header(std::string_view text) {
  Literal literal(text);
  if (!literal.consume('{')) return std::nullopt;
  NpyHeader header;
  bool has_order = false, has_shape = false;
  while (!literal.consume('}')) {
    const std::optional<std::string_view> key = literal.string();
    if (!key || !literal.consume(':')) return std::nullopt;
    if (*key == "descr") {
      const auto name = literal.string();
      header.descr = name.value_or("[");  // a list: fields of a record
      if (!name) return literal.consume('[') ? std::optional(header) : std::nullopt;
    } else if (*key == "fortran_order") {
      const auto bool_literal = literal.bool_literal();
      if (!bool_literal) return std::nullopt;
      header.is_fortran = *bool_literal;
      has_order = true;
    } else if (*key == "shape") {
      auto shape = read_shape(literal);
      if (!shape) return std::nullopt;
      header.shape = std::move(*shape);
      has_shape = true;
    } else {
      return std::nullopt;
    }
    if (!literal.consume(',') && !literal.consume('}')) return std::nullopt;
    if (literal.is_at_end()) break;
  }
  if (!literal.is_at_end() || header.descr.empty() || !has_order || !has_shape) return std::nullopt;
  return header;
}

std::optional<DType> dtype_of_descr(std::string_view descr) {
  constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"b1", DType::boolean}, {"u1", DType::u8},  {"i1", DType::i8},  {"i2", DType::i16},
      {"u2", DType::u16},     {"f2", DType::f16}, {"i4", DType::i32}, {"u4", DType::u32},
      {"f4", DType::f32},     {"f8", DType::f64}, {"i8", DType::i64}, {"u8", DType::u64}};
  if (descr.size() != 3) return std::nullopt;
  const bool is_single = descr[2] == '1';
  if (descr[0] != '<' && descr[0] != '>' && !(is_single && descr[0] == '|')) return std::nullopt;
  for (const auto& [name, type] : kTypes) {
    if (descr.substr(1) == name) return type;
  }
  return std::nullopt;
}

// As NumPy calls its kind.
char descr_letter(DType type) {
  switch (type) {
    case DType::boolean:
      return 'b';
    case DType::u8:
    case DType::u16:
    case DType::u32:
    case DType::u64:
      return 'u';
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
      return 'i';
    case DType::f16:
    case DType::bf16:
    case DType::f32:
    case DType::f64:
      break;
  }
  return 'f';
}

Status unsupported_element(std::string_view descr) {
  return invalid("NPY: elements of type {}", descr == "[" ? "record" : format("'{}'", printable(descr)));
}

}  // namespace

Result<NpyLayout> read_npy_layout(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic)) return corrupt("NPY: does not begin with the NPY magic");
  if (file.size() < 12) return corrupt("NPY: ends inside its header");
  const unsigned version = byte_at(file, 6);
  if (version < 1 || version > 3) return invalid("NPY: version {}.{}", version, byte_at(file, 7));
  std::size_t length = byte_at(file, 8) | byte_at(file, 9) << 8;
  if (version > 1) length |= byte_at(file, 10) << 16 | std::size_t{byte_at(file, 11)} << 24;
  const std::size_t begin = version > 1 ? 12 : 10;
  if (length > kLongestHeader) return corrupt("NPY: a header of {} bytes", length);
  if (length > file.size() - begin) return corrupt("NPY: ends inside its header");
  const std::optional<NpyHeader> header = read_header(text.substr(begin, length));
  if (!header) return corrupt("NPY: its header does not describe an array");
  return NpyLayout{std::string(header->descr), header->is_fortran && header->shape.size() > 1, header->shape,
                   begin + length};
}

Result<NpyInfo> read_npy_header(std::span<const std::byte> file, std::uint64_t file_bytes) {
  STOKER_ASSIGN_OR_RETURN(layout, read_npy_layout(file));
  const std::optional<DType> element = dtype_of_descr(layout.type);
  if (!element) return unsupported_element(layout.type);
  if (layout.is_fortran) return invalid("NPY: in Fortran order");
  NpyInfo info{*element, std::move(layout.shape), layout.data_offset,
               layout.type[0] == '>' && size_of(*element) > 1};
  const auto bytes = static_cast<std::uint64_t>(element_count(info.shape)) * size_of(info.element);
  if (bytes > file_bytes - info.data_offset) {
    return corrupt("NPY: {} bytes of elements, its header promises {}", file_bytes - info.data_offset, bytes);
  }
  return info;
}

Result<NpyInfo> read_npy(std::span<const std::byte> file) {
  STOKER_ASSIGN_OR_RETURN(info, read_npy_header(file, file.size()));
  if (!info.is_big_endian) return info;
  return unsupported_element(format(">{}{}", descr_letter(info.element), size_of(info.element)));
}

std::string npy_header(DType element, const Shape& shape) {
  constexpr std::size_t kUnit = 64;
  constexpr std::size_t kBefore = 10;
  std::string sizes;
  for (const std::int64_t size : shape) sizes += format("{}, ", size);
  if (shape.size() > 1) sizes.resize(sizes.size() - 2);
  if (shape.size() == 1) sizes.resize(sizes.size() - 1);
  std::string text =
      format("{{'descr': '{}{}{}', 'fortran_order': False, 'shape': ({}), }}",
             size_of(element) == 1 ? '|' : '<', descr_letter(element), size_of(element), sizes);
  text.append(kUnit - 1 - (kBefore + text.size()) % kUnit, ' ');
  text += '\n';
  const char length[] = {static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)};
  return std::string("\x93NUMPY\1\0", 8) + std::string(length, 2) + text;
}

}  // namespace stoker::codec
