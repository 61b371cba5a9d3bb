// Little-endian fields, one after another. Used only inside this folder. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace stoker::formats {

class Fields {
 public:
  Fields& number(std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) text_.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
    return *this;
  }
  Fields& text(std::string_view text) {
    text_ += text;
    return *this;
  }
  const std::string& so_far() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace stoker::formats
