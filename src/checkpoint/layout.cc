#include "checkpoint/layout.h"

#include <algorithm>

#include "base/file.h"

namespace stoker::checkpoint {

namespace {

constexpr std::string_view kStep = "step-";
constexpr std::string_view kRemoved = ".removed";

// A decimal number without sign or leading zeros, so that each step has exactly one name.
std::optional<Step> parse_step(std::string_view digits) {
  std::int64_t n = 0;
  if (digits.empty() || digits.front() == '-' || !parse_number(digits, &n)) return std::nullopt;
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  return Step{n};
}

std::string rank_file(Rank rank, std::string_view suffix) {
  return format("rank-{:04}.{}", rank.value, suffix);
}

}  // namespace

Path directory_of_run(const std::optional<Path>& configured, const Path& run_folder) {
  const Path& named = run_folder.has_filename() ? run_folder : run_folder.parent_path();
  return configured ? *configured / named.filename() : run_folder / "checkpoints";
}

std::string step_folder_name(Step step) { return format("{}{}", kStep, step.value); }

std::optional<Step> step_of_folder(std::string_view name) {
  if (!name.starts_with(kStep)) return std::nullopt;
  return parse_step(name.substr(kStep.size()));
}

std::string pending_folder_name(Step step, std::string_view writer, std::uint64_t repeat) {
  return format(".{}{}.{}.{}", kStep, step.value, writer, repeat);
}

std::string save_name(std::string_view run, std::string_view writer, Step step, std::uint64_t repeat) {
  return format("{}/{}/{}.{}", run, writer, step.value, repeat);
}

std::string removed_folder_name(Step step) {
  return format(".{}{}.{}{}", kStep, step.value, random_name(), kRemoved);
}

std::optional<HiddenFolder> hidden_folder(std::string_view name) {
  if (!name.starts_with('.') || !name.substr(1).starts_with(kStep)) return std::nullopt;
  std::string_view rest = name.substr(1 + kStep.size());
  const std::size_t dot = rest.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::optional<Step> step = parse_step(rest.substr(0, dot));
  if (!step) return std::nullopt;
  return HiddenFolder{*step, name.ends_with(kRemoved)};
}

std::string shard_path(StepPart part, Rank rank) {
  return format("{}/shard-{:05}-{}-00001-of-00001{}", to_text(part), rank.value + 1, to_text(part),
                kTensorSuffix);
}

std::optional<StepPart> part_of_path(std::string_view path) {
  for (const StepPart part : kParts) {
    const std::string folder = std::string(to_text(part)) + "/";
    if (!path.starts_with(folder) || !path.ends_with(kTensorSuffix)) continue;
    const std::string_view name = path.substr(folder.size());
    if (name.find('/') == std::string_view::npos && name.starts_with("shard-")) return part;
  }
  return std::nullopt;
}

std::string ready_name(Rank rank) { return rank_file(rank, "ready"); }
std::string failed_name(Rank rank) { return rank_file(rank, "failed"); }

bool is_plain_word(std::string_view text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), is_plain);
}

}  // namespace stoker::checkpoint
