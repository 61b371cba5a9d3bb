// libhdf5's description of a file: datasets, types, filters and the offset of each chunk. Queried in a child
// process: if a damaged file makes libhdf5 crash, loop or exhaust memory, only the child dies, and libhdf5's
// lack of thread safety does not matter. Used only inside this folder. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arrays/hdf5/member.h"
#include "codec/chunks/box.h"
#include "codec/chunks/element_type.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::arrays::hdf5 {

/// A filter of the chunks.
struct Filter {
  std::uint32_t id = 0;
  std::string name;
  std::vector<std::uint32_t> values;
};

/// The byte range of a stored chunk.
struct ChunkLocation {
  std::uint64_t number = 0;  ///< in C order over the grid of chunks
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint32_t skipped = 0;  ///< bit i: filter i was not applied
};

/// A part of a virtual dataset: rows of a source.
struct VirtualPart {
  std::string file;  ///< as stored; "." for the same file
  std::string dataset;
  std::uint64_t first_row = 0;
  std::uint64_t source_row = 0;
  std::uint64_t rows = 0;
};

struct Description {
  std::string path;  ///< without a leading slash
  std::string file;  ///< the file that contains it; a different one behind an external link
  codec::Extents shape;
  codec::ElementType type;
  codec::ByteOrder order = codec::ByteOrder::little;
  std::vector<std::byte> fill;
  std::optional<RecordMember> member;                       ///< the elements are this member of records
  codec::ByteOrder value_order = codec::ByteOrder::little;  ///< of variable-length lists of numbers
  std::uint64_t heap_base = 0;                              ///< base of heap addresses
  enum class Layout { inline_, contiguous, chunked, parts } layout = Layout::contiguous;
  std::uint64_t offset = 0;             ///< contiguous: its offset, or kNoAddress
  std::vector<std::byte> inline_bytes;  ///< inline_: all elements, in stored byte order
  codec::Extents chunks;
  std::vector<Filter> filters;
  std::vector<ChunkLocation> chunk_locations;
  std::vector<VirtualPart> parts;
};

enum class ExternalLinks { refuse, follow };

/// The sorted paths of all datasets reachable by hard links. For a dataset of records, the paths of the
/// members.
Result<std::vector<std::string>> list_datasets(const Path& file, Deadline deadline);
/// Describes these datasets, or members of their records. Corrupt for a file that libhdf5 cannot read,
/// NotFound for a missing dataset, Invalid for an unsupported one.
Result<std::vector<Description>> describe(const Path& file, const std::vector<std::string>& names,
                                          ExternalLinks links, Deadline deadline);
/// Parses a child's response to describe() of `count` datasets, which is untrusted. Every description is
/// consistent; the caller compares it with the file.
Result<std::vector<Description>> parse_response(const std::string& text, const Path& file, std::size_t count);

}  // namespace stoker::arrays::hdf5
