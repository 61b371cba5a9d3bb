// The named arrays of an HDF5 or Zarr file. NumPy's files are a store, too. Used by readers of samples and
// rows. Thread-safe once opened.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "arrays/samples/layout.h"
#include "arrays/samples/reader.h"
#include "base/file.h"
#include "codec/chunks/box.h"
#include "codec/chunks/chunk_map.h"
#include "codec/chunks/element_type.h"
#include "codec/chunks/value_array.h"
#include "stoker/status.h"

namespace stoker::arrays {

class SampleArrays::Store {
 public:
  static Result<std::unique_ptr<Store>> open(const Path& file, ArrayFormat format);
  virtual ~Store() = default;

  /// Sorted.
  const std::vector<std::string>& names() const { return names_; }
  /// Opens these arrays, all at once. REQUIRES: they are among names().
  virtual Status open_arrays(const std::vector<std::string>& names) = 0;

  // REQUIRES: the array is open.
  virtual const codec::Extents& shape(const std::string& name) const = 0;
  virtual const codec::ElementType& type(const std::string& name) const = 0;
  /// The unit of unpacking; empty if the elements are contiguous.
  virtual const codec::Extents& chunks(const std::string&) const {
    static const codec::Extents none;
    return none;
  }
  virtual Status read_rows(const std::string& name, std::uint64_t first, std::uint64_t count,
                           std::span<std::byte> out) const = 0;
  /// The array's offset in the file, if it is contiguous.
  virtual Result<std::uint64_t> contiguous_offset(const std::string& name) const = 0;
  /// The array's chunks in the file. Invalid, with the reason, if they are elsewhere.
  virtual Result<codec::ChunkedArray> chunked(const std::string& name) const = 0;
  /// The places of variable-length values. Invalid, with the reason, if they are not in one file.
  virtual Result<codec::ValueArray> values(const std::string& name) const = 0;
  /// The same for a virtual array: piece by piece.
  virtual Result<std::vector<RowPiece>> pieces(const std::string& name) {
    STOKER_ASSIGN_OR_RETURN(array, chunked(name));
    std::vector<RowPiece> pieces;
    pieces.push_back({0, shape(name)[0], 0, std::move(array)});
    return pieces;
  }
  /// The concatenated files that these offsets refer to; empty for one file.
  virtual Result<std::vector<codec::ShardPart>> parts() const = 0;

 protected:
  std::vector<std::string> names_;
};

}  // namespace stoker::arrays
