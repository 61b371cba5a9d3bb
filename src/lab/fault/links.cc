// Link faults: the host's end of a node's veth pair goes down, or both ends get a queue that delays and drops
// packets.
#include <cmath>

#include "base/file.h"
#include "lab/fault/actions.h"
#include "lab/fault/slurm_query.h"
#include "lab/make/tools.h"

namespace stoker::lab::fault {
namespace {

constexpr auto kToolTime = std::chrono::seconds(30);
constexpr auto kInnerEnd = "eth0";
// Maximum queueing time before a packet is dropped, as in a switch with small buffers.
constexpr auto kQueue = "100ms";

Status run(const LabNode& node, std::vector<std::string> argv) {
  argv[0] = find_tool(argv[0]);
  Command command;
  command.argv = std::move(argv);
  return run_tool(node.name, command, Deadline::after(kToolTime)).status();
}

Result<const LabNode*> find_linked_node(const Lab& lab, const FaultRequest& request, std::string_view verb) {
  STOKER_ASSIGN_OR_RETURN(node, find_node(lab, request.target));
  if (lab.mode == LabMode::namespaces) return node;
  return invalid("{}: its link cannot be {}: nodes of {} share this host's network (mode processes)",
                 node->name, verb, lab.name)
      .cure("stoker lab up --mode namespaces     (as root)");
}

// `tc` for one end: the host's, or the node's.
std::vector<std::string> tc(const LabNode& node, bool is_inner, std::vector<std::string> words) {
  std::vector<std::string> argv = {"tc"};
  if (is_inner) argv.insert(argv.end(), {"-netns", node.network_namespace});
  for (std::string& word : words) {
    if (word == "DEV") word = is_inner ? kInnerEnd : node.link;
    argv.push_back(std::move(word));
  }
  return argv;
}

// BPF program: draws a random number, drops the packet (2) below the share, else passes it (-1).
std::string lossy_program(double loss) {
  constexpr unsigned kRandom = 0xfffff038;  // SKF_AD_OFF + SKF_AD_RANDOM
  const auto threshold = static_cast<std::uint64_t>(std::llround(loss * 4294967295.0));
  return format("4,32 0 0 {},53 1 0 {},6 0 0 2,6 0 0 4294967295", kRandom, threshold);
}

Status slow_end(const LabNode& node, bool is_inner, const LinkImpairment& impairment) {
  const std::string rate = rate_text(impairment.bits_per_s);
  if (impairment.delay.count() > 0) {
    std::vector<std::string> words = {
        "qdisc", "replace", "dev",   "DEV",   "root",
        "netem", "limit",   "10000", "delay", format("{}us", impairment.delay.count() / 1000)};
    if (impairment.bits_per_s > 0) words.insert(words.end(), {"rate", rate});
    const Status delayed = run(node, tc(node, is_inner, words));
    if (!delayed.ok() && delayed.message().find("qdisc kind is unknown") != std::string_view::npos) {
      return unavailable("{}: this kernel cannot delay packets (--delay; it has no sch_netem)", node.name)
          .cure("stoker lab fault slow {} --rate 10mbit", node.name);
    }
    STOKER_RETURN_IF_ERROR(delayed);
  } else if (impairment.bits_per_s > 0) {
    // A burst of 10 ms keeps short messages intact; at least one full packet must fit.
    const std::uint64_t burst = std::max<std::uint64_t>(16'384, impairment.bits_per_s / 800);
    STOKER_RETURN_IF_ERROR(run(node, tc(node, is_inner,
                                        {"qdisc", "replace", "dev", "DEV", "root", "tbf", "rate", rate,
                                         "burst", std::to_string(burst), "latency", kQueue})));
  }
  if (impairment.loss <= 0) return {};
  STOKER_RETURN_IF_ERROR(run(node, tc(node, is_inner, {"qdisc", "replace", "dev", "DEV", "clsact"})));
  return run(node, tc(node, is_inner,
                      {"filter", "add", "dev", "DEV", "ingress", "bpf", "direct-action", "bytecode",
                       lossy_program(impairment.loss)}));
}

// Errors of tc are ignored: the queue may be removed already.
void clean_end(const LabNode& node, bool is_inner) {
  for (const char* queue : {"root", "clsact"}) {
    (void)run(node, tc(node, is_inner, {"qdisc", "del", "dev", "DEV", queue}));
  }
}

LinkImpairment impairment_of(const JournalEntry& entry) {
  LinkImpairment impairment;
  std::int64_t delay = 0;
  parse_number(entry.note("bits_per_s"), &impairment.bits_per_s);
  parse_number(entry.note("delay_ns"), &delay);
  parse_number(entry.note("loss"), &impairment.loss);
  impairment.delay = Duration(delay);
  return impairment;
}

std::string with_response_note(const Lab& lab, const JournalEntry& entry, std::string text) {
  if (!wait_until_responding(lab, entry.target)) text += ", but the node does not respond yet";
  return text;
}

}  // namespace

Status prepare_cut(const Lab& lab, const FaultRequest& request, JournalEntry* entry) {
  STOKER_ASSIGN_OR_RETURN(node, find_linked_node(lab, request, "cut"));
  entry->target = node->name;
  entry->text = "link down";
  return {};
}

Status cut(Lab& lab, JournalEntry* entry) {
  const LabNode& node = *lab.find(entry->target);
  return run(node, {"ip", "link", "set", "dev", node.link, "down"});
}

Result<std::string> undo_cut(Lab& lab, const JournalEntry& entry) {
  STOKER_ASSIGN_OR_RETURN(node, find_node(lab, entry.target));
  STOKER_RETURN_IF_ERROR(run(*node, {"ip", "link", "set", "dev", node->link, "up"}));
  return with_response_note(lab, entry, "link up");
}

Status prepare_slow(const Lab& lab, const FaultRequest& request, JournalEntry* entry) {
  STOKER_ASSIGN_OR_RETURN(node, find_linked_node(lab, request, "slowed"));
  LinkImpairment impairment = request.impairment;
  if (impairment.bits_per_s == 0 && impairment.delay.count() == 0 && impairment.loss == 0)
    impairment.bits_per_s = 10'000'000;
  entry->target = node->name;
  entry->notes = {{"bits_per_s", std::to_string(impairment.bits_per_s)},
                  {"delay_ns", std::to_string(impairment.delay.count())},
                  {"loss", format("{}", impairment.loss)}};
  std::vector<std::string> how;
  if (impairment.bits_per_s > 0) how.push_back(rate_text(impairment.bits_per_s));
  if (impairment.delay.count() > 0) how.push_back(format("{} later", duration_text(impairment.delay)));
  if (impairment.loss > 0) how.push_back(format("{:g} % of packets lost", 100 * impairment.loss));
  entry->text = format("link slowed each way: {}", join(how, ", "));
  return {};
}

Status slow(Lab& lab, JournalEntry* entry) {
  const LabNode& node = *lab.find(entry->target);
  const LinkImpairment impairment = impairment_of(*entry);
  for (const bool is_inner : {false, true}) {
    const Status slowed = slow_end(node, is_inner, impairment);
    if (slowed.ok()) continue;
    clean_end(node, false);
    clean_end(node, true);
    return slowed;
  }
  return {};
}

Result<std::string> undo_slow(Lab& lab, const JournalEntry& entry) {
  STOKER_ASSIGN_OR_RETURN(node, find_node(lab, entry.target));
  clean_end(*node, false);
  clean_end(*node, true);
  return with_response_note(lab, entry, "link at full speed");
}

}  // namespace stoker::lab::fault
