// `stoker hello [JOB]`: docs/commands/hello.md
#include <algorithm>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/explain/language.h"
#include "cli/hello_session.h"
#include "cli/run_request.h"
#include "netcheck/facts.h"
#include "netcheck/network_check.h"
#include "netcheck/reported_message.h"
#include "netcheck/tables.h"
#include "netcheck/worker_set.h"
#include "rank/capsule/facts.h"

namespace stoker::cli {
namespace {

using Json = nlohmann::ordered_json;

using netcheck::Report;

struct HelloOptions {
  std::string job;
  std::vector<std::string> set;
  std::optional<std::int64_t> nodes;
  std::optional<std::int64_t> ranks_per_node;
  std::optional<Duration> limit = std::chrono::seconds(30);
  std::optional<Duration> queue = std::chrono::minutes(10);
  std::string python;
  std::string language = kLocaleLanguage;
  bool no_speed = false;
  bool dry_run = false;
};

std::string_view to_text(netcheck::CheckState state) {
  return state == netcheck::CheckState::passed   ? "passed"
         : state == netcheck::CheckState::failed ? "failed"
                                                 : "skipped";
}

std::string headline(const Report& report, const Translator& words) {
  const std::size_t ranks = report.hosts.size() * static_cast<std::size_t>(report.ranks_per_node);
  const std::string text = words.render(netcheck::rank_count(ranks));
  const std::size_t nodes = report.hosts.size();
  if (!report.has_several_hosts())
    return words.localize("hello from {} on {}", text, printable(report.hosts.at(0)));
  // Always several nodes.
  if (report.scheduler_job.empty()) return words.localize("hello from {} on {} nodes", text, nodes);
  return words.localize("hello from {} on {} nodes of Slurm job {}", text, nodes, report.scheduler_job);
}

std::string interface_text(const net::InterfaceChoice& choice, const Translator& words) {
  if (!choice.chosen) return choice.problem.empty() ? untranslated("-") : words.localize("none");
  return format("{} {}", printable(choice.chosen->name), choice.chosen->address);
}

std::string gpu_text(const netcheck::RankFacts& facts) {
  if (facts.visible_gpus) return format("CUDA_VISIBLE_DEVICES={}", printable(*facts.visible_gpus));
  if (facts.gpus.empty()) return "-";
  return format("{} x {}", facts.gpus.size(), facts.gpus.front());
}

void print_ranks(const Report& report, const Translator& words, Output& out) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [rank, facts] : report.ranks) {
    rows.push_back({std::to_string(rank.value), printable(facts.host), netcheck::core_text(facts.cores),
                    gpu_text(facts), interface_text(facts.gloo, words), interface_text(facts.nccl, words)});
  }
  out.table({words.localize("RANK"), words.localize("HOST"), words.localize("CORES"), "GPU", "GLOO", "NCCL"},
            rows);
}

void print_table(const netcheck::CheckTable& table, Output& out) {
  if (table.rows.empty()) return;
  out.line("");
  out.table(table.head, table.rows);
  for (const std::string& note : table.notes) out.line("{}", note);
}

void print(const Report& report, const std::vector<Finding>& findings, const Translator& words, Output& out) {
  out.line("{}", headline(report, words));
  print_check_results(report, words, out);
  out.line("");
  print_ranks(report, words, out);
  print_table(timing_table(report, words), out);
  print_table(gpu_link_table(report, words), out);
  print_table(gpu_timing_table(report, words), out);
  out.line("");
  for (const Finding& finding : findings) out.finding(finding, words);
  const auto fatal = std::ranges::count(findings, Level::job, &Finding::level);
  const std::string elapsed = rounded_duration(std::chrono::duration_cast<Duration>(Seconds(report.seconds)));
  if (findings.empty()) out.line("{}", words.localize("all checks passed after {}", elapsed).text());
  if (fatal > 0) out.line("{}", words.localize("{} would lose the job, after {}", fatal, elapsed).text());
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
                    {"cores", netcheck::core_text(facts.cores)},
                    {"cuda_visible_devices", facts.visible_gpus ? Json(*facts.visible_gpus) : Json(nullptr)},
                    {"gpus", facts.gpus},
                    {"gpu_uuid", facts.gpu_uuid.empty() ? Json(nullptr) : Json(facts.gpu_uuid)},
                    {"gloo", interface_json(facts.gloo)},
                    {"nccl", interface_json(facts.nccl)},
                    {"variables", facts.variables}});
  }
  return list;
}

Json connections_json(const Report& report) {
  Json list = Json::array();
  for (const netcheck::ConnectionProbe& tried : report.ways) {
    list.push_back({{"from", tried.from.value},
                    {"to", tried.way.to.value},
                    {"address", tried.way.address},
                    {"first", tried.is_first},
                    {"error", tried.way.error},
                    {"round_trip_s", tried.way.round_trip_s}});
  }
  return list;
}

Json gpu_links_json(const Report& report) {
  Json list = Json::array();
  for (const auto& [rank, facts] : report.ranks) {
    for (const netcheck::GpuLink& link : facts.gpu_links)
      list.push_back({{"host", facts.host},
                      {"first", link.first},
                      {"second", link.second},
                      {"nvlinks", link.nvlinks},
                      {"peer_access", link.has_peer_access ? Json(*link.has_peer_access) : Json(nullptr)}});
  }
  return list;
}

