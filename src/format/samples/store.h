// The arrays of a file by their names, whether it is HDF5 or Zarr; those of NumPy's files are a store, too.
// Used by readers of samples and rows. Thread-safe once opened.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "format/chunked/chunk_map.h"
#include "format/chunked/value_array.h"
#include "format/chunks/box.h"
#include "format/chunks/element_type.h"
#include "format/samples/layout.h"
#include "format/samples/reader.h"

namespace stoker::formats {

class SampleArrays::Store {
 public:
  static Result<std::unique_ptr<Store>> open(const Path& file, ArrayFormat format);
  virtual ~Store() = default;

  /// Sorted.
  const std::vector<std::string>& names() const { return names_; }
  /// Opens these, all at once. REQUIRES: they are among names().
  virtual Status open_arrays(const std::vector<std::string>& names) = 0;

  // REQUIRES: the array is open.
  virtual const Extents& shape(const std::string& name) const = 0;
  virtual const ElementType& type(const std::string& name) const = 0;
  /// Shape of what is unpacked at once; empty where the elements lie in one piece.
  virtual const Extents& chunks(const std::string&) const {
    static const Extents none;
    return none;
  }
  virtual Status read_rows(const std::string& name, std::uint64_t first, std::uint64_t count,
                           std::span<std::byte> out) const = 0;
  /// Where in the file it begins, if it lies there as one run.
  virtual Result<std::uint64_t> run(const std::string& name) const = 0;
  /// Where in the file its chunks lie. Invalid, saying why, where they do not lie there.
  virtual Result<ChunkedArray> chunked(const std::string& name) const = 0;
  /// Of one of values of different lengths, where each lies. Invalid, saying why, where they lie in no one
  /// file.
  virtual Result<ValueArray> values(const std::string& name) const = 0;
  /// The same of one that may be virtual: piece by piece.
  virtual Result<std::vector<RowPiece>> pieces(const std::string& name) {
    OK_OR_RETURN(array, chunked(name));
    std::vector<RowPiece> pieces;
    pieces.push_back({0, shape(name)[0], 0, std::move(array)});
    return pieces;
  }
  /// The files among which these places are, one behind another; empty for the one file.
  virtual Result<std::vector<ShardPart>> parts() const = 0;

 protected:
  std::vector<std::string> names_;
};

}  // namespace stoker::formats
