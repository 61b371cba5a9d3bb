// Paths that not all nodes see, disks that are too small, wrong clocks.
#include <algorithm>
#include <cmath>

#include "netcheck/judge/rules.h"

namespace stoker::netcheck {
namespace {

constexpr double kWrongClock = 2;  // seconds; NTP keeps nodes within milliseconds

void judge_paths(const Report& report, std::vector<Finding>* findings) {
  for (std::size_t i = 0; i < report.paths.size(); ++i) {
    std::map<std::string, std::set<std::string>> hosts;  // by problem
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
    const CheckedPath& path = report.paths[i];
    for (const auto& [problem, where] : hosts) {
      const bool is_some = std::ranges::any_of(fine, [&](const auto& host) { return !where.contains(host); });
      findings->push_back({.rule = "path-not-seen",
                           .level = Level::job,
                           .what = message("{}: {} on {}: {}", printable(path.key), printable(path.path),
                                           names_of(where), reported_message(problem)),
                           .evidence = {},
                           .cure = is_some ? Message(exclusion(report, where))
                                           : message("use a folder that all nodes share")});
      if (is_some)
        findings->back().evidence.push_back({.where = "", .text = message("ok on {}", names_of(fine))});
    }
  }
}

void judge_disks(const Report& report, std::vector<Finding>* findings) {
  std::map<std::string, const NodeView*> small;
  for (const auto& [rank, view] : report.views) {
    if (view.local_free < report.local_needed) small[host_of(report, rank)] = &view;
  }
  for (const auto& [host, view] : small) {
    const std::string needed = rounded(report.local_needed);
    const std::string left = rounded(view->local_free);
    const std::string local = printable(view->local);
    findings->push_back(
        {.rule = "small-local-disk",
         .level = Level::job,
         .what = view->is_memory
                     ? message("staging needs {} on every node, but {} has {} free in {}, which is in memory",
                               needed, host_text(host), left, local)
                     : message("staging needs {} on every node, but {} has {} free in {}", needed,
                               host_text(host), left, local),
         .evidence = {},
         .cure = message("slurm: {{extra: [--tmp=SIZE]}}, or stage: {{directory: a larger one}}")});
  }
}

void judge_clocks(const Report& report, std::vector<Finding>* findings) {
  std::map<std::string, double> wrong;
  for (const auto& [rank, view] : report.views) {
    if (std::abs(view.clock_s) - view.clock_error_s > kWrongClock)
      wrong[host_of(report, rank)] = view.clock_s;
  }
  for (const auto& [host, seconds] : wrong) {
    findings->push_back({.rule = "clock",
                         .level = Level::time,
                         .what = seconds > 0
                                     ? message("the clock of {} is {:.0f} s ahead of this host's: file times "
                                               "are wrong, and munge fails beyond 5 minutes",
                                               host_text(host), seconds)
                                     : message("the clock of {} is {:.0f} s behind this host's: file times "
                                               "are wrong, and munge fails beyond 5 minutes",
                                               host_text(host), -seconds),
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

}  // namespace stoker::netcheck
