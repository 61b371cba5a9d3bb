// HDF5's global heaps, which hold values of variable length as contiguous bytes. Read from the file without
// libhdf5. Used only inside this folder. Thread-compatible. Layout:
// docs/formats/hdf5.md#values-of-different-lengths.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "stoker/status.h"

namespace stoker::arrays::hdf5 {

class GlobalHeaps {
 public:
  struct Object {
    std::uint64_t offset = 0;  ///< in the file
    std::uint64_t bytes = 0;
  };

  /// Addresses are relative to `base`. `file` must outlive it; `subject` starts every error text.
  static Result<GlobalHeaps> open(const File& file, std::uint64_t base, std::string subject);

  /// Object `number` of the collection at `address`. Corrupt if there is no such collection or object, or if
  /// it is beyond the end of the file.
  Result<Object> find(std::uint64_t address, std::uint32_t number);

 private:
  using Collection = std::vector<Object>;  // by number; offset 0 if missing

  GlobalHeaps(const File& file, std::uint64_t base, std::uint64_t size, std::string subject)
      : file_(&file), base_(base), size_(size), subject_(std::move(subject)) {}
  Result<Collection> read(std::uint64_t address) const;

  const File* file_;
  std::uint64_t base_;
  std::uint64_t size_;  // of the file
  std::string subject_;
  std::map<std::uint64_t, Collection> collections_;  // by address
  std::uint64_t kept_ = 0;                           // objects in all of them
};

}  // namespace stoker::arrays::hdf5
