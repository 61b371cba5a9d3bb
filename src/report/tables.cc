#include "report/tables.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/language/counted.h"
#include "observe/gpu_health.h"
#include "report/sentence.h"
#include "stoker/bytes.h"
#include "stoker/time.h"

namespace stoker::report {

namespace {

constexpr std::size_t kMostMediaRows = 500;  // of all tasks of an array

std::string utc(double unix_s) {
  if (!std::isfinite(unix_s) || unix_s <= 0 || unix_s > 9e9) return "-";
  return utc_text(WallTime(std::chrono::duration_cast<Duration>(Seconds(unix_s))));
}

std::string quoted(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + shell_quote(word);
  return printable(text);
}

std::string code_text(const RunFacts& facts) {
  if (!facts.capsule.code || facts.capsule.code->commit.empty()) {
    return facts.description.git.empty() ? "not in a git repository" : printable(facts.description.git);
  }
  const record::CodeInfo& code = *facts.capsule.code;
  std::string text = printable(code.commit);
  if (!code.branch.empty()) text += " on " + printable(code.branch);
  if (code.dirty) text += ", with uncommitted changes (capsule/code.diff)";
  if (!code.untracked.empty()) {
    text += format(", {} untracked {} not included", code.untracked.size(),
                   code.untracked.size() == 1 ? "file" : "files");
  }
  return text;
}

std::string data_text(const record::DataInfo& data) {
  std::string text = printable(data.source);
  if (!data.split.empty()) text += " (" + printable(data.split) + ")";
  if (!data.version.empty()) text += ", version " + printable(data.version.substr(0, 16));
  if (data.samples > 0) text += ", " + counted(data.samples, "sample");
  if (data.bytes > 0) text += ", " + rounded(ByteCount{data.bytes});
  return text;
}

std::string node_text(const record::NodeInfo& node) {
  std::string text = printable(node.host);
  if (!node.cpu.empty()) text += ": " + printable(node.cpu);
  if (node.cores > 0) text += format(", {} {}", node.cores, node.cores == 1 ? "core" : "cores");
  if (node.memory_bytes > 0) text += ", " + rounded(ByteCount{node.memory_bytes});
  for (const std::string& gpu : node.gpus) text += ", " + printable(gpu);
  if (!node.system.empty()) text += ", " + printable(node.system);
  if (!node.kernel.empty()) text += ", " + printable(node.kernel);
  return text;
}

std::string pairs_text(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string text;
  for (const auto& [name, value] : pairs)
    text += (text.empty() ? "" : "  ") + printable(name) + "=" + printable(value);
  return text;
}

void add_environment(const RunFacts& facts, std::vector<ProvenanceRow>& all) {
  if (facts.capsule.execution) {
    for (const auto& node : *facts.capsule.execution)
      all.push_back({"host", node_text(node), "capsule/execution.json"});
  } else if (!facts.description.hosts.empty()) {
    all.push_back({"hosts", printable(join(facts.description.hosts, ", ")), "run.json"});
  }
  if (!facts.capsule.environment) return;
  if (!facts.capsule.environment->programs.empty()) {
    all.push_back({"programs", pairs_text(facts.capsule.environment->programs), "capsule/environment.json"});
  }
  const auto packages = std::count(facts.capsule.environment->packages.begin(),
                                   facts.capsule.environment->packages.end(), '\n');
  if (packages > 0)
    all.push_back({"packages", format("{} Python packages", packages), "capsule/packages.txt"});
}

std::string ending_text(const AttemptFacts& attempt) {
  std::string text;
  for (const record::RankEnded& end : attempt.ends) {
    if (end.stopped_by_us || (end.exit_code && *end.exit_code == 0)) continue;
    if (!text.empty()) text += "; ";
    text += format("rank {}", end.rank);
    if (end.step) text += format(" at epoch {} step {}", end.epoch.value_or(0) + 1, *end.step);
    if (!end.phase.empty()) text += ", phase " + printable(end.phase);
    text += ": " + (!end.reason.empty() ? printable(end.reason)
                    : end.signal        ? format("killed by signal {}", *end.signal)
                                        : format("exit code {}", end.exit_code.value_or(1)));
  }
  if (text.empty()) text = printable(attempt.reason);
  return text;
}

// Absolute, because the first command changes the folder.
Path absolute_path(const Path& folder) {
  std::error_code error;
  const Path path = std::filesystem::absolute(folder, error).lexically_normal();
  if (error) return folder;
  return path.has_filename() ? path : path.parent_path();
}

// The run's name for a command typed in `place`: its id if `place`/runs contains it, else its folder.
std::string name_from(const Path& place, const RunFacts& facts) {
  const Path folder = absolute_path(facts.folder);
  const Path relative = folder.lexically_relative(place);
  if (relative.parent_path() == "runs") return facts.id;
  const bool is_below = relative.has_parent_path() && *relative.begin() != "..";
  return is_below ? relative.string() : folder.string();
}

constexpr std::size_t kRanksShown = 8;

// Total time covered by at least one span.
double covered_s(std::vector<TracedSpan> spans) {
  std::ranges::sort(spans, {}, &TracedSpan::begin_s);
  double sum = 0, until = 0;
  for (const TracedSpan& span : spans) {
    sum += std::max(0.0, span.end_s - std::max(span.begin_s, until));
    until = std::max(until, span.end_s);
  }
  return sum;
}

// Of the run, or of each task of an array: then with the task in place of the rank.
template <typename AddRows>
void add_media_rows(const RunFacts& facts, Table& table, const AddRows& add_rows) {
  if (facts.tasks.empty()) return add_rows(facts, table.rows);
  table.columns.pop_back();
  table.columns.insert(table.columns.begin(), {"task", true});
  std::size_t left_out = 0;
  for (const TaskFacts& task : facts.tasks) {
    std::vector<std::vector<std::string>> rows;
    add_rows(task.run, rows);
    for (std::vector<std::string>& row : rows) {
      if (table.rows.size() == kMostMediaRows) {
        ++left_out;
        continue;
      }
      row.pop_back();
      row.insert(row.begin(), std::to_string(task.number));
      table.rows.push_back(std::move(row));
    }
  }
  if (left_out > 0)
    table.source +=
        format("; {} of {}: the rest with --format json", kMostMediaRows, kMostMediaRows + left_out);
}

}  // namespace

std::vector<ProvenanceRow> provenance(const RunFacts& facts) {
  const record::RunDescription& what = facts.description;
  std::vector<ProvenanceRow> all;
  all.push_back({"run", printable(facts.id), printable(facts.folder.string())});
  all.push_back({"state", state_text(facts), "events-*.jsonl"});
  if (facts.state.started > 0) {
    std::string text = utc(facts.state.started);
    if (facts.state.ended > 0) text += " to " + utc(facts.state.ended);
    all.push_back({"time", text + ", running " + seconds_text(facts.running_s), "events-*.jsonl"});
  }
  if (!what.job_file.empty()) all.push_back({"job", printable(what.job_file), "run.json"});
  all.push_back({"command", quoted(what.command), "run.json"});
  if (!what.params.empty()) all.push_back({"params", pairs_text(what.params), "run.json"});
  all.push_back({"ranks", std::to_string(facts.world_size()), "events-*.jsonl"});
  if (!what.scheduler_job.empty()) all.push_back({"Slurm job", printable(what.scheduler_job), "run.json"});
  if (!what.user.empty()) all.push_back({"user", printable(what.user), "run.json"});
  all.push_back({"code", code_text(facts), facts.capsule.code ? "capsule/code.json" : "run.json"});
  if (facts.capsule.data) {
    for (const record::DataInfo& data : *facts.capsule.data) {
      all.push_back({"data " + printable(data.name), data_text(data), "capsule/data.json"});
    }
  }
  add_environment(facts, all);
  if (!what.stoker_version.empty()) all.push_back({"stoker", printable(what.stoker_version), "run.json"});
  return all;
}

std::vector<std::string> rerun_commands(const RunFacts& facts) {
  const record::RunDescription& what = facts.description;
  std::vector<std::string> lines;
  if (!what.working_directory.empty())
    lines.push_back("cd " + shell_quote(printable(what.working_directory)));
  constexpr std::string_view kActive[] = {"done", "running", "queued", "created"};
  const bool may_resume =
      std::find(std::begin(kActive), std::end(kActive), facts.state_word) == std::end(kActive);
  if (may_resume) {
    lines.push_back(facts.checkpoints.empty() ? "# resume from its last checkpoint, if any"
                                              : "# resume from the last valid checkpoint");
    lines.push_back("stoker resume " + shell_quote(printable(name_from(what.working_directory, facts))));
  }
  const Path folder = absolute_path(facts.folder);
  lines.push_back("# run again from the start");
  if (facts.capsule.code && !facts.capsule.code->commit.empty()) {
    lines.push_back("git checkout " + shell_quote(printable(facts.capsule.code->commit)));
    if (facts.capsule.code->dirty) {
      lines.push_back("git apply " + shell_quote(printable((folder / "capsule/code.diff").string())));
    }
  }
  lines.push_back(facts.rerun_command.empty()
                      ? "stoker run " + shell_quote(printable((folder / "job.yaml").string()))
                      : facts.rerun_command);
  return lines;
}

namespace {

// The step, or the name of a third-party checkpoint.
std::string resume_text(const AttemptFacts& attempt) {
  if (attempt.resume_step) return std::to_string(*attempt.resume_step);
  return attempt.resume.empty() ? "start" : printable(Path(attempt.resume).filename().string());
}

}  // namespace

Table attempts_table(const RunFacts& facts) {
  Table table{"Attempts",
              "attempts/*/events-*.jsonl",
              {{"attempt", true},
               {"state"},
               {"lasted", true},
               {"from step", true},
               {"began"},
               {.name = "ending", .is_long = true}},
              {}};
  for (const AttemptFacts& attempt : facts.attempts) {
    const std::string state = attempt.ending.empty() ? std::string(to_text(attempt.state)) : attempt.ending;
    table.rows.push_back({std::to_string(attempt.number), state,
                          attempt.seconds() > 0 ? seconds_text(attempt.seconds()) : "-", resume_text(attempt),
                          utc(attempt.started), ending_text(attempt)});
  }
  return table;
}

Table changes_table(const RunFacts& facts) {
  Table table{"Changed settings",
              "attempts/*/job.yaml",
              {{"attempt", true}, {"setting"}, {"before"}, {.name = "now", .is_long = true}},
              {}};
  const auto shown = [](const std::string& value) {
    return value.empty() ? "its default" : printable(value);
  };
  for (const AttemptFacts& attempt : facts.attempts) {
    for (const job::Difference& change : attempt.changes)
      table.rows.push_back(
          {std::to_string(attempt.number), change.key, shown(change.before), shown(change.after)});
  }
  return table;
}

Table epochs_table(const RunFacts& facts) {
  Table table{"Epochs",
              "attempts/*/epochs.csv",
              {{"epoch", true},
               {"step", true},
               {"loss", true},
               {"top-1", true},
               {"val. loss", true},
               {"val. top-1", true},
               {"val. top-5", true},
               {"samples/s", true},
               {"lasted", true}},
              {}};
  for (const EpochPoint& epoch : facts.learning.epochs) {
    table.rows.push_back({std::to_string(epoch.epoch + 1), std::to_string(epoch.step),
                          significant(epoch.train_loss), percent(epoch.train_top1),
                          significant(epoch.val_loss), percent(epoch.val_top1), percent(epoch.val_top5),
                          significant(epoch.samples_per_s), seconds_text(epoch.seconds)});
  }
  return table;
}

Table metrics_table(const RunFacts& facts) {
  Table table{"Metrics",
              "attempts/*/points-*.csv, mean over ranks",
              {{"metric"},
               {"step", true},
               {"last", true},
               {"lowest", true},
               {"highest", true},
               {"points", true},
               {"ranks", true}},
              {}};
  for (const MetricCurve& curve : facts.metrics) {
    if (curve.points.empty()) continue;
    const MetricPoint& last = curve.points.back();
    double lowest = last.mean;
    double highest = last.mean;
    for (const MetricPoint& point : curve.points) {
      lowest = std::fmin(lowest, point.mean);
      highest = std::fmax(highest, point.mean);
    }
    table.rows.push_back({printable(curve.name), std::to_string(last.step), metric_text(last.mean),
                          metric_text(lowest), metric_text(highest), std::to_string(curve.points.size()),
                          std::to_string(last.ranks)});
  }
  return table;
}

Table summary_table(const RunFacts& facts) {
  Table table{"Summary",
              "attempts/*/points-*.csv, lines without a step",
              {{"metric"}, {"mean", true}, {"lowest", true}, {"highest", true}, {"ranks", true}},
              {}};
  for (const SummaryValue& each : facts.summary) {
    table.rows.push_back({printable(each.name), metric_text(each.value.mean), metric_text(each.value.lowest),
                          metric_text(each.value.highest), std::to_string(each.value.ranks)});
  }
  return table;
}

Table images_table(const RunFacts& facts) {
  Table table{"Images",
              "attempts/*/media-*.jsonl, lowest rank",
              {{"image"}, {"recorded", true}, {"first step", true}, {"last step", true}, {"rank", true}},
              {}};
  add_media_rows(facts, table, [](const RunFacts& run, std::vector<std::vector<std::string>>& rows) {
    for (const ImageSeries& each : run.images) {
      rows.push_back({printable(each.name), std::to_string(each.recorded), std::to_string(each.first_step),
                      std::to_string(each.last_step), std::to_string(each.rank)});
    }
  });
  return table;
}

Table histograms_table(const RunFacts& facts) {
  Table table{"Histograms",
              "attempts/*/media-*.jsonl, the last one of the lowest rank",
              {{"histogram"},
               {"recorded", true},
               {"step", true},
               {"values", true},
               {"NaN or infinite", true},
               {"lowest", true},
               {"median", true},
               {"highest", true},
               {"rank", true}},
              {}};
  add_media_rows(facts, table, [](const RunFacts& run, std::vector<std::vector<std::string>>& rows) {
    for (const HistogramSeries& each : run.histograms) {
      const DistributionPoint& last = each.points.back();
      rows.push_back({printable(each.name), std::to_string(each.recorded), std::to_string(last.step),
                      grouped(last.count), grouped(last.not_finite), metric_text(last.lowest),
                      metric_text(last.median), metric_text(last.highest), std::to_string(each.rank)});
    }
  });
  return table;
}

Table time_table(const RunFacts& facts) {
  const TimeSplit& time = facts.time;
  Table table{"Seconds", "attempts/*/metrics-*.csv, summed over attempts", {{"part"}}, {}};
  const double total = time.whole ? time.whole->total() : 0;
  if (time.whole) {
    table.columns.push_back({"whole run", true});
    table.columns.push_back({"share", true});
  }
  const std::size_t shown = std::min(time.ranks.size(), kRanksShown);
  for (std::size_t i = 0; i < shown; ++i)
    table.columns.push_back({format("rank {}", time.ranks[i].rank), true});
  for (TimePart part : kAllParts) {
    std::vector<std::string> row = {std::string(to_text(part))};
    if (time.whole) {
      row.push_back(format("{:.2f}", time.whole->seconds_in(part)));
      row.push_back(total > 0 ? percent(time.whole->seconds_in(part) / total) : "-");
    }
    const bool in_step = part != TimePart::validation && part != TimePart::outside;
    for (std::size_t i = 0; i < shown; ++i)
      row.push_back(in_step ? format("{:.2f}", time.ranks[i].seconds_in(part)) : "");
    table.rows.push_back(std::move(row));
  }
  std::vector<std::string> sums = {"all"};
  std::vector<std::string> medians = {"median step"};
  if (time.whole) {
    sums.insert(sums.end(), {format("{:.2f}", total), "100.0 %"});
    medians.insert(medians.end(), {"", ""});
  }
  for (std::size_t i = 0; i < shown; ++i) {
    sums.push_back(format("{:.2f}", time.ranks[i].step_total()));
    medians.push_back(seconds_text(time.ranks[i].median_step_s));
  }
  table.rows.push_back(std::move(sums));
  table.rows.push_back(std::move(medians));
  return table;
}

namespace {

std::string rounded_value(double value, std::string_view unit) {
  return std::isfinite(value) ? format("{:.0f} {}", value, unit) : "-";
}

std::string memory_text(const GpuFacts& gpu) {
  const auto bytes = [](double value) {  // a damaged file may have any number
    return rounded(ByteCount{static_cast<std::uint64_t>(std::min(value, 1e18))});
  };
  if (!(gpu.memory_peak >= 0)) return "-";
  return bytes(gpu.memory_peak) + (gpu.memory_total > 0 ? " of " + bytes(gpu.memory_total) : "");
}

// "12.0 % (power limit 10.0 %, temperature 2.0 %)".
std::string throttled_text(const GpuFacts& gpu) {
  if (!std::isfinite(gpu.throttled_share)) return "-";
  if (gpu.throttle_shares.empty()) return "never";
  std::vector<std::string> reasons;
  for (const auto& [reason, share] : gpu.throttle_shares) {
    const bool is_all = gpu.throttle_shares.size() == 1;
    reasons.push_back(is_all ? reason : format("{} {}", reason, percent(share)));
  }
  return format("{} ({})", percent(gpu.throttled_share), join(reasons, ", "));
}

std::string errors_text(const GpuFacts& gpu) {
  std::vector<std::string> errors;
  for (const GpuError& error : gpu.xids)
    errors.push_back(
        format("Xid {} at {}: {}", error.code, utc(error.time), observe::xid_meaning(error.code)));
  if (gpu.ecc_errors > 0)
    errors.push_back(
        format("{:.0f} uncorrected memory {}", gpu.ecc_errors, gpu.ecc_errors == 1 ? "error" : "errors"));
  return errors.empty() ? "none" : join(errors, "; ");
}

}  // namespace

Table gpus_table(const RunFacts& facts) {
  Table table{"GPUs",
              "attempts/*/system-*.csv and events-*.jsonl",
              {{"GPU"},
               {"mean use", true},
               {"peak use", true},
               {"peak memory", true},
               {"mean power", true},
               {"peak power", true},
               {"SM clock", true},
               {"memory clock", true},
               {"peak temperature", true},
               {"throttled"},
               {.name = "errors", .is_long = true}},
              {}};
  const bool has_nodes = std::ranges::any_of(facts.gpus, [](const GpuFacts& gpu) { return gpu.node > 0; });
  for (const GpuFacts& gpu : facts.gpus) {
    std::string name = std::to_string(gpu.gpu);
    if (has_nodes) name += format(" of node {}", gpu.node);
    if (!gpu.name.empty()) name += ": " + printable(gpu.name);
    if (gpu.mig_devices > 0)
      name += format(", {}", counted(static_cast<std::uint64_t>(gpu.mig_devices), "MIG device"));
    table.rows.push_back({name, rounded_value(gpu.busy_mean, "%"), rounded_value(gpu.busy_peak, "%"),
                          memory_text(gpu), rounded_value(gpu.power_mean, "W"),
                          rounded_value(gpu.power_peak, "W"), rounded_value(gpu.sm_clock_mean, "MHz"),
                          rounded_value(gpu.memory_clock_mean, "MHz"),
                          rounded_value(gpu.temperature_peak, "°C"), throttled_text(gpu), errors_text(gpu)});
  }
  return table;
}

Table checkpoints_table(const RunFacts& facts) {
  Table table{"Checkpoints",
              "attempts/*/events-*.jsonl",
              {{"step", true},
               {"epoch", true},
               {"attempt", true},
               {"at", true},
               {"size", true},
               {"write", true},
               {"stall", true},
               {"folder"}},
              {}};
  for (const CheckpointPoint& point : facts.checkpoints) {
    table.rows.push_back(
        {std::to_string(point.saved.step), std::to_string(point.saved.epoch + 1),
         std::to_string(point.attempt), seconds_text(point.run_time),
         rounded(ByteCount{static_cast<std::uint64_t>(std::max<std::int64_t>(0, point.saved.bytes))}),
         seconds_text(point.saved.seconds), seconds_text(point.saved.stall_s),
         printable(point.saved.folder)});
  }
  return table;
}

TimePart part_of(std::string_view phase) {
  if (phase == "validate") return TimePart::validation;
  for (const TimePart part : kStepParts) {
    if (key_of(part) == phase) return part;
  }
  return TimePart::other;
}

Table traced_table(const RunFacts& facts) {
  Table table{"", "", {{"rank", true}, {"step", true}}, {}};
  if (!facts.traced) return table;
  const TracedStep& traced = *facts.traced;
  table.title = format("Step {} of epoch {}, milliseconds", traced.step, traced.epoch + 1);
  table.source = format("attempts/{}/trace-*.json", traced.attempt);
  constexpr TimePart kShown[] = {TimePart::data,          TimePart::forward,   TimePart::backward,
                                 TimePart::communication, TimePart::optimizer, TimePart::checkpoint,
                                 TimePart::other};
  for (const TimePart part : kShown) table.columns.push_back({std::string(to_text(part)), true});
  table.columns.push_back({"exchanges", true});
  const auto ms = [](double seconds) { return format("{:.2f}", 1e3 * seconds); };
  for (const TracedRank& rank : traced.ranks) {
    double by_part[std::size(kAllParts)] = {};
    double left = rank.end_s - rank.begin_s;
    for (const TracedSpan& span : rank.phases) {
      const TimePart part = part_of(span.name);
      if (part == TimePart::other || part == TimePart::validation) continue;
      by_part[static_cast<int>(part)] += span.end_s - span.begin_s;
      left -= span.end_s - span.begin_s;
    }
    by_part[static_cast<int>(TimePart::other)] = std::max(0.0, left);
    std::vector<std::string> row{std::to_string(rank.rank), ms(rank.end_s - rank.begin_s)};
    for (const TimePart part : kShown) row.push_back(ms(by_part[static_cast<int>(part)]));
    row.push_back(ms(covered_s(rank.exchanges)));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace stoker::report
