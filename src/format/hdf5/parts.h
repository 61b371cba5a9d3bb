// What an open dataset is made of. Used only inside this folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/hdf5/api.h"
#include "format/hdf5/dataset.h"
#include "format/hdf5/describe.h"

namespace stoker::formats {

struct Hdf5Dataset::Parts {
  // A source of a virtual dataset's rows.
  struct Source {
    std::uint64_t first_row = 0;
    std::uint64_t source_row = 0;
    std::uint64_t rows = 0;
    std::unique_ptr<Hdf5Dataset> dataset;
  };

  hdf5::Description about;
  std::string subject;
  std::uint64_t row_bytes = 0;
  std::uint64_t bytes = 0;  // all rows
  Extents counts;           // chunks along each dimension
  Extents chunk_strides;
  Extents no_strides;
  std::uint64_t chunk_bytes = 0;
  File file;
  std::vector<Source> sources;
  // Shared with other datasets of the same file or dataset.
  std::shared_ptr<ChunkCache> cache;
  std::uint64_t owner = 0;

  Status prepare();
  Status add_sources(const Path& folder, const Hdf5Options& options, int nesting);
  Status check_source(const hdf5::VirtualPart& part, const Hdf5Dataset& source) const;
  // Bytes that are stored for so many of the elements': more where these are a member of records.
  std::uint64_t stored_bytes(std::uint64_t elements) const {
    return about.member ? about.member->whole(elements) : elements;
  }
  Result<Buffer> load(std::uint64_t number) const;
  Result<Buffer> elements_of(Buffer whole, std::uint64_t size, std::string_view where) const;
  Status read_piece(std::uint64_t offset, std::span<std::byte> out) const;
  Status read_from_chunks(std::uint64_t block, std::span<const std::uint64_t> rows,
                          std::span<const std::size_t> to, std::span<std::byte> out) const;
  Status read_contiguous(std::uint64_t first, std::span<std::byte> out) const;
  Status read_sources(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const;

  static Result<std::vector<std::unique_ptr<Hdf5Dataset>>> open_all(const Path& file,
                                                                    const std::vector<std::string>& names,
                                                                    const Hdf5Options& options, int nesting);
};

}  // namespace stoker::formats
