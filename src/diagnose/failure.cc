#include "diagnose/failure.h"

#include <algorithm>
#include <set>

#include "diagnose/log_text.h"
#include "diagnose/root_cause.h"
#include "diagnose/rule.h"
#include "diagnose/scan.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

constexpr std::size_t kMaxEvidence = 3;
constexpr std::size_t kMaxAlso = 3;
// Placeholder for the job id in commands of rules.
constexpr std::string_view kJob = "-j JOB";
constexpr std::string_view kKernelLogCommand =
    "journalctl -k | grep -i 'killed process'; grep oom_kill /sys/fs/cgroup/memory.events";

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

// French uses it before a colon.
constexpr std::string_view kHardBlank = "\u00a0";

constexpr std::size_t kFrame = 4;  // after the groups

// Fills the groups of a match and its frame into a rule's text. Removes blanks and colons around empty ones.
std::string fill(std::string_view pattern, std::span<const FormatArg> arguments) {
  const auto argument = [&](std::size_t i) { return std::get<std::string_view>(arguments[i].value()); };
  std::string text;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const bool is_group = pattern[at] == '{' && at + 2 < pattern.size() && pattern[at + 2] == '}' &&
                          pattern[at + 1] >= '1' && pattern[at + 1] <= '4';
    if (is_group) {
      text += argument(static_cast<std::size_t>(pattern[at + 1] - '1'));
      at += 2;
    } else if (pattern.substr(at).starts_with("{frame}")) {
      if (!argument(kFrame).empty()) text += format("({})", argument(kFrame));
      at += 6;
    } else {
      text += pattern[at];
    }
  }
  std::string clean;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool takes_no_blank = text[at] == ':' || std::string_view(text).substr(at).starts_with(kHardBlank);
    if (text[at] == ' ' && clean.ends_with(' ')) continue;
    if (takes_no_blank && clean.ends_with(' ')) clean.pop_back();
    clean += text[at];
  }
  for (std::size_t end = clean.size() + 1; end != clean.size();) {
    end = clean.size();
    if (clean.ends_with(' ') || clean.ends_with(':')) clean.pop_back();
    if (clean.ends_with(kHardBlank)) clean.resize(clean.size() - kHardBlank.size());
  }
  return clean;
}

// The text of a rule about its match.
Message rule_text(std::string_view text, const Hit& hit) {
  const auto& groups = hit.groups;
  return text.empty() ? Message()
                      : Message::of(fill, text, groups[0], groups[1], groups[2], groups[3], hit.frame);
}

