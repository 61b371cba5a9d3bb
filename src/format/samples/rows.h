// The arrays of an HDF5 or Zarr file, or of another store, as samples: those with the same number of rows
// belong together, and a row of each makes a sample. Used by convert. Thread-safe once opened.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "base/tensor_view.h"
#include "format/chunked/chunk_map.h"
#include "format/chunked/value_array.h"
#include "format/chunks/element_type.h"
#include "format/samples/layout.h"
#include "format/samples/reader.h"

namespace stoker::formats {

class RowArrays {
 public:
  struct Array {
    std::string name;
    DType type = DType::f32;
    Shape row;  ///< its shape; empty for a number
    std::uint64_t row_bytes = 0;
  };

  /// A list of values of different lengths, one for each row: text (of a fixed size, too), bytes, numbers.
  struct Values {
    std::string name;
    ElementType type;

    /// Whether each is text, and whether that lies in the file as it is read.
    bool is_text() const {
      return type.kind != ElementType::Kind::varying || type.letter == ElementType::kText;
    }
    bool is_utf32() const { return type.kind == ElementType::Kind::text; }
  };

  /// An array of which samples have nothing.
  struct Other {
    std::string name;
    std::uint64_t rows = 0;  ///< 0 for one of neither numbers nor text
  };

  /// Those with as many rows as the one with most bytes has. Errors as SampleArrays::open(); Invalid where
  /// there is none that can be read, or more than 256 arrays.
  static Result<RowArrays> open(const Path& file, ArrayFormat format);
  /// The same of any store. `subject` begins every error text.
  static Result<RowArrays> open(std::unique_ptr<SampleArrays::Store> store, const std::string& subject);
  ~RowArrays();
  RowArrays(RowArrays&&) noexcept;

  std::uint64_t rows() const { return rows_; }
  /// Sorted by name.
  const std::vector<Array>& arrays() const { return arrays_; }
  /// Sorted by name.
  const std::vector<Values>& values() const { return values_; }
  /// The others: of another number of rows, or of what is neither numbers nor text.
  const std::vector<Other>& others() const { return others_; }

  /// The same of one that may be virtual: its rows in order.
  Result<std::vector<RowPiece>> pieces(const Array& array) const;
  /// As SampleArrays::parts(), of all for which places were asked.
  Result<std::vector<ShardPart>> parts() const;
  /// Where its chunks lie. Invalid, saying why, where they are in no one file.
  Result<ChunkedArray> chunked(const Array& array) const;
  /// Where each row's value lies, text of a fixed size without what fills it up. Invalid, saying why,
  /// where that is in no one file, Corrupt for what does not hold. REQUIRES: not UTF-32.
  Result<ValueArray> places(const Values& values) const;
  /// Text of a row, of a fixed size there: UTF-32, or without what fills it up. REQUIRES: row < rows().
  Result<std::string> text(const Values& values, std::uint64_t row) const;
  /// Rows of `array`, C order, little-endian. REQUIRES: first + count <= rows(), and `out` has room for them.
  Status read(const Array& array, std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const;

 private:
  explicit RowArrays(std::unique_ptr<SampleArrays::Store> store);
  Status take(const std::string& subject);

  std::unique_ptr<SampleArrays::Store> store_;
  std::uint64_t rows_ = 0;
  std::vector<Array> arrays_;
  std::vector<Values> values_;
  std::vector<Other> others_;
};

}  // namespace stoker::formats
