#include "cli/check/nodes.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json/json.h"
#include "cli/hello_session.h"
#include "cli/running.h"
#include "explain/preflight/preflight.h"
#include "rank/hello/session.h"

namespace stoker::cli {
namespace {

namespace hello_room = rank::hello;
using hello_room::AskedPath;

// Files that show the nodes which folder is meant; gone with this.
class Probes {
 public:
  Probes() = default;
  Probes(const Probes&) = delete;
  Probes& operator=(const Probes&) = delete;
  ~Probes() {
    for (const Path& file : files_) (void)remove_file(file);
  }
  // The name of the file, or "" where none can be made, which is told elsewhere.
  std::string put_into(const Path& folder) {
    const std::string name = ".stoker-probe-" + random_name();
    if (!File::create_new(folder / name).ok()) return "";
    files_.push_back(folder / name);
    return name;
  }

 private:
  std::vector<Path> files_;
};

AskedPath read_path(std::string key, const Path& path) {
  AskedPath asked{.key = std::move(key), .path = path.string()};
  struct stat about{};
  if (::stat(path.c_str(), &about) == 0) {
    asked.inode = about.st_ino;
    asked.changed = about.st_mtim.tv_sec;
  }
  return asked;
}

std::vector<AskedPath> paths_of(const job::Job& job, Probes& probes) {
  std::vector<AskedPath> paths;
  const auto written = [&](std::string key, const Path& folder) {
    const Path there = explain::standing(folder);
    paths.push_back(
        {.key = std::move(key), .path = there.string(), .is_written = true, .probe = probes.put_into(there)});
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
  // What is missing here is told already.
  std::erase_if(paths, [](const AskedPath& asked) { return !path_exists(asked.path); });
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
std::vector<Rank> hosts_of(const hello_room::Report& report) {
  std::vector<Rank> ranks;
  std::set<std::string> seen;
  for (const auto& [rank, facts] : report.ranks) {
    if (seen.insert(facts.host).second) ranks.push_back(rank);
  }
  return ranks;
}

std::string interface_of(const hello_room::RankFacts& facts) {
  const net::InterfaceChoice& choice = facts.gpus.empty() ? facts.gloo : facts.nccl;
  return choice.chosen ? choice.chosen->name : "";
}

}  // namespace

Result<NodesCheck> look_from_nodes(const job::Job& job, const Words& words, Output& out) {
  Probes probes;
  OK_OR_RETURN(options, hello_session(job, std::nullopt, std::nullopt));
  // A minute is enough for what is asked, and is granted soon.
  std::erase_if(options.srun_options,
                [](const std::string& option) { return option.starts_with("--time="); });
  if (options.allocates) options.srun_options.emplace_back("--time=1");
  options.words = words;
  options.measures_speed = false;
  options.looks_at_storage = true;
  options.paths = paths_of(job, probes);
  options.local_needed = staged_bytes(job.stage);
  install_stop_signals();
  auto progress = out.progress("check");
  const hello_room::Audience audience{*progress, [&](const std::string& line) { out.note("{}", line); }};
  auto report = hello_room::run_session(options, audience);
  progress.reset();
  if (!report) return report.error();
  NodesCheck check{.report = std::move(*report), .findings = {}};
  check.findings = hello_room::judge(check.report);
  const bool is_well = std::ranges::none_of(
      check.findings, [](const Finding& finding) { return finding.level == Level::job; });
  keep_hello(job, check.report, is_well);
  return check;
}

void print_nodes(const NodesCheck& check, Output& out) {
  const Words& words = check.report.words;
  out.line("{}", words.say("on the nodes:").text());
  hello_room::Report climbed = check.report;
  std::erase_if(climbed.rungs, [](const auto& rung) { return rung.state == hello_room::RungState::skipped; });
  print_rungs(climbed, out);
  std::vector<std::vector<std::string>> rows;
  for (const Rank rank : hosts_of(check.report)) {
    const hello_room::RankFacts& facts = check.report.ranks.at(rank);
    const auto view = check.report.views.find(rank);
    const bool is_known = view != check.report.views.end();
    const std::string local = is_known ? printable(view->second.local) : "-";
    rows.push_back({printable(facts.host),
                    is_known && view->second.is_memory ? words.say("{} (memory)", local) : quoted(local),
                    is_known ? rounded(view->second.local_free) : "-",
                    is_known ? format("{:+.1f} s", view->second.clock_s) : "-",
                    std::to_string(facts.gpus.size()),
                    interface_of(facts).empty() ? "-" : printable(interface_of(facts))});
  }
  out.line("");
  out.table({words.say("NODE"), words.say("OWN DISK"), words.say("FREE"), words.say("CLOCK"),
             words.say("GPUS"), words.say("INTERFACE")},
            rows);
  if (!check.findings.empty()) out.line("");
  for (const Finding& finding : check.findings) out.finding(finding, words);
}

std::string nodes_json(const NodesCheck& check) {
  nlohmann::ordered_json rungs = nlohmann::ordered_json::array();
  for (const hello_room::Rung& rung : check.report.rungs) {
    const std::string_view state = rung.state == hello_room::RungState::passed   ? "passed"
                                   : rung.state == hello_room::RungState::failed ? "failed"
                                                                                 : "skipped";
    rungs.push_back({{"name", rung.name}, {"state", std::string(state)}, {"text", rung.text}});
  }
  nlohmann::ordered_json hosts = nlohmann::ordered_json::array();
  for (const Rank rank : hosts_of(check.report)) {
    const hello_room::RankFacts& facts = check.report.ranks.at(rank);
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
  return json_text(nlohmann::ordered_json{{"rungs", rungs}, {"hosts", hosts}});
}

}  // namespace stoker::cli
