// Failed and slow connections: reported for a host if all its connections are affected, else for a pair.
#include <algorithm>

#include "netcheck/judge/rules.h"

namespace stoker::netcheck {
namespace {

// A connection this much slower than the better ones is slow on any hardware.
constexpr double kOutlier = 0.2;
// Slower than any network between hosts of a cluster (100 Mbit/s).
constexpr double kSlowest = 12.5e6;
// Fraction of the device's nominal speed.
constexpr double kPartOfNominal = 0.05;

using Pair = std::pair<Rank, Rank>;

std::string host_part(std::string_view address) { return std::string(address.substr(0, address.rfind(':'))); }

std::string speed_text(double bytes_per_s) {
  return format("{}/s", rounded({static_cast<std::uint64_t>(std::max(0.0, bytes_per_s))}));
}

// "10.77.1.3 (eth0)"
std::string endpoint_text(const Report& report, Rank rank, const std::string& address) {
  const std::string host = host_part(address);
  const auto found = report.ranks.find(rank);
  if (found != report.ranks.end()) {
    if (const auto one = net::find_interface_by_address(host, found->second.interfaces))
      return format("{} ({})", printable(host), printable(one->name));
  }
  return printable(host);
}

// The connection to its first address, and one to another address of the same rank that works.
struct ConnectionState {
  const ConnectionProbe* first = nullptr;
  const ConnectionProbe* other = nullptr;
  bool is_broken() const { return first != nullptr && !first->way.error.empty(); }
};

std::map<Pair, ConnectionState> connection_states(const Report& report) {
  std::map<Pair, ConnectionState> states;
  for (const ConnectionProbe& tried : report.ways) {
    ConnectionState& state = states[{tried.from, tried.way.to}];
    if (tried.is_first) state.first = &tried;
    if (!tried.is_first && tried.way.error.empty() && state.other == nullptr) state.other = &tried;
  }
  return states;
}

bool is_absent(const Report& report, Rank rank) {
  return std::ranges::any_of(report.absent, [&](const AbsentRank& absent) { return absent.rank == rank; });
}

// Ranks whose pairs with all peers are in `bad`, if at least two peers are fine with each other: then the
// fault is theirs.
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

Message reason_of(const Report& report, const ConnectionProbe& tried) {
  return message("{} to {} at {}: {}", host_text(report, tried.from), host_text(report, tried.way.to),
                 endpoint_text(report, tried.way.to, tried.way.address), reported_message(tried.way.error));
}

void report_wrong_address(const Report& report, const std::map<Pair, ConnectionState>& states,
                          std::vector<Finding>* findings) {
  std::vector<Evidence> evidence;
  std::string name;
  for (const auto& [pair, state] : states) {
    if (!state.is_broken() || state.other == nullptr) continue;
    evidence.push_back({"", message("{}; {} answers", reason_of(report, *state.first),
                                    endpoint_text(report, pair.second, state.other->way.address))});
    const auto target = report.ranks.find(pair.second);
    if (target == report.ranks.end()) continue;
    const auto one =
        net::find_interface_by_address(host_part(state.other->way.address), target->second.interfaces);
    if (one && name.empty()) name = one->name;
  }
  if (evidence.empty()) return;
  findings->push_back({.rule = "wrong-interface",
                       .level = Level::job,
                       .what = message("gloo would publish addresses that other ranks cannot reach"),
                       .evidence = std::move(evidence),
                       .cure = name.empty() ? "" : setting("GLOO_SOCKET_IFNAME", name)});
}

Finding broken_host(const Report& report, const std::map<Pair, ConnectionState>& states, Rank rank) {
  const std::string host = host_of(report, rank);
  Finding finding{.rule = "unreachable-host", .level = Level::job, .what = "", .evidence = {}, .cure = ""};
  finding.what = message("{} and its peers cannot reach each other", host_text(host));
  for (const auto& [pair, state] : states) {
    const bool is_affected = pair.first == rank || pair.second == rank;
    if (is_affected && state.is_broken()) finding.evidence.push_back({"", reason_of(report, *state.first)});
  }
  finding.cure = exclusion(report, {host});
  return finding;
}

Finding broken_pair(const Report& report, const ConnectionState& there, const ConnectionState& back) {
  const std::string a = host_of(report, there.first->from);
  const std::string b = host_of(report, there.first->way.to);
  Finding finding{.rule = "broken-pair", .level = Level::job, .what = "", .evidence = {}, .cure = ""};
  finding.evidence.push_back({"", reason_of(report, *there.first)});
  if (back.is_broken()) {
    finding.what = message("{} and {} cannot reach each other", host_text(a), host_text(b));
    finding.evidence.push_back({"", reason_of(report, *back.first)});
    finding.cure = exclusion(report, {b});
    return finding;
  }
  finding.what =
      message("{} cannot reach {}, though {} reaches {}: new connections are blocked in that direction",
              host_text(a), host_text(b), host_text(b), host_text(a));
  finding.cure = message("let {} accept TCP from {} on all ports; until then: {}", host_text(b), host_text(a),
                         exclusion(report, {b}));
  return finding;
}

void judge_connections(const Report& report, std::vector<Finding>* findings) {
  const std::map<Pair, ConnectionState> states = connection_states(report);
  report_wrong_address(report, states, findings);
  std::set<Pair> bad;
  for (const auto& [pair, state] : states) {
    const bool is_missed = is_absent(report, pair.first) || is_absent(report, pair.second);
    if (state.is_broken() && state.other == nullptr && !is_missed) bad.insert(pair);
  }
  const std::set<Rank> hosts = culprits(probing_ranks(report), bad);
  for (const Rank rank : hosts) findings->push_back(broken_host(report, states, rank));
  for (const Pair& pair : bad) {
    const Pair turned{pair.second, pair.first};
    const bool is_reported =
        hosts.contains(pair.first) || hosts.contains(pair.second) || (bad.contains(turned) && turned < pair);
    if (is_reported) continue;
    const auto back = states.find(turned);
    findings->push_back(
        broken_pair(report, states.at(pair), back == states.end() ? ConnectionState{} : back->second));
  }
}

// When large packets are lost, the usual reason is that both ends disagree about the MTU.
Message mtu_text(const Report& report, Rank from, Rank to) {
  const auto mtu = [&](Rank rank) {
    const auto found = report.ranks.find(rank);
    if (found == report.ranks.end() || !found->second.gloo.chosen) return 0;
    return found->second.gloo.chosen->mtu;
  };
  if (mtu(from) == 0 || mtu(to) == 0) return {};
  return message("MTU {} on {}, {} on {}", mtu(from), host_text(report, from), mtu(to),
                 host_text(report, to));
}

void judge_stalls(const Report& report, std::vector<Finding>* findings) {
  for (const MeasuredFlow& measured : report.flows) {
    if (measured.flow.error.empty()) continue;
    const Rank from = measured.from;
    const Rank to = measured.flow.to;
    const Message mtu = mtu_text(report, from, to);
    const bool is_stalled = measured.flow.error.starts_with("stalled");
    const std::string there = host_of(report, to);
    const Message error = reported_message(measured.flow.error);
    Finding finding{
        .rule = is_stalled ? "stalled-pair" : "lost-pair",
        .level = Level::job,
        .what = is_stalled ? message("{} to {}: small messages pass, large ones do not: {}",
                                     host_text(report, from), host_text(there), error)
                           : message("{} to {}: {}", host_text(report, from), host_text(there), error),
        .evidence = {},
        .cure = message("ip link set dev IFACE mtu 1500 on both, if larger packets are lost between them")};
    if (is_stalled && !mtu.empty()) finding.evidence.push_back({"", mtu});
    if (report.has_several_hosts())
      finding.cure = message("{}; or {}", exclusion(report, {there}), finding.cure);
    findings->push_back(std::move(finding));
  }
}

const MeasuredFlow* flow_of(const Report& report, const Pair& pair) {
  for (const MeasuredFlow& measured : report.flows) {
    if (measured.from == pair.first && measured.flow.to == pair.second) return &measured;
  }
  return nullptr;
}

// The upper quartile of the measured speeds: one slow host of three makes four of six connections slow.
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
  const Message others =
      report.flows.size() > 2 ? message(" (other connections reach {})", speed_text(usual)) : Message();
  const auto line = [&](const Pair& pair) {
    const MeasuredFlow* measured = flow_of(report, pair);
    return message("{} to {}: {}", host_text(report, pair.first), host_text(report, pair.second),
                   speed_text(measured == nullptr ? 0 : measured->flow.bytes_per_s()));
  };
  const std::set<Rank> hosts = culprits(probing_ranks(report), slow);
  for (const Rank rank : hosts) {
    Finding finding{.rule = "slow-host", .level = Level::time, .what = "", .evidence = {}, .cure = ""};
    finding.what = message("{} is slow to or from all peers{}", host_text(report, rank), others);
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
                         .what = message("slow: {}{}", line(pair), others),
                         .evidence = {},
                         .cure = exclusion(report, {host_of(report, pair.second)})});
  }
}

}  // namespace

std::vector<Pair> slow_pairs(const Report& report) {
  std::vector<Pair> slow;
  // Within a host, the network is memory, and speed depends on the load.
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

netcheck::Link slowest_link(const Report& report) {
  netcheck::Link link;
  for (const MeasuredFlow& measured : report.flows) {
    if (!measured.flow.error.empty()) continue;
    const double speed = measured.flow.bytes_per_s();
    if (link.bytes_per_s == 0 || speed < link.bytes_per_s) link.bytes_per_s = speed;
  }
  for (const ConnectionProbe& tried : report.ways) {
    if (tried.is_first && tried.way.error.empty())
      link.latency_s = std::max(link.latency_s, tried.way.round_trip_s / 2);
  }
  return link;
}

void judge_connections_and_speed(const Report& report, std::vector<Finding>* findings) {
  judge_connections(report, findings);
  judge_stalls(report, findings);
  judge_speed(report, findings);
}

}  // namespace stoker::netcheck
