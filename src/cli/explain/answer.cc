#include "cli/explain/answer.h"

#include <algorithm>

#include "base/json/json.h"
#include "base/time.h"
#include "explain/failure/waiting.h"

namespace stoker::cli {
namespace {

using explain::Certainty;
using explain::Diagnosis;
using Json = nlohmann::ordered_json;

void row(Output& out, const std::string& label, const std::string& text) {
  if (!text.empty()) out.line("  {:<11}{}", label, text);
}

std::string start_text(double start, const Words& words) {
  const double left = start - unix_seconds(RealClock().wall());
  if (left < 60) return words.say("within a minute");
  return words.say("in about {}", rounded_duration(std::chrono::duration_cast<Duration>(Seconds(left))));
}

void print_waiting(const Waiting& waiting, const Words& words, Output& out) {
  row(out, words.say("reason"),
      waiting.words.empty() ? waiting.reason : format("{} ({})", waiting.words, waiting.reason));
  if (waiting.is_for_ever) {
    row(out, words.say("start"), words.say("not as it is"));
  } else {
    row(out, words.say("start"),
        waiting.start ? words.say("likely {}", start_text(*waiting.start, words))
                      : words.say("Slurm has no estimate yet"));
  }
  row(out, waiting.is_for_ever ? words.say("cure") : words.say("sooner"), waiting.sooner);
}

void print_evidence(const std::vector<Evidence>& evidence, const Words& words, Output& out) {
  std::size_t width = 0;
  for (const Evidence& each : evidence) width = std::max(width, each.where.size());
  for (std::size_t i = 0; i < evidence.size(); ++i)
    row(out, i == 0 ? std::string(words.say("evidence")) : "",
        format("{:<{}}  {}", evidence[i].where, width, evidence[i].text));
}

Said state_text(launch::Life life, const Words& words) {
  switch (life) {
    case launch::Life::created:
      return words.say("created");
    case launch::Life::queued:
      return words.say("queued");
    case launch::Life::running:
      return words.say("running");
    case launch::Life::done:
      return words.say("done");
    case launch::Life::failed:
      return words.say("failed");
    case launch::Life::stopped:
      return words.say("stopped");
    case launch::Life::cancelled:
      return words.say("cancelled");
    case launch::Life::timeout:
      return words.say("timeout");
    case launch::Life::out_of_memory:
      return words.say("out of memory");
    case launch::Life::node_failed:
      return words.say("node failed");
    case launch::Life::preempted:
      return words.say("preempted");
    case launch::Life::lost:
      return words.say("lost");
    case launch::Life::unknown:
      return words.say("unknown");
  }
  return words.say("unknown");
}

// A job that is well needs no cause.
bool is_well(const Answer& answer) {
  return answer.life && (*answer.life == launch::Life::done || *answer.life == launch::Life::running ||
                         *answer.life == launch::Life::created || *answer.life == launch::Life::stopped ||
                         *answer.life == launch::Life::queued);
}

// Why nobody can say.
std::string unknown_cause(const Answer& answer, const Diagnosis& diagnosis, const Words& words) {
  if (!is_well(answer)) {
    return diagnosis.evidence.empty() ? words.say("not known: there is no line to go by")
                                      : words.say("not known; these lines tell most");
  }
  const bool has_doubt = std::any_of(diagnosis.also.begin(), diagnosis.also.end(),
                                     [](const Finding& finding) { return finding.level == Level::job; });
  return has_doubt ? words.say("not known: it ended well, but not all of it did")
                   : words.say("none: no line of its logs tells of a failure");
}

std::string known_cause(const Diagnosis& diagnosis, const Words& words) {
  const std::string who = diagnosis.rank ? words.say("rank {}: ", *diagnosis.rank) : quoted("");
  const std::string cause = who + diagnosis.cause;
  return diagnosis.certainty == Certainty::likely ? words.say("likely: {}", cause) : quoted(cause);
}

void print_also(const Finding& finding, const Words& words, Output& out) {
  const Said label = finding.level == Level::job    ? words.say("but")
                     : finding.level == Level::time ? words.say("slow")
                                                    : words.say("hint");
  row(out, label, format("{} ({})", finding.what, finding.evidence.at(0).where));
  if (!finding.cure.empty()) row(out, "", words.say("try: {}", finding.cure));
}

void print_diagnosis(const Answer& answer, const Words& words, Output& out) {
  const Diagnosis& diagnosis = *answer.diagnosis;
  if (diagnosis.certainty == Certainty::unknown) {
    row(out, words.say("cause"), unknown_cause(answer, diagnosis, words));
    if (!is_well(answer)) print_evidence(diagnosis.evidence, words, out);
  } else {
    row(out, words.say("cause"), known_cause(diagnosis, words));
    print_evidence(diagnosis.evidence, words, out);
    row(out, words.say("followed"), diagnosis.followed);
    row(out, words.say("cure"), diagnosis.cure);
    row(out, words.say("confirm"), diagnosis.confirm);
  }
  for (const Finding& finding : diagnosis.also) print_also(finding, words, out);
  for (const std::string& note : diagnosis.notes) row(out, words.say("note"), note);
  for (const std::string& missing : diagnosis.missing) row(out, words.say("not read"), missing);
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

Waiting waiting_of(const slurm::JobFacts& job, const Words& words) {
  Waiting waiting{.reason = printable(job.reason),
                  .words = std::string(words.of(slurm::reason_words(job.reason))),
                  .sooner = "",
                  .is_for_ever = false,
                  .start = job.start};
  if (const explain::WaitingRule* rule = explain::waiting_rule(job.reason)) {
    waiting.sooner = words.of(rule->sooner);
    waiting.is_for_ever = rule->is_for_ever;
  }
  for (std::size_t at = waiting.sooner.find("JOB"); at != std::string::npos;
       at = waiting.sooner.find("JOB", at + 1))
    waiting.sooner.replace(at, 3, job.id);
  if (waiting.reason.empty()) waiting.words = words.say("Slurm has not looked at it yet");
  return waiting;
}

int print_answer(const Answer& answer, const Words& words, Output& out) {
  const std::string state = answer.life ? std::string(to_text(*answer.life)) : "";
  std::string head = answer.name;
  if (!state.empty()) head += format(": {}", state_text(*answer.life, words).text());
  if (!answer.note.empty() && !answer.waiting) head += format(" ({})", answer.note);
  out.line("{}", head);
  if (answer.waiting) print_waiting(*answer.waiting, words, out);
  if (answer.diagnosis) print_diagnosis(answer, words, out);
  if (out.is_json()) {
    out.json(json_text(nlohmann::ordered_json{
        {"kind", answer.kind},
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
