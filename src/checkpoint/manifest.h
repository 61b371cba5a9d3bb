// The description of a step, written by rank 0 when all shares are on disk. It makes a folder a checkpoint.
// Also the marker that a rank writes when its share is complete. Layout: docs/formats/checkpoint.md.
// Thread-safe: values and functions without state.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/layout.h"
#include "stoker/bytes.h"
#include "stoker/state_values.h"
#include "stoker/status.h"
#include "stoker/strong.h"
#include "stoker/tensor_view.h"
#include "stoker/time.h"

namespace stoker::checkpoint {

/// Size of the blocks of a file; each has its own CRC-32C.
inline constexpr std::uint64_t kBlockBytes = 4 << 20;
/// Maximum length of a manifest or marker.
inline constexpr ByteCount kManifestLimit = 512_MiB;

/// Rows of a tensor in one file; the whole tensor if it has no dimensions.
struct Piece {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;  ///< of the piece: the first size is its number of rows
  std::int64_t first_row = 0;
  std::uint64_t begin = 0;  ///< offset in the file's data, as in its header
  std::uint64_t end = 0;

  bool operator==(const Piece&) const = default;
};

/// One safetensors file of the step.
struct TensorFile {
  std::string path;  ///< relative to the step folder
  Rank rank;
  std::uint64_t bytes = 0;
  std::uint64_t header_bytes = 0;
  std::vector<Piece> pieces;          ///< in the order of their bytes
  std::vector<std::uint32_t> blocks;  ///< CRC-32C of each kBlockBytes of the file, including the header

  bool operator==(const TensorFile&) const = default;
};

/// A tensor as the training defines it.
struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;

  bool operator==(const TensorInfo&) const = default;
};

/// A rank's report that its files are on disk.
struct ReadyMarker {
  std::string save;    ///< StepManifest::save
  std::string layout;  ///< hash of names, types and shapes: identical on all ranks
  std::vector<std::uint32_t>
      checksums;  ///< tensor_checksums() of the contents; empty if ranks are not compared
  std::vector<TensorFile> files;
  StateValues rank_state;
  double stall_s = 0;
  double write_s = 0;

  bool operator==(const ReadyMarker&) const = default;
};

/// The content of manifest.json.
struct StepManifest {
  Step step;
  std::string save;  ///< save_name(): unique for each save; also in every file's header
  std::string run;
  WorldSize world_size{1};
  double written = 0;  ///< Unix time in seconds
  double stall_s = 0;  ///< maximum over ranks
  double write_s = 0;
  StateValues state;
  StateValues hyper_parameters;
  std::vector<StateValues> rank_states;            ///< by rank
  std::array<std::vector<TensorInfo>, 2> tensors;  ///< by Part
  std::vector<TensorFile> files;

  const std::vector<TensorInfo>& tensors_of(StepPart part) const {
    return tensors[static_cast<std::size_t>(part)];
  }
  std::uint64_t total_bytes() const;
  bool operator==(const StepManifest&) const = default;
};

/// The bytes of manifest.json, including its own CRC-32C.
std::string manifest_text(const StepManifest& manifest);

/// Parses the output of manifest_text() and checks it: its CRC-32C, its version, that every path stays inside
/// the folder, that every tensor is covered by pieces exactly once. Errors are Corrupt and begin with
/// `subject`; an unsupported version or feature is Invalid.
Result<StepManifest> parse_manifest(std::string_view subject, std::string_view text);

/// Whether `text` is a complete manifest of the save with this name. For waiting ranks: parsing a manifest of
/// ten thousand tensors takes time.
bool is_manifest_for_save(std::string_view text, std::string_view save);

/// The manifest of a step with unknown files: parse_manifest() without checks of files and rank states.
Result<StepManifest> parse_manifest_head(std::string_view subject, std::string_view text);

/// Last check of parse_manifest(): every tensor is covered by pieces exactly once.
Status check_pieces(std::string_view subject, const StepManifest& manifest);

/// manifest.json of the step in `folder`.
Result<StepManifest> read_manifest(const Path& folder);

std::string marker_text(const ReadyMarker& marker);
Result<ReadyMarker> parse_marker(std::string_view subject, std::string_view text);

/// The member DCP_SHARDING_INFO of a file's metadata: {"w":{"saved_offsets":[first_row,0]},...}. PyTorch's
/// reader requires every tensor of the file in it.
std::string sharding_info(const std::vector<Piece>& pieces);
/// Metadata key for the save that a file belongs to.
inline constexpr std::string_view kSaveKey = "stoker_save";

/// An error as text of a "rank-0001.failed" file.
std::string failure_text(const Status& error);
/// Never ok: text that cannot be parsed becomes Unavailable "<subject>: failed without a reason".
Status parse_failure(std::string_view subject, std::string_view text);

}  // namespace stoker::checkpoint
