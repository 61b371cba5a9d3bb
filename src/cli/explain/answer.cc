#include "cli/explain/answer.h"

#include <algorithm>

#include "base/time.h"
#include "cli/json.h"
#include "explain/failure/waiting.h"

namespace stoker::cli {
namespace {

using explain::Certainty;
using explain::Diagnosis;
using Json = nlohmann::ordered_json;

void row(Output& out, std::string_view label, const std::string& text) {
  if (!text.empty()) out.line("  {:<11}{}", label, text);
}

std::string start_text(double start) {
  const double left = start - unix_seconds(RealClock().wall());
  if (left < 60) return "within a minute";
  return "in about " + rounded_duration(std::chrono::duration_cast<Duration>(Seconds(left)));
}

void print_waiting(const Waiting& waiting, Output& out) {
  row(out, "reason",
      waiting.words.empty() ? waiting.reason : format("{} ({})", waiting.words, waiting.reason));
  if (waiting.is_for_ever) {
    row(out, "start", "not as it is");
  } else {
    row(out, "start", waiting.start ? "likely " + start_text(*waiting.start) : "Slurm has no estimate yet");
  }
  row(out, waiting.is_for_ever ? "cure" : "sooner", waiting.sooner);
}

void print_evidence(const std::vector<Evidence>& evidence, Output& out) {
  std::size_t width = 0;
  for (const Evidence& each : evidence) width = std::max(width, each.where.size());
  for (std::size_t i = 0; i < evidence.size(); ++i)
    row(out, i == 0 ? "evidence" : "", format("{:<{}}  {}", evidence[i].where, width, evidence[i].text));
}

// A job that is well needs no cause.
bool is_well(const Answer& answer) {
  return answer.life && (*answer.life == launch::Life::done || *answer.life == launch::Life::running ||
                         *answer.life == launch::Life::created || *answer.life == launch::Life::stopped ||
                         *answer.life == launch::Life::queued);
}

void print_diagnosis(const Answer& answer, const Diagnosis& diagnosis, Output& out) {
  if (diagnosis.certainty == Certainty::unknown) {
    if (is_well(answer)) {
      const bool has_doubt = std::any_of(diagnosis.also.begin(), diagnosis.also.end(),
                                         [](const Finding& finding) { return finding.level == Level::job; });
      row(out, "cause",
          has_doubt ? "not known: it ended well, but not all of it did"
                    : "none: no line of its logs tells of a failure");
    } else {
      row(out, "cause",
          diagnosis.evidence.empty() ? "not known: there is no line to go by"
                                     : "not known; these lines tell most");
      print_evidence(diagnosis.evidence, out);
    }
  } else {
    const std::string who = diagnosis.rank ? format("rank {}: ", *diagnosis.rank) : "";
    const std::string_view likely = diagnosis.certainty == Certainty::likely ? "likely: " : "";
    row(out, "cause", format("{}{}{}", likely, who, diagnosis.cause));
    print_evidence(diagnosis.evidence, out);
    row(out, "followed", diagnosis.followed);
    row(out, "cure", diagnosis.cure);
    row(out, "confirm", diagnosis.confirm);
  }
  for (const Finding& finding : diagnosis.also) {
    const std::string_view label = finding.level == Level::job    ? "but"
                                   : finding.level == Level::time ? "slow"
                                                                  : "hint";
    row(out, label, format("{} ({})", finding.what, finding.evidence.at(0).where));
    if (!finding.cure.empty()) row(out, "", "try: " + finding.cure);
  }
  for (const std::string& note : diagnosis.notes) row(out, "note", note);
  for (const std::string& missing : diagnosis.missing) row(out, "not read", missing);
}

Json to_json(const std::vector<Evidence>& evidence) {
  Json list = Json::array();
  for (const Evidence& each : evidence) list.push_back({{"where", each.where}, {"text", each.text}});
  return list;
}

Json to_json(const Diagnosis& diagnosis) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  Json also = Json::array();
  for (const Finding& finding : diagnosis.also) {
    also.push_back({{"rule", finding.rule},
                    {"level", std::string(to_text(finding.level))},
                    {"text", finding.what},
                    {"evidence", to_json(finding.evidence)},
                    {"cure", finding.cure}});
  }
  return {{"certainty", std::string(to_text(diagnosis.certainty))},
          {"rule", or_null(diagnosis.rule)},
          {"cause", or_null(diagnosis.cause)},
          {"rank", diagnosis.rank ? Json(*diagnosis.rank) : Json(nullptr)},
          {"evidence", to_json(diagnosis.evidence)},
          {"followed", or_null(diagnosis.followed)},
          {"cure", or_null(diagnosis.cure)},
          {"confirm", or_null(diagnosis.confirm)},
          {"also", also},
          {"notes", diagnosis.notes},
          {"not_read", diagnosis.missing},
          {"bytes", diagnosis.bytes}};
}

Json to_json(const Waiting& waiting) {
  return {{"reason", waiting.reason},
          {"words", waiting.words},
          {"sooner", waiting.sooner},
          {"for_ever", waiting.is_for_ever},
          {"start", waiting.start ? Json(*waiting.start) : Json(nullptr)}};
}

}  // namespace

Waiting waiting_of(const slurm::JobFacts& job) {
  Waiting waiting{.reason = printable(job.reason),
                  .words = std::string(slurm::reason_words(job.reason)),
                  .sooner = "",
                  .is_for_ever = false,
                  .start = job.start};
  if (const explain::WaitingRule* rule = explain::waiting_rule(job.reason)) {
    waiting.sooner = rule->sooner;
    waiting.is_for_ever = rule->is_for_ever;
  }
  for (std::size_t at = waiting.sooner.find("JOB"); at != std::string::npos;
       at = waiting.sooner.find("JOB", at + 1))
    waiting.sooner.replace(at, 3, job.id);
  if (waiting.reason.empty()) waiting.words = "Slurm has not looked at it yet";
  return waiting;
}

int print_answer(const Answer& answer, Output& out) {
  const std::string state = answer.life ? std::string(to_text(*answer.life)) : "";
  std::string head = answer.name;
  if (!state.empty()) head += ": " + state;
  if (!answer.note.empty() && !answer.waiting) head += format(" ({})", answer.note);
  out.line("{}", head);
  if (answer.waiting) print_waiting(*answer.waiting, out);
  if (answer.diagnosis) print_diagnosis(answer, *answer.diagnosis, out);
  if (out.is_json()) {
    out.json(dump({{"kind", answer.kind},
                   {"name", answer.name},
                   {"state", state.empty() ? Json(nullptr) : Json(state)},
                   {"note", answer.note},
                   {"waiting", answer.waiting ? to_json(*answer.waiting) : Json(nullptr)},
                   {"diagnosis", answer.diagnosis ? to_json(*answer.diagnosis) : Json(nullptr)}}));
  }
  const bool is_unknown = answer.diagnosis && answer.diagnosis->certainty == Certainty::unknown;
  return is_unknown && !is_well(answer) ? exit_code::kFailed : exit_code::kOk;
}

}  // namespace stoker::cli
