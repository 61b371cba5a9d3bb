// Reports of a few healthy hosts, for tests to modify.
#pragma once

#include <string>
#include <vector>

#include "base/language/translator.h"
#include "netcheck/report.h"

namespace stoker::netcheck {

inline std::string address_of(int rank) { return format("10.0.0.{}", rank + 1); }

/// Hosts n1, n2, ... with one rank each, all healthy.
inline Report healthy(int hosts = 3) {
  Report report;
  report.scheduler_job = "12";
  for (int r = 0; r < hosts; ++r) {
    report.hosts.push_back(format("n{}", r + 1));
    RankFacts facts;
    facts.rank = Rank(r);
    facts.host = report.hosts.back();
    facts.cores = {0, 1};
    facts.interfaces = {{.name = "lo", .address = "127.0.0.1", .prefix = 8, .is_loopback = true},
                        {.name = "eth0", .address = address_of(r), .prefix = 24, .mtu = 1500}};
    facts.gloo.chosen = facts.interfaces[1];
    facts.nccl.chosen = facts.interfaces[1];
    facts.addresses = {address_of(r) + ":4000"};
    report.ranks[Rank(r)] = std::move(facts);
    for (int to = 0; to < hosts; ++to) {
      if (to == r) continue;
      report.ways.push_back({Rank(r),
                             {.to = Rank(to),
                              .address = address_of(to) + ":4000",
                              .error = "",
                              .connect_s = 1e-4,
                              .round_trip_s = 5e-5},
                             true});
      report.flows.push_back({Rank(r), {.to = Rank(to), .bytes = 1 << 25, .seconds = 0.02, .error = ""}});
    }
  }
  return report;
}

inline ConnectionProbe& way(Report& report, int from, int to) {
  for (ConnectionProbe& tried : report.ways) {
    if (tried.from == Rank(from) && tried.way.to == Rank(to)) return tried;
  }
  return report.ways.front();
}
inline void block(Report& report, int from, int to) {
  way(report, from, to).way.error = "no answer within 5.0 s";
}
inline void slow_down(Report& report, int from, int to, double seconds) {
  for (MeasuredFlow& measured : report.flows) {
    if (measured.from == Rank(from) && measured.flow.to == Rank(to)) measured.flow.seconds = seconds;
  }
}

/// "job: what | evidence | ... -> cure" of each finding.
inline std::vector<std::string> findings(const Report& report, const Translator& translator = Translator()) {
  std::vector<std::string> lines;
  for (const Finding& finding : judge(report)) {
    std::string line = format("{}: {}", std::string(to_text(finding.level)), translator.render(finding.what));
    for (const Evidence& one : finding.evidence) line += " | " + translator.render(one.text);
    lines.push_back(line + (finding.cure.empty() ? "" : " -> " + translator.render(finding.cure)));
  }
  return lines;
}

/// The cure that excludes n3.
inline constexpr const char* kExcludeN3 = "slurm: {extra: [\"--exclude=n3\"]}      (sbatch --exclude=n3)";

}  // namespace stoker::netcheck
