#include "profile/records.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/language/counted.h"
#include "profile/gains.h"
#include "record/metrics.h"

namespace stoker::profile {
namespace {

using record::MetricTable;

// Longer steps are damage.
constexpr double kLongestStep_s = 1e7;
constexpr double kMostStepNumber = 9e15;
// Leading steps that take longer than the median by this factor are warm-up.
constexpr double kWarmUpFactor = 1.5;
constexpr double kSmallestGain = 1.01;
constexpr std::int64_t kMostRanks = 10'000'000;

// The rows of one rank, by ascending step.
struct StepRows {
  std::vector<std::pair<std::int64_t, PartTimes>> rows;
  std::vector<ProfilePart> measured;
  std::size_t damaged = 0;
};

std::optional<Nanos> nanos_of(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > kLongestStep_s) return std::nullopt;
  return std::llround(1e9 * seconds);
}

// `other` is what the measured parts leave of the step.
std::optional<PartTimes> times_of(std::span<const std::pair<ProfilePart, std::span<const double>>> columns,
                                  double step_s, std::size_t row) {
  const auto step = nanos_of(step_s);
  if (!step) return std::nullopt;
  PartTimes times;
  for (const auto& [part, values] : columns) {
    const auto nanos = nanos_of(values[row]);
    if (!nanos) return std::nullopt;
    times[part] = *nanos;
  }
  times[ProfilePart::other] = std::max<Nanos>(0, *step - times.total());
  return times;
}

StepRows rows_of(const MetricTable& table) {
  StepRows found;
  std::vector<std::pair<ProfilePart, std::span<const double>>> columns;
  for (const ProfilePart part : kAllParts) {
    const std::string column = format("{}_s", key_of(part));
    if (part == ProfilePart::other || !table.has(column)) continue;
    columns.emplace_back(part, table.column(column));
    found.measured.push_back(part);
  }
  found.damaged = table.damaged;
  const auto steps = table.column("step");
  const auto seconds = table.column("step_s");
  if (steps.empty() || seconds.empty()) return found;
  std::int64_t last = -1;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const bool is_number = std::isfinite(steps[row]) && steps[row] >= 0 && steps[row] <= kMostStepNumber;
    const auto times = times_of(columns, seconds[row], row);
    if (!is_number || !times || static_cast<std::int64_t>(steps[row]) <= last) {
      ++found.damaged;
      continue;
    }
    last = static_cast<std::int64_t>(steps[row]);
    found.rows.emplace_back(last, *times);
  }
  return found;
}

Result<StepRows> read_rows(const Path& file) {
  STOKER_ASSIGN_OR_RETURN(table, record::read_metrics(file));
  if (!table.has("step") || !table.has("step_s"))
    return corrupt("{}: no records of steps (columns step and step_s)", printable(file.string()));
  return rows_of(table);
}

std::size_t count_warm_up(const StepRows& rows) {
  std::vector<Nanos> lengths;
  lengths.reserve(rows.rows.size());
  for (const auto& [step, times] : rows.rows) lengths.push_back(times.total());
  if (lengths.size() < 3) return 0;
  std::vector<Nanos> sorted = lengths;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  const double most = kWarmUpFactor * static_cast<double>(*middle);
  const auto first =
      std::ranges::find_if(lengths, [most](Nanos each) { return static_cast<double>(each) <= most; });
  return std::min<std::size_t>(static_cast<std::size_t>(first - lengths.begin()), lengths.size() / 2);
}

// The steps to count, from the steps of one rank.
std::vector<std::int64_t> select_steps(const StepRows& rows, const StepSelection& selection,
                                       Profile& profile) {
  std::vector<std::int64_t> steps;
  const bool is_chosen = selection.first || selection.last;
  const std::size_t warm_up = is_chosen ? 0 : count_warm_up(rows);
  for (std::size_t i = warm_up; i < rows.rows.size(); ++i) {
    const std::int64_t step = rows.rows[i].first;
    if (step >= selection.first.value_or(step) && step <= selection.last.value_or(step))
      steps.push_back(step);
  }
  if (steps.size() > kMostSteps) {
    steps.erase(steps.begin(), steps.end() - static_cast<std::ptrdiff_t>(kMostSteps));
    profile.notes.push_back(
        message("steps: only the last {} count (--steps chooses others)", grouped(kMostSteps)));
  }
  if (!steps.empty()) {
    profile.range = StepRange{
        .first = steps.front(), .last = steps.back(), .warm_up = static_cast<std::int64_t>(warm_up)};
  }
  return steps;
}

RankProfile add_rank(int rank, const StepRows& rows, const std::vector<std::int64_t>& steps,
                     StepModel& model) {
  RankProfile profile;
  profile.rank = rank;
  std::size_t index = 0;
  for (const auto& [step, times] : rows.rows) {
    while (index < steps.size() && steps[index] < step) ++index;
    if (index == steps.size()) break;
    if (steps[index] != step) continue;
    model.add(index, times);
    profile.steps += 1;
    profile.times += times;
  }
  return profile;
}

