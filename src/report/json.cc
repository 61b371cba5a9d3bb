#include "report/json.h"

#include <algorithm>
#include <cmath>

#include "base/json/json.h"
#include "base/secrets.h"
#include "base/version.h"
#include "report/next_request.h"
#include "report/node_tables.h"
#include "report/results.h"
#include "report/sentence.h"
#include "report/tables.h"

namespace stoker::report {

namespace {

using Json = nlohmann::ordered_json;
constexpr int kVersion = 2;
constexpr std::size_t kCurvePoints = 2000;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// Unix seconds; 0 means unknown or not yet.
Json unix_time(double unix_s) { return unix_s > 0 ? number(unix_s) : Json(nullptr); }

template <typename T>
Json optional(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json list_of(const std::vector<double>& values) {
  Json list = Json::array();
  for (double value : values) list.push_back(number(value));
  return list;
}

Json end_json(const record::RankEnded& end) {
  return {{"rank", end.rank},
          {"host", end.host},
          {"exit_code", optional(end.exit_code)},
          {"signal", optional(end.signal)},
          {"stopped_by_us", end.stopped_by_us},
          {"phase", end.phase},
          {"epoch", optional(end.epoch)},
          {"step", optional(end.step)},
          {"reason", end.reason}};
}

Json attempts_json(const RunFacts& facts) {
  Json list = Json::array();
  for (const AttemptFacts& attempt : facts.attempts) {
    Json ends = Json::array();
    for (const record::RankEnded& end : attempt.ends) ends.push_back(end_json(end));
    Json changes = Json::array();
    for (const job::Difference& change : attempt.changes)
      changes.push_back({{"key", change.key}, {"before", change.before}, {"after", change.after}});
    const bool is_running = attempt.state == record::State::running;
    list.push_back({{"attempt", attempt.number},
                    {"state", to_text(attempt.state)},
                    {"ending", attempt.ending.empty() ? Json(nullptr) : Json(attempt.ending)},
                    {"started", unix_time(attempt.started)},
                    {"ended", is_running ? Json(nullptr) : unix_time(attempt.ended)},
                    {"seconds", number(attempt.seconds())},
                    {"exit_code", optional(attempt.exit_code)},
                    {"first_rank", optional(attempt.first_rank)},
                    {"reason", attempt.reason},
                    {"resume_step", optional(attempt.resume_step)},
                    {"resume", attempt.resume.empty() ? Json(nullptr) : Json(attempt.resume)},
                    {"world_size", attempt.world_size},
                    {"hosts", attempt.hosts},
                    {"changes", changes},
                    {"ranks_ended", ends}});
  }
  return list;
}

Json epochs_json(const RunFacts& facts) {
  Json list = Json::array();
  for (const EpochPoint& e : facts.learning.epochs) {
    list.push_back({{"epoch", e.epoch},
                    {"step", e.step},
                    {"train_loss", number(e.train_loss)},
                    {"train_top1", number(e.train_top1)},
                    {"val_loss", number(e.val_loss)},
                    {"val_top1", number(e.val_top1)},
                    {"val_top5", number(e.val_top5)},
                    {"seconds", number(e.seconds)},
                    {"samples_per_s", number(e.samples_per_s)},
                    {"validation_s", number(e.validation_s)},
                    {"attempt", e.attempt}});
  }
  return list;
}

Json steps_json(const RunFacts& facts) {
  const auto& steps = facts.learning.steps;
  const std::size_t stride = std::max<std::size_t>(1, (steps.size() + kCurvePoints - 1) / kCurvePoints);
  Json object = {{"recorded", steps.size()}, {"stride", stride}};
  for (const char* name : {"step", "run_time", "loss", "top1", "lr"}) object[name] = Json::array();
  for (std::size_t i = 0; i < steps.size(); i += stride) {
    object["step"].push_back(steps[i].step);
    object["run_time"].push_back(number(steps[i].run_time));
    object["loss"].push_back(number(steps[i].loss));
    object["top1"].push_back(number(steps[i].top1));
    object["lr"].push_back(number(steps[i].lr));
  }
  return object;
}

Json points_json(const MetricCurve& curve) {
  const auto& points = curve.points;
  const std::size_t stride = std::max<std::size_t>(1, (points.size() + kCurvePoints - 1) / kCurvePoints);
  Json object = {{"name", curve.name}, {"recorded", points.size()}, {"stride", stride}};
  for (const char* name : {"step", "run_time", "mean", "lowest", "highest", "ranks", "attempt"})
    object[name] = Json::array();
  for (std::size_t i = 0; i < points.size(); i += stride) {
    // The last point of the curve is always there.
    const MetricPoint& point = i + stride < points.size() ? points[i] : points.back();
    object["step"].push_back(point.step);
    object["run_time"].push_back(number(point.run_time));
    object["mean"].push_back(number(point.mean));
    object["lowest"].push_back(number(point.lowest));
    object["highest"].push_back(number(point.highest));
    object["ranks"].push_back(point.ranks);
    object["attempt"].push_back(point.attempt);
  }
  return object;
}

Json metrics_json(const RunFacts& facts) {
  Json list = Json::array();
  for (const MetricCurve& curve : facts.metrics) list.push_back(points_json(curve));
  return list;
}

Json images_json(const RunFacts& facts) {
  Json list = Json::array();
  for (const ImageSeries& series : facts.images) {
    list.push_back({{"name", series.name},
                    {"rank", series.rank},
                    {"recorded", series.recorded},
                    {"first_step", series.first_step},
                    {"last_step", series.last_step}});
  }
  return list;
}

Json histogram_json(const HistogramSeries& series) {
  const auto& points = series.points;
  const std::size_t stride = std::max<std::size_t>(1, (points.size() + kCurvePoints - 1) / kCurvePoints);
  Json object = {
      {"name", series.name}, {"rank", series.rank}, {"recorded", series.recorded}, {"stride", stride}};
  for (const char* name :
       {"step", "attempt", "count", "not_finite", "lowest", "quarter", "median", "three_quarters", "highest"})
    object[name] = Json::array();
  for (std::size_t i = 0; i < points.size(); i += stride) {
    const DistributionPoint& point = i + stride < points.size() ? points[i] : points.back();
    object["step"].push_back(point.step);
    object["attempt"].push_back(point.attempt);
    object["count"].push_back(point.count);
    object["not_finite"].push_back(point.not_finite);
    object["lowest"].push_back(number(point.lowest));
    object["quarter"].push_back(number(point.quarter));
    object["median"].push_back(number(point.median));
    object["three_quarters"].push_back(number(point.three_quarters));
    object["highest"].push_back(number(point.highest));
  }
  object["last"] = {
      {"lowest", series.last.lowest}, {"highest", series.last.highest}, {"counts", series.last.counts}};
  return object;
}

Json histograms_json(const RunFacts& facts) {
  Json list = Json::array();
  for (const HistogramSeries& series : facts.histograms) list.push_back(histogram_json(series));
  return list;
}

Json summary_json(const RunFacts& facts) {
  Json object = Json::object();
  for (const SummaryValue& each : facts.summary) {
    object[each.name] = {{"mean", number(each.value.mean)},
                         {"lowest", number(each.value.lowest)},
                         {"highest", number(each.value.highest)},
                         {"ranks", each.value.ranks}};
  }
  return object;
}

Json rank_time_json(const RankTime& time, bool is_whole) {
  Json seconds = Json::object();
  for (TimePart part : kAllParts) {
    const bool in_step = part != TimePart::validation && part != TimePart::outside;
    if (in_step || is_whole) seconds[std::string(key_of(part))] = number(time.seconds_in(part));
  }
  return {{"rank", time.rank},
          {"steps", time.steps},
          {"median_step_s", number(time.median_step_s)},
          {"total_s", number(is_whole ? time.total() : time.step_total())},
          {"seconds", seconds}};
}

Json time_json(const RunFacts& facts) {
  Json ranks = Json::array();
  for (const RankTime& time : facts.time.ranks) ranks.push_back(rank_time_json(time, false));
  return {{"whole", facts.time.whole ? rank_time_json(*facts.time.whole, true) : Json(nullptr)},
          {"ranks", ranks}};
}

Json spans_json(const std::vector<TracedSpan>& spans) {
  Json list = Json::array();
  for (const TracedSpan& span : spans)
    list.push_back({{"name", span.name}, {"begin_s", number(span.begin_s)}, {"end_s", number(span.end_s)}});
  return list;
}

Json traced_json(const RunFacts& facts) {
  if (!facts.traced) return nullptr;
  Json ranks = Json::array();
  for (const TracedRank& rank : facts.traced->ranks) {
    ranks.push_back({{"rank", rank.rank},
                     {"begin_s", number(rank.begin_s)},
                     {"end_s", number(rank.end_s)},
                     {"phases", spans_json(rank.phases)},
                     {"exchanges", spans_json(rank.exchanges)}});
  }
  return {{"attempt", facts.traced->attempt},
          {"epoch", facts.traced->epoch},
          {"step", facts.traced->step},
          {"seconds", number(facts.traced->seconds)},
          {"ranks", ranks}};
}

Json series_json(const std::vector<Series>& all) {
  Json list = Json::array();
  for (const Series& series : all) {
    list.push_back({{"name", series.name}, {"run_time", list_of(series.x)}, {"value", list_of(series.y)}});
  }
  return list;
}

Json system_json(const RunFacts& facts) {
  Json list = Json::array();
  for (const SystemChart& chart : facts.system) {
    list.push_back({{"title", chart.title},
                    {"unit", chart.unit},
                    {"limit", chart.limit > 0 ? Json(chart.limit) : Json(nullptr)},
                    {"source", chart.source},
                    {"summarized", chart.summarized},
                    {"series", series_json(chart.series)}});
  }
  return list;
}

Json gpus_json(const RunFacts& facts) {
  Json list = Json::array();
  for (const GpuFacts& gpu : facts.gpus) {
    Json reasons = Json::object();
    for (const auto& [reason, share] : gpu.throttle_shares) reasons[reason] = number(share);
    Json xids = Json::array();
    for (const GpuError& error : gpu.xids)
      xids.push_back({{"time", number(error.time)}, {"xid", error.code}});
    list.push_back({{"node", gpu.node},
                    {"gpu", gpu.gpu},
                    {"host", gpu.host},
                    {"name", gpu.name},
                    {"uuid", gpu.uuid},
                    {"pci_bus_id", gpu.pci_bus_id},
                    {"mig_devices", gpu.mig_devices},
                    {"busy_percent_mean", number(gpu.busy_mean)},
                    {"busy_percent_peak", number(gpu.busy_peak)},
                    {"memory_bytes_peak", number(gpu.memory_peak)},
                    {"memory_total_bytes", number(gpu.memory_total)},
                    {"power_w_mean", number(gpu.power_mean)},
                    {"power_w_peak", number(gpu.power_peak)},
                    {"sm_clock_mhz_mean", number(gpu.sm_clock_mean)},
                    {"memory_clock_mhz_mean", number(gpu.memory_clock_mean)},
                    {"temperature_c_peak", number(gpu.temperature_peak)},
                    {"throttled_share", number(gpu.throttled_share)},
                    {"throttle_shares", reasons},
                    {"ecc_errors", number(gpu.ecc_errors)},
                    {"xids", xids}});
  }
  return list;
}

Json energy_json(const observe::NodeEnergy& energy) {
  return {{"cpu_j", optional(energy.cpu_j)},
          {"memory_j", optional(energy.memory_j)},
          {"node_j", optional(energy.node_j)},
          {"gpu_j", optional(energy.gpu_j)},
          {"gpu_is_integrated", energy.is_gpu_integrated}};
}

Json nodes_json(const RunFacts& facts) {
  Json list = Json::array();
  for (const NodeFacts& node : facts.nodes) {
    Json use = Json::object();
    for (std::size_t i = 0; i < observe::kMeasures; ++i) {
      const observe::NodeMeasure& measure = observe::kNodeMeasures[i];
      if (!std::isfinite(node.use[i].mean)) continue;
      Json value = {{"mean", number(node.use[i].mean)}, {"peak", number(node.use[i].peak)}};
      const bool is_rate =
          measure.unit == observe::MeasureUnit::bytes_per_s || measure.unit == observe::MeasureUnit::per_s;
      if (is_rate) value["total"] = number(node.use[i].total);
      use[std::string(measure.key)] = std::move(value);
    }
    list.push_back({{"node", node.node},
                    {"host", node.host},
                    {"seconds", number(node.seconds)},
                    {"cpus", number(node.cpus)},
                    {"ranks_cpu_s", number(node.ranks_cpu_s)},
                    {"memory_limit_bytes", number(node.memory_limit)},
                    {"oom_kills", number(node.oom_kills)},
                    {"sampler_cpu_s", number(node.sampler_cpu_s)},
                    {"use", use},
                    {"energy", energy_json(node.energy)},
                    {"sources", node.sources}});
  }
  return list;
}

Json staging_json(const RunFacts& facts) {
  Json list = Json::array();
  for (const auto& [attempt, data] : facts.staging) {
    list.push_back({{"attempt", attempt},
                    {"nodes", data.nodes},
                    {"read_bytes", data.read},
                    {"received_bytes", data.received},
                    {"cached_bytes", data.cached},
                    {"hit_rate", number(data.hit_rate())},
                    {"seconds", number(data.seconds)}});
  }
  return list;
}

Json request_json(const NextRequest& next) {
  return next.is_empty() ? Json(nullptr) : Json{{"setting", next.setting}, {"sbatch", next.option}};
}

Json efficiency_json(const RunFacts& facts) {
  if (!facts.efficiency) return nullptr;
  const Efficiency& use = *facts.efficiency;
  return {{"cpu_used_s", number(use.cpu_used_s)},
          {"cpu_reserved_s", number(use.cpu_reserved_s)},
          {"cpu_share", number(share_of(use.cpu_used_s, use.cpu_reserved_s))},
          {"memory_peak_bytes", number(use.memory_peak)},
          {"memory_requested_bytes", use.is_memory_limit ? Json(nullptr) : number(use.memory_asked)},
          {"memory_available_bytes", use.is_memory_limit ? number(use.memory_asked) : Json(nullptr)},
          {"memory_share", number(share_of(use.memory_peak, use.memory_asked))},
          {"memory_node", use.memory_node},
          {"time_s", number(use.seconds)},
          {"time_limit_s", number(use.time_limit)},
          {"time_share", number(share_of(use.seconds, use.time_limit))},
          {"gpus", use.gpus},
          {"gpu_busy_percent_mean", number(use.gpu_busy_mean)},
          {"next_cpus", request_json(next_cpus(facts))},
          {"next_memory", request_json(next_memory(facts))},
          {"next_time", request_json(next_time(facts))}};
}

Json checkpoints_json(const RunFacts& facts) {
  Json list = Json::array();
  for (const CheckpointPoint& point : facts.checkpoints) {
    list.push_back({{"step", point.saved.step},
                    {"epoch", point.saved.epoch},
                    {"attempt", point.attempt},
                    {"run_time", number(point.run_time)},
                    {"bytes", point.saved.bytes},
                    {"seconds", number(point.saved.seconds)},
                    {"stall_s", number(point.saved.stall_s)},
                    {"folder", point.saved.folder}});
  }
  return list;
}

Json facts_json(const RunFacts& facts) {
  Json list = Json::array();
  for (const ProvenanceRow& fact : provenance(facts)) {
    list.push_back({{"name", fact.key}, {"value", fact.value}, {"source", fact.source}});
  }
  return list;
}

Json logs_json(const RunFacts& facts) {
  Json list = Json::array();
  for (const LogTail& tail : facts.logs) {
    list.push_back(
        {{"attempt", tail.attempt}, {"rank", tail.rank}, {"file", tail.file}, {"lines", tail.lines}});
  }
  return list;
}

Json cause_json(const RunFacts& facts) {
  if (!facts.cause) return nullptr;
  Json evidence = Json::array();
  for (const auto& [where, text] : facts.cause->evidence)
    evidence.push_back({{"where", where}, {"text", text}});
  return {{"rule", facts.cause->rule},
          {"cause", facts.cause->text},
          {"certainty", facts.cause->is_likely ? "likely" : "known"},
          {"evidence", evidence},
          {"cure", facts.cause->cure}};
}

Json tasks_json(const RunFacts& facts) {
  Json list = Json::array();
  for (const TaskFacts& task : facts.tasks) {
    Json values = Json::object();
    for (const auto& [name, value] : task.values) values[name] = hide_setting(name, value);
    Json results = Json::object();
    for (const auto& [name, value] : results_of(task.run)) results[name] = number(value);
    list.push_back({{"task", task.number},
                    {"values", values},
                    {"state", task.state},
                    {"exit_code", optional(task.exit_code)},
                    {"reason", task.reason},
                    {"host", task.host},
                    {"started", unix_time(task.started)},
                    {"ended", unix_time(task.ended)},
                    {"run", task.run.id.empty() ? Json(nullptr) : Json(task.run.folder.string())},
                    {"results", results},
                    {"images", images_json(task.run)},
                    {"histograms", histograms_json(task.run)}});
  }
  return list;
}

Json run_json(const RunFacts& facts) {
  Json object;
  object["id"] = facts.id;
  object["name"] = facts.description.name;
  object["folder"] = facts.folder.string();
  object["result"] = result_sentence(facts);
  object["state"] = facts.state_word;
  object["exit_code"] = optional(facts.state.exit_code);
  object["first_rank"] = optional(facts.state.first_rank);
  object["reason"] = facts.state.reason;
  object["cause"] = cause_json(facts);
  object["started"] = unix_time(facts.state.started);
  object["ended"] = unix_time(facts.state.ended);
  object["running_s"] = number(facts.running_s);
  object["world_size"] = facts.world_size();
  object["resumes"] = facts.resumes();
  object["redone_steps"] = facts.learning.redone_steps;
  object["resumed_at"] = facts.learning.resumed_at;
  object["samples_per_s"] = facts.samples_per_s > 0 ? Json(facts.samples_per_s) : Json(nullptr);
  object["command"] = facts.description.command;
  object["facts"] = facts_json(facts);
  object["tasks"] = tasks_json(facts);
  object["attempts"] = attempts_json(facts);
  object["epochs"] = epochs_json(facts);
  object["steps"] = steps_json(facts);
  object["metrics"] = metrics_json(facts);
  object["summary"] = summary_json(facts);
  object["images"] = images_json(facts);
  object["histograms"] = histograms_json(facts);
  object["time"] = time_json(facts);
  object["traced_step"] = traced_json(facts);
  object["speed"] = series_json(facts.speed);
  object["system"] = system_json(facts);
  object["nodes"] = nodes_json(facts);
  object["efficiency"] = efficiency_json(facts);
  object["staging"] = staging_json(facts);
  object["gpus"] = gpus_json(facts);
  object["checkpoints"] = checkpoints_json(facts);
  object["logs"] = logs_json(facts);
  object["notes"] = facts.notes;
  object["rerun_commands"] = rerun_commands(facts);
  return object;
}

}  // namespace

std::string to_json(std::span<const RunFacts> runs) {
  Json object;
  object["format"] = "stoker-report";
  object["version"] = kVersion;
  object["stoker_version"] = version();
  object["runs"] = Json::array();
  for (const RunFacts& facts : runs) object["runs"].push_back(run_json(facts));
  return json_text(object);
}

}  // namespace stoker::report