Json gpu_timings_json(const Report& report) {
  Json list = Json::array();
  for (const netcheck::GpuTiming& timing : report.gpu_timings)
    list.push_back({{"bytes", timing.bytes},
                    {"seconds", timing.seconds},
                    {"algorithm_bytes_per_s", timing.algorithm_bytes_per_s()},
                    {"bus_bytes_per_s", timing.bus_bytes_per_s()},
                    {"bound_bytes_per_s", timing.bound_bytes_per_s}});
  return list;
}

Json to_json(const Report& report, const std::vector<Finding>& findings, const Translator& words) {
  Json steps = Json::array();
  for (const netcheck::CheckStep& step : report.steps) {
    steps.push_back({{"name", step.name},
                     {"state", std::string(to_text(step.state))},
                     {"text", words.render(step.text)},
                     {"seconds", step.seconds}});
  }
  Json flows = Json::array();
  for (const netcheck::MeasuredFlow& measured : report.flows) {
    flows.push_back({{"from", measured.from.value},
                     {"to", measured.flow.to.value},
                     {"bytes_per_s", measured.flow.bytes_per_s()},
                     {"error", measured.flow.error}});
  }
  Json timings = Json::array();
  for (const netcheck::Timing& timing : report.timings) {
    timings.push_back({{"operation", std::string(netcheck::to_text(timing.operation))},
                       {"bytes", timing.bytes},
                       {"seconds", timing.seconds},
                       {"bound_s", timing.bound_s}});
  }
  Json found = Json::array();
  for (const Finding& finding : findings) {
    Json evidence = Json::array();
    for (const Evidence& one : finding.evidence) evidence.push_back(words.render(one.text));
    found.push_back({{"rule", finding.rule},
                     {"level", std::string(stoker::to_text(finding.level))},
                     {"what", words.render(finding.what)},
                     {"evidence", evidence},
                     {"cure", words.render(finding.cure)}});
  }
  const bool is_well = std::ranges::none_of(findings, [](const Finding& f) { return f.level == Level::job; });
  return {{"ready", is_well},
          {"hosts", report.hosts},
          {"ranks_per_node", report.ranks_per_node},
          {"job", report.scheduler_job.empty() ? Json(nullptr) : Json(report.scheduler_job)},
          {"checks", steps},
          {"ranks", ranks_json(report)},
          {"connections", connections_json(report)},
          {"speeds", flows},
          {"timings", timings},
          {"gpu_links", gpu_links_json(report)},
          {"gpu_timings", gpu_timings_json(report)},
          {"findings", found},
          {"seconds", report.seconds}};
}

Result<netcheck::NetworkCheckOptions> session_options(const HelloOptions& o, std::optional<job::Job>& job) {
  if (!o.job.empty()) {
    STOKER_ASSIGN_OR_RETURN(request, request_of({.job = o.job, .set = o.set}, "hello", {}));
    job = std::move(request.job);
  } else if (!o.set.empty()) {
    return invalid("hello: --set needs a job file");
  }
  STOKER_ASSIGN_OR_RETURN(options, hello_session(job, o.nodes, o.ranks_per_node));
  options.limit = *o.limit;
  options.queue_limit = *o.queue;
  options.measures_speed = !o.no_speed;
  options.python = o.python;
  if (job && job->command && o.python.empty())
    options.python = rank::interpreter_of(job->command->arguments, job->environment);
  return options;
}

int show_plan(const netcheck::NetworkCheckOptions& options, Output& out) {
  std::vector<std::string> argv = {options.stoker.string(), "rank", "--hello"};
  if (options.plan.start == rank::StartMethod::srun) {
    argv = netcheck::srun_command({.plan = options.plan,
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
                      "Start the ranks of a job without the job, test connectivity and bandwidth between "
                      "them, and suggest fixes.");
  arguments.optional_positional("JOB", &o.job, "Job file for ranks and environment");
  arguments.option("--set", &o.set, "KEY=VALUE", "Override a job file value");
  arguments.option("--nodes", &o.nodes, "N", "Use N nodes; outside of an allocation srun requests them");
  arguments.option("--ranks-per-node", &o.ranks_per_node, "N", "Start N ranks on each node");
  arguments.option("--limit", &o.limit, "TIME", "Give up on a rank that does not respond for this time");
  arguments.option("--queue", &o.queue, "TIME", "Give up if the nodes are not allocated within this time");
  arguments.option("--python", &o.python, "PROGRAM",
                   "Also test torch.distributed with this interpreter (default: the job's)");
  arguments.flag("--no-speed", &o.no_speed, "Skip the bandwidth measurements");
  arguments.flag("--dry-run", &o.dry_run, "Show the command and the ranks, start nothing");
  add_language_option(arguments, &o.language);
  arguments.example("stoker hello job.yaml");
  arguments.example("stoker hello --nodes 2");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto language = parse_language(o.language);
  if (!language.ok()) return out.fail(language.error());
  std::optional<job::Job> job;
  const auto options = session_options(o, job);
  if (!options.ok()) return out.fail(options.error());
  if (o.dry_run) return show_plan(*options, out);
  install_stop_signals();
  auto progress = out.progress("hello");
  const netcheck::CheckListener listener{
      *progress, [&](const Message& line) { out.note("{}", language->render(line)); }};
  const auto report = netcheck::run_network_check(*options, listener);
  progress.reset();
  if (!report.ok()) return out.fail(report.error());
  const std::vector<Finding> findings = netcheck::judge(*report);
  print(*report, findings, *language, out);
  out.json(json_text(to_json(*report, findings, *language)));
  const bool is_well = std::ranges::none_of(findings, [](const Finding& f) { return f.level == Level::job; });
  if (job) save_hello_record(*job, *report, is_well);
  return is_well ? exit_code::kOk : exit_code::kFailed;
}

}  // namespace stoker::cli
