#include "diagnose/failure.h"

#include <algorithm>
#include <memory>
#include <set>

#include "diagnose/cures.h"
#include "diagnose/departure.h"
#include "diagnose/log_line.h"
#include "diagnose/log_text.h"
#include "diagnose/root_cause.h"
#include "diagnose/rule.h"
#include "diagnose/scan.h"
#include "diagnose/survived.h"
#include "diagnose/watchdog.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

constexpr std::size_t kMaxEvidence = 3;
constexpr std::size_t kMaxAlso = 3;
std::string_view class_name(FailureClass failure_class) {
  switch (failure_class) {
    case FailureClass::root:
      return "root";
    case FailureClass::general:
      return "general";
    case FailureClass::hang:
      return "hang";
    case FailureClass::outside:
      return "outside";
    case FailureClass::ending:
      return "ending";
    case FailureClass::effect:
      return "effect";
    case FailureClass::slow:
      return "slow";
    case FailureClass::noise:
      return "noise";
  }
  return "noise";
}

std::string where_of(const Suspect& suspect) {
  if (suspect.log->is_record) return suspect.log->name;
  return format("{}:{}", suspect.log->name, suspect.hit->line);
}

bool is_of_collectives(const LogScan& log) {
  return log.is_record && (log.name == kFlightRecorder || log.name == kWatchdogSource);
}

LogScan scan_record(const FailureRecord& record) {
  LogScanner scanner;
  scanner.scan(record.text + "\n");
  return {.name = record.where, .rank = record.rank, .is_record = true, .result = scanner.finish()};
}

void note(Diagnosis& diagnosis, const std::string& name, const Message& what) {
  diagnosis.notes.push_back(message("{}: {}", printable(name), what));
}

void scan_logs(const FailureFacts& facts, std::vector<LogScan>& scans, Diagnosis& diagnosis) {
  for (const FailedLog& log : facts.logs) {
    LogScanner scanner;
    const BlockSink sink = [&](std::string_view block) { scanner.scan(block); };
    const auto read = log.fd >= 0 ? read_log(log.fd, log.name, sink) : read_log(log.file, sink);
    if (!read.ok()) {
      diagnosis.missing.emplace_back(read.error().message());
      continue;
    }
    diagnosis.bytes += read->bytes;
    for (const Message& what : read->notes) note(diagnosis, log.name, what);
    scans.push_back(
        {.name = printable(log.name), .rank = log.rank, .is_record = false, .result = scanner.finish()});
    if (read->bytes == 0) note(diagnosis, log.name, message("is empty"));
  }
}

// The consequences: "2 ranks: the connection to another rank broke (rank-0000.log:12)".
Message consequences_text(std::vector<Suspect> consequences, const FailureFacts& facts) {
  // Records of collectives are evidence.
  std::erase_if(consequences, [](const Suspect& each) { return is_of_collectives(*each.log); });
  if (consequences.empty()) return {};
  const FailureRule* rule = consequences.front().hit->rule;
  std::set<int> ranks;
  for (const Suspect& each : consequences) {
    if (each.hit->rule == rule && each.rank() >= 0) ranks.insert(each.rank());
  }
  Message who;
  if (ranks.size() == 1) who = message("rank {}: ", *ranks.begin());
  if (ranks.size() > 1) who = message("{} ranks: ", ranks.size());
  return message("{}{} ({})", who, rule_text(rule->cause, *consequences.front().hit, facts),
                 where_of(consequences.front()));
}

Evidence evidence_of(const Suspect& suspect) { return {where_of(suspect), suspect.hit->text}; }

// Completes the rank and node of a cause from the node that its line names.
void set_place(const Suspect& cause, const FailureFacts& facts, Diagnosis& diagnosis) {
  if (cause.rank() >= 0) diagnosis.rank = cause.rank();
  // torchrun reports an exit code without a rank, and names the rank in its table.
  if (cause.rank() < 0 && cause.hit->rule->failure_class == FailureClass::ending)
    diagnosis.rank = cause.log->result.first_rank;
  const NodeInLine named = node_named_in(cause.hit->text);
  diagnosis.node = named.node;
  if (diagnosis.rank || named.node.empty()) return;
  std::vector<int> ranks;
  for (const auto& [rank, host] : facts.hosts) {
    const bool is_there = host == named.node || host.starts_with(named.node + ".");
    if (is_there) ranks.push_back(rank);
  }
  if (ranks.size() == 1) diagnosis.rank = ranks[0];
  if (named.task && std::find(ranks.begin(), ranks.end(), *named.task) != ranks.end())
    diagnosis.rank = named.task;
}

