// What a step is made of: written by rank 0 when all shares are on disk, the one file that makes a folder a
// checkpoint. Also the marker with which each rank reports its share. Layout: docs/formats/checkpoint.md.
// Thread-safe: values and functions without state.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/strong.h"
#include "base/tensor_view.h"
#include "base/time.h"
#include "checkpoint/layout.h"
#include "checkpoint/state.h"

namespace stoker::checkpoint {

/// Files are checked in pieces of this size, each with its own CRC-32C.
inline constexpr std::uint64_t kBlockBytes = 4 << 20;
/// The bound on a manifest's or marker's length.
inline constexpr ByteCount kManifestLimit = 512_MiB;

/// Rows of a tensor that one file holds; the whole tensor when it has no dimensions.
struct Piece {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;  ///< of the piece: the first size is the number of rows
  std::int64_t first_row = 0;
  std::uint64_t begin = 0;  ///< in the data of the file, as in its header
  std::uint64_t end = 0;

  bool operator==(const Piece&) const = default;
};

/// One safetensors file of the step.
struct ShardFile {
  std::string path;  ///< relative to the step folder
  Rank rank;
  std::uint64_t bytes = 0;
  std::uint64_t header_bytes = 0;
  std::vector<Piece> pieces;          ///< in the order of their bytes
  std::vector<std::uint32_t> blocks;  ///< CRC-32C of each kBlockBytes of the file, header included

  bool operator==(const ShardFile&) const = default;
};

/// A tensor as the training sees it.
struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;

  bool operator==(const TensorInfo&) const = default;
};

/// What a rank reports when its files are on disk.
struct ReadyMarker {
  std::string save;                    ///< Manifest::save
  std::string layout;                  ///< hash over names, types and shapes: the same on every rank
  std::vector<std::uint32_t> samples;  ///< samples_of() the contents; none when ranks are not compared
  std::vector<ShardFile> files;
  State rank_state;
  double stall_s = 0;
  double write_s = 0;

  bool operator==(const ReadyMarker&) const = default;
};

/// The content of manifest.json.
struct Manifest {
  Step step;
  std::string save;  ///< save_name(): differs between any two saves; also in every file's header
  std::string run;
  WorldSize world_size{1};
  double written = 0;  ///< Unix seconds
  double stall_s = 0;  ///< the longest of any rank
  double write_s = 0;
  State state;
  State hyper_parameters;
  std::vector<State> rank_states;                  ///< by rank
  std::array<std::vector<TensorInfo>, 2> tensors;  ///< by Part
  std::vector<ShardFile> files;

  const std::vector<TensorInfo>& of(Part part) const { return tensors[static_cast<std::size_t>(part)]; }
  std::uint64_t total_bytes() const;
  bool operator==(const Manifest&) const = default;
};

/// The bytes of manifest.json, its own CRC-32C inside.
std::string manifest_text(const Manifest& manifest);

/// Reads what manifest_text() writes and checks it for itself: its CRC-32C, version, that every path stays
/// inside the folder, that every tensor is covered by pieces exactly once. Errors are Corrupt and begin with
/// `subject`; a version or feature this Stoker does not know is Invalid.
Result<Manifest> parse_manifest(std::string_view subject, std::string_view text);

/// Whether `text` is a whole manifest, and that of the save of this name. For a rank that only waits for it:
/// with ten thousand tensors reading one takes a while.
bool is_manifest_of(std::string_view text, std::string_view save);

/// The manifest of a step whose files are not known yet: parse_manifest() without its look at files and
/// states.
Result<Manifest> parse_manifest_head(std::string_view subject, std::string_view text);

/// The last of what parse_manifest() checks: every tensor is covered by pieces exactly once.
Status check_pieces(std::string_view subject, const Manifest& manifest);

/// manifest.json of the step in `folder`.
Result<Manifest> read_manifest(const Path& folder);

std::string marker_text(const ReadyMarker& marker);
Result<ReadyMarker> parse_marker(std::string_view subject, std::string_view text);

/// The member DCP_SHARDING_INFO of a file's metadata: {"w":{"saved_offsets":[first_row,0]},...}. PyTorch's
/// reader wants every tensor of the file in it.
std::string sharding_info(const std::vector<Piece>& pieces);
/// The metadata's member that tells to which save a file belongs.
inline constexpr std::string_view kSaveKey = "stoker_save";

/// An error as it travels through a "rank-0001.failed" file.
std::string failure_text(const Status& error);
/// Never ok: a text that cannot be read becomes Unavailable "<subject>: gave up without saying why".
Status parse_failure(std::string_view subject, std::string_view text);

}  // namespace stoker::checkpoint
