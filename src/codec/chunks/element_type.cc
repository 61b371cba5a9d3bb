#include "codec/chunks/element_type.h"

#include <algorithm>
#include <array>

#include "codec/load.h"
#include "stoker/text.h"

namespace stoker::codec {

namespace {

using Kind = ElementType::Kind;

Kind kind_of(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return Kind::boolean;
    case DType::u8:
    case DType::u16:
    case DType::u32:
    case DType::u64:
      return Kind::unsigned_integer;
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
      return Kind::signed_integer;
    case DType::bf16:
      return Kind::bfloat;
    case DType::f16:
    case DType::f32:
    case DType::f64:
      return Kind::floating;
  }
  return Kind::floating;
}

char letter_of(Kind kind) {
  constexpr std::array kLetters = {'b', 'i', 'u', 'f', 'E', 'c', 'V', 'U', 'M'};
  return kLetters[static_cast<std::size_t>(kind)];
}

// U+FFFD for an invalid code point.
std::string utf8(std::uint32_t code) {
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) code = 0xFFFD;
  if (code < 0x80) return {static_cast<char>(code)};
  std::string text;
  int shift = code < 0x800 ? 6 : code < 0x10000 ? 12 : 18;
  const std::uint32_t first = shift == 6 ? 0xC0 : shift == 12 ? 0xE0 : 0xF0;
  text += static_cast<char>(first | code >> shift);
  while (shift > 0) {
    shift -= 6;
    text += static_cast<char>(0x80 | (code >> shift & 0x3F));
  }
  return text;
}

}  // namespace

std::string type_name(const ElementType& type) {
  const auto bits = [&](std::string_view name) { return format("{}{}", name, 8 * type.bytes); };
  switch (type.kind) {
    case Kind::boolean:
      return "bool";
    case Kind::signed_integer:
      return bits("int");
    case Kind::unsigned_integer:
      return bits("uint");
    case Kind::floating:
      return bits("float");
    case Kind::bfloat:
      return "bfloat16";
    case Kind::complex:
      return bits("complex");
    case Kind::bytes:
      return format("{}{} bytes", type.letter == 'S' ? "text of " : "", type.bytes);
    case Kind::text:
      return format("text of {} characters", type.bytes / 4);
    case Kind::time:
      return format("{}64[{}]", type.letter == 'm' ? "timedelta" : "datetime", type.time_unit);
    case Kind::variable_length:
      if (type.letter == ElementType::kNumbers) return "list of " + type_name(element_type(type.item));
      return type.letter == ElementType::kText ? "text" : "bytes";
  }
  return {};
}

std::uint64_t text_length(const ElementType& type, std::span<const std::byte> element) {
  using TextEnd = ElementType::TextEnd;
  std::string_view text(reinterpret_cast<const char*>(element.data()), element.size());
  if (type.text_end == TextEnd::at_zero) return std::min(text.find('\0'), text.size());
  if (type.text_end == TextEnd::before_blanks) text = text.substr(0, text.find_last_not_of(' ') + 1);
  return text.find_last_not_of('\0') + 1;  // unwritten elements are zeros, whatever the padding
}

std::string utf32_to_utf8(std::span<const std::byte> element) {
  std::string text;
  for (std::size_t at = 0; at + sizeof(std::uint32_t) <= element.size(); at += sizeof(std::uint32_t)) {
    const auto code = load<std::uint32_t>(element, at);
    if (code == 0) break;
    text += utf8(code);
  }
  return text;
}

std::optional<DType> ElementType::dtype() const {
  for (int i = 0; i <= static_cast<int>(DType::u64); ++i) {
    const auto dtype = static_cast<DType>(i);
    if (kind_of(dtype) == kind && size_of(dtype) == bytes) return dtype;
  }
  return std::nullopt;
}

std::size_t ElementType::swap_unit() const {
  switch (kind) {
    case Kind::boolean:
    case Kind::bytes:
    case Kind::variable_length:
      return 1;
    case Kind::complex:
      return bytes / 2;
    case Kind::text:
      return 4;
    default:
      return bytes;
  }
}

ElementType element_type(DType dtype) {
  const Kind kind = kind_of(dtype);
  return {.kind = kind,
          .bytes = static_cast<std::uint32_t>(size_of(dtype)),
          .letter = letter_of(kind),
          .time_unit = {}};
}

}  // namespace stoker::codec