void set_cause(const Choice& choice, const FailureFacts& facts, Diagnosis& diagnosis) {
  const Suspect& cause = *choice.cause;
  const FailureRule& rule = *cause.hit->rule;
  const bool is_sure = choice.is_sure && rule.failure_class != FailureClass::hang;
  diagnosis.certainty = is_sure ? Certainty::known : Certainty::likely;
  diagnosis.rule = rule.name;
  diagnosis.cause = rule_text(rule.cause, *cause.hit, facts);
  diagnosis.cure = cure_of(*cause.hit, facts);
  diagnosis.confirm = confirmation_of(*cause.hit, facts);
  set_place(cause, facts, diagnosis);
  diagnosis.evidence.push_back(evidence_of(cause));
  std::set<int> ranks{cause.rank()};
  for (const Suspect& each : choice.same_rule) {
    if (diagnosis.evidence.size() == kMaxEvidence) break;
    // The batch log repeats the output of the ranks.
    if (each.rank() < 0 && cause.rank() >= 0) continue;
    if (ranks.insert(each.rank()).second) diagnosis.evidence.push_back(evidence_of(each));
  }
  // Lines of launchers name the rank of a crash that the program reported without one.
  for (const Suspect& each : choice.same_rule) {
    if (!diagnosis.rank && each.log == cause.log && each.rank() >= 0) diagnosis.rank = each.rank();
  }
  if (!diagnosis.rank) diagnosis.rank = choice.rank;
  diagnosis.consequences = consequences_text(choice.consequences, facts);
  if (choice.in_handler)
    diagnosis.notes.push_back(message("the code that handled this error failed itself: {} ({})",
                                      choice.in_handler->hit->text, where_of(*choice.in_handler)));
}

// Replaces a cause that only shows that a peer is gone by what the lines of all ranks show. The result owns
// the new cause.
std::unique_ptr<LogScan> refine_by_ranks(const std::vector<LogScan>& scans, Choice& choice) {
  if (const auto failure = failure_before_timeout(scans, choice)) {
    choice.consequences.insert(choice.consequences.begin(), *choice.cause);
    choice.same_rule.clear();
    choice.cause = failure;
    choice.is_sure = false;
    return nullptr;
  }
  auto made = departure_of(scans, choice);
  if (!made) return nullptr;
  auto departure = std::make_unique<LogScan>(*std::move(made));
  choice.consequences.insert(choice.consequences.begin(), *choice.cause);
  choice.same_rule.clear();
  choice.cause = Suspect{departure.get(), &departure->result.hits.front()};
  choice.is_sure = false;
  return departure;
}

// Whether something failed although the program succeeded: an error that it handled is not a cause.
bool is_failure_of_success(const Choice& choice, const FailureFacts& facts) {
  if (!choice.cause) return false;
  const bool is_doubt = std::any_of(facts.also.begin(), facts.also.end(), [&](const Finding& finding) {
    return finding.level == Level::job && !finding.evidence.empty() &&
           finding.evidence[0].where == where_of(*choice.cause);
  });
  return is_doubt && (choice.is_sure || choice.cause->hit->rule->script_continues);
}

// Adds which rank missed which collective when a different rule is the cause.
void add_collective_evidence(const std::vector<LogScan>& scans, const Hit* cause, Diagnosis& diagnosis) {
  for (const LogScan& each : scans) {
    if (!is_of_collectives(each)) continue;
    for (const Hit& hit : each.result.hits) {
      if (&hit != cause && diagnosis.evidence.size() < kMaxEvidence)
        diagnosis.evidence.push_back(evidence_of({&each, &hit}));
    }
  }
}

// The most notable lines of all logs, with the logs of the first rank first.
void add_notable_lines(const std::vector<LogScan>& scans, std::optional<int> first_rank,
                       Diagnosis& diagnosis) {
  std::vector<const LogScan*> order;
  for (const LogScan& each : scans) {
    if (!each.is_record) order.push_back(&each);
  }
  std::stable_partition(order.begin(), order.end(),
                        [&](const LogScan* each) { return first_rank && each->rank == *first_rank; });
  for (const LogScan* each : order) {
    for (const NotableLine& line : each->result.notable) {
      if (diagnosis.evidence.size() == kMaxEvidence) return;
      diagnosis.evidence.push_back({format("{}:{}", each->name, line.line), line.text});
    }
  }
}

