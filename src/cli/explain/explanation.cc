#include "cli/explain/explanation.h"

#include <algorithm>

#include "base/json/json.h"
#include "diagnose/pending.h"
#include "stoker/time.h"

namespace stoker::cli {
namespace {

using diagnose::Certainty;
using diagnose::Diagnosis;
using Json = nlohmann::ordered_json;

void row(Output& out, const std::string& label, const std::string& text) {
  if (!text.empty()) out.line("  {:<11}{}", label, text);
}

std::string start_text(double start, const Translator& words) {
  const double left = start - unix_seconds(RealClock().wall());
  if (left < 60) return words.localize("within a minute");
  return words.localize("in about {}", rounded_duration(std::chrono::duration_cast<Duration>(Seconds(left))));
}

void print_pending_reason(const PendingReason& waiting, const Translator& words, Output& out) {
  row(out, words.localize("reason"),
      waiting.description.empty() ? waiting.reason : format("{} ({})", waiting.description, waiting.reason));
  if (waiting.is_permanent) {
    row(out, words.localize("start"), words.localize("never, unless changed"));
  } else {
    row(out, words.localize("start"),
        waiting.start ? words.localize("likely {}", start_text(*waiting.start, words))
                      : words.localize("Slurm has no estimate yet"));
  }
  row(out, waiting.is_permanent ? words.localize("cure") : words.localize("sooner"), waiting.advice);
}

void print_evidence(const std::vector<Evidence>& evidence, const Translator& words, Output& out) {
  std::size_t width = 0;
  for (const Evidence& each : evidence) width = std::max(width, each.where.size());
  for (std::size_t i = 0; i < evidence.size(); ++i)
    row(out, i == 0 ? std::string(words.localize("evidence")) : "",
        format("{:<{}}  {}", evidence[i].where, width, words.render(evidence[i].text)));
}

Localized state_text(launch::Life life, const Translator& words) {
  switch (life) {
    case launch::Life::created:
      return words.localize("created");
    case launch::Life::queued:
      return words.localize("queued");
    case launch::Life::running:
      return words.localize("running");
    case launch::Life::done:
      return words.localize("done");
    case launch::Life::failed:
      return words.localize("failed");
    case launch::Life::stopped:
      return words.localize("stopped");
    case launch::Life::cancelled:
      return words.localize("cancelled");
    case launch::Life::timeout:
      return words.localize("timeout");
    case launch::Life::out_of_memory:
      return words.localize("out of memory");
    case launch::Life::node_failed:
      return words.localize("node failed");
    case launch::Life::preempted:
      return words.localize("preempted");
    case launch::Life::lost:
      return words.localize("lost");
    case launch::Life::unknown:
      return words.localize("unknown");
  }
  return words.localize("unknown");
}

// A successful, running or pending job needs no cause.
bool is_healthy(const Explanation& explanation) {
  return explanation.life &&
         (*explanation.life == launch::Life::done || *explanation.life == launch::Life::running ||
          *explanation.life == launch::Life::created || *explanation.life == launch::Life::stopped ||
          *explanation.life == launch::Life::queued);
}

std::string unknown_cause(const Explanation& explanation, const Diagnosis& diagnosis,
                          const Translator& words) {
  if (!is_healthy(explanation)) {
    return diagnosis.evidence.empty() ? words.localize("unknown: the logs contain no relevant line")
                                      : words.localize("unknown; these lines are the most relevant");
  }
  const bool has_doubt = std::any_of(diagnosis.also.begin(), diagnosis.also.end(),
                                     [](const Finding& finding) { return finding.level == Level::job; });
  return has_doubt ? words.localize("unknown: it ended successfully, but parts of it failed")
                   : words.localize("none: its logs contain no failure");
}

std::string known_cause(const Diagnosis& diagnosis, const Translator& words) {
  const std::string cause = cause_text(diagnosis, words);
  return diagnosis.certainty == Certainty::likely ? words.localize("likely: {}", cause) : untranslated(cause);
}

Localized label_of(const Finding& finding, const Translator& words) {
  return finding.level == Level::job    ? words.localize("but")
         : finding.level == Level::time ? words.localize("slow")
                                        : words.localize("hint");
}

void print_finding(const Finding& finding, const std::string& label, const Translator& words, Output& out) {
  row(out, label, format("{} ({})", words.render(finding.what), finding.evidence.at(0).where));
  if (!finding.cure.empty()) row(out, "", words.localize("try: {}", words.render(finding.cure)));
}

void print_diagnosis(const Explanation& explanation, const Translator& words, Output& out) {
  const Diagnosis& diagnosis = *explanation.diagnosis;
  if (diagnosis.certainty == Certainty::none) {
    row(out, words.localize("cause"), words.localize("none: the log ends with the success of the program"));
  } else if (diagnosis.certainty == Certainty::unknown) {
    row(out, words.localize("cause"), unknown_cause(explanation, diagnosis, words));
    if (!is_healthy(explanation)) print_evidence(diagnosis.evidence, words, out);
  } else {
    row(out, words.localize("cause"), known_cause(diagnosis, words));
    print_evidence(diagnosis.evidence, words, out);
    row(out, words.localize("followed"), words.render(diagnosis.consequences));
    row(out, words.localize("cure"), words.render(diagnosis.cure));
    row(out, words.localize("confirm"), diagnosis.confirm);
  }
  for (const Finding& finding : diagnosis.also) print_finding(finding, label_of(finding, words), words, out);
  for (const Finding& finding : explanation.launches)
    print_finding(finding, words.localize("note"), words, out);
  for (const Message& note : diagnosis.notes) row(out, words.localize("note"), words.render(note));
  for (const std::string& missing : diagnosis.missing) row(out, words.localize("not read"), missing);
}

Json to_json(const std::vector<Evidence>& evidence, const Translator& words) {
  Json list = Json::array();
  for (const Evidence& each : evidence)
    list.push_back({{"where", each.where}, {"text", words.render(each.text)}});
  return list;
}

Json to_json(const Finding& finding, const Translator& words) {
  return {{"rule", finding.rule},
          {"level", std::string(to_text(finding.level))},
          {"text", words.render(finding.what)},
          {"evidence", to_json(finding.evidence, words)},
          {"cure", words.render(finding.cure)}};
}

Json to_json(const Explanation& explanation, const Translator& words) {
  const Diagnosis& diagnosis = *explanation.diagnosis;
  const auto or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  Json also = Json::array();
  for (const Finding& finding : diagnosis.also) also.push_back(to_json(finding, words));
  for (const Finding& finding : explanation.launches) also.push_back(to_json(finding, words));
  Json notes = Json::array();
  for (const Message& note : diagnosis.notes) notes.push_back(words.render(note));
  return {{"certainty", std::string(to_text(diagnosis.certainty))},
          {"rule", or_null(diagnosis.rule)},
          {"cause", or_null(words.render(diagnosis.cause))},
          {"rank", diagnosis.rank ? Json(*diagnosis.rank) : Json(nullptr)},
          {"node", or_null(diagnosis.node)},
          {"evidence", to_json(diagnosis.evidence, words)},
          {"followed", or_null(words.render(diagnosis.consequences))},
          {"cure", or_null(words.render(diagnosis.cure))},
          {"confirm", or_null(diagnosis.confirm)},
          {"also", also},
          {"notes", notes},
          {"not_read", diagnosis.missing},
          {"bytes", diagnosis.bytes}};
}

Json to_json(const PendingReason& waiting) {
  return {{"reason", waiting.reason},
          {"description", waiting.description},
          {"advice", waiting.advice},
          {"permanent", waiting.is_permanent},
          {"start", waiting.start ? Json(*waiting.start) : Json(nullptr)}};
}

}  // namespace

std::string cause_text(const Diagnosis& diagnosis, const Translator& words) {
  const bool has_node = !diagnosis.node.empty();
  const std::string who = diagnosis.rank && has_node
                              ? words.localize("rank {} ({}): ", *diagnosis.rank, diagnosis.node)
                          : diagnosis.rank ? words.localize("rank {}: ", *diagnosis.rank)
                          : has_node       ? words.localize("node {}: ", diagnosis.node)
                                           : untranslated("");
  return who + words.render(diagnosis.cause);
}

PendingReason pending_reason_of(const slurm::JobInfo& job, const Translator& words) {
  PendingReason waiting{.reason = printable(job.reason),
                        .description = std::string(words.translate(slurm::reason_text(job.reason))),
                        .advice = "",
                        .is_permanent = false,
                        .start = job.start};
  if (const diagnose::PendingRule* rule = diagnose::find_pending_rule(job.reason)) {
    waiting.advice = words.translate(rule->remedy);
    waiting.is_permanent = rule->needs_change;
  }
  for (std::size_t at = waiting.advice.find("JOB"); at != std::string::npos;
       at = waiting.advice.find("JOB", at + 1))
    waiting.advice.replace(at, 3, job.id);
  if (waiting.reason.empty()) waiting.description = words.localize("Slurm has not evaluated the job yet");
  return waiting;
}

int print_explanation(const Explanation& explanation, const Translator& words, Output& out) {
  const std::string state = explanation.life ? std::string(to_text(*explanation.life)) : "";
  std::string head = explanation.name;
  if (!state.empty()) head += format(": {}", state_text(*explanation.life, words).text());
  if (!explanation.note.empty() && !explanation.waiting) head += format(" ({})", explanation.note);
  out.line("{}", head);
  if (explanation.waiting) print_pending_reason(*explanation.waiting, words, out);
  if (explanation.diagnosis) print_diagnosis(explanation, words, out);
  if (out.is_json()) {
    out.json(json_text(nlohmann::ordered_json{
        {"kind", explanation.kind},
        {"name", explanation.name},
        {"state", state.empty() ? Json(nullptr) : Json(state)},
        {"note", explanation.note},
        {"waiting", explanation.waiting ? to_json(*explanation.waiting) : Json(nullptr)},
        {"diagnosis", explanation.diagnosis ? to_json(explanation, words) : Json(nullptr)}}));
  }
  const bool is_unknown = explanation.diagnosis && explanation.diagnosis->certainty == Certainty::unknown;
  return is_unknown && !is_healthy(explanation) ? exit_code::kFailed : exit_code::kOk;
}

}  // namespace stoker::cli
