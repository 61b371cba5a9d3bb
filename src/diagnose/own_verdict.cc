#include "diagnose/own_verdict.h"

#include <re2/re2.h>

#include "diagnose/frames.h"
#include "diagnose/line_signs.h"
#include "diagnose/matches.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

constexpr std::size_t kLongestVerdict = 400;
// The last lines in which a verdict is looked for, and an ambiguous one.
constexpr std::ptrdiff_t kLastLines = 6, kLastAmbiguous = 3;
constexpr std::size_t kLongestNeighbour = 160;

// Counts and conditions that are no failure: "0 failed", "errors: 0", "aborted by the pruner".
void remove_negations(std::string& text) {
  static const RE2 kFailures(
      R"((?i)\b(?:0(?: of \d+)?|no|zero|without(?: any)?|never|not|none|nothing)(?: \w+){0,2} (?:failed|failures?|failing|errors?|mismatch\w*|exceed\w*|deviat\w*|abort\w*|reject\w*|differ\w*|violat\w*|missing|denied|exhausted|lost|invalid|corrupt\w*|expired|diverged|unstable)\b|)"
      R"(\b(?:failures?|failed|failing|errors?|mismatch\w*|missing|invalid|abort\w*|reject\w*|lost|crashed|corrupt\w*|violations?|differ\w*|nans?)(?: \w+){0,2}[ :=]+0\b|)"
      R"(\bexceed\w* (?:the |all )?(?:\w+ )?(?:baselines?|targets?|expectations?|goals?|previous|best)\b|)"
      R"(\b\d+ (?:rejected|failed|invalid|lost) (?:steps?|proposals?|moves?|reads?|pixels?|cells?)\b|)"
      R"(\b(?:aborted|stopped|rejected) by (?:the )?(?:pruner|filter|scheduler|early[ -]stopping)\b|)"
      R"(\bSTOP:? (?:0|normal\w*|ok)\b|)"
      R"(\b(?:would|may|might|if|when|whether|unless|until)\b.*|\bwill (?:\w+ )?(?:abort|stop|fail|exit|terminate)\b.*)");
  RE2::GlobalReplace(&text, kFailures, "");
}

