// Writes Thrift's compact protocol, as far as Parquet needs it. Thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::parquet {

/// Appends one value after the other to text(). Fields of a structure must have ascending ids.
class ThriftWriter {
 public:
  /// ThriftReader::Type's numbers.
  enum class Type : std::uint8_t { i16 = 4, i32 = 5, i64 = 6, binary = 8, list = 9, structure = 12 };

  /// A structure by itself, or as an item of a list.
  void begin() { last_.push_back(0); }
  /// A structure as a field.
  void begin(std::int32_t id);
  void end();
  void number(std::int32_t id, Type type, std::int64_t value);
  void i32(std::int32_t id, std::int64_t value) { number(id, Type::i32, value); }
  void i64(std::int32_t id, std::int64_t value) { number(id, Type::i64, value); }
  void binary(std::int32_t id, std::string_view value);
  /// `items` of that type must follow, by begin() and end(), or item().
  void list(std::int32_t id, Type type, std::size_t items);
  void item(std::int64_t value);
  void item(std::string_view value);

  const std::string& text() const { return text_; }

 private:
  void field(std::int32_t id, Type type);
  void varint(std::uint64_t value);
  void zigzag(std::int64_t value);

  std::string text_;
  std::vector<std::int32_t> last_;  // the last written field of each open structure
};

}  // namespace stoker::parquet
