#include "parquet/pages/values.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "parquet/pages/rle_hybrid.h"

namespace stoker::parquet {

namespace {

using Bytes = std::span<const std::byte>;

// Memory of an allocator's or of a vector's begins where any number may.
template <typename T>
std::span<T> as_numbers(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

std::string_view view(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Replaces `texts`: each has its length before it.
bool read_texts_plain(Bytes data, std::uint64_t count, std::vector<std::string_view>& texts) {
  std::uint32_t length = 0;
  if (count > data.size() / sizeof length) return false;
  texts.resize(count);
  const char* at = view(data).data();
  std::size_t left = data.size();
  for (std::string_view& text : texts) {
    if (left < sizeof length) return false;
    std::memcpy(&length, at, sizeof length);
    left -= sizeof length;
    if (length > left) return false;
    text = {at + sizeof length, length};
    at += sizeof length + length;
    left -= length;
  }
  return true;
}

// Replaces `texts`: all have one size.
bool cut_texts(Bytes data, std::size_t width, std::uint64_t count, std::vector<std::string_view>& texts) {
  if (width == 0 || count > data.size() / width) return false;
  texts.resize(count);
  const char* at = view(data).data();
  for (std::string_view& text : texts) text = {at, width}, at += width;
  return true;
}

// Truth values as runs, with their length before them.
bool read_runs(Bytes data, std::span<std::byte> numbers) {
  std::uint32_t length = 0;
  if (data.size() < sizeof length) return numbers.empty();
  std::memcpy(&length, data.data(), sizeof length);
  data = data.subspan(sizeof length);
  return length <= data.size() &&
         RleHybridDecoder(data.first(length), 1).read(as_numbers<std::uint8_t>(numbers));
}

template <std::size_t Width>
void pick(const std::byte* from, std::span<const std::uint32_t> positions, std::byte* out) {
  for (const std::uint32_t position : positions) {
    std::memcpy(out, from + std::size_t{position} * Width, Width);
    out += Width;
  }
}

}  // namespace

std::size_t StoredType::number_bytes() const {
  switch (type) {
    case kParquetBoolean:
      return 1;
    case kParquetInt32:
    case kParquetFloat:
      return 4;
    case kParquetInt64:
    case kParquetDouble:
      return 8;
    case kParquetInt96:
      return 12;
    default:
      return 0;
  }
}

Status ValueReader::damaged() const { return corrupt("{}: a page is damaged", subject_); }

Status ValueReader::not_read(const PageHeader& page) const {
  return invalid("{}: has an unsupported encoding (Parquet's number {})", subject_, page.encoding)
      .cure("write it with pyarrow.parquet.write_table(table, file)");
}

Status ValueReader::charge_memory(std::uint64_t bytes) {
  if (bytes > left_) return invalid("{}: is too large", subject_);
  left_ -= bytes;
  return {};
}

bool ValueReader::read_plain(Bytes data, std::span<std::byte> numbers) const {
  if (numbers.empty()) return true;
  if (type_.type == kParquetBoolean) {
    if (numbers.size() > std::uint64_t{data.size()} * 8) return false;
    unpack_bits(data, 1, as_numbers<std::uint8_t>(numbers));
    return true;
  }
  if (numbers.size() > data.size()) return false;
  std::memcpy(numbers.data(), data.data(), numbers.size());
  return true;
}

bool ValueReader::read_plain(Bytes data, std::uint64_t count, std::vector<std::string_view>& texts) const {
  return type_.type == kParquetByteArray ? read_texts_plain(data, count, texts)
                                         : cut_texts(data, type_.width, count, texts);
}

Status ValueReader::read_dictionary(const PageHeader& page, Bytes data) {
  if (page.encoding != kPlainValues && page.encoding != kPlainDictionary) return damaged();
  dictionary_values_ = static_cast<std::uint64_t>(page.values);
  if (type_.is_bytes()) {
    STOKER_RETURN_IF_ERROR(charge_memory(data.size() + data.size() / 4 * sizeof(std::string_view)));
    return read_plain(data, dictionary_values_, dictionary_texts_) ? Status() : damaged();
  }
  const std::size_t each = type_.number_bytes();
  if (each == 0 || dictionary_values_ > std::uint64_t{data.size()} * 8) return damaged();
  STOKER_RETURN_IF_ERROR(charge_memory(dictionary_values_ * each));
  dictionary_numbers_.resize(dictionary_values_ * each);
  return read_plain(data, dictionary_numbers_) ? Status() : damaged();
}

// Calls `consume` with batches of positions, all inside the dictionary.
template <typename Consume>
bool ValueReader::read_positions(Bytes data, std::uint64_t count, const Consume& consume) const {
  constexpr std::size_t kSome = 1024;  // they stay in the nearest cache
  if (count == 0) return true;
  if (data.empty()) return false;
  const auto width = static_cast<unsigned>(data[0]);
  if (width > 32) return false;
  RleHybridDecoder positions(data.subspan(1), width);
  std::array<std::uint32_t, kSome> room;
  while (count > 0) {
    const auto some = std::span(room).first(std::min<std::uint64_t>(count, kSome));
    if (!positions.read(some)) return false;
    bool is_beyond = false;
    for (const std::uint32_t position : some) is_beyond |= position >= dictionary_values_;
    if (is_beyond) return false;
    consume(some);
    count -= some.size();
  }
  return true;
}

bool ValueReader::read_deltas(Bytes data, std::span<std::byte> numbers) const {
  if (type_.type == kParquetInt32) return decode_deltas(data, as_numbers<std::uint32_t>(numbers));
  return type_.type == kParquetInt64 && decode_deltas(data, as_numbers<std::uint64_t>(numbers));
}

Status ValueReader::read_joined(Bytes data, std::uint64_t count, std::vector<std::string_view>& texts) {
  if (!shared_.read(data, count)) return damaged();
  if (shared_.joined_bytes() > left_) return invalid("{}: is too large", subject_);
  shared_.join(joined_, texts);
  if (type_.width == 0) return {};
  for (const std::string_view text : texts)
    if (text.size() != type_.width) return damaged();
  return {};
}

Status ValueReader::read_split(Bytes data, std::uint64_t count, std::vector<std::string_view>& texts) {
  const std::size_t each = type_.width;
  if (each == 0 || count > data.size() / each) return damaged();
  joined_.resize(count * each + kReadPadding);
  const auto joined = std::span(joined_).first(count * each);
  const bool holds = join_streams(data, each, count, joined) && cut_texts(joined, each, count, texts);
  return holds ? Status() : damaged();
}

Status ValueReader::read_numbers(const PageHeader& page, Bytes data, std::span<std::byte> numbers) {
  const auto when = [&](bool holds) { return holds ? Status() : damaged(); };
  const std::size_t each = type_.number_bytes();
  const std::uint64_t count = numbers.size() / each;
  switch (page.encoding) {
    case kPlainValues:
      return when(read_plain(data, numbers));
    case kPlainDictionary:
    case kRleDictionary: {
      const auto copy = each == 4 ? pick<4> : each == 8 ? pick<8> : each == 12 ? pick<12> : pick<1>;
      std::byte* out = numbers.data();
      return when(read_positions(data, count, [&](std::span<const std::uint32_t> some) {
        copy(dictionary_numbers_.data(), some, out);
        out += some.size() * each;
      }));
    }
    case kRleValues:
      return when(type_.type == kParquetBoolean && read_runs(data, numbers));
    case kDeltaBinaryPacked:
      return when(read_deltas(data, numbers));
    case kByteStreamSplit:
      return when(join_streams(data, each, count, numbers));
    case kDeltaLengthByteArray:
    case kDeltaByteArray:
      return damaged();
    default:
      return not_read(page);
  }
}

Status ValueReader::read_texts(const PageHeader& page, Bytes data, std::uint64_t count,
                               std::vector<std::string_view>& texts) {
  const auto when = [&](bool holds) { return holds ? Status() : damaged(); };
  switch (page.encoding) {
    case kPlainValues:
      return when(read_plain(data, count, texts));
    case kPlainDictionary:
    case kRleDictionary: {
      texts.resize(count);
      auto out = texts.begin();
      return when(read_positions(data, count, [&](std::span<const std::uint32_t> some) {
        for (const std::uint32_t position : some) *out++ = dictionary_texts_[position];
      }));
    }
    case kDeltaLengthByteArray:
      return when(type_.type == kParquetByteArray && decode_strings(data, count, texts));
    case kDeltaByteArray:
      return read_joined(data, count, texts);
    case kByteStreamSplit:
      return read_split(data, count, texts);
    case kRleValues:
    case kDeltaBinaryPacked:
      return damaged();
    default:
      return not_read(page);
  }
}

}  // namespace stoker::parquet
