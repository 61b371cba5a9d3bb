#include "parquet/thrift/thrift_writer.h"

namespace stoker::parquet {

void ThriftWriter::varint(std::uint64_t value) {
  for (; value >= 128; value >>= 7) text_ += static_cast<char>(value | 128);
  text_ += static_cast<char>(value);
}

void ThriftWriter::zigzag(std::int64_t value) {
  varint(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
}

void ThriftWriter::field(std::int32_t id, Type type) {
  constexpr std::int32_t kLargestStep = 15;
  const std::int32_t step = id - last_.back();
  if (step > 0 && step <= kLargestStep) {
    text_ += static_cast<char>(step << 4 | static_cast<int>(type));
  } else {
    text_ += static_cast<char>(type);
    zigzag(id);
  }
  last_.back() = id;
}

void ThriftWriter::begin(std::int32_t id) {
  field(id, Type::structure);
  begin();
}

void ThriftWriter::end() {
  text_ += '\0';
  last_.pop_back();
}

void ThriftWriter::number(std::int32_t id, Type type, std::int64_t value) {
  field(id, type);
  zigzag(value);
}

void ThriftWriter::binary(std::int32_t id, std::string_view value) {
  field(id, Type::binary);
  item(value);
}

void ThriftWriter::list(std::int32_t id, Type type, std::size_t items) {
  constexpr std::size_t kLong = 15;
  field(id, Type::list);
  if (items < kLong) {
    text_ += static_cast<char>(items << 4 | static_cast<std::size_t>(type));
  } else {
    text_ += static_cast<char>(kLong << 4 | static_cast<std::size_t>(type));
    varint(items);
  }
}

void ThriftWriter::item(std::int64_t value) { zigzag(value); }

void ThriftWriter::item(std::string_view value) {
  varint(value.size());
  text_ += value;
}

}  // namespace stoker::parquet
