// Names, interfaces and the variables that choose them.
#include <algorithm>

#include "rank/hello/judge/rules.h"

namespace stoker::rank::hello {
namespace {

constexpr double kSlowLookUp = 2;  // seconds; a look-up in a file or a live name server takes milliseconds

std::string interface_list(const RankFacts& facts) {
  std::string list;
  std::set<std::string> seen;
  for (const net::Interface& one : facts.interfaces) {
    if (seen.insert(one.name).second) list += (list.empty() ? "" : ", ") + printable(one.name);
  }
  return list;
}

// The same complaint of several hosts is one finding.
class Complaints {
 public:
  explicit Complaints(const Words& words) : words_(words) {}
  void add(const std::string& what, const RankFacts& facts) {
    hosts_[what].insert(facts.host);
    shown_.emplace(what, interface_list(facts));
  }
  template <typename Tell>
  void each(const Tell& tell) const {
    for (const auto& [what, hosts] : hosts_) tell(what, names_of(hosts, words_), shown_.at(what));
  }

 private:
  const Words words_;
  std::map<std::string, std::set<std::string>> hosts_;
  std::map<std::string, std::string> shown_;
};

bool has_gpus(const Report& report) {
  return report.gpus_wanted > 0 ||
         std::ranges::any_of(report.ranks, [](const auto& entry) { return !entry.second.gpus.empty(); });
}

void judge_names(const Report& report, std::vector<Finding>* findings) {
  const Words& words = report.words;
  std::map<std::string, std::set<std::string>> failed;  // "n3: Name or service not known" -> where
  std::map<std::string, double> slow;                   // host -> the longest look-up
  for (const LookedUp& looked : report.names) {
    const auto asker = report.ranks.find(looked.rank);
    if (asker == report.ranks.end()) continue;
    const net::Resolved& answer = looked.answer;
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
         .what = words.say("the name {} does not resolve on {}: {}", printable(key.substr(0, end)),
                           names_of(hosts, words), in_words(key.substr(end + 1), words)),
         .evidence = {},
         .cure =
             words.say("scripts that meet by names fail; `stoker run` gives them addresses (MASTER_ADDR)")});
  }
  for (const auto& [host, seconds] : slow) {
    findings->push_back(
        {.rule = "slow-names",
         .level = Level::time,
         .what =
             words.say("on {} a name takes {:.1f} s to resolve, there or back: each rendezvous waits for it",
                       printable(host), seconds),
         .evidence = {},
         .cure = words.say("hosts: files dns      (/etc/nsswitch.conf, and the nodes in /etc/hosts)")});
  }
}

void judge_gloo(const Report& report, std::vector<Finding>* findings) {
  const Words& words = report.words;
  Complaints wrong(words);
  Complaints loopback(words);
  for (const auto& [rank, facts] : report.ranks) {
    if (facts.interfaces.empty()) continue;
    if (!facts.gloo.problem.empty()) wrong.add(in_words(facts.gloo.problem, words), facts);
    if (!report.has_several_hosts() || !facts.gloo.problem.empty() || !facts.gloo.chosen ||
        !facts.gloo.chosen->is_loopback)
      continue;
    const auto variable = facts.variables.find("GLOO_SOCKET_IFNAME");
    loopback.add(
        variable != facts.variables.end() && !variable->second.empty()
            ? words.say("GLOO_SOCKET_IFNAME={} is loopback, which no other host reaches",
                        printable(variable->second))
            : words.say(
                  "gloo would listen on loopback, which no other host reaches: the host's own name resolves "
                  "to it, or not at all"),
        facts);
  }
  const std::string name = common_interface(report);
  const auto report_as = [&](std::string rule) {
    return [&, rule = std::move(rule)](const std::string& what, const std::string& hosts,
                                       const std::string& list) {
      findings->push_back(
          {.rule = rule,
           .level = Level::job,
           .what = words.say("{} ({}; there are: {})", what, hosts, list),
           .evidence = {},
           .cure = name.empty() ? "unset GLOO_SOCKET_IFNAME" : setting("GLOO_SOCKET_IFNAME", name)});
    };
  };
  wrong.each(report_as("gloo-interface"));
  loopback.each(report_as("gloo-loopback"));
}

