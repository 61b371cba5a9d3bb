#include "trials/trial_runs.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "config/setting.h"
#include "launch/start/submit.h"
#include "stoker/text.h"

namespace stoker::trials {

namespace {

constexpr std::size_t kLongestName = 64;  // of a job file
constexpr std::size_t kLongestNumber = 21;

constexpr std::string_view kSeedMark = "-s";

std::string_view shortened(std::string_view study) { return study.substr(0, kLongestName - kLongestNumber); }

std::optional<TrialAttempt> trial_of(std::string_view run, std::string_view study) {
  const std::string prefix = format("{}-", shortened(study));
  if (!run.starts_with(prefix)) return std::nullopt;
  run.remove_prefix(prefix.size());
  std::uint64_t number = 0;
  std::uint64_t attempt = 0;
  std::optional<std::uint64_t> seed;
  const std::size_t dot = run.find('.');
  if (dot != std::string_view::npos && !parse_number(run.substr(dot + 1), &attempt)) return std::nullopt;
  run = run.substr(0, dot);
  if (const std::size_t mark = run.find(kSeedMark); mark != std::string_view::npos) {
    if (!parse_number(run.substr(mark + kSeedMark.size()), &seed.emplace())) return std::nullopt;
    run = run.substr(0, mark);
  }
  if (!parse_number(run, &number)) return std::nullopt;
  return TrialAttempt{number, static_cast<std::uint32_t>(attempt), seed};
}

// A text stays a text: "0x10", "true".
std::string setting_value(const sweep::Value& value) {
  const std::string text = sweep::to_text(value);
  return std::holds_alternative<std::string>(value) ? config::yaml_scalar(text) : text;
}

}  // namespace

Path runs_folder(const sweep::Study& study) { return std::filesystem::absolute(study.folder()) / "runs"; }

std::string run_name(std::string_view study, TrialAttempt trial) {
  std::string name = format("{}-{}", shortened(study), trial.number);
  if (trial.seed) name += format("{}{}", kSeedMark, *trial.seed);
  if (trial.attempt > 0) name += format(".{}", trial.attempt);
  return name;
}

TrialRuns::TrialRuns(const sweep::Study& study)
    : study_(study.definition().name), folder_(runs_folder(study)) {}

Status TrialRuns::refresh() {
  auto names = list_directory(folder_);
  if (!names && names.error().code() == Code::not_found) return {};
  if (!names) return std::move(names).error();
  std::sort(names->begin(), names->end());  // oldest first
  for (const std::string& name : *names) {
    if (known_.contains(name)) continue;
    const auto run = record::RunFolder::open(folder_ / name);
    if (!run) continue;
    known_.insert(name);
    if (const auto trial = trial_of(run->description().name, study_)) runs_.insert_or_assign(*trial, *run);
  }
  return {};
}

const record::RunFolder* TrialRuns::find(TrialAttempt trial) const {
  const auto found = runs_.find(trial);
  return found == runs_.end() ? nullptr : &found->second;
}

TrialAttempt TrialRuns::last_attempt(sweep::TrialNumber number, std::uint64_t seed) const {
  TrialAttempt last{number, 0, seed};
  while (runs_.contains({number, last.attempt + 1, seed})) ++last.attempt;
  return last;
}

void TrialRuns::add(TrialAttempt trial, record::RunFolder run) {
  known_.insert(run.id());
  runs_.insert_or_assign(trial, std::move(run));
}

void TrialRuns::discard(TrialAttempt trial) {
  const auto found = runs_.find(trial);
  if (found == runs_.end()) return;
  launch::discard_run(found->second);
  runs_.erase(found);
}

std::vector<std::string> trial_settings(const sweep::Assignment& values) {
  std::vector<std::string> settings;
  for (const auto& [name, value] : values) {
    const std::string key = name.find('.') == std::string::npos ? format("params.{}", name) : name;
    settings.push_back(format("{}={}", key, setting_value(value)));
  }
  return settings;
}

}  // namespace stoker::trials
