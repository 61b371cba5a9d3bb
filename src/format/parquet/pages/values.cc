#include "format/parquet/pages/values.h"

#include <cstring>

#include "format/parquet/pages/hybrid.h"

namespace stoker::formats {

namespace {

using Bytes = std::span<const std::byte>;

std::string_view view(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Strings with their lengths before them.
bool read_strings(Bytes data, std::uint64_t count, std::vector<std::string_view>& strings) {
  std::uint32_t length = 0;
  if (count > data.size() / sizeof length) return false;
  strings.reserve(strings.size() + count);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (data.size() < sizeof length) return false;
    std::memcpy(&length, data.data(), sizeof length);
    data = data.subspan(sizeof length);
    if (length > data.size()) return false;
    strings.push_back(view(data.first(length)));
    data = data.subspan(length);
  }
  return true;
}

// Strings of one size, one behind another.
bool cut_strings(Bytes data, std::size_t width, std::uint64_t count, std::vector<std::string_view>& strings) {
  if (width == 0 || count > data.size() / width) return false;
  for (std::uint64_t i = 0; i < count; ++i) strings.push_back(view(data.subspan(i * width, width)));
  return true;
}

// Truth values as runs, with their length before them.
bool read_runs(Bytes data, std::uint64_t count, std::vector<std::byte>& numbers) {
  std::uint32_t length = 0;
  if (data.size() < sizeof length) return count == 0;
  std::memcpy(&length, data.data(), sizeof length);
  data = data.subspan(sizeof length);
  return length <= data.size() && Hybrid(data.first(length), 1).append(count, numbers);
}

template <std::size_t Width>
void pick(Bytes from, std::span<const std::uint32_t> positions, std::byte* out) {
  for (const std::uint32_t position : positions) {
    std::memcpy(out, from.data() + std::size_t{position} * Width, Width);
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

Status ValueReader::take_memory(std::uint64_t bytes) {
  if (bytes > left_) return invalid("{}: is too large", subject_);
  left_ -= bytes;
  return {};
}

bool ValueReader::read_plain(Bytes data, std::uint64_t count, PageValues& values) const {
  if (type_.type == kParquetByteArray) return read_strings(data, count, values.strings);
  if (type_.type == kParquetFixedByteArray) return cut_strings(data, type_.width, count, values.strings);
  if (type_.type == kParquetBoolean) {
    if (count > std::uint64_t{data.size()} * 8) return false;
    for (std::uint64_t i = 0; i < count; ++i) values.numbers.push_back(data[i / 8] >> i % 8 & std::byte{1});
    return true;
  }
  const std::size_t width = type_.number_bytes();
  if (width == 0 || count > data.size() / width) return false;
  values.numbers.insert(values.numbers.end(), data.begin(),
                        data.begin() + static_cast<std::ptrdiff_t>(count * width));
  return true;
}

Status ValueReader::take_dictionary(const PageHeader& page, Bytes data) {
  if (page.encoding != kPlainValues && page.encoding != kPlainDictionary) return damaged();
  dictionary_.clear();
  dictionary_values_ = static_cast<std::uint64_t>(page.values);
  RETURN_IF_ERROR(
      take_memory(data.size() + (type_.is_bytes() ? data.size() / 4 * sizeof(std::string_view) : 0)));
  return read_plain(data, dictionary_values_, dictionary_) ? Status() : damaged();
}

Status ValueReader::read_positions(Bytes data, std::uint64_t count, PageValues& values) {
  if (count == 0) return {};
  if (data.empty()) return damaged();
  const auto width = static_cast<unsigned>(data[0]);
  positions_.clear();
  if (width > 32 || !Hybrid(data.subspan(1), width).append(count, positions_)) return damaged();
  for (const std::uint32_t position : positions_)
    if (position >= dictionary_values_) return damaged();
  if (type_.is_bytes()) {
    values.strings.reserve(values.strings.size() + count);
    for (const std::uint32_t position : positions_) values.strings.push_back(dictionary_.strings[position]);
    return {};
  }
  const std::size_t each = type_.number_bytes();
  const std::size_t before = values.numbers.size();
  values.numbers.resize(before + each * count);
  const auto copy = each == 4 ? pick<4> : each == 8 ? pick<8> : each == 12 ? pick<12> : pick<1>;
  copy(dictionary_.numbers, positions_, values.numbers.data() + before);
  return {};
}

bool ValueReader::read_deltas(Bytes data, std::uint64_t count, PageValues& values) {
  if (!take_deltas(data, count, deltas_)) return false;
  const std::size_t each = type_.number_bytes();
  const std::size_t before = values.numbers.size();
  values.numbers.resize(before + each * count);
  std::byte* out = values.numbers.data() + before;
  for (const std::uint64_t number : deltas_) {
    std::memcpy(out, &number, each);
    out += each;
  }
  return true;
}

Status ValueReader::read_joined(Bytes data, std::uint64_t count, PageValues& values) {
  if (!shared_.read(data, count)) return damaged();
  if (shared_.joined_bytes() > left_) return invalid("{}: is too large", subject_);
  const std::size_t before = values.strings.size();
  shared_.join(joined_, values.strings);
  if (type_.width == 0) return {};
  for (const std::string_view value : std::span(values.strings).subspan(before))
    if (value.size() != type_.width) return damaged();
  return {};
}

Status ValueReader::read_split(Bytes data, std::uint64_t count, PageValues& values) {
  const std::size_t each = type_.is_bytes() ? type_.width : type_.number_bytes();
  if (each == 0 || count > data.size() / each) return damaged();
  if (!type_.is_bytes()) {
    const std::size_t before = values.numbers.size();
    values.numbers.resize(before + count * each);
    return join_streams(data, each, count, std::span(values.numbers).subspan(before)) ? Status() : damaged();
  }
  joined_.resize(count * each);
  const bool holds =
      join_streams(data, each, count, joined_) && cut_strings(joined_, each, count, values.strings);
  return holds ? Status() : damaged();
}

Status ValueReader::read(const PageHeader& page, Bytes data, std::uint64_t count, PageValues& values) {
  const auto when = [&](bool holds) { return holds ? Status() : damaged(); };
  const bool is_whole = type_.type == kParquetInt32 || type_.type == kParquetInt64;
  switch (page.encoding) {
    case kPlainValues:
      return when(read_plain(data, count, values));
    case kPlainDictionary:
    case kRleDictionary:
      return read_positions(data, count, values);
    case kRleValues:
      return when(type_.type == kParquetBoolean && read_runs(data, count, values.numbers));
    case kDeltaBinaryPacked:
      return when(is_whole && read_deltas(data, count, values));
    case kDeltaLengthByteArray:
      return when(type_.type == kParquetByteArray && take_strings(data, count, values.strings));
    case kDeltaByteArray:
      return type_.is_bytes() ? read_joined(data, count, values) : damaged();
    case kByteStreamSplit:
      return read_split(data, count, values);
    default:
      return invalid("{}: has an encoding that is not read (Parquet's number {})", subject_, page.encoding)
          .cure("write it with pyarrow.parquet.write_table(table, file)");
  }
}

}  // namespace stoker::formats
