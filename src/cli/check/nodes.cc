#include "cli/check/nodes.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json/json.h"
#include "cli/hello_session.h"
#include "cli/run_request.h"
#include "netcheck/network_check.h"
#include "preflight/preflight.h"

namespace stoker::cli {
namespace {

using netcheck::CheckedPath;

// Probe files that let nodes verify that they see the same folder; removed by the destructor.
class ProbeFiles {
 public:
  ProbeFiles() = default;
  ProbeFiles(const ProbeFiles&) = delete;
  ProbeFiles& operator=(const ProbeFiles&) = delete;
  ~ProbeFiles() {
    for (const Path& file : files_) (void)remove_file(file);
  }
  // The file name, or "" if the folder is not writable, which other checks report.
  std::string create_in(const Path& folder) {
    const std::string name = ".stoker-probe-" + random_name();
    if (!File::create_new(folder / name).ok()) return "";
    files_.push_back(folder / name);
    return name;
  }

 private:
  std::vector<Path> files_;
};

netcheck::CheckedPath read_path(std::string key, const Path& path) {
  netcheck::CheckedPath asked{.key = std::move(key), .path = path.string()};
  struct stat about{};
  if (::stat(path.c_str(), &about) == 0) {
    asked.inode = about.st_ino;
    asked.changed = about.st_mtim.tv_sec;
  }
  return asked;
}

std::vector<CheckedPath> job_paths(const job::Job& job, ProbeFiles& probes) {
  std::vector<CheckedPath> paths;
  const auto written = [&](std::string key, const Path& folder) {
    const Path there = preflight::nearest_existing(folder);
    paths.push_back({.key = std::move(key),
                     .path = there.string(),
                     .is_written = true,
                     .probe = probes.create_in(there)});
  };
  paths.push_back(read_path("working_directory", job.working_directory));
  written("record.directory", job.record.directory);
  if (job.checkpoint.directory) written("checkpoint.directory", *job.checkpoint.directory);
  for (const auto& [name, source] : job.data)
    paths.push_back(read_path(format("data.{}.source", name), source.source));
  for (const std::string& path : job.stage.unpack) paths.push_back(read_path("stage.unpack", path));
  for (const std::string& path : job.stage.copy) paths.push_back(read_path("stage.copy", path));
  if (job.environment.venv) paths.push_back(read_path("environment.venv", *job.environment.venv));
  if (job.environment.container)
    paths.push_back(read_path("environment.container", *job.environment.container));
  if (job.environment.wheelhouse)
    paths.push_back(read_path("environment.wheelhouse", *job.environment.wheelhouse));
  if (job.train && job.train->file) paths.push_back(read_path("train.file", *job.train->file));
  // Other checks report missing paths.
  std::erase_if(paths, [](const netcheck::CheckedPath& asked) { return !path_exists(asked.path); });
  return paths;
}

ByteCount staged_bytes(const job::StageOptions& stage) {
  std::uint64_t bytes = 0;
  const auto add = [&](const std::vector<std::string>& files) {
    for (const std::string& file : files) {
      std::error_code error;
      const auto size =
          std::filesystem::is_regular_file(file, error) ? std::filesystem::file_size(file, error) : 0;
      bytes += error ? 0 : size;
    }
  };
  add(stage.unpack);
  add(stage.copy);
  return {bytes};
}

// The first rank of each host.
std::vector<Rank> hosts_of(const netcheck::Report& report) {
  std::vector<Rank> ranks;
  std::set<std::string> seen;
  for (const auto& [rank, facts] : report.ranks) {
    if (seen.insert(facts.host).second) ranks.push_back(rank);
  }
  return ranks;
}

std::string interface_of(const netcheck::RankFacts& facts) {
  const net::InterfaceChoice& choice = facts.gpus.empty() ? facts.gloo : facts.nccl;
  return choice.chosen ? choice.chosen->name : "";
}

}  // namespace

Result<NodesCheck> check_on_nodes(const job::Job& job, Output& out) {
  ProbeFiles probes;
  STOKER_ASSIGN_OR_RETURN(options, hello_session(job, std::nullopt, std::nullopt));
  // A minute is enough for the checks, and is allocated soon.
  std::erase_if(options.srun_options,
                [](const std::string& option) { return option.starts_with("--time="); });
  if (options.allocates) options.srun_options.emplace_back("--time=1");
  options.measures_speed = false;
  options.checks_storage = true;
  options.paths = job_paths(job, probes);
  options.local_needed = staged_bytes(job.stage);
  install_stop_signals();
  auto progress = out.progress("check");
  const netcheck::CheckListener listener{*progress,
                                         [&](const Message& line) { out.note("{}", line.english()); }};
  auto report = netcheck::run_network_check(options, listener);
  progress.reset();
  if (!report) return report.error();
  NodesCheck check{.report = std::move(*report), .findings = {}};
  check.findings = netcheck::judge(check.report);
  const bool is_well = std::ranges::none_of(
      check.findings, [](const Finding& finding) { return finding.level == Level::job; });
  save_hello_record(job, check.report, is_well);
  return check;
}

void print_nodes(const NodesCheck& check, const Translator& words, Output& out) {
  out.line("{}", words.localize("on the nodes:").text());
  netcheck::Report shown = check.report;
  std::erase_if(shown.steps, [](const auto& step) { return step.state == netcheck::CheckState::skipped; });
  print_check_results(shown, words, out);
  std::vector<std::vector<std::string>> rows;
  for (const Rank rank : hosts_of(check.report)) {
    const netcheck::RankFacts& facts = check.report.ranks.at(rank);
    const auto view = check.report.views.find(rank);
    const bool is_known = view != check.report.views.end();
    const std::string local = is_known ? printable(view->second.local) : "-";
    rows.push_back(
        {printable(facts.host),
         is_known && view->second.is_memory ? words.localize("{} (memory)", local) : untranslated(local),
         is_known ? rounded(view->second.local_free) : "-",
         is_known ? format("{:+.1f} s", view->second.clock_s) : "-", std::to_string(facts.gpus.size()),
         interface_of(facts).empty() ? "-" : printable(interface_of(facts))});
  }
  out.line("");
  out.table({words.localize("NODE"), words.localize("OWN DISK"), words.localize("FREE"),
             words.localize("CLOCK"), words.localize("GPUS"), words.localize("INTERFACE")},
            rows);
  if (!check.findings.empty()) out.line("");
  for (const Finding& finding : check.findings) out.finding(finding, words);
}

std::string nodes_json(const NodesCheck& check, const Translator& words) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const netcheck::CheckStep& step : check.report.steps) {
    const std::string_view state = step.state == netcheck::CheckState::passed   ? "passed"
                                   : step.state == netcheck::CheckState::failed ? "failed"
                                                                                : "skipped";
    steps.push_back({{"name", step.name}, {"state", std::string(state)}, {"text", words.render(step.text)}});
  }
  nlohmann::ordered_json hosts = nlohmann::ordered_json::array();
  for (const Rank rank : hosts_of(check.report)) {
    const netcheck::RankFacts& facts = check.report.ranks.at(rank);
    nlohmann::ordered_json host = {
        {"host", facts.host}, {"gpus", facts.gpus.size()}, {"interface", interface_of(facts)}};
    if (const auto view = check.report.views.find(rank); view != check.report.views.end()) {
      host["local"] = view->second.local;
      host["local_free"] = view->second.local_free.value;
      host["local_is_memory"] = view->second.is_memory;
      host["clock_s"] = view->second.clock_s;
    }
    hosts.push_back(std::move(host));
  }
  return json_text(nlohmann::ordered_json{{"checks", steps}, {"hosts", hosts}});
}

}  // namespace stoker::cli
