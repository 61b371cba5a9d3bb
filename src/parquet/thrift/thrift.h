// Reads Thrift's compact protocol, as far as Parquet needs it, from untrusted bytes. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace stoker::parquet {

/// Reads one value after the other. Damage sets is_damaged(), and later reads return 0.
class ThriftReader {
 public:
  enum class Type : std::uint8_t {
    stop = 0,
    yes = 1,
    no = 2,
    byte = 3,
    i16 = 4,
    i32 = 5,
    i64 = 6,
    number = 7,
    binary = 8,
    list = 9,
    set = 10,
    map = 11,
    structure = 12,
  };
  struct Field {
    std::int32_t id = 0;
    Type type = Type::stop;
  };

  /// Views `bytes`.
  explicit ThriftReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  /// Calls `on_field` for each field of a structure. It reads the field's value, or returns false to skip it.
  template <typename OnField>
  void structure(const OnField& on_field) {
    if (++depth_ > kMaxDepth) damage();
    std::int32_t last = 0;
    for (Field f = field(last); f.type != Type::stop; f = field(last)) {
      if (!on_field(f)) skip(f.type);
      last = f.id;
    }
    --depth_;
  }
  /// Calls `on_item` for each item of a list, whose type must be `type`.
  template <typename OnItem>
  void list(Type type, const OnItem& on_item) {
    Type found = Type::stop;
    const std::uint64_t items = list_head(found);
    if (items > 0 && found != type) damage();
    for (std::uint64_t i = 0; i < items && !is_damaged_; ++i) on_item();
  }
  /// As list() for booleans, which writers encode as one of two types.
  template <typename OnItem>
  void flags(const OnItem& on_item) {
    Type found = Type::stop;
    const std::uint64_t items = list_head(found);
    if (items > 0 && found != Type::yes && found != Type::no) damage();
    for (std::uint64_t i = 0; i < items && !is_damaged_; ++i)
      on_item(byte() == static_cast<std::uint8_t>(Type::yes));
  }
  std::int64_t integer();
  /// A field of Type::byte, the only type that is not a varint.
  std::int64_t small();
  std::string text();

  bool is_damaged() const { return is_damaged_; }
  /// Bytes read so far.
  std::size_t position() const { return at_; }

 private:
  static constexpr int kMaxDepth = 32;

  Field field(std::int32_t last);
  std::uint64_t list_head(Type& type);
  void skip(Type type);
  void skip_items(std::uint64_t count, Type type);
  std::uint64_t varint();
  std::uint8_t byte();
  void damage() { is_damaged_ = true; }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool is_damaged_ = false;
};

/// Whether integer() can read it.
inline bool is_integer(const ThriftReader::Field& field) {
  return field.type >= ThriftReader::Type::i16 && field.type <= ThriftReader::Type::i64;
}

}  // namespace stoker::parquet
