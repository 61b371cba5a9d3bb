// Names inside a checkpoint directory: step folders, pending folders, files of a step.
// docs/formats/checkpoint.md describes them. Thread-safe: no state.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stoker/strong.h"
#include "stoker/text.h"

namespace stoker::checkpoint {

/// The two folders of a step; PyTorch's reader can open each.
enum class StepPart : std::uint8_t { model, optimizer };
inline constexpr std::array kParts = {StepPart::model, StepPart::optimizer};
constexpr std::string_view to_text(StepPart part) { return part == StepPart::model ? "model" : "optimizer"; }

inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr std::string_view kLeaseName = "lease.json";
/// Lease of a rank that found none, in case it dies before rank 0 writes its own.
inline constexpr std::string_view kMakerLeaseName = "lease-maker.json";
inline constexpr std::string_view kTensorSuffix = ".safetensors";

/// Checkpoint directory of a run: a folder with the run's name inside the configured directory, or inside the
/// run folder. `run_folder` may end in a slash.
Path directory_of_run(const std::optional<Path>& configured, const Path& run_folder);

/// "step-200".
std::string step_folder_name(Step step);
/// The step of such a name; nullopt otherwise, also for "step-007" and "step--1".
std::optional<Step> step_of_folder(std::string_view name);

/// ".step-200.<writer>.<repeat>": the step's folder before its commit. Identical on all ranks: `repeat`
/// counts earlier requests of this writer for the same step.
std::string pending_folder_name(Step step, std::string_view writer, std::uint64_t repeat);
/// "<run>/<writer>/200.<repeat>": unique among the saves of the run, and computable on every rank.
std::string save_name(std::string_view run, std::string_view writer, Step step, std::uint64_t repeat);
/// ".step-200.<random>.removed": name of a step during its removal.
std::string removed_folder_name(Step step);

/// Kind of a name that begins with ".step-".
struct HiddenFolder {
  Step step;
  bool is_removed = false;
};
std::optional<HiddenFolder> hidden_folder(std::string_view name);

/// "model/shard-00001-model-00001-of-00001.safetensors" for rank 0: PyTorch counts shards from 1.
std::string shard_path(StepPart part, Rank rank);
/// The part of a path of this form, otherwise nullopt. For paths read from a manifest, which must not leave
/// the folder.
std::optional<StepPart> part_of_path(std::string_view path);

/// "rank-0001.ready" and "rank-0001.failed": messages of a rank to rank 0 and to the other ranks.
std::string ready_name(Rank rank);
std::string failed_name(Rank rank);

/// Whether text can be part of a folder name: 1 to 64 letters, digits, '-' and '_'.
bool is_plain_word(std::string_view text);

}  // namespace stoker::checkpoint
