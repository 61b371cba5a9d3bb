// Appends little-endian fields to a string. Used only inside this folder. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace stoker::arrays {

class LittleEndianWriter {
 public:
  LittleEndianWriter& number(std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) text_.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
    return *this;
  }
  LittleEndianWriter& text(std::string_view text) {
    text_ += text;
    return *this;
  }
  const std::string& str() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace stoker::arrays