std::string where_of(const Suspect& suspect) {
  if (suspect.log->is_record) return suspect.log->name;
  return format("{}:{}", suspect.log->name, suspect.hit->line);
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
Message consequences_text(std::vector<Suspect> consequences) {
  // Flight recorder records are evidence.
  std::erase_if(consequences, [](const Suspect& each) { return each.log->name == kFlightRecorder; });
  if (consequences.empty()) return {};
  const FailureRule* rule = consequences.front().hit->rule;
  std::set<int> ranks;
  for (const Suspect& each : consequences) {
    if (each.hit->rule == rule && each.rank() >= 0) ranks.insert(each.rank());
  }
  Message who;
  if (ranks.size() == 1) who = message("rank {}: ", *ranks.begin());
  if (ranks.size() > 1) who = message("{} ranks: ", ranks.size());
  return message("{}{} ({})", who, rule_text(rule->cause, *consequences.front().hit),
                 where_of(consequences.front()));
}

Evidence evidence_of(const Suspect& suspect) { return {where_of(suspect), suspect.hit->text}; }

bool contains(std::string_view text, std::string_view word) { return text.find(word) != text.npos; }

// The advice of rules assumes Slurm, which has memory requests and accounting. Outside of Slurm, refer to the
// machine's memory and the kernel log.
void set_advice(const Hit& hit, const std::optional<std::string>& job, Diagnosis& diagnosis) {
  const FailureRule& rule = *hit.rule;
  diagnosis.cure = rule_text(rule.cure, hit);
  diagnosis.confirm = rule_text(rule.confirm, hit).english();
  if (!job) return;
  if (job->empty()) {
    if (contains(rule.cure, "--mem") || contains(rule.cure, "memory_per_node"))
      diagnosis.cure = message(
          "use fewer loader workers or a smaller batch; increase the memory limit of the container or "
          "cgroup");
    if (contains(rule.confirm, "MaxRSS")) diagnosis.confirm = kKernelLogCommand;
  } else if (const std::size_t at = diagnosis.confirm.find(kJob); at != std::string::npos) {
    diagnosis.confirm.replace(at, kJob.size(), "-j " + *job);
  }
}

void set_cause(const Choice& choice, const FailureFacts& facts, Diagnosis& diagnosis) {
  const Suspect& cause = *choice.cause;
  const FailureRule& rule = *cause.hit->rule;
  const bool is_sure = choice.is_sure && rule.failure_class != FailureClass::hang;
  diagnosis.certainty = is_sure ? Certainty::known : Certainty::likely;
  diagnosis.rule = rule.name;
  diagnosis.cause = rule_text(rule.cause, *cause.hit);
  set_advice(*cause.hit, facts.job, diagnosis);
  if (cause.rank() >= 0) diagnosis.rank = cause.rank();
  diagnosis.evidence.push_back(evidence_of(cause));
  std::set<int> ranks{cause.rank()};
  for (const Suspect& each : choice.same_rule) {
    if (diagnosis.evidence.size() == kMaxEvidence) break;
    // The batch log repeats the output of the ranks.
    if (each.rank() < 0 && cause.rank() >= 0) continue;
    if (ranks.insert(each.rank()).second) diagnosis.evidence.push_back(evidence_of(each));
  }
  diagnosis.consequences = consequences_text(choice.consequences);
}

// Adds which rank missed which collective when a different rule is the cause.
void add_collective_evidence(const std::vector<LogScan>& scans, const Hit* cause, Diagnosis& diagnosis) {
  for (const LogScan& each : scans) {
    if (!each.is_record || each.name != kFlightRecorder) continue;
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

void add_slow_findings(const std::vector<LogScan>& scans, Diagnosis& diagnosis) {
  std::set<std::string_view> reported;
  const std::size_t most = diagnosis.also.size() + kMaxAlso;
  for (const LogScan& each : scans) {
    for (const Hit& hit : each.result.hits) {
      if (hit.rule->failure_class != FailureClass::slow || diagnosis.also.size() == most) continue;
      if (!reported.insert(hit.rule->name).second) continue;
      diagnosis.also.push_back({.rule = std::string(hit.rule->name),
                                .level = Level::time,
                                .what = rule_text(hit.rule->cause, hit),
                                .evidence = {evidence_of({&each, &hit})},
                                .cure = rule_text(hit.rule->cure, hit)});
    }
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
  }
  return "unknown";
}

Diagnosis explain_failure(const FailureFacts& facts) {
  Diagnosis diagnosis;
  std::vector<LogScan> scans;
  for (const FailureRecord& record : facts.records) scans.push_back(scan_record(record));
  scan_logs(facts, scans, diagnosis);
  const Choice choice = choose_root_cause(scans, facts.first_rank);
  if (choice.cause) {
    set_cause(choice, facts, diagnosis);
    add_collective_evidence(scans, choice.cause->hit, diagnosis);
  } else {
    add_notable_lines(scans, facts.first_rank, diagnosis);
  }
  for (const Finding& each : facts.also) {
    const bool is_shown =
        std::any_of(diagnosis.evidence.begin(), diagnosis.evidence.end(),
                    [&](const Evidence& e) { return e.where == each.evidence.at(0).where; });
    if (!is_shown || diagnosis.certainty == Certainty::unknown) diagnosis.also.push_back(each);
  }
  add_slow_findings(scans, diagnosis);
  return diagnosis;
}

const std::vector<const FailureRule*>& failure_rules() {
  static const std::vector<const FailureRule*> rules = [] {
    std::vector<const FailureRule*> all;
    for (const auto& table : {noise_rules(), record_rules(), memory_rules(), submit_rules(), slurm_rules(),
                              nccl_rules(), rendezvous_rules(), cuda_rules(), environment_rules(),
                              file_rules(), python_rules(), collective_rules(), reported_reason_rules()}) {
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
