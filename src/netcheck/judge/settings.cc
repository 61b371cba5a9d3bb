// Names, interfaces and the variables that choose them.
#include <algorithm>

#include "netcheck/judge/rules.h"

namespace stoker::netcheck {
namespace {

constexpr double kSlowLookUp = 2;  // seconds; a lookup in a file or a live name server takes milliseconds

std::string interface_list(const RankFacts& facts) {
  std::string list;
  std::set<std::string> seen;
  for (const net::Interface& one : facts.interfaces) {
    if (seen.insert(one.name).second) list += (list.empty() ? "" : ", ") + printable(one.name);
  }
  return list;
}

// Merges the same complaint of several hosts into one finding.
class Complaints {
 public:
  void add(const Message& what, const RankFacts& facts) {
    Complaint& complaint = complaints_[what.english()];
    if (complaint.hosts.empty()) complaint.interfaces = interface_list(facts);
    complaint.what = what;
    complaint.hosts.insert(facts.host);
  }
  template <typename Visit>
  void each(const Visit& visit) const {
    for (const auto& [text, complaint] : complaints_)
      visit(complaint.what, names_of(complaint.hosts), complaint.interfaces);
  }

 private:
  struct Complaint {
    Message what;
    std::set<std::string> hosts;
    std::string interfaces;  // of the first host
  };
  std::map<std::string, Complaint> complaints_;  // by its text
};

bool has_gpus(const Report& report) {
  return report.gpus_wanted > 0 ||
         std::ranges::any_of(report.ranks, [](const auto& entry) { return !entry.second.gpus.empty(); });
}

void judge_names(const Report& report, std::vector<Finding>* findings) {
  std::map<std::string, std::set<std::string>> failed;  // "n3: Name or service not known" -> hosts
  std::map<std::string, double> slow;                   // host -> longest lookup
  for (const NameLookup& looked : report.names) {
    const auto asker = report.ranks.find(looked.rank);
    if (asker == report.ranks.end()) continue;
    const netcheck::ResolvedName& answer = looked.answer;
    if (!answer.error.empty() && report.has_several_hosts())
      failed[format("{}\n{}", answer.name, answer.error)].insert(asker->second.host);
    const double longest = std::max(answer.seconds, answer.reverse_seconds);
    if (longest >= kSlowLookUp) slow[asker->second.host] = std::max(slow[asker->second.host], longest);
  }
  for (const auto& [key, hosts] : failed) {
    const std::size_t end = key.find('\n');
    findings->push_back(
        {.rule = "unknown-name",
         .level = Level::time,
         .what = message("the name {} does not resolve on {}: {}", printable(key.substr(0, end)),
                         names_of(hosts), reported_message(key.substr(end + 1))),
         .evidence = {},
         .cure = message(
             "scripts that rendezvous by host name fail; `stoker run` sets addresses (MASTER_ADDR)")});
  }
  for (const auto& [host, seconds] : slow) {
    findings->push_back(
        {.rule = "slow-names",
         .level = Level::time,
         .what = message("on {} name resolution takes {:.1f} s, and each rendezvous waits for it",
                         printable(host), seconds),
         .evidence = {},
         .cure = message("hosts: files dns      (/etc/nsswitch.conf, and the nodes in /etc/hosts)")});
  }
}

void judge_gloo(const Report& report, std::vector<Finding>* findings) {
  Complaints wrong;
  Complaints loopback;
  for (const auto& [rank, facts] : report.ranks) {
    if (facts.interfaces.empty()) continue;
    if (!facts.gloo.problem.empty()) wrong.add(reported_message(facts.gloo.problem), facts);
    if (!report.has_several_hosts() || !facts.gloo.problem.empty() || !facts.gloo.chosen ||
        !facts.gloo.chosen->is_loopback)
      continue;
    const auto variable = facts.variables.find("GLOO_SOCKET_IFNAME");
    loopback.add(
        variable != facts.variables.end() && !variable->second.empty()
            ? message("GLOO_SOCKET_IFNAME={} is loopback, which no other host reaches",
                      printable(variable->second))
            : message(
                  "gloo would listen on loopback, which no other host reaches: the host's own name resolves "
                  "to it, or not at all"),
        facts);
  }
  const std::string name = common_interface(report);
  const auto report_as = [&](std::string rule) {
    return [&, rule = std::move(rule)](const Message& what, const Message& hosts, const std::string& list) {
      findings->push_back(
          {.rule = rule,
           .level = Level::job,
           .what = message("{} ({}; there are: {})", what, hosts, list),
           .evidence = {},
           .cure = name.empty() ? "unset GLOO_SOCKET_IFNAME" : setting("GLOO_SOCKET_IFNAME", name)});
    };
  };
  wrong.each(report_as("gloo-interface"));
  loopback.each(report_as("gloo-loopback"));
}

void judge_nccl(const Report& report, std::vector<Finding>* findings) {
  Complaints wrong;
  std::map<std::string, net::Interface> chosen;
  for (const auto& [rank, facts] : report.ranks) {
    if (!facts.nccl.problem.empty()) wrong.add(reported_message(facts.nccl.problem), facts);
    if (facts.nccl.chosen) chosen.emplace(facts.host, *facts.nccl.chosen);
  }
  const std::string name = common_interface(report);
  const Level level = has_gpus(report) ? Level::job : Level::time;
  wrong.each([&](const Message& what, const Message& hosts, const std::string& list) {
    findings->push_back(
        {.rule = "nccl-interface",
         .level = level,
         .what = message("{} ({}; there are: {})", what, hosts, list),
         .evidence = {},
         .cure = name.empty() ? "unset NCCL_SOCKET_IFNAME" : setting("NCCL_SOCKET_IFNAME", name)});
  });
  if (!has_gpus(report) || !report.has_several_hosts() || chosen.empty()) return;
  for (const auto& [host, one] : chosen) {
    const auto& [first_host, first] = *chosen.begin();
    if (net::are_on_same_subnet(first, one)) continue;
    findings->push_back({.rule = "nccl-networks",
                         .level = Level::time,
                         .what = message("NCCL would use {} ({}) on {} and {} ({}) on {}: different networks",
                                         printable(first.name), first.address, printable(first_host),
                                         printable(one.name), one.address, printable(host)),
                         .evidence = {},
                         .cure = name.empty() ? "" : setting("NCCL_SOCKET_IFNAME", name)});
    return;
  }
}

std::string value_of(const RankFacts& facts, const std::string& name) {
  const auto found = facts.variables.find(name);
  return found == facts.variables.end() ? "" : found->second;
}

using Hosts = std::set<std::string>;

// The InfiniBand state of the hosts that reported it.
struct Fabrics {
  std::map<std::string, bool> has_active;  // host -> an active port
  Hosts without;                           // hosts without an active port
  std::map<Message, Hosts> down;           // "mlx5_0 port 1 is DOWN" -> hosts
  std::string active_name;                 // an active device
};

Fabrics collect_fabrics(const Report& report) {
  Fabrics fabrics;
  for (const auto& [rank, facts] : report.ranks) {
    if (facts.interfaces.empty()) continue;
    bool& is_active = fabrics.has_active[facts.host];
    for (const FabricPort& port : facts.fabric) {
      is_active = is_active || port.is_active;
      if (port.is_active) {
        fabrics.active_name = port.device;
      } else {
        const Message what =
            message("{} port {} is {}", printable(port.device), port.port, printable(port.state));
        fabrics.down[what].insert(facts.host);
      }
    }
  }
  for (const auto& [host, is_active] : fabrics.has_active) {
    if (!is_active) fabrics.without.insert(host);
  }
  return fabrics;
}

void judge_fabric_ports(const Report& report, const Fabrics& fabrics, std::vector<Finding>* findings) {
  const bool is_mixed = !fabrics.without.empty() && fabrics.without.size() < fabrics.has_active.size();
  if (!is_mixed) return;
  for (const auto& [what, hosts] : fabrics.down) {
    findings->push_back({.rule = "fabric-down",
                         .level = Level::time,
                         .what = message("{} on {}, but active on other nodes", what, names_of(hosts)),
                         .evidence = {},
                         .cure = message("{}; NCCL_IB_DISABLE=1 works, over TCP", exclusion(report, hosts))});
  }
}

// Compares NCCL's InfiniBand variables with the hardware.
void judge_fabric_variables(const Report& report, const Fabrics& fabrics, std::vector<Finding>* findings) {
  Hosts unused;
  Hosts unavailable_on;
  for (const auto& [rank, facts] : report.ranks) {
    const auto known = fabrics.has_active.find(facts.host);
    const bool has_active = known != fabrics.has_active.end() && known->second;
    if (value_of(facts, "NCCL_IB_DISABLE") == "1" && has_active) unused.insert(facts.host);
    if (to_lower(value_of(facts, "NCCL_NET")) == "ib" && fabrics.without.contains(facts.host))
      unavailable_on.insert(facts.host);
  }
  if (!unused.empty()) {
    findings->push_back({.rule = "fabric-unused",
                         .level = Level::time,
                         .what = message("NCCL_IB_DISABLE=1 on {}, though {} is active: NCCL uses TCP",
                                         names_of(unused), printable(fabrics.active_name)),
                         .evidence = {},
                         .cure = "unset NCCL_IB_DISABLE"});
  }
  if (!unavailable_on.empty()) {
    findings->push_back(
        {.rule = "no-fabric",
         .level = has_gpus(report) ? Level::job : Level::time,
         .what = message("NCCL_NET=IB, but no InfiniBand port is active on {}", names_of(unavailable_on)),
         .evidence = {},
         .cure = setting("NCCL_NET", "Socket")});
  }
}

void judge_fabric(const Report& report, std::vector<Finding>* findings) {
  const Fabrics fabrics = collect_fabrics(report);
  judge_fabric_ports(report, fabrics, findings);
  judge_fabric_variables(report, fabrics, findings);
}

// Set by the startup files of only some hosts, usually by mistake.
void judge_differences(const Report& report, std::vector<Finding>* findings) {
  for (std::string_view name : kVariables) {
    std::map<std::string, std::set<std::string>> values;
    for (const auto& [rank, facts] : report.ranks) {
      if (!facts.interfaces.empty()) values[value_of(facts, std::string(name))].insert(facts.host);
    }
    if (values.size() < 2) continue;
    Message text;
    for (const auto& [value, hosts] : values) {
      const Message names = names_of(hosts);
      if (!text.empty()) text += ", ";
      text += value.empty() ? message("not set on {}", names) : message("{} on {}", printable(value), names);
    }
    findings->push_back(
        {.rule = "different-variables",
         .level = Level::time,
         .what = message("{} differs between hosts: {}", name, text),
         .evidence = {},
         .cure = message("environment: {{variables: {{{}: ...}}}}      (the same for all ranks)", name)});
  }
}

void judge_port(const Report& report, std::vector<Finding>* findings) {
  for (const auto& [rank, facts] : report.ranks) {
    if (facts.master_problem.empty()) continue;
    findings->push_back(
        {.rule = "master-port",
         .level = Level::job,
         .what =
             message("MASTER_PORT on {}: {}", printable(facts.host), reported_message(facts.master_problem)),
         .evidence = {},
         .cure = message("unset MASTER_PORT      (`stoker run` chooses a free port; or: MASTER_PORT={})",
                         facts.free_port)});
  }
}

}  // namespace

std::string common_interface(const Report& report) {
  std::map<std::string, std::set<std::string>> hosts_with;
  std::set<std::string> hosts;
  for (const auto& [rank, facts] : report.ranks) {
    if (facts.interfaces.empty()) continue;
    hosts.insert(facts.host);
    for (const net::Interface& one : facts.interfaces) {
      if (!one.is_loopback && !one.name.starts_with("docker")) hosts_with[one.name].insert(facts.host);
    }
  }
  // An interface with a successful connection is better than one that merely exists.
  for (const ConnectionProbe& tried : report.ways) {
    const auto target = report.ranks.find(tried.way.to);
    if (!tried.way.error.empty() || target == report.ranks.end()) continue;
    const std::string address = tried.way.address.substr(0, tried.way.address.rfind(':'));
    const auto one = net::find_interface_by_address(address, target->second.interfaces);
    if (one && !one->is_loopback && hosts_with[one->name] == hosts) return one->name;
  }
  for (const auto& [name, present] : hosts_with) {
    if (present == hosts) return name;
  }
  return "";
}

void judge_settings(const Report& report, std::vector<Finding>* findings) {
  judge_port(report, findings);
  judge_gloo(report, findings);
  judge_nccl(report, findings);
  judge_fabric(report, findings);
  judge_names(report, findings);
  judge_differences(report, findings);
}

}  // namespace stoker::netcheck
