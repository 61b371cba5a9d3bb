// The state of an open dataset. Used only inside this folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "arrays/hdf5/api.h"
#include "arrays/hdf5/dataset.h"
#include "arrays/hdf5/describe.h"

namespace stoker::arrays {

struct Hdf5Dataset::Impl {
  // A source of a virtual dataset's rows.
  struct Source {
    std::uint64_t first_row = 0;
    std::uint64_t source_row = 0;
    std::uint64_t rows = 0;
    std::unique_ptr<Hdf5Dataset> dataset;
  };

  hdf5::Description description;
  std::string subject;
  std::uint64_t row_bytes = 0;
  std::uint64_t bytes = 0;  // all rows
  codec::Extents counts;    // chunks along each dimension
  codec::Extents chunk_strides;
  codec::Extents no_strides;
  std::uint64_t chunk_bytes = 0;
  File file;
  std::vector<Source> sources;
  // May be shared with other datasets.
  std::shared_ptr<codec::ChunkCache> cache;
  std::uint64_t owner = 0;

  Status prepare();
  Status add_sources(const Path& folder, const Hdf5Options& options, int nesting);
  Status check_source(const hdf5::VirtualPart& part, const Hdf5Dataset& source) const;
  // The stored bytes for `elements` bytes of elements: more if these are a member of records.
  std::uint64_t stored_bytes(std::uint64_t elements) const {
    return description.member ? description.member->decoded_bytes(elements) : elements;
  }
  Result<codec::Buffer> load(std::uint64_t number) const;
  Result<codec::Buffer> elements_of(codec::Buffer whole, std::uint64_t size, std::string_view where) const;
  Status read_piece(std::uint64_t offset, std::span<std::byte> out) const;
  Status read_from_chunks(std::uint64_t block, std::span<const std::uint64_t> rows,
                          std::span<const std::size_t> to, std::span<std::byte> out) const;
  Status read_contiguous(std::uint64_t first, std::span<std::byte> out) const;
  Status read_sources(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const;

  static Result<std::vector<std::unique_ptr<Hdf5Dataset>>> open_all(const Path& file,
                                                                    const std::vector<std::string>& names,
                                                                    const Hdf5Options& options, int nesting);
};

}  // namespace stoker::arrays
