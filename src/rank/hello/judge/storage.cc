// Paths that not all nodes see, disks that are too small, clocks that go wrong.
#include <algorithm>
#include <cmath>

#include "rank/hello/judge/rules.h"

namespace stoker::rank::hello {
namespace {

constexpr double kWrongClock = 2;  // seconds; NTP keeps nodes within milliseconds

void judge_paths(const Report& report, std::vector<Finding>* findings) {
  for (std::size_t i = 0; i < report.paths.size(); ++i) {
    std::map<std::string, std::set<std::string>> hosts;  // by what is wrong there
    std::set<std::string> fine;
    for (const auto& [rank, view] : report.views) {
      if (i >= view.problems.size()) continue;
      const std::string host = host_of(report, rank);
      if (view.problems[i].empty()) {
        fine.insert(host);
      } else {
        hosts[view.problems[i]].insert(host);
      }
    }
    const AskedPath& path = report.paths[i];
    for (const auto& [problem, where] : hosts) {
      const bool is_some = std::ranges::any_of(fine, [&](const auto& host) { return !where.contains(host); });
      findings->push_back({.rule = "path-not-seen",
                           .level = Level::job,
                           .what = format("{}: {} on {}: {}", printable(path.key), printable(path.path),
                                          names_of(where), printable(problem)),
                           .evidence = {},
                           .cure = is_some ? exclusion(report, where) : "a place that the nodes share"});
      if (is_some)
        findings->back().evidence.push_back(
            {.where = "", .text = format("it is well on {}", names_of(fine))});
    }
  }
}

void judge_disks(const Report& report, std::vector<Finding>* findings) {
  std::map<std::string, const NodeView*> small;
  for (const auto& [rank, view] : report.views) {
    if (view.local_free < report.local_needed) small[host_of(report, rank)] = &view;
  }
  for (const auto& [host, view] : small) {
    findings->push_back(
        {.rule = "small-local-disk",
         .level = Level::job,
         .what = format("stage brings {} to every node, and {} has {} left in {}{}",
                        rounded(report.local_needed), printable(host), rounded(view->local_free),
                        printable(view->local), view->is_memory ? ", which is memory" : ""),
         .evidence = {},
         .cure = "slurm: {extra: [--tmp=SIZE]}, or stage: {directory: a larger one}"});
  }
}

void judge_clocks(const Report& report, std::vector<Finding>* findings) {
  std::map<std::string, double> wrong;
  for (const auto& [rank, view] : report.views) {
    if (std::abs(view.clock_s) - view.clock_error_s > kWrongClock)
      wrong[host_of(report, rank)] = view.clock_s;
  }
  for (const auto& [host, seconds] : wrong) {
    findings->push_back(
        {.rule = "clock",
         .level = Level::time,
         .what = format("the clock of {} is {:.0f} s {} this one's: files seem newer or older than "
                        "they are, and beyond 5 minutes munge refuses",
                        printable(host), std::abs(seconds), seconds > 0 ? "ahead of" : "behind"),
         .evidence = {},
         .cure = exclusion(report, {host})});
  }
}

}  // namespace

void judge_storage(const Report& report, std::vector<Finding>* findings) {
  judge_paths(report, findings);
  judge_disks(report, findings);
  judge_clocks(report, findings);
}

}  // namespace stoker::rank::hello
