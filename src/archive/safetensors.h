// The safetensors format, read strictly and written as the reference writer does, with the header padded so
// that the data begins on a page. Used by checkpoint. https://github.com/huggingface/safetensors describes
// the layout:
//   u64 little-endian N | N bytes of JSON, padded with blanks | data, without holes, to the end of the file
// Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"
#include "stoker/tensor_view.h"

namespace stoker::archive {

/// One tensor of a file. Offsets count from the first byte of data.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool operator==(const SafetensorsEntry&) const = default;
};

/// The parsed header of a file.
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;        ///< in the order of their offsets
  std::map<std::string, std::string> metadata;  ///< the key __metadata__
  std::uint64_t data_begin = 0;                 ///< bytes before the data
  std::uint64_t file_bytes = 0;                 ///< length of the whole file

  bool operator==(const SafetensorsHeader&) const = default;
};

/// The format's limit on the length of a header.
inline constexpr std::uint64_t kSafetensorsHeaderLimit = 100'000'000;
/// Data of written files begins at a multiple of this.
inline constexpr std::uint64_t kSafetensorsAlignment = 4096;

/// Reads the header of the file at `path`. The file's length must match the header exactly. Errors are
/// Corrupt and name path and field.
Result<SafetensorsHeader> read_safetensors_header(const Path& path);

/// The same from bytes: `start` holds at least the whole header, `file_bytes` is the file's length, and
/// `subject` begins every error.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view subject, std::span<const std::byte> start,
                                                   std::uint64_t file_bytes);

/// A header to write: first `bytes`, then the tensors of `header.entries` in order.
struct SafetensorsPlan {
  SafetensorsHeader header;
  std::string bytes;
};

/// Plans the layout: the widest type first, then by name, as the reference writer does, so that each tensor
/// is aligned. `begin` and `end` of the given entries are ignored. Invalid for an empty or repeated name, for
/// "__metadata__", for names and metadata that are not plain text, for a negative size, or when a size or the
/// header overflows the format.
Result<SafetensorsPlan> plan_safetensors(std::vector<SafetensorsEntry> entries,
                                         std::map<std::string, std::string> metadata);

/// `plan.bytes` with a different value for `key` of the metadata, for files that differ only there. The
/// length may change. Invalid as from plan_safetensors(). REQUIRES: the plan's metadata has the key.
Result<std::string> header_with_metadata(const SafetensorsPlan& plan, const std::string& key,
                                         std::string_view text);

/// Bytes of a tensor of that type and shape; nullopt when a size is negative or the product overflows 63
/// bits.
std::optional<std::uint64_t> tensor_bytes(DType dtype, const Shape& shape);

}  // namespace stoker::archive
