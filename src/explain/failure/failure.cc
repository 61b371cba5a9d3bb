#include "explain/failure/failure.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "explain/failure/judge.h"
#include "explain/failure/log_text.h"
#include "explain/failure/rule.h"
#include "explain/failure/scan.h"

namespace stoker::explain {
namespace {

constexpr std::size_t kMostEvidence = 3;
constexpr std::size_t kMostAlso = 3;
// In a rule's command: the id of the job, as Slurm's commands want it.
constexpr std::string_view kJob = "-j JOB";
constexpr std::string_view kKernelsWord =
    "journalctl -k | grep -i 'killed process'; grep oom_kill /sys/fs/cgroup/memory.events";

std::string_view kind_of(Weight weight) {
  switch (weight) {
    case Weight::root:
      return "root";
    case Weight::general:
      return "general";
    case Weight::hang:
      return "hang";
    case Weight::outside:
      return "outside";
    case Weight::ending:
      return "ending";
    case Weight::effect:
      return "effect";
    case Weight::slow:
      return "slow";
    case Weight::noise:
      return "noise";
  }
  return "noise";
}

// As French has it before a colon.
constexpr std::string_view kHardBlank = "\u00a0";

// The rule's text with what its pattern found. What stays empty leaves no blanks or colon behind.
std::string fill(std::string_view pattern, const Hit& hit) {
  std::string text;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const bool is_group = pattern[at] == '{' && at + 2 < pattern.size() && pattern[at + 2] == '}' &&
                          pattern[at + 1] >= '1' && pattern[at + 1] <= '4';
    if (is_group) {
      text += hit.groups[static_cast<std::size_t>(pattern[at + 1] - '1')];
      at += 2;
    } else if (pattern.substr(at).starts_with("{frame}")) {
      text += hit.frame.empty() ? "" : "(" + hit.frame + ")";
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

std::string where_of(const Suspect& suspect) {
  if (suspect.heard->is_told) return suspect.heard->name;
  return format("{}:{}", suspect.heard->name, suspect.hit->line);
}

Heard hear(const FailureWord& word) {
  Scan scan;
  scan.take(word.text + "\n");
  return {.name = word.where, .rank = word.rank, .is_told = true, .scanned = scan.finish()};
}

void note(Diagnosis& diagnosis, const std::string& name, const std::string& what) {
  diagnosis.notes.push_back(format("{}: {}", printable(name), what));
}

void hear_logs(const FailureFacts& facts, const Words& words, std::vector<Heard>& heard,
               Diagnosis& diagnosis) {
  for (const FailedLog& log : facts.logs) {
    Scan scan;
    const BlockSink sink = [&](std::string_view block) { scan.take(block); };
    const auto read =
        log.fd >= 0 ? visit_log(log.fd, log.name, sink, words) : visit_log(log.file, sink, words);
    if (!read.ok()) {
      diagnosis.missing.emplace_back(read.error().message());
      continue;
    }
    diagnosis.bytes += read->bytes;
    for (const std::string& what : read->notes) note(diagnosis, log.name, what);
    heard.push_back(
        {.name = printable(log.name), .rank = log.rank, .is_told = false, .scanned = scan.finish()});
    if (read->bytes == 0) note(diagnosis, log.name, words.say("is empty"));
  }
}

// What only came of it: "2 ranks: the connection to another rank broke (rank-0000.log:12)".
std::string followed_text(std::vector<Suspect> followed, const Words& words) {
  // What the flight recorder tells is evidence.
  std::erase_if(followed, [](const Suspect& each) { return each.heard->name == kFlightRecorder; });
  if (followed.empty()) return "";
  const FailureRule* rule = followed.front().hit->rule;
  std::set<int> ranks;
  for (const Suspect& each : followed) {
    if (each.hit->rule == rule && each.rank() >= 0) ranks.insert(each.rank());
  }
  std::string who;
  if (ranks.size() == 1) who = words.say("rank {}: ", *ranks.begin());
  if (ranks.size() > 1) who = words.say("{} ranks: ", ranks.size());
  return format("{}{} ({})", who, fill(words.of(rule->cause), *followed.front().hit),
                where_of(followed.front()));
}

Evidence evidence_of(const Suspect& suspect) { return {where_of(suspect), suspect.hit->text}; }

bool says(std::string_view text, std::string_view word) { return text.find(word) != text.npos; }

// What rules advise is for a job of Slurm, whose memory is asked for and counted. Elsewhere there is what the
// machine has, and the kernel tells whom it killed.
void advise(const Hit& hit, const std::optional<std::string>& job, const Words& words, Diagnosis& diagnosis) {
  const FailureRule& rule = *hit.rule;
  diagnosis.cure = fill(words.of(rule.cure), hit);
  diagnosis.confirm = fill(rule.confirm, hit);
  if (!job) return;
  if (job->empty()) {
    if (says(rule.cure, "--mem") || says(rule.cure, "memory_per_node"))
      diagnosis.cure = words.say(
          "fewer loader workers, or a smaller batch; more memory where a container or a cgroup sets the "
          "limit");
    if (says(rule.confirm, "MaxRSS")) diagnosis.confirm = kKernelsWord;
  } else if (const std::size_t at = diagnosis.confirm.find(kJob); at != std::string::npos) {
    diagnosis.confirm.replace(at, kJob.size(), "-j " + *job);
  }
}

void tell_cause(const Choice& choice, const FailureFacts& facts, const Words& words, Diagnosis& diagnosis) {
  const Suspect& cause = *choice.cause;
  const FailureRule& rule = *cause.hit->rule;
  const bool is_sure = choice.is_sure && rule.weight != Weight::hang;
  diagnosis.certainty = is_sure ? Certainty::known : Certainty::likely;
  diagnosis.rule = rule.name;
  diagnosis.cause = fill(words.of(rule.cause), *cause.hit);
  advise(*cause.hit, facts.job, words, diagnosis);
  if (cause.rank() >= 0) diagnosis.rank = cause.rank();
  diagnosis.evidence.push_back(evidence_of(cause));
  std::set<int> ranks{cause.rank()};
  for (const Suspect& each : choice.supporting) {
    if (diagnosis.evidence.size() == kMostEvidence) break;
    // A script's log repeats what its ranks printed.
    if (each.rank() < 0 && cause.rank() >= 0) continue;
    if (ranks.insert(each.rank()).second) diagnosis.evidence.push_back(evidence_of(each));
  }
  diagnosis.followed = followed_text(choice.followed, words);
}

// Which rank did not come to which collective, where something else was told as the cause.
void tell_collectives(const std::vector<Heard>& heard, const Hit* cause, Diagnosis& diagnosis) {
  for (const Heard& each : heard) {
    if (!each.is_told || each.name != kFlightRecorder) continue;
    for (const Hit& hit : each.scanned.hits) {
      if (&hit != cause && diagnosis.evidence.size() < kMostEvidence)
        diagnosis.evidence.push_back(evidence_of({&each, &hit}));
    }
  }
}

// The most telling lines of all logs: of the first rank's before the others'.
void tell_lines(const std::vector<Heard>& heard, std::optional<int> first_rank, Diagnosis& diagnosis) {
  std::vector<const Heard*> order;
  for (const Heard& each : heard) {
    if (!each.is_told) order.push_back(&each);
  }
  std::stable_partition(order.begin(), order.end(),
                        [&](const Heard* each) { return first_rank && each->rank == *first_rank; });
  for (const Heard* each : order) {
    for (const TellingLine& line : each->scanned.telling) {
      if (diagnosis.evidence.size() == kMostEvidence) return;
      diagnosis.evidence.push_back({format("{}:{}", each->name, line.line), line.text});
    }
  }
}

void tell_slow(const std::vector<Heard>& heard, const Words& words, Diagnosis& diagnosis) {
  std::set<std::string_view> told;
  const std::size_t most = diagnosis.also.size() + kMostAlso;
  for (const Heard& each : heard) {
    for (const Hit& hit : each.scanned.hits) {
      if (hit.rule->weight != Weight::slow || diagnosis.also.size() == most) continue;
      if (!told.insert(hit.rule->name).second) continue;
      diagnosis.also.push_back({.rule = std::string(hit.rule->name),
                                .level = Level::time,
                                .what = fill(words.of(hit.rule->cause), hit),
                                .evidence = {evidence_of({&each, &hit})},
                                .cure = fill(words.of(hit.rule->cure), hit)});
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

Diagnosis explain_failure(const FailureFacts& facts, const Words& words) {
  Diagnosis diagnosis;
  std::vector<Heard> heard;
  for (const FailureWord& word : facts.words) heard.push_back(hear(word));
  hear_logs(facts, words, heard, diagnosis);
  const Choice choice = choose(heard, facts.first_rank);
  if (choice.cause) {
    tell_cause(choice, facts, words, diagnosis);
    tell_collectives(heard, choice.cause->hit, diagnosis);
  } else {
    tell_lines(heard, facts.first_rank, diagnosis);
  }
  for (const Finding& each : facts.also) {
    const bool is_told = std::any_of(diagnosis.evidence.begin(), diagnosis.evidence.end(),
                                     [&](const Evidence& e) { return e.where == each.evidence.at(0).where; });
    if (!is_told || diagnosis.certainty == Certainty::unknown) diagnosis.also.push_back(each);
  }
  tell_slow(heard, words, diagnosis);
  return diagnosis;
}

const std::vector<const FailureRule*>& failure_rules() {
  static const std::vector<const FailureRule*> rules = [] {
    std::vector<const FailureRule*> all;
    for (const auto& table : {noise_rules(), record_rules(), memory_rules(), submit_rules(), slurm_rules(),
                              nccl_rules(), rendezvous_rules(), cuda_rules(), environment_rules(),
                              file_rules(), python_rules(), collective_rules(), own_word_rules()}) {
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
        {rule->name, kind_of(rule->weight), rule->cause, rule->cure, rule->example, rule->origin});
  return texts;
}

}  // namespace stoker::explain
