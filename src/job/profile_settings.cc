#include "job/profile_settings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "stoker/text.h"

namespace stoker::job {
namespace {

using config::EffectiveConfig;
using config::ErrorList;
using config::SettingReader;
using config::Type;

std::string own_program() {
  std::error_code error;
  const Path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return !error && program.filename() == "stoker" ? program.string() : "stoker";
}

std::string ranks_text(const std::vector<double>& ranks) {
  std::string text;
  for (const double rank : ranks) text += format("{}{:.0f}", text.empty() ? "" : ",", rank);
  return text;
}

void read_tool(const SettingReader& reader, std::string_view key, std::string_view, Job& job) {
  const auto* tool = reader.effective().find<std::string>(key);
  if (tool == nullptr || !job.command) return;
  std::vector<std::string> words = {own_program(), "profile", "--tool", *tool};
  if (const auto* ranks = reader.effective().find<std::vector<double>>("profile.ranks");
      ranks && !ranks->empty()) {
    words.emplace_back("--ranks");
    words.push_back(ranks_text(*ranks));
  }
  if (const auto* steps = reader.effective().find<std::string>("profile.steps")) {
    words.emplace_back("--steps");
    words.push_back(*steps);
  }
  words.emplace_back("--");
  // The command of an earlier attempt has the tool of that attempt.
  const std::vector<std::string> command = split_profile_tool(job.command->arguments).command;
  words.insert(words.end(), command.begin(), command.end());
  job.command = RunCommand{.arguments = std::move(words), .is_shell = false};
}

// The effective job file has the command instead: nothing is written.
constexpr std::array kProfile = {
    JobSetting{
        .setting = {.key = "profile.tool",
                    .type = Type::choice,
                    .unset = "none",
                    .choices = "nsys|ncu|perf|py-spy|torch",
                    .help = "Profiler around the command of `run` on some ranks; the effective job file has "
                            "it as `stoker profile --tool`."},
        .read = &read_tool},
    JobSetting{.setting = {.key = "profile.ranks",
                           .type = Type::numbers,
                           .unset = "[0]",
                           .at_least = 0,
                           .help = "Ranks that run under the profiler."}},
    JobSetting{
        .setting =
            {.key = "profile.steps",
             .unset = "all; with torch 10..20",
             .help =
                 "Steps of `stoker.profile()` in the script that nsys, ncu or torch record: FIRST..LAST."}},
};

bool is_step_range(std::string_view text) {
  const std::size_t dots = text.find("..");
  std::int64_t first = 0;
  std::int64_t last = 0;
  return dots < text.size() && parse_number(text.substr(0, dots), &first) &&
         parse_number(text.substr(dots + 2), &last) && first >= 0 && first <= last;
}

void check_ranks(const EffectiveConfig& effective, const Job& job, ErrorList& errors) {
  const auto* ranks = effective.find<std::vector<double>>("profile.ranks");
  if (ranks == nullptr) return;
  const double world = job.resources.world_size();
  for (const double rank : *ranks) {
    if (rank != std::floor(rank) || rank >= world)
      errors.add(effective.origin("profile.ranks"),
                 format("profile.ranks: {} is no rank of this job (0 to {:.0f})", rank, world - 1));
  }
}

void check_steps(const EffectiveConfig& effective, const std::string& tool, ErrorList& errors) {
  const auto* steps = effective.find<std::string>("profile.steps");
  if (steps == nullptr) return;
  if (tool == "perf" || tool == "py-spy")
    errors.add(effective.origin("profile.steps"),
               format("profile.steps: {} records the whole command (profile.tool)", tool));
  if (!is_step_range(*steps))
    errors.add(effective.origin("profile.steps"),
               format("profile.steps: '{}' is not a range such as 10..20", printable(*steps)));
}

}  // namespace

std::span<const JobSetting> profile_settings() { return kProfile; }

ToolAndCommand split_profile_tool(const std::vector<std::string>& words) {
  const bool has_tool = words.size() > 3 && words[1] == "profile" && words[2] == "--tool";
  const auto end = std::ranges::find(words, "--");
  if (!has_tool || end == words.end()) return {.tool = "", .command = words};
  return {.tool = words[3], .command = std::vector(end + 1, words.end())};
}

void check_profile(const EffectiveConfig& effective, const Job& job, ErrorList& errors) {
  const auto* tool = effective.find<std::string>("profile.tool");
  if (tool == nullptr) {
    for (const std::string_view key : {"profile.ranks", "profile.steps"}) {
      if (effective.entries().contains(key))
        errors.add(effective.origin(key), format("{}: needs profile.tool", key));
    }
    return;
  }
  if (!job.command)
    errors.add(effective.origin("profile.tool"),
               "profile.tool: needs 'run'; for 'train', record.trace records a timeline");
  if (job.environment.container)
    errors.add(effective.origin("profile.tool"), "profile.tool: does not reach into environment.container");
  check_ranks(effective, job, errors);
  check_steps(effective, *tool, errors);
}

}  // namespace stoker::job