void add_slow_findings(const std::vector<LogScan>& scans, const FailureFacts& facts, Diagnosis& diagnosis) {
  std::set<std::string_view> reported;
  const std::size_t most = diagnosis.also.size() + kMaxAlso;
  for (const LogScan& each : scans) {
    for (const Hit& hit : each.result.hits) {
      if (hit.rule->failure_class != FailureClass::slow || diagnosis.also.size() == most) continue;
      if (hit.rule->name == diagnosis.rule || !reported.insert(hit.rule->name).second) continue;
      diagnosis.also.push_back({.rule = std::string(hit.rule->name),
                                .level = Level::time,
                                .what = rule_text(hit.rule->cause, hit, facts),
                                .evidence = {evidence_of({&each, &hit})},
                                .cure = cure_of(hit, facts)});
    }
  }
}

// Errors that the program survived, one for each rule.
void add_survived_errors(const std::vector<LogScan>& scans, const FailureFacts& facts, Diagnosis& diagnosis) {
  std::set<std::string_view> reported;
  for (const Suspect& each : survived_errors(scans)) {
    if (reported.size() == kMaxAlso) return;
    if (!reported.insert(each.hit->rule->name).second) continue;
    diagnosis.notes.push_back(message("the program survived an error: {} ({})",
                                      rule_text(each.hit->rule->cause, *each.hit, facts), where_of(each)));
  }
}

}  // namespace

std::string_view to_text(Certainty certainty) {
  switch (certainty) {
    case Certainty::known:
      return "known";
    case Certainty::likely:
      return "likely";
    case Certainty::unknown:
      return "unknown";
    case Certainty::none:
      return "none";
  }
  return "unknown";
}

Diagnosis explain_failure(const FailureFacts& facts) {
  Diagnosis diagnosis;
  std::vector<LogScan> scans;
  for (const FailureRecord& record : facts.records) scans.push_back(scan_record(record));
  scan_logs(facts, scans, diagnosis);
  if (std::none_of(scans.begin(), scans.end(), is_of_collectives)) {
    for (const FailureRecord& record : watchdog_records(scans)) scans.push_back(scan_record(record));
  }
  diagnosis.missing.insert(diagnosis.missing.end(), facts.unreadable.begin(), facts.unreadable.end());
  if (facts.started_as == StartKind::log && ended_well(scans)) {
    diagnosis.certainty = Certainty::none;
    add_survived_errors(scans, facts, diagnosis);
    add_slow_findings(scans, facts, diagnosis);
    return diagnosis;
  }
  Choice choice = choose_root_cause(scans, facts.first_rank);
  // Records of a run know the order of its ends.
  const auto departure = facts.first_rank ? nullptr : refine_by_ranks(scans, choice);
  if (facts.has_succeeded && !is_failure_of_success(choice, facts)) choice.cause.reset();
  if (facts.has_succeeded) choice.is_sure = false;
  if (choice.cause) {
    set_cause(choice, facts, diagnosis);
    add_collective_evidence(scans, choice.cause->hit, diagnosis);
  } else if (!facts.has_succeeded) {
    add_notable_lines(scans, facts.first_rank, diagnosis);
  }
  for (const Finding& each : facts.also) {
    const bool is_shown =
        std::any_of(diagnosis.evidence.begin(), diagnosis.evidence.end(),
                    [&](const Evidence& e) { return e.where == each.evidence.at(0).where; });
    if (!is_shown || diagnosis.certainty == Certainty::unknown) diagnosis.also.push_back(each);
  }
  add_slow_findings(scans, facts, diagnosis);
  return diagnosis;
}

const std::vector<const FailureRule*>& failure_rules() {
  static const std::vector<const FailureRule*> rules = [] {
    std::vector<const FailureRule*> all;
    for (const auto& table :
         {noise_rules(),      record_rules(),         script_rules(),      native_rules(), limit_rules(),
          tool_rules(),       program_rules(),        memory_rules(),      submit_rules(), slurm_rules(),
          nccl_rules(),       rendezvous_rules(),     jax_rules(),         cuda_rules(),   data_rules(),
          model_rules(),      library_rules(),        environment_rules(), file_rules(),   python_rules(),
          collective_rules(), reported_reason_rules()}) {
      for (const FailureRule& rule : table) all.push_back(&rule);
    }
    return all;
  }();
  return rules;
}

std::vector<FailureRuleText> failure_rule_texts() {
  std::vector<FailureRuleText> texts;
  for (const FailureRule* rule : failure_rules())
    texts.push_back(
        {rule->name, class_name(rule->failure_class), rule->cause, rule->cure, rule->example, rule->origin});
  return texts;
}

}  // namespace stoker::diagnose