void judge_nccl(const Report& report, std::vector<Finding>* findings) {
  const Words& words = report.words;
  Complaints wrong(words);
  std::map<std::string, net::Interface> chosen;
  for (const auto& [rank, facts] : report.ranks) {
    if (!facts.nccl.problem.empty()) wrong.add(in_words(facts.nccl.problem, words), facts);
    if (facts.nccl.chosen) chosen.emplace(facts.host, *facts.nccl.chosen);
  }
  const std::string name = common_interface(report);
  const Level level = has_gpus(report) ? Level::job : Level::time;
  wrong.each([&](const std::string& what, const std::string& hosts, const std::string& list) {
    findings->push_back(
        {.rule = "nccl-interface",
         .level = level,
         .what = words.say("{} ({}; there are: {})", what, hosts, list),
         .evidence = {},
         .cure = name.empty() ? "unset NCCL_SOCKET_IFNAME" : setting("NCCL_SOCKET_IFNAME", name)});
  });
  if (!has_gpus(report) || !report.has_several_hosts() || chosen.empty()) return;
  for (const auto& [host, one] : chosen) {
    const auto& [first_host, first] = *chosen.begin();
    if (net::share_network(first, one)) continue;
    findings->push_back({.rule = "nccl-networks",
                         .level = Level::time,
                         .what = words.say("NCCL would take {} ({}) on {} and {} ({}) on {}: not one network",
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

// The InfiniBand of the hosts that told of it.
struct Fabrics {
  std::map<std::string, bool> has_active;  // host -> an active port
  Hosts without;                           // hosts that have none
  std::map<std::string, Hosts> down;       // "mlx5_0 port 1 is DOWN" -> hosts
  std::string active_name;                 // some device that is active
};

Fabrics look_at_fabrics(const Report& report) {
  Fabrics fabrics;
  for (const auto& [rank, facts] : report.ranks) {
    if (facts.interfaces.empty()) continue;
    bool& is_active = fabrics.has_active[facts.host];
    for (const FabricPort& port : facts.fabric) {
      is_active = is_active || port.is_active;
      if (port.is_active) {
        fabrics.active_name = port.device;
      } else {
        const std::string what =
            report.words.say("{} port {} is {}", printable(port.device), port.port, printable(port.state));
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
  const Words& words = report.words;
  for (const auto& [what, hosts] : fabrics.down) {
    findings->push_back(
        {.rule = "fabric-down",
         .level = Level::time,
         .what = words.say("{} on {}, and active on other nodes", what, names_of(hosts, words)),
         .evidence = {},
         .cure = words.say("{}; NCCL_IB_DISABLE=1 works, over TCP", exclusion(report, hosts))});
  }
}

// What NCCL is told of InfiniBand, against what there is.
void judge_fabric_variables(const Report& report, const Fabrics& fabrics, std::vector<Finding>* findings) {
  const Words& words = report.words;
  Hosts unused;
  Hosts in_vain;
  for (const auto& [rank, facts] : report.ranks) {
    const auto known = fabrics.has_active.find(facts.host);
    const bool has_active = known != fabrics.has_active.end() && known->second;
    if (value_of(facts, "NCCL_IB_DISABLE") == "1" && has_active) unused.insert(facts.host);
    if (to_lower(value_of(facts, "NCCL_NET")) == "ib" && fabrics.without.contains(facts.host))
      in_vain.insert(facts.host);
  }
  if (!unused.empty()) {
    findings->push_back({.rule = "fabric-unused",
                         .level = Level::time,
                         .what = words.say("NCCL_IB_DISABLE=1 on {}, though {} is active: NCCL goes over TCP",
                                           names_of(unused, words), printable(fabrics.active_name)),
                         .evidence = {},
                         .cure = "unset NCCL_IB_DISABLE"});
  }
  if (!in_vain.empty()) {
    findings->push_back(
        {.rule = "no-fabric",
         .level = has_gpus(report) ? Level::job : Level::time,
         .what = words.say("NCCL_NET=IB, and no InfiniBand port is active on {}", names_of(in_vain, words)),
         .evidence = {},
         .cure = setting("NCCL_NET", "Socket")});
  }
}

void judge_fabric(const Report& report, std::vector<Finding>* findings) {
  const Fabrics fabrics = look_at_fabrics(report);
  judge_fabric_ports(report, fabrics, findings);
  judge_fabric_variables(report, fabrics, findings);
}

// Set by one host's start-up file and not by another's: seldom what was meant.
void judge_differences(const Report& report, std::vector<Finding>* findings) {
  const Words& words = report.words;
  for (std::string_view name : kVariables) {
    std::map<std::string, std::set<std::string>> values;
    for (const auto& [rank, facts] : report.ranks) {
      if (!facts.interfaces.empty()) values[value_of(facts, std::string(name))].insert(facts.host);
    }
    if (values.size() < 2) continue;
    std::string text;
    for (const auto& [value, hosts] : values) {
      const std::string names = names_of(hosts, words);
      text += (text.empty() ? "" : ", ") + (value.empty() ? words.say("not set on {}", names)
                                                          : words.say("{} on {}", printable(value), names))
                                               .text();
    }
    findings->push_back(
        {.rule = "different-variables",
         .level = Level::time,
         .what = words.say("{} is not the same everywhere: {}", name, text),
         .evidence = {},
         .cure = words.say("environment: {{variables: {{{}: ...}}}}, the same for all", name)});
  }
}

void judge_port(const Report& report, std::vector<Finding>* findings) {
  for (const auto& [rank, facts] : report.ranks) {
    if (facts.master_problem.empty()) continue;
    findings->push_back({.rule = "master-port",
                         .level = Level::job,
                         .what = report.words.say("MASTER_PORT on {}: {}", printable(facts.host),
                                                  in_words(facts.master_problem, report.words)),
                         .evidence = {},
                         .cure = report.words.say(
                             "unset MASTER_PORT, and `stoker run` takes a free one      (or: MASTER_PORT={})",
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
  // One by which somebody was reached is better than one that is merely there.
  for (const TriedWay& tried : report.ways) {
    const auto target = report.ranks.find(tried.way.to);
    if (!tried.way.error.empty() || target == report.ranks.end()) continue;
    const std::string address = tried.way.address.substr(0, tried.way.address.rfind(':'));
    const auto one = net::interface_with(address, target->second.interfaces);
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

}  // namespace stoker::rank::hello