void note_damage(const Path& file, std::size_t damaged, Profile& profile) {
  if (damaged > 0)
    profile.notes.push_back(
        message("{}: damaged lines skipped: {}", printable(file.filename().string()), damaged));
}

}  // namespace

void find_gains(const StepModel& model, Profile& profile) {
  const auto ranks = static_cast<int>(profile.ranks.size());
  constexpr ProfilePart kAvoidable[] = {
      ProfilePart::data,   ProfilePart::host_to_device, ProfilePart::communication, ProfilePart::checkpoint,
      ProfilePart::copies, ProfilePart::host,           ProfilePart::other};
  for (const ProfilePart part : kAvoidable) {
    const auto factor = model.gain_without(part, ranks);
    if (factor && *factor >= kSmallestGain) profile.gains.push_back({part, *factor});
  }
  if (const auto factor = model.gain_of_balance(ranks); factor && *factor >= kSmallestGain)
    profile.gains.push_back({std::nullopt, *factor});
  std::ranges::stable_sort(profile.gains, std::ranges::greater(), &Gain::factor);
}

std::map<int, Path> files_by_rank(const Path& folder, std::string_view stem, std::string_view end) {
  std::map<int, Path> files;
  const auto names = list_directory(folder);
  if (!names.ok()) return files;
  for (const std::string_view name : *names) {
    if (!name.starts_with(stem) || !name.ends_with(end) || name.size() <= stem.size() + end.size()) continue;
    std::int64_t rank = 0;
    if (parse_number(name.substr(stem.size(), name.size() - stem.size() - end.size()), &rank) && rank >= 0 &&
        rank < kMostRanks)
      files.emplace(static_cast<int>(rank), folder / name);
  }
  return files;
}

Result<StepSelection> parse_steps(std::string_view text) {
  const Status wrong =
      invalid("'{}' is not a range of steps, such as 100..500, 100.. or ..500", printable(std::string(text)));
  const std::size_t dots = text.find("..");
  const std::string_view first = text.substr(0, dots);
  const std::string_view last = dots == std::string_view::npos ? first : text.substr(dots + 2);
  StepSelection selection;
  const auto parse = [](std::string_view number, std::optional<std::int64_t>* out) {
    if (number.empty()) return true;
    std::int64_t value = 0;
    if (!parse_number(number, &value) || value < 0) return false;
    *out = value;
    return true;
  };
  if (!parse(first, &selection.first) || !parse(last, &selection.last)) return wrong;
  if (!selection.first && !selection.last) return wrong;
  if (selection.first && selection.last && *selection.first > *selection.last) return wrong;
  return selection;
}

Status read_records(const std::map<int, Path>& files, TimeSource source, const StepSelection& selection,
                    Profile& profile) {
  profile.source = source;
  std::vector<std::int64_t> steps;
  for (const auto& [rank, file] : files) {  // the first rank with steps chooses
    const auto rows = read_rows(file);
    if (rows.ok()) steps = select_steps(*rows, selection, profile);
    if (!steps.empty()) break;
  }
  if (steps.empty()) {
    const bool is_chosen = selection.first || selection.last;
    return not_found("{}: no recorded step{}", printable(profile.subject),
                     is_chosen ? " in this range (--steps)" : "");
  }
  StepModel model(steps.size());
  for (const auto& [rank, file] : files) {
    const auto rows = read_rows(file);
    if (!rows.ok()) {
      profile.notes.push_back(std::string(rows.status().message()));
      continue;
    }
    note_damage(file, rows->damaged, profile);
    RankProfile each = add_rank(rank, *rows, steps, model);
    if (each.steps == 0) {
      profile.notes.push_back(message("rank {}: no record of these steps", rank));
      continue;
    }
    for (const ProfilePart part : rows->measured) {
      if (std::ranges::find(profile.measured, part) == profile.measured.end())
        profile.measured.push_back(part);
    }
    profile.ranks.push_back(std::move(each));
  }
  std::ranges::sort(profile.measured);
  find_gains(model, profile);
  return {};
}

std::map<int, Path> find_records(const record::Attempt& attempt, TimeSource* source) {
  constexpr std::pair<TimeSource, std::string_view> kStems[] = {{TimeSource::trainer, "metrics-"},
                                                                {TimeSource::program, "profile-"}};
  for (const auto& [kind, stem] : kStems) {
    std::map<int, Path> files = files_by_rank(attempt.folder(), stem, ".csv");
    *source = kind;
    if (!files.empty()) return files;
  }
  *source = TimeSource::none;
  return {};
}

}  // namespace stoker::profile
