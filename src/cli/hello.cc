// `stoker hello [JOB]`: docs/commands/hello.md
#include <algorithm>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/explain/language.h"
#include "cli/hello_session.h"
#include "cli/running.h"
#include "rank/capsule/facts.h"
#include "rank/hello/crew.h"
#include "rank/hello/facts.h"
#include "rank/hello/said.h"
#include "rank/hello/session.h"

namespace stoker::cli {
namespace {

using Json = nlohmann::ordered_json;
namespace hello_room = rank::hello;
using hello_room::Report;

struct HelloOptions {
  std::string job;
  std::vector<std::string> set;
  std::optional<std::int64_t> nodes;
  std::optional<std::int64_t> ranks_per_node;
  std::optional<Duration> limit = std::chrono::seconds(30);
  std::optional<Duration> queue = std::chrono::minutes(10);
  std::string python;
  std::string language = kLanguageOfLocale;
  bool no_speed = false;
  bool dry_run = false;
};

std::string_view to_text(hello_room::RungState state) {
  return state == hello_room::RungState::passed   ? "passed"
         : state == hello_room::RungState::failed ? "failed"
                                                  : "skipped";
}

std::string seconds_text(double seconds) {
  if (seconds < 0.001) return format("{:.0f} us", seconds * 1e6);
  return rounded_duration(std::chrono::duration_cast<Duration>(Seconds(seconds)));
}

std::string speed_text(double bytes_per_s) {
  return format("{}/s", rounded({static_cast<std::uint64_t>(std::max(0.0, bytes_per_s))}));
}

std::string size_text(std::uint64_t bytes) {
  return bytes >= (1 << 20) ? format("{} MiB", bytes >> 20) : format("{} KiB", bytes >> 10);
}

std::string place_text(const Report& report) {
  const std::size_t ranks = report.hosts.size() * static_cast<std::size_t>(report.ranks_per_node);
  const Words& words = report.words;
  const std::string text = hello_room::rank_count(ranks, words);
  const std::size_t nodes = report.hosts.size();
  if (!report.has_several_hosts())
    return words.say("hello from {} on {}", text, printable(report.hosts.at(0)));
  if (report.scheduler_job.empty()) return words.say("hello from {} on {} nodes", text, nodes);
  return words.say("hello from {} on {} nodes of Slurm job {}", text, nodes, report.scheduler_job);
}

std::string interface_text(const net::InterfaceChoice& choice, const Words& words) {
  if (!choice.chosen) return choice.problem.empty() ? quoted("-") : words.say("none");
  return format("{} {}", printable(choice.chosen->name), choice.chosen->address);
}

std::string gpu_text(const hello_room::RankFacts& facts) {
  if (facts.visible_gpus) return format("CUDA_VISIBLE_DEVICES={}", printable(*facts.visible_gpus));
  if (facts.gpus.empty()) return "-";
  return format("{} x {}", facts.gpus.size(), facts.gpus.front());
}

void print_ranks(const Report& report, Output& out) {
  const Words& words = report.words;
  std::vector<std::vector<std::string>> rows;
  for (const auto& [rank, facts] : report.ranks) {
    rows.push_back({std::to_string(rank.value), printable(facts.host), hello_room::core_text(facts.cores),
                    gpu_text(facts), interface_text(facts.gloo, words), interface_text(facts.nccl, words)});
  }
  out.table({words.say("RANK"), words.say("HOST"), words.say("CORES"), "GPU", "GLOO", "NCCL"}, rows);
}

void print_timings(const Report& report, Output& out) {
  if (report.timings.empty()) return;
  const Words& words = report.words;
  std::vector<std::vector<std::string>> rows;
  for (const hello_room::Timing& timing : report.timings) {
    rows.push_back({std::string(net::to_text(timing.operation)), size_text(timing.bytes),
                    seconds_text(timing.seconds), speed_text(timing.bytes_per_s()),
                    seconds_text(timing.bound_s),
                    format("{:.0f} %", timing.seconds > 0 ? 100 * timing.bound_s / timing.seconds : 0)});
  }
  out.line("");
  out.table({words.say("OPERATION"), words.say("SIZE"), words.say("TIME"), words.say("SPEED"),
             words.say("BOUND"), words.say("OF IT")},
            rows);
  out.line("{}", words.say("bound: what the slowest way alone allows, without computing").text());
  const bool is_beaten = std::ranges::any_of(
      report.timings, [](const hello_room::Timing& timing) { return timing.bound_s > 1.1 * timing.seconds; });
  if (!is_beaten) return;
  out.line(
      "{}",
      words.say("       (some are over it: what is short stays in caches, or the machine was busy before)")
          .text());
}

void print(const Report& report, const std::vector<Finding>& findings, Output& out) {
  const Words& words = report.words;
  out.line("{}", place_text(report));
  print_rungs(report, out);
  out.line("");
  print_ranks(report, out);
  print_timings(report, out);
  out.line("");
  for (const Finding& finding : findings) out.finding(finding, words);
  const auto losing = std::ranges::count(findings, Level::job, &Finding::level);
  const std::string taken = rounded_duration(std::chrono::duration_cast<Duration>(Seconds(report.seconds)));
  if (findings.empty()) out.line("{}", words.say("all is well, after {}", taken).text());
  if (losing > 0) out.line("{}", words.say("{} would lose the job, after {}", losing, taken).text());
}

Json interface_json(const net::InterfaceChoice& choice) {
  if (!choice.chosen) return nullptr;
  return {{"name", choice.chosen->name}, {"address", choice.chosen->address}, {"mtu", choice.chosen->mtu}};
}

Json ranks_json(const Report& report) {
  Json list = Json::array();
  for (const auto& [rank, facts] : report.ranks) {
    list.push_back({{"rank", rank.value},
                    {"host", facts.host},
                    {"local_rank", facts.local_rank},
                    {"cores", hello_room::core_text(facts.cores)},
                    {"cuda_visible_devices", facts.visible_gpus ? Json(*facts.visible_gpus) : Json(nullptr)},
                    {"gpus", facts.gpus},
                    {"gloo", interface_json(facts.gloo)},
                    {"nccl", interface_json(facts.nccl)},
                    {"variables", facts.variables}});
  }
  return list;
}

Json ways_json(const Report& report) {
  Json list = Json::array();
  for (const hello_room::TriedWay& tried : report.ways) {
    list.push_back({{"from", tried.from.value},
                    {"to", tried.way.to.value},
                    {"address", tried.way.address},
                    {"first", tried.is_first},
                    {"error", tried.way.error},
                    {"round_trip_s", tried.way.round_trip_s}});
  }
  return list;
}

Json to_json(const Report& report, const std::vector<Finding>& findings) {
  Json rungs = Json::array();
  for (const hello_room::Rung& rung : report.rungs) {
    rungs.push_back({{"name", rung.name},
                     {"state", std::string(to_text(rung.state))},
                     {"text", rung.text},
                     {"seconds", rung.seconds}});
  }
  Json flows = Json::array();
  for (const hello_room::MeasuredFlow& measured : report.flows) {
    flows.push_back({{"from", measured.from.value},
                     {"to", measured.flow.to.value},
                     {"bytes_per_s", measured.flow.bytes_per_s()},
                     {"error", measured.flow.error}});
  }
  Json timings = Json::array();
  for (const hello_room::Timing& timing : report.timings) {
    timings.push_back({{"operation", std::string(net::to_text(timing.operation))},
                       {"bytes", timing.bytes},
                       {"seconds", timing.seconds},
                       {"bound_s", timing.bound_s}});
  }
  Json found = Json::array();
  for (const Finding& finding : findings) {
    Json evidence = Json::array();
    for (const Evidence& one : finding.evidence) evidence.push_back(one.text);
    found.push_back({{"rule", finding.rule},
                     {"level", std::string(stoker::to_text(finding.level))},
                     {"what", finding.what},
                     {"evidence", evidence},
                     {"cure", finding.cure}});
  }
  const bool is_well = std::ranges::none_of(findings, [](const Finding& f) { return f.level == Level::job; });
  return {{"ready", is_well},
          {"hosts", report.hosts},
          {"ranks_per_node", report.ranks_per_node},
          {"job", report.scheduler_job.empty() ? Json(nullptr) : Json(report.scheduler_job)},
          {"rungs", rungs},
          {"ranks", ranks_json(report)},
          {"ways", ways_json(report)},
          {"speeds", flows},
          {"timings", timings},
          {"findings", found},
          {"seconds", report.seconds}};
}

Result<hello_room::SessionOptions> session_of(const HelloOptions& o, std::optional<job::Job>& job) {
  if (!o.job.empty()) {
    OK_OR_RETURN(request, request_of({.job = o.job, .set = o.set}, "hello", {}));
    job = std::move(request.job);
  } else if (!o.set.empty()) {
    return invalid("hello: --set is for the values of a job file, and there is none");
  }
  OK_OR_RETURN(options, hello_session(job, o.nodes, o.ranks_per_node));
  OK_OR_RETURN(words, words_named(o.language));
  options.words = words;
  options.limit = *o.limit;
  options.queue_limit = *o.queue;
  options.measures_speed = !o.no_speed;
  options.python = o.python;
  if (job && job->command && o.python.empty())
    options.python = rank::interpreter_of(job->command->arguments, job->environment);
  return options;
}

int show_plan(const hello_room::SessionOptions& options, Output& out) {
  std::vector<std::string> argv = {options.stoker.string(), "rank", "--hello"};
  if (options.plan.start == rank::Start::srun) {
    argv = hello_room::srun_command({.plan = options.plan,
                                     .srun_options = options.srun_options,
                                     .environment = {},
                                     .stoker = options.stoker,
                                     .invitation = {}});
  }
  std::string text;
  for (const std::string& word : argv) text += (text.empty() ? "" : " ") + shell_quote(word);
  const int ranks = options.plan.world_size().value;
  out.line("would start {}: {}", counted(static_cast<std::uint64_t>(ranks), "rank"), text);
  out.json(json_text(nlohmann::ordered_json{
      {"ranks", ranks}, {"nodes", options.plan.nodes}, {"allocates", options.allocates}, {"command", argv}}));
  return exit_code::kOk;
}

}  // namespace

int hello(std::span<const std::string> words, Output& out) {
  HelloOptions o;
  Arguments arguments("hello",
                      "Starts the ranks of a job without the job, and climbs from names over connections to "
                      "all-reduce: what fails or is slow, and what cures it.");
  arguments.optional_positional("JOB", &o.job, "the job file whose ranks and environment count");
  arguments.option("--set", &o.set, "KEY=VALUE", "lays a value over the job file");
  arguments.option("--nodes", &o.nodes, "N",
                   "so many nodes; outside of an allocation srun asks the queue for them");
  arguments.option("--ranks-per-node", &o.ranks_per_node, "N", "so many ranks on each");
  arguments.option("--limit", &o.limit, "TIME",
                   "gives a rank up that has not come, or gives no sign, for so long");
  arguments.option("--queue", &o.queue, "TIME", "gives up when the nodes are not granted by then");
  arguments.option("--python", &o.python, "PROGRAM",
                   "tries torch.distributed, too, by this interpreter; without it by the job's");
  arguments.flag("--no-speed", &o.no_speed, "leaves out what is measured");
  arguments.flag("--dry-run", &o.dry_run, "show what would be started, and start nothing");
  add_language_option(arguments, &o.language);
  arguments.example("stoker hello job.yaml");
  arguments.example("stoker hello --nodes 2");
  if (const auto code = arguments.parse(words, out)) return *code;
  std::optional<job::Job> job;
  const auto options = session_of(o, job);
  if (!options.ok()) return out.fail(options.error());
  if (o.dry_run) return show_plan(*options, out);
  install_stop_signals();
  auto progress = out.progress("hello");
  const hello_room::Audience audience{*progress, [&](const std::string& line) { out.note("{}", line); }};
  const auto report = hello_room::run_session(*options, audience);
  progress.reset();
  if (!report.ok()) return out.fail(report.error());
  const std::vector<Finding> findings = hello_room::judge(*report);
  print(*report, findings, out);
  out.json(json_text(to_json(*report, findings)));
  const bool is_well = std::ranges::none_of(findings, [](const Finding& f) { return f.level == Level::job; });
  if (job) keep_hello(*job, *report, is_well);
  return is_well ? exit_code::kOk : exit_code::kFailed;
}

}  // namespace stoker::cli
