// Cables: the end of a node's veth pair on this host goes down, or both ends get a queue that is slow and
// loses packets.
#include <cmath>

#include "base/file.h"
#include "lab/fault/act.h"
#include "lab/fault/ask.h"
#include "lab/make/tools.h"

namespace stoker::lab::fault {
namespace {

constexpr auto kToolTime = std::chrono::seconds(30);
constexpr auto kInnerEnd = "eth0";
// The longest that a packet waits in a slow link before it is dropped, as in a switch with small buffers.
constexpr auto kQueue = "100ms";

Status run(const Node& node, std::vector<std::string> argv) {
  argv[0] = find_tool(argv[0]);
  Command command;
  command.argv = std::move(argv);
  return run_tool(node.name, command, Deadline::after(kToolTime)).status();
}

Result<const Node*> find_cable(const Lab& lab, const Request& request, std::string_view verb) {
  OK_OR_RETURN(node, find_node(lab, request.target));
  if (lab.mode == Mode::namespaces) return node;
  return invalid("{}: its link cannot be {}: nodes of {} share this host's network (mode processes)",
                 node->name, verb, lab.name)
      .cure("stoker lab up --mode namespaces     (as root)");
}

// `tc` for one end: ours, or the node's.
std::vector<std::string> tc(const Node& node, bool is_inner, std::vector<std::string> words) {
  std::vector<std::string> argv = {"tc"};
  if (is_inner) argv.insert(argv.end(), {"-netns", node.network_namespace});
  for (std::string& word : words) {
    if (word == "DEV") word = is_inner ? kInnerEnd : node.link;
    argv.push_back(std::move(word));
  }
  return argv;
}

// Four instructions for the kernel: a random number, dropped (2) when below the share, passed on (-1) else.
std::string lossy_program(double loss) {
  constexpr unsigned kRandom = 0xfffff038;  // SKF_AD_OFF + SKF_AD_RANDOM
  const auto threshold = static_cast<std::uint64_t>(std::llround(loss * 4294967295.0));
  return format("4,32 0 0 {},53 1 0 {},6 0 0 2,6 0 0 4294967295", kRandom, threshold);
}

Status slow_end(const Node& node, bool is_inner, const Slowness& slowness) {
  const std::string rate = rate_text(slowness.bits_per_s);
  if (slowness.delay.count() > 0) {
    std::vector<std::string> words = {
        "qdisc", "replace", "dev",   "DEV",   "root",
        "netem", "limit",   "10000", "delay", format("{}us", slowness.delay.count() / 1000)};
    if (slowness.bits_per_s > 0) words.insert(words.end(), {"rate", rate});
    const Status delayed = run(node, tc(node, is_inner, words));
    if (!delayed.ok() && delayed.message().find("qdisc kind is unknown") != std::string_view::npos) {
      return unavailable("{}: this kernel cannot delay packets (--delay; it has no sch_netem)", node.name)
          .cure("stoker lab fault slow {} --rate 10mbit", node.name);
    }
    RETURN_IF_ERROR(delayed);
  } else if (slowness.bits_per_s > 0) {
    // A burst of 10 ms keeps short messages whole; one full packet is the least that passes at all.
    const std::uint64_t burst = std::max<std::uint64_t>(16'384, slowness.bits_per_s / 800);
    RETURN_IF_ERROR(run(node, tc(node, is_inner,
                                 {"qdisc", "replace", "dev", "DEV", "root", "tbf", "rate", rate, "burst",
                                  std::to_string(burst), "latency", kQueue})));
  }
  if (slowness.loss <= 0) return {};
  RETURN_IF_ERROR(run(node, tc(node, is_inner, {"qdisc", "replace", "dev", "DEV", "clsact"})));
  return run(node, tc(node, is_inner,
                      {"filter", "add", "dev", "DEV", "ingress", "bpf", "direct-action", "bytecode",
                       lossy_program(slowness.loss)}));
}

// What is not there is removed already: tc's complaint about it says nothing.
void clean_end(const Node& node, bool is_inner) {
  for (const char* queue : {"root", "clsact"}) {
    (void)run(node, tc(node, is_inner, {"qdisc", "del", "dev", "DEV", queue}));
  }
}

Slowness slowness_of(const Entry& entry) {
  Slowness slowness;
  std::int64_t delay = 0;
  parse_number(entry.note("bits_per_s"), &slowness.bits_per_s);
  parse_number(entry.note("delay_ns"), &delay);
  parse_number(entry.note("loss"), &slowness.loss);
  slowness.delay = Duration(delay);
  return slowness;
}

std::string heard_or_not(const Lab& lab, const Entry& entry, std::string text) {
  if (!wait_until_heard(lab, entry.target)) text += ", but Slurm has not heard from the node yet";
  return text;
}

}  // namespace

Status prepare_cut(const Lab& lab, const Request& request, Entry* entry) {
  OK_OR_RETURN(node, find_cable(lab, request, "cut"));
  entry->target = node->name;
  entry->text = "link down";
  return {};
}

Status cut(Lab& lab, Entry* entry) {
  const Node& node = *lab.find(entry->target);
  return run(node, {"ip", "link", "set", "dev", node.link, "down"});
}

Result<std::string> undo_cut(Lab& lab, const Entry& entry) {
  OK_OR_RETURN(node, find_node(lab, entry.target));
  RETURN_IF_ERROR(run(*node, {"ip", "link", "set", "dev", node->link, "up"}));
  return heard_or_not(lab, entry, "link up");
}

Status prepare_slow(const Lab& lab, const Request& request, Entry* entry) {
  OK_OR_RETURN(node, find_cable(lab, request, "slowed"));
  Slowness slowness = request.slowness;
  if (slowness.bits_per_s == 0 && slowness.delay.count() == 0 && slowness.loss == 0)
    slowness.bits_per_s = 10'000'000;
  entry->target = node->name;
  entry->notes = {{"bits_per_s", std::to_string(slowness.bits_per_s)},
                  {"delay_ns", std::to_string(slowness.delay.count())},
                  {"loss", format("{}", slowness.loss)}};
  std::vector<std::string> how;
  if (slowness.bits_per_s > 0) how.push_back(rate_text(slowness.bits_per_s));
  if (slowness.delay.count() > 0) how.push_back(format("{} later", duration_text(slowness.delay)));
  if (slowness.loss > 0) how.push_back(format("{:g} % of packets lost", 100 * slowness.loss));
  entry->text = format("link slowed each way: {}", join(how, ", "));
  return {};
}

Status slow(Lab& lab, Entry* entry) {
  const Node& node = *lab.find(entry->target);
  const Slowness slowness = slowness_of(*entry);
  for (const bool is_inner : {false, true}) {
    const Status slowed = slow_end(node, is_inner, slowness);
    if (slowed.ok()) continue;
    clean_end(node, false);
    clean_end(node, true);
    return slowed;
  }
  return {};
}

Result<std::string> undo_slow(Lab& lab, const Entry& entry) {
  OK_OR_RETURN(node, find_node(lab, entry.target));
  clean_end(*node, false);
  clean_end(*node, true);
  return heard_or_not(lab, entry, "link at full speed");
}

}  // namespace stoker::lab::fault
