// Ways that fail, and slow ones: of a whole host where all of its ways are, else of a pair.
#include <algorithm>

#include "rank/hello/judge/rules.h"

namespace stoker::rank::hello {
namespace {

// A link this much slower than the better ones is slow whatever they are made of.
constexpr double kOutlier = 0.2;
// Slower than any network between hosts of a cluster (100 Mbit/s).
constexpr double kSlowest = 12.5e6;
// Of what the driver of a real device says it can.
constexpr double kPartOfNominal = 0.05;

using Pair = std::pair<Rank, Rank>;

std::string host_part(std::string_view address) { return std::string(address.substr(0, address.rfind(':'))); }

std::string speed_text(double bytes_per_s) {
  return format("{}/s", rounded({static_cast<std::uint64_t>(std::max(0.0, bytes_per_s))}));
}

// "10.77.1.3 (eth0)"
std::string place_of(const Report& report, Rank rank, const std::string& address) {
  const std::string host = host_part(address);
  const auto found = report.ranks.find(rank);
  if (found != report.ranks.end()) {
    if (const auto one = net::interface_with(host, found->second.interfaces))
      return format("{} ({})", printable(host), printable(one->name));
  }
  return printable(host);
}

// By its first address, and whether another one of the same rank answers.
struct State {
  const TriedWay* first = nullptr;
  const TriedWay* other = nullptr;
  bool is_broken() const { return first != nullptr && !first->way.error.empty(); }
};

std::map<Pair, State> states_of(const Report& report) {
  std::map<Pair, State> states;
  for (const TriedWay& tried : report.ways) {
    State& state = states[{tried.from, tried.way.to}];
    if (tried.is_first) state.first = &tried;
    if (!tried.is_first && tried.way.error.empty() && state.other == nullptr) state.other = &tried;
  }
  return states;
}

bool is_absent(const Report& report, Rank rank) {
  return std::ranges::any_of(report.absent, [&](const Absent& absent) { return absent.rank == rank; });
}

// Ranks of which all pairs with others are in `bad`, if there are at least two others that are fine with each
// other: what is wrong is theirs.
std::set<Rank> culprits(const std::vector<Rank>& all, const std::set<Pair>& bad) {
  const auto is_bad = [&](Rank a, Rank b) { return bad.contains({a, b}) || bad.contains({b, a}); };
  std::set<Rank> found;
  for (const Rank rank : all) {
    const bool has_only_bad =
        std::ranges::all_of(all, [&](const Rank other) { return other == rank || is_bad(rank, other); });
    if (has_only_bad) found.insert(rank);
  }
  std::size_t others = 0;
  for (const Rank rank : all) others += found.contains(rank) ? 0 : 1;
  return others >= 2 ? found : std::set<Rank>();
}

std::string reason_of(const Report& report, const TriedWay& tried) {
  return report.words.say("{} to {} at {}: {}", host_of(report, tried.from), host_of(report, tried.way.to),
                          place_of(report, tried.way.to, tried.way.address),
                          in_words(tried.way.error, report.words));
}

void report_wrong_address(const Report& report, const std::map<Pair, State>& states,
                          std::vector<Finding>* findings) {
  std::vector<Evidence> evidence;
  std::string name;
  for (const auto& [pair, state] : states) {
    if (!state.is_broken() || state.other == nullptr) continue;
    evidence.push_back({"", report.words.say("{}; at {} it answers", reason_of(report, *state.first),
                                             place_of(report, pair.second, state.other->way.address))});
    const auto target = report.ranks.find(pair.second);
    if (target == report.ranks.end()) continue;
    const auto one = net::interface_with(host_part(state.other->way.address), target->second.interfaces);
    if (one && name.empty()) name = one->name;
  }
  if (evidence.empty()) return;
  findings->push_back({.rule = "wrong-interface",
                       .level = Level::job,
                       .what = report.words.say("gloo would give out addresses that the others do not reach"),
                       .evidence = std::move(evidence),
                       .cure = name.empty() ? "" : setting("GLOO_SOCKET_IFNAME", name)});
}

Finding broken_host(const Report& report, const std::map<Pair, State>& states, Rank rank) {
  const std::string host = host_of(report, rank);
  Finding finding{.rule = "unreachable-host", .level = Level::job, .what = "", .evidence = {}, .cure = ""};
  finding.what = report.words.say("{} and the others do not reach each other", host);
  for (const auto& [pair, state] : states) {
    const bool is_its = pair.first == rank || pair.second == rank;
    if (is_its && state.is_broken()) finding.evidence.push_back({"", reason_of(report, *state.first)});
  }
  finding.cure = exclusion(report, {host});
  return finding;
}

Finding broken_pair(const Report& report, const State& there, const State& back) {
  const Words& words = report.words;
  const std::string a = host_of(report, there.first->from);
  const std::string b = host_of(report, there.first->way.to);
  Finding finding{.rule = "broken-pair", .level = Level::job, .what = "", .evidence = {}, .cure = ""};
  finding.evidence.push_back({"", reason_of(report, *there.first)});
  if (back.is_broken()) {
    finding.what = words.say("{} and {} do not reach each other", a, b);
    finding.evidence.push_back({"", reason_of(report, *back.first)});
    finding.cure = exclusion(report, {b});
    return finding;
  }
  finding.what = words.say("{} does not reach {}, though {} reaches {}: new connections are blocked that way",
                           a, b, b, a);
  finding.cure =
      words.say("let {} accept TCP from {} on all ports; until then: {}", b, a, exclusion(report, {b}));
  return finding;
}

void judge_connections(const Report& report, std::vector<Finding>* findings) {
  const std::map<Pair, State> states = states_of(report);
  report_wrong_address(report, states, findings);
  std::set<Pair> bad;
  for (const auto& [pair, state] : states) {
    const bool is_missed = is_absent(report, pair.first) || is_absent(report, pair.second);
    if (state.is_broken() && state.other == nullptr && !is_missed) bad.insert(pair);
  }
  const std::set<Rank> hosts = culprits(callers(report), bad);
  for (const Rank rank : hosts) findings->push_back(broken_host(report, states, rank));
  for (const Pair& pair : bad) {
    const Pair turned{pair.second, pair.first};
    const bool is_told =
        hosts.contains(pair.first) || hosts.contains(pair.second) || (bad.contains(turned) && turned < pair);
    if (is_told) continue;
    const auto back = states.find(turned);
    findings->push_back(broken_pair(report, states.at(pair), back == states.end() ? State{} : back->second));
  }
}

// What is lost when large packets are: the usual reason is that the ends do not agree on their size.
std::string mtu_text(const Report& report, Rank from, Rank to) {
  const auto mtu = [&](Rank rank) {
    const auto found = report.ranks.find(rank);
    if (found == report.ranks.end() || !found->second.gloo.chosen) return 0;
    return found->second.gloo.chosen->mtu;
  };
  if (mtu(from) == 0 || mtu(to) == 0) return "";
  return report.words.say("MTU {} on {}, {} on {}", mtu(from), host_of(report, from), mtu(to),
                          host_of(report, to));
}

void judge_stalls(const Report& report, std::vector<Finding>* findings) {
  const Words& words = report.words;
  for (const MeasuredFlow& measured : report.flows) {
    if (measured.flow.error.empty()) continue;
    const Rank from = measured.from;
    const Rank to = measured.flow.to;
    const std::string mtu = mtu_text(report, from, to);
    const bool is_stalled = measured.flow.error.starts_with("stalled");
    const std::string there = host_of(report, to);
    const std::string error = in_words(measured.flow.error, words);
    Finding finding{
        .rule = is_stalled ? "stalled-pair" : "lost-pair",
        .level = Level::job,
        .what = is_stalled ? words.say("{} to {}: small messages pass, large ones do not: {}",
                                       host_of(report, from), there, error)
                           : words.say("{} to {}: {}", host_of(report, from), there, error),
        .evidence = {},
        .cure = words.say("ip link set dev IFACE mtu 1500 on both, if larger packets are lost between them")};
    if (is_stalled && !mtu.empty()) finding.evidence.push_back({"", mtu});
    if (report.has_several_hosts())
      finding.cure = words.say("{}; or {}", exclusion(report, {there}), finding.cure);
    findings->push_back(std::move(finding));
  }
}

const MeasuredFlow* flow_of(const Report& report, const Pair& pair) {
  for (const MeasuredFlow& measured : report.flows) {
    if (measured.from == pair.first && measured.flow.to == pair.second) return &measured;
  }
  return nullptr;
}

// What the better quarter of all that were measured reaches: one slow host of three makes four ways of six
// slow.
double usual_speed(const Report& report) {
  std::vector<double> speeds;
  for (const MeasuredFlow& measured : report.flows) {
    if (measured.flow.error.empty()) speeds.push_back(measured.flow.bytes_per_s());
  }
  if (speeds.empty()) return 0;
  const std::size_t place = speeds.size() * 3 / 4;
  std::ranges::nth_element(speeds, speeds.begin() + static_cast<std::ptrdiff_t>(place));
  return speeds[place];
}

double nominal_speed(const Report& report, Rank rank) {
  const auto found = report.ranks.find(rank);
  if (found == report.ranks.end() || !found->second.gloo.chosen) return 0;
  return static_cast<double>(found->second.gloo.chosen->speed_mbit) * 1e6 / 8;
}

void judge_speed(const Report& report, std::vector<Finding>* findings) {
  std::set<Pair> slow;
  for (const Pair& pair : slow_pairs(report)) slow.insert(pair);
  if (slow.empty()) return;
  const double usual = usual_speed(report);
  const Words& words = report.words;
  const std::string others =
      report.flows.size() > 2 ? words.say(" (others reach {})", speed_text(usual)).text() : "";
  const auto line = [&](const Pair& pair) -> std::string {
    const MeasuredFlow* measured = flow_of(report, pair);
    return words.say("{} to {}: {}", host_of(report, pair.first), host_of(report, pair.second),
                     speed_text(measured == nullptr ? 0 : measured->flow.bytes_per_s()));
  };
  const std::set<Rank> hosts = culprits(callers(report), slow);
  for (const Rank rank : hosts) {
    Finding finding{.rule = "slow-host", .level = Level::time, .what = "", .evidence = {}, .cure = ""};
    finding.what = words.say("{} is slow to or from all others{}", host_of(report, rank), others);
    for (const Pair& pair : slow) {
      if (pair.first == rank || pair.second == rank) finding.evidence.push_back({"", line(pair)});
    }
    finding.cure = exclusion(report, {host_of(report, rank)});
    findings->push_back(std::move(finding));
  }
  for (const Pair& pair : slow) {
    if (hosts.contains(pair.first) || hosts.contains(pair.second)) continue;
    findings->push_back({.rule = "slow-pair",
                         .level = Level::time,
                         .what = words.say("slow: {}{}", line(pair), others),
                         .evidence = {},
                         .cure = exclusion(report, {host_of(report, pair.second)})});
  }
}

}  // namespace

std::vector<Pair> slow_pairs(const Report& report) {
  std::vector<Pair> slow;
  // Within a host the network is the memory, and who is slow is who else computes there.
  if (!report.has_several_hosts()) return slow;
  const double usual = usual_speed(report);
  for (const MeasuredFlow& measured : report.flows) {
    if (!measured.flow.error.empty()) continue;
    const double speed = measured.flow.bytes_per_s();
    const double nominal =
        std::min(nominal_speed(report, measured.from), nominal_speed(report, measured.flow.to));
    const bool is_outlier = report.flows.size() > 2 && speed < kOutlier * usual;
    if (is_outlier || speed < kSlowest || speed < kPartOfNominal * nominal)
      slow.emplace_back(measured.from, measured.flow.to);
  }
  return slow;
}

net::Link slowest_link(const Report& report) {
  net::Link link;
  for (const MeasuredFlow& measured : report.flows) {
    if (!measured.flow.error.empty()) continue;
    const double speed = measured.flow.bytes_per_s();
    if (link.bytes_per_s == 0 || speed < link.bytes_per_s) link.bytes_per_s = speed;
  }
  for (const TriedWay& tried : report.ways) {
    if (tried.is_first && tried.way.error.empty())
      link.latency_s = std::max(link.latency_s, tried.way.round_trip_s / 2);
  }
  return link;
}

void judge_ways(const Report& report, std::vector<Finding>* findings) {
  judge_connections(report, findings);
  judge_stalls(report, findings);
  judge_speed(report, findings);
}

}  // namespace stoker::rank::hello
