// What libhdf5 says about a file: its datasets, their types and filters, and where each chunk lies. Asked in
// a child process: whatever a damaged file does to libhdf5 (crash, loop, eat memory) ends there and becomes
// an error, and libhdf5's lack of threads is nobody's concern. Used only inside this folder. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "format/chunks/box.h"
#include "format/chunks/element_type.h"
#include "format/hdf5/member.h"

namespace stoker::formats::hdf5 {

/// A filter that packed the chunks.
struct Filter {
  std::uint32_t id = 0;
  std::string name;
  std::vector<std::uint32_t> values;
};

/// Where a stored chunk lies.
struct ChunkPlace {
  std::uint64_t number = 0;  ///< in C order over the grid of chunks
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint32_t skipped = 0;  ///< bit i: filter i was not applied
};

/// A part of a virtual dataset: rows of another.
struct VirtualPart {
  std::string file;  ///< as it is stored; "." for the same file
  std::string dataset;
  std::uint64_t first_row = 0;
  std::uint64_t source_row = 0;
  std::uint64_t rows = 0;
};

struct Description {
  std::string path;  ///< without a leading slash
  std::string file;  ///< that holds it: another one behind an external link
  Extents shape;
  ElementType type;
  ByteOrder order = ByteOrder::little;
  std::vector<std::byte> fill;
  std::optional<RecordMember> member;             ///< the elements are this member of records
  ByteOrder order_of_values = ByteOrder::little;  ///< of lists of numbers of different lengths
  std::uint64_t heap_base = 0;                    ///< where addresses of heaps count from
  enum class Layout { inline_, contiguous, chunked, parts } layout = Layout::contiguous;
  std::uint64_t offset = 0;             ///< contiguous: where, or kNoAddress
  std::vector<std::byte> inline_bytes;  ///< inline_: all elements, in their byte order as stored
  Extents chunks;
  std::vector<Filter> filters;
  std::vector<ChunkPlace> places;
  std::vector<VirtualPart> parts;
};

enum class ExternalLinks { refuse, follow };

/// The paths of all datasets, sorted: those reached by hard links. Of one that holds records, those of the
/// records' members behind its own.
Result<std::vector<std::string>> list_datasets(const Path& file, Deadline deadline);
/// These datasets, or members of their records. Corrupt for a file that libhdf5 cannot read, NotFound for a
/// dataset that is not there, Invalid for what is not read, by its name.
Result<std::vector<Description>> describe(const Path& file, const std::vector<std::string>& names,
                                          ExternalLinks links, Deadline deadline);
/// What a child answered to describe() of `count` datasets, which may be anything. Every description that
/// comes out is consistent in itself; whether it fits the file is another question.
Result<std::vector<Description>> parse_answer(const std::string& text, const Path& file, std::size_t count);

}  // namespace stoker::formats::hdf5
