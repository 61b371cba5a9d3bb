// Reads the arrays of an HDF5 or Zarr file, or another store, as samples: a sample is one row of each array.
// Arrays with a different number of rows are ignored. Used by convert. Thread-safe once opened.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "arrays/samples/layout.h"
#include "arrays/samples/reader.h"
#include "base/file.h"
#include "codec/chunks/chunk_map.h"
#include "codec/chunks/element_type.h"
#include "codec/chunks/value_array.h"
#include "stoker/status.h"
#include "stoker/tensor_view.h"

namespace stoker::arrays {

class RowArrays {
 public:
  struct Array {
    std::string name;
    DType type = DType::f32;
    Shape row;  ///< its shape; empty for a scalar
    std::uint64_t row_bytes = 0;
  };

  /// A list of variable-length values, one per row: text (also of a fixed size), bytes, numbers.
  struct Values {
    std::string name;
    codec::ElementType type;

    /// Whether the values are text. UTF-32 text has to be converted.
    bool is_text() const {
      return type.kind != codec::ElementType::Kind::variable_length ||
             type.letter == codec::ElementType::kText;
    }
    bool is_utf32() const { return type.kind == codec::ElementType::Kind::text; }
  };

  /// An array without data in the samples.
  struct IgnoredArray {
    std::string name;
    std::uint64_t rows = 0;  ///< 0 for an unsupported type
    std::string reason;      ///< "12 rows, not 50", "complex64 values"
  };

  /// Uses the arrays with as many rows as the largest one. Errors as SampleArrays::open(); Invalid with more
  /// than 256 arrays, and without a readable one: it names the arrays and why each is not read.
  static Result<RowArrays> open(const Path& file, ArrayFormat format);
  /// The same for any store. `subject` begins every error.
  static Result<RowArrays> open(std::unique_ptr<SampleArrays::Store> store, const std::string& subject);
  ~RowArrays();
  RowArrays(RowArrays&&) noexcept;

  std::uint64_t rows() const { return rows_; }
  /// Sorted by name.
  const std::vector<Array>& arrays() const { return arrays_; }
  /// Sorted by name.
  const std::vector<Values>& values() const { return values_; }
  /// Arrays with a different number of rows or an unsupported type.
  const std::vector<IgnoredArray>& ignored_arrays() const { return ignored_; }

  /// The chunks of the array; for a virtual one, piece by piece in the order of rows.
  Result<std::vector<RowPiece>> pieces(const Array& array) const;
  /// As SampleArrays::parts(), for all arrays whose chunks or values were located.
  Result<std::vector<codec::ShardPart>> parts() const;
  /// The chunks of the array. Invalid, with the reason, if they are not in one file.
  Result<codec::ChunkedArray> chunked(const Array& array) const;
  /// The place of each row's value; text of a fixed size without its padding. Invalid, with the reason, if
  /// the values are not in one file, Corrupt for damage. REQUIRES: not UTF-32.
  Result<codec::ValueArray> places(const Values& values) const;
  /// One row of fixed-size text, UTF-32 or padded. REQUIRES: row < rows().
  Result<std::string> text(const Values& values, std::uint64_t row) const;
  /// Reads rows of `array`, C order, little-endian. REQUIRES: first + count <= rows(), and `out` is large
  /// enough.
  Status read(const Array& array, std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const;

 private:
  explicit RowArrays(std::unique_ptr<SampleArrays::Store> store);
  Status load(const std::string& subject);

  std::unique_ptr<SampleArrays::Store> store_;
  std::uint64_t rows_ = 0;
  std::vector<Array> arrays_;
  std::vector<Values> values_;
  std::vector<IgnoredArray> ignored_;
};

}  // namespace stoker::arrays
