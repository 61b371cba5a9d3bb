#include "parquet/thrift/thrift.h"

namespace stoker::parquet {

std::uint8_t ThriftReader::byte() {
  if (is_damaged_ || at_ >= bytes_.size()) {
    damage();
    return 0;
  }
  return static_cast<std::uint8_t>(bytes_[at_++]);
}

std::uint64_t ThriftReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::uint8_t next = byte();
    value |= std::uint64_t{next & 127u} << shift;
    if (next < 128) return value;
  }
  damage();
  return 0;
}

// Zigzag: 0, -1, 1, -2, ...
std::int64_t ThriftReader::integer() {
  const std::uint64_t value = varint();
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

std::int64_t ThriftReader::small() { return static_cast<std::int8_t>(byte()); }

std::string ThriftReader::text() {
  const std::uint64_t length = varint();
  if (is_damaged_ || length > bytes_.size() - at_) {
    damage();
    return {};
  }
  std::string text(reinterpret_cast<const char*>(bytes_.data()) + at_, length);
  at_ += length;
  return text;
}

ThriftReader::Field ThriftReader::field(std::int32_t last) {
  if (is_damaged_) return {};
  const std::uint8_t head = byte();
  const auto type = static_cast<Type>(head & 15);
  if (is_damaged_ || type == Type::stop) return {};
  if (type > Type::structure) damage();
  const unsigned step = head >> 4;
  const std::int64_t id = step != 0 ? std::int64_t{last} + step : integer();
  if (id < 0 || id > 0x7FFF) damage();
  if (is_damaged_) return {};
  return {static_cast<std::int32_t>(id), type};
}

std::uint64_t ThriftReader::list_head(Type& type) {
  const std::uint8_t head = byte();
  type = static_cast<Type>(head & 15);
  const std::uint64_t items = head >> 4 == 15 ? varint() : head >> 4;
  // Every item takes a byte or more.
  if (is_damaged_ || items > bytes_.size() - at_) {
    damage();
    return 0;
  }
  return items;
}

void ThriftReader::skip_items(std::uint64_t count, Type type) {
  // In lists, a boolean takes a byte.
  const bool is_truth = type == Type::yes || type == Type::no;
  for (std::uint64_t i = 0; i < count && !is_damaged_; ++i) skip(is_truth ? Type::byte : type);
}

void ThriftReader::skip(Type type) {
  constexpr std::size_t kNumberBytes = 8;
  switch (type) {
    case Type::stop:
    case Type::yes:
    case Type::no:
      return;
    case Type::byte:
      (void)byte();
      return;
    case Type::i16:
    case Type::i32:
    case Type::i64:
      (void)varint();
      return;
    case Type::number:
      for (std::size_t i = 0; i < kNumberBytes; ++i) (void)byte();
      return;
    case Type::binary:
      (void)text();
      return;
    case Type::list:
    case Type::set: {
      if (++depth_ > kMaxDepth) return damage();
      Type item = Type::stop;
      const std::uint64_t items = list_head(item);
      if (item == Type::stop && items > 0) damage();
      skip_items(items, item);
      --depth_;
      return;
    }
    case Type::map: {
      if (++depth_ > kMaxDepth) return damage();
      const std::uint64_t pairs = varint();
      if (pairs > bytes_.size()) damage();
      const std::uint8_t types = pairs > 0 ? byte() : 0;
      for (std::uint64_t i = 0; i < pairs && !is_damaged_; ++i) {
        skip_items(1, static_cast<Type>(types >> 4));
        skip_items(1, static_cast<Type>(types & 15));
      }
      --depth_;
      return;
    }
    case Type::structure:
      structure([](const Field&) { return false; });
      return;
  }
  damage();
}

}  // namespace stoker::parquet
