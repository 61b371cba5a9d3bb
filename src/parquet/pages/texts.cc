#include "parquet/pages/texts.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace stoker::parquet {

namespace {

// Writes kReadPadding bytes or more, too.
inline std::byte* put(std::byte* to, std::string_view text) {
  std::memcpy(to, text.data(), kReadPadding);
  if (text.size() > kReadPadding)
    std::memcpy(to + kReadPadding, text.data() + kReadPadding, text.size() - kReadPadding);
  return to + text.size();
}

}  // namespace

ParquetTexts::ParquetTexts(std::initializer_list<std::string_view> texts) {
  for (const std::string_view text : texts) {
    std::string padded(text);
    padded.resize(text.size() + kReadPadding);
    const std::string_view readable = std::string_view(padded).substr(0, text.size());
    append(std::span(&readable, 1));
  }
}

std::byte* ParquetTexts::reserve_bytes(std::span<const std::string_view> texts) {
  const std::uint64_t used = bytes();
  std::uint64_t needed = used + kReadPadding;
  for (const std::string_view text : texts) needed += text.size();
  if (needed > buffer_.size()) {
    codec::RawBytes larger(std::max<std::uint64_t>(needed, 2 * buffer_.size()));
    if (used > 0) std::memcpy(larger.data(), buffer_.data(), used);
    buffer_ = std::move(larger);
  }
  return buffer_.data() + used;
}

void ParquetTexts::append(std::span<const std::string_view> texts) {
  std::byte* to = reserve_bytes(texts);
  const std::byte* const begin = buffer_.data();
  const std::size_t before = ends_.size();
  ends_.resize(before + texts.size());
  std::uint64_t* end = ends_.data() + before;
  for (const std::string_view text : texts) {
    to = put(to, text);
    *end++ = static_cast<std::uint64_t>(to - begin);
  }
}

void ParquetTexts::append(std::span<const std::string_view> texts, std::span<const std::uint8_t> present) {
  std::byte* to = reserve_bytes(texts);
  const std::byte* const begin = buffer_.data();
  const std::size_t before = ends_.size();
  ends_.resize(before + present.size());
  std::uint64_t* end = ends_.data() + before;
  auto next = texts.begin();
  for (const std::uint8_t is_there : present) {
    if (is_there != 0) to = put(to, *next++);
    *end++ = static_cast<std::uint64_t>(to - begin);
  }
}

}  // namespace stoker::parquet
