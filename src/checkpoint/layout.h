// Names inside a checkpoint directory: step folders, pending folders, the files of a step. One place knows
// them; docs/formats/checkpoint.md describes them. Thread-safe: no state.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/strong.h"
#include "base/text.h"

namespace stoker::checkpoint {

/// The two folders of a step; each opens by itself in PyTorch's reader.
enum class Part : std::uint8_t { model, optimizer };
inline constexpr std::array kParts = {Part::model, Part::optimizer};
constexpr std::string_view to_text(Part part) { return part == Part::model ? "model" : "optimizer"; }

inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr std::string_view kLeaseName = "lease.json";
/// The lease of a rank that found none, in case it dies before rank 0 leaves its own.
inline constexpr std::string_view kMakerLeaseName = "lease-maker.json";
inline constexpr std::string_view kTensorSuffix = ".safetensors";

/// Where a run's checkpoints are: in a folder named for the run inside the configured directory, or in the
/// run folder. `run_folder` may end in a slash.
Path directory_of_run(const std::optional<Path>& configured, const Path& run_folder);

/// "step-200".
std::string step_folder_name(Step step);
/// The step of such a name, or nothing: "step-007" and "step--1" are none.
std::optional<Step> step_of_folder(std::string_view name);

/// ".step-200.<writer>.<repeat>": where a step is written before it counts. The same on every rank: `repeat`
/// is how often this writer was asked for that step before.
std::string pending_folder_name(Step step, std::string_view writer, std::uint64_t repeat);
/// "<run>/<writer>/200.<repeat>": no other save of the run has that name, and every rank can compute it.
std::string save_name(std::string_view run, std::string_view writer, Step step, std::uint64_t repeat);
/// ".step-200.<random>.removed": where a step goes that is being deleted.
std::string removed_folder_name(Step step);

/// What a name that begins with ".step-" is.
struct HiddenFolder {
  Step step;
  bool is_removed = false;
};
std::optional<HiddenFolder> hidden_folder(std::string_view name);

/// "model/shard-00001-model-00001-of-00001.safetensors" for rank 0: PyTorch counts shards from 1.
std::string shard_path(Part part, Rank rank);
/// The part of a path of that form, or nothing: for paths read from a manifest, which must not lead
/// elsewhere.
std::optional<Part> part_of_path(std::string_view path);

/// "rank-0001.ready" and "rank-0001.failed": how ranks tell rank 0 and each other.
std::string ready_name(Rank rank);
std::string failed_name(Rank rank);

/// Whether text may be part of a folder's name: letters, digits, '-' and '_', 1 to 64 of them.
bool is_plain_word(std::string_view text);

}  // namespace stoker::checkpoint