// A line that can be a verdict: no part of a traceback, no warning, none about something that was left out.
bool can_be_verdict(std::string_view line) {
  // Code, and what pip reports about packages that it left alone.
  static const RE2 kOther(
      R"(^(?:error: (?:aborting due to|could not compile)|Traceback|File "|frame #\d+|#\d+ +0x|\w+(?:\.\w+)*\()|, but you have \S+ \S+ which is incompatible|pip's dependency resolver)");
  if (line.starts_with("    ") || matches(line, kOther)) return false;
  return level_of(line) != LogLevel::info && !is_warning(line) && !is_exception(line) &&
         !is_of_launcher(line) && !is_progress_bar(line) && !reports_retry(line) && !reports_fallback(line);
}

bool counts_failures(std::string_view text) {
  static const RE2 kCount(
      R"((?i)\b[1-9]\d* (?:\w+ ){0,3}(?:failed|failures?|failing|crashed|died|differ|differs|mismatch\w*|errors?|missing|invalid|corrupt\w*|violations?|rejected|lost|incomplete|unreadable)\b|)"
      R"(\b(?:failed|failures?|errors?|mismatch\w*|missing|rejected|lost)[:=] ?[1-9]|\b0 (?:of|out of) [1-9]\d* |\bonly \d+ (?:of|out of) \d+\b)");
  return matches(text, kCount);
}

bool states_end(std::string_view text) {
  static const RE2 kEnd(
      R"((?i)\babort(?:ing|ed)?\b|[,;:-] (?:terminating|quitting|halting)\b|\bgiving up\b|\bgave up\b|\brefus(?:e|es|ed|ing)\b|\bbail(?:ing|ed)? out\b|)"
      R"(\b(?:will|is|was|are|were) not (?:be )?(?:registered|published|deployed|saved|written|promoted|released|accepted|uploaded|submitted)\b|\bnot (?:publishing|encoding|deploying|promoting|exporting|continuing|proceeding|writing|saving|uploading|submitting|launching|training|evaluating|merging|releasing|registering|accepting|committing|applying|sending|pushing|converting)\b|)"
      R"((?-i)(?:^|[\s\[:|])(?:(?:ERROR )?STOP|FAIL|FAILED|FAILURE|ABORT|REJECTED|DIVERGED|NOT OK|NOT PASSED)(?:$|[\s\]:|,.!(]))");
  return matches(text, kEnd);
}

bool states_limit(std::string_view text) {
  static const RE2 kLimit(
      R"((?i)\bexceed(?:s|ed|ing)?\b|\bdeviat(?:es|ed|ing)\b|\bmismatch(?:es|ed)?\b|\bviolat(?:es|ed)\b|)"
      R"(\b(?:larger|greater|smaller|higher|lower|less|worse|slower|longer|fewer|more) than (?:the )?(?:\w+ )?(?:allowed|permitted|tolerated|limit|tolerance|maximum|minimum|required)\b|)"
      R"(\b(?:does|do|did)(?: not|n't) (?:match|agree|converge|fit|satisfy|pass|reach|balance|reproduce|respond)\b|)"
      R"(\bno convergence\b|\bfailed to converge\b|\bnot (?:yet )?(?:converged|supported|usable|acceptable|accepted|met|satisfied|reached|allowed|permitted|valid|enough|consistent|conserved|reproducible|reproduced|balanced|passed|ok|within)\b|)"
      R"(\b(?:diverged|unacceptable|unusable|inconsistent|incompatible|insufficient|unstable|infeasible|blew up|blown up)\b|)"
      R"(\b(?:nan|inf) (?:detected|found|encountered)\b|\b(?:is|are) (?:nan|not finite|infinite)\b|\bregression detected\b|\bdiffers? from\b|\bno (?:feasible|valid|usable|acceptable) \w+|\bdropped below\b)");
  return matches(text, kLimit);
}

bool states_lack(std::string_view text) {
  static const RE2 kLack(
      R"((?i)\b(?:access|permission|request|licen[cs]e|checkout|login|upload|write|connection)?\b.*\b(?:denied|forbidden|rejected|unauthori[sz]ed|expired|exhausted)\b|\bused up\b|\balready reached\b|\bno (?:licen[cs]es?|seats?) \w*|)"
      R"(\bneeds? (?:at least )?(?:[\w.+-]+ ){0,2}\d|\brequires? (?:at least )?(?:[\w.+-]+ ){0,2}(?:>=? ?)?\d|\bexpected\b.*\b(?:found|got|but|received)\b|)"
      R"(\bnot enough\b|\btoo (?:few|many|small|large|old|new|low|high|big|short|long|little|much)\b|)"
      R"(\bno \w+ (?:\w+ )?(?:for|since|within) (?:the last )?\d|\bstalled\b|\btimed out\b|\btime(?: limit| budget)? (?:reached|exceeded|is over|elapsed|expired)\b|\bsyntax error\b)");
  return matches(text, kLack);
}

// "mass balance check: 4.2% > 0.1%".
bool compares_in_check(std::string_view text) {
  static const RE2 kCheck(
      R"((?i)\b(?:check|gate|test|criteri\w+|validation|verification|sanity|balance|budget|quota|tolerance|limit)\b.*\d\S* ?(?:<|>|<=|>=|!=) ?[\d.])");
  static const RE2 kGood(R"((?i)\b(?:ok|pass\w*|good|fine|within|met|satisfied|yes|true|accepted)\b)");
  return matches(text, kCheck) && !matches(text, kGood);
}

std::string without_negations(std::string_view line) {
  std::string text(line.substr(0, kLongestVerdict));
  remove_negations(text);
  return text;
}

// Whether the words only announce the end, or count: the reason is above.
bool lacks_reason(std::string_view line) {
  static const RE2 kBare(
      R"((?i)^\W*(?:\w+[:,]? ){0,2}(?:abort(?:ing|ed)?|giving up|gave up|refused|rejected|fail|failed|failure|stop(?:ped)?)\W*$)");
  const std::string text = without_negations(line);
  return matches(text, kBare) ||
         (counts_failures(text) && !states_end(text) && !states_limit(text) && !states_lack(text));
}

// The nearest line above that states a reason.
const NotableLine* reason_above(const std::deque<NotableLine>& lines, std::size_t at) {
  static const RE2 kReason(R"((?i)\b(?:denied|forbidden|nan\b|killed|timed out|refused|expired)\b)");
  while (at-- > 0) {
    const std::string& text = lines[at].text;
    if (can_be_verdict(text) && !is_progress(text) && (matches(text, kReason) || states_reason(text)))
      return &lines[at];
  }
  return nullptr;
}

OwnVerdict with_neighbour(const std::deque<NotableLine>& lines, std::size_t at) {
  OwnVerdict verdict{lines[at], std::string(own_words(lines[at].text))};
  const NotableLine* other = nullptr;
  if (lacks_reason(verdict.line.text)) {
    other = reason_above(lines, at);
    const bool is_near = at > 0 && can_be_verdict(lines[at - 1].text) && !is_progress(lines[at - 1].text) &&
                         !reports_success(lines[at - 1].text) && !reports_amount(lines[at - 1].text);
    if (other == nullptr && is_near) other = &lines[at - 1];
  } else if (at > 0 && (states_failure(lines[at - 1].text) || may_state_failure(lines[at - 1].text)))
    other = &lines[at - 1];
  if (other == nullptr || other->text.size() > kLongestNeighbour) return verdict;
  const std::string above(trim(own_words(other->text)));
  verdict.words = other->line + 1 == verdict.line.line ? format("{}; {}", above, verdict.words)
                                                       : format("{} ({})", verdict.words, above);
  return verdict;
}

}  // namespace

bool states_failure_of_whole(std::string_view line) {
  static const RE2 kCounts(
      R"((?i)\b\d+ (?:\w+ ){0,2}(?:aborted|failed|failures?|rejected|denied|expired|differ|diverged|exceeded)\b)");
  if (!can_be_verdict(line)) return false;
  std::string text = without_negations(line);
  RE2::GlobalReplace(&text, kCounts, "");
  return states_end(text) || states_limit(text) || states_lack(text) || compares_in_check(text);
}

bool states_failure(std::string_view line) {
  return states_failure_of_whole(line) || (can_be_verdict(line) && counts_failures(without_negations(line)));
}

bool may_state_failure(std::string_view line) {
  static const RE2 kAmbiguous(
      R"((?i)\b(?:above|below|outside|beyond|over|under) (?:of )?(?:the )?(?:\w+ )?(?:limit|threshold|tolerance|minimum|maximum|bounds?|range|required|target|baseline|reference)\b|)"
      R"(\b(?:larger|greater|smaller|higher|lower|less|worse|slower|longer|fewer|more|older|newer) than\b|\d\S* (?:<|>|<=|>=|!=) -?[\d.]|)"
      R"(\b(?:0|no) (?:\w+ ){0,2}(?:left|remaining|found|matched|selected|to (?:save|train|write|export|plot|process|evaluate|use))\b|\bnothing to (?:train|write|export|plot|process|evaluate|save|use)\b|)"
      R"(\b(?:stopped|failed|failure|incomplete|singular|unknown|unrecognized|undefined|invalid|illegal|worse|cannot|can't|could not|unable|missing|wrong|unexpected|bad|denied)\b|)"
      R"([,;:.-] (?:stopping|exiting|exit|stop)\b|\d\S* but \w+ (?:\w+ )?(?:has|have|is|are|was|got|found)\b)");
  static const RE2 kStop(
      R"((?i)\b(?:stopped at|stopped early|early stopping|converged|finished|done|complete\w*|no improvement)\b)");
  if (!can_be_verdict(line) || matches(line, kStop) || reports_failed_end(line)) return false;
  return matches(without_negations(line), kAmbiguous);
}

bool counts_no_failure(std::string_view line) {
  static const RE2 kZero(R"((?i)\b(?:errors?|failures?|failed|failing|warnings?)\b\W{1,3}(?:0|none)\b)");
  static const RE2 kZeroOf(R"((?i)\b(?:0|no|zero) (?:\w+ )?(?:errors?|failures?|failed)\b)");
  const std::string text = without_negations(line);
  return (matches(line, kZero) || matches(line, kZeroOf)) && !counts_failures(text) && !states_end(text);
}

std::optional<OwnVerdict> own_verdict(const std::deque<NotableLine>& lines) {
  std::optional<std::size_t> ambiguous;
  const auto size = static_cast<std::ptrdiff_t>(lines.size());
  for (std::ptrdiff_t at = size; at-- > 0 && size - at <= kLastLines;) {
    const auto index = static_cast<std::size_t>(at);
    const std::string& text = lines[index].text;
    if (is_progress(text) && !states_failure(text)) break;
    if (states_failure(text)) {
      const OwnVerdict verdict = with_neighbour(lines, index);
      const bool has_reason =
          !lacks_reason(text) || counts_failures(text) || verdict.words != own_words(text);
      return has_reason ? std::optional(verdict) : std::nullopt;
    }
    if (!ambiguous && size - at <= kLastAmbiguous && may_state_failure(text)) ambiguous = index;
  }
  if (!ambiguous) return std::nullopt;
  return with_neighbour(lines, *ambiguous);
}

}  // namespace stoker::diagnose
