#include "explain/failure/judge.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace stoker::explain {
namespace {

// Between the end of something that went wrong and was survived, and what brought the job down, a log goes on
// for more lines than these.
constexpr std::uint64_t kLongPause = 1000;
// After a failure that ends a job, no more lines than these stand between those that tell of it and of its
// end.
constexpr std::uint64_t kShortPause = 60;
// A script's last complaint stands no further from its end.
constexpr std::uint64_t kLastWords = 8;
// Exceptions raised while one is handled stand close to each other.
constexpr std::uint64_t kChained = 80;

// What a rank says whose peer is gone, or did not come.
constexpr std::array<std::string_view, 8> kLostPeer = {
    "gloo-peer-closed",  "gloo-timeout",    "nccl-peer-closed",  "nccl-proxy-failed",
    "nccl-remote-error", "store-host-gone", "store-key-missing", "watchdog-timeout"};

bool is_cause(const Suspect& suspect) {
  return suspect.hit->rule->weight == Weight::root || suspect.hit->rule->weight == Weight::general;
}

// The hits of a log's end: back from its last one as long as no long pause lies between two.
std::size_t first_of_end(const std::vector<Hit>& hits, std::uint64_t lines) {
  if (hits.empty() || lines - std::min(lines, hits.back().line) > kLongPause) return hits.size();
  std::size_t first = hits.size() - 1;
  while (first > 0 && hits[first].begin - std::min(hits[first].begin, hits[first - 1].line) <= kLongPause)
    --first;
  return first;
}

// Which of two came first. Times count where both have one, then the order of lines within one log.
bool is_before(const Suspect& a, const Suspect& b, std::optional<int> first_rank) {
  if (a.heard == b.heard && a.heard->is_told) return false;
  if (first_rank && (a.rank() == *first_rank) != (b.rank() == *first_rank)) return a.rank() == *first_rank;
  if (a.hit->time && b.hit->time && *a.hit->time != *b.hit->time) return *a.hit->time < *b.hit->time;
  if (a.heard == b.heard) return a.hit->line < b.hit->line;
  // A log's own line says more than what was told about it.
  if (a.heard->is_told != b.heard->is_told) return b.heard->is_told;
  return false;
}

std::optional<Suspect> first_of(const std::vector<Suspect>& suspects, std::initializer_list<Weight> weights,
                                std::optional<int> first_rank) {
  std::optional<Suspect> first;
  for (const Suspect& each : suspects) {
    const bool counts = std::find(weights.begin(), weights.end(), each.hit->rule->weight) != weights.end();
    if (counts && (!first || is_before(each, *first, first_rank))) first = each;
  }
  return first;
}

// The latest of those that would be a cause.
std::optional<Suspect> last_cause(const std::vector<Suspect>& suspects) {
  std::optional<Suspect> last;
  for (const Suspect& each : suspects) {
    if (is_cause(each) && (!last || each.heard != last->heard || each.hit->line > last->hit->line))
      last = each;
  }
  return last;
}

// What a rule knows better than the exception around it: the same rank, a few lines on.
Suspect more_special(const Suspect& cause, const std::vector<Suspect>& suspects) {
  if (cause.hit->rule->weight != Weight::general) return cause;
  for (const Suspect& each : suspects) {
    const bool is_near = each.heard == cause.heard && each.rank() == cause.rank() &&
                         each.hit->line > cause.hit->line && each.hit->begin <= cause.hit->line + kChained;
    if (is_near && each.hit->rule->weight == Weight::root) return each;
  }
  return cause;
}

// A place in a log: what is drawn over another text on the same line counts like a line of its own.
std::uint64_t place_of(const Hit& hit) { return hit.line + hit.drawn; }
std::uint64_t end_of(const Heard& heard) { return heard.scanned.lines + heard.scanned.drawn + 1; }

// Lines that no rule knows between a failure and a place behind it in its log.
std::uint64_t quiet_lines(const Suspect& cause, std::uint64_t until) {
  std::uint64_t quiet = 0;
  std::uint64_t last = place_of(*cause.hit);
  const auto pass = [&](std::uint64_t begin, std::uint64_t end) {
    if (end <= last || end > until) return;
    quiet += begin > last + 1 ? begin - last - 1 : 0;
    last = end;
  };
  for (const Hit& hit : cause.heard->scanned.hits) pass(hit.begin + hit.drawn, place_of(hit));
  pass(until, until);
  return quiet;
}

// Whether a job went on for a while after that failure, until it was ended from outside.
bool was_survived(const Suspect& cause, const Suspect& outside) {
  if (cause.heard->is_told) return false;
  const bool is_same_log = cause.heard == outside.heard;
  return quiet_lines(cause, is_same_log ? place_of(*outside.hit) : end_of(*cause.heard)) > kShortPause;
}

// Whether a script went on after that, so that it is a cause only where nothing else is.
bool was_passed_over(const Suspect& suspect, const std::vector<Suspect>& end) {
  if (!suspect.hit->rule->script_goes_on || suspect.heard->is_told) return false;
  for (const Suspect& each : end) {
    const Weight weight = each.hit->rule->weight;
    const bool is_failure = weight != Weight::effect && weight != Weight::slow &&
                            !each.hit->rule->script_goes_on && each.heard == suspect.heard &&
                            each.hit->line > suspect.hit->line;
    if (is_failure) return quiet_lines(suspect, each.hit->begin + each.hit->drawn) > kShortPause;
  }
  return quiet_lines(suspect, end_of(*suspect.heard)) > kLastWords;
}

void split_end(const Heard& heard, std::vector<Suspect>& end, std::vector<Suspect>& earlier) {
  const std::vector<Hit>& hits = heard.scanned.hits;
  const std::size_t first = heard.is_told ? 0 : first_of_end(hits, heard.scanned.lines);
  for (std::size_t i = 0; i < hits.size(); ++i) (i < first ? earlier : end).push_back({&heard, &hits[i]});
}

bool is_early_end(const Suspect& suspect) {
  return suspect.heard->is_told && suspect.hit->rule->name == kEndedEarly;
}

// Whether all that is known of the rank that failed first is that it had lost a peer.
bool lost_a_peer(const std::optional<Suspect>& cause, const std::vector<Suspect>& end,
                 std::optional<int> first_rank) {
  if (cause && (is_cause(*cause) || cause->hit->rule->weight == Weight::outside)) return false;
  return std::any_of(end.begin(), end.end(), [&](const Suspect& each) {
    return first_rank && each.rank() == *first_rank &&
           std::find(kLostPeer.begin(), kLostPeer.end(), each.hit->rule->name) != kLostPeer.end();
  });
}

// Takes out those that hold, judged while all are still there.
template <typename Holds>
std::vector<Suspect> take_out(std::vector<Suspect>& from, const Holds& holds) {
  std::vector<Suspect> taken, kept;
  for (const Suspect& each : from) (holds(each) ? taken : kept).push_back(each);
  from = std::move(kept);
  return taken;
}

// Beside the cause: what tells of the same, and what only came of it.
void add_others(const std::vector<Suspect>& end, Choice& choice) {
  for (const Suspect& each : end) {
    if (!choice.cause || each.hit == choice.cause->hit) continue;
    if (each.hit->rule == choice.cause->hit->rule) {
      choice.supporting.push_back(each);
    } else if (each.hit->rule->weight == Weight::effect || each.hit->rule->weight == Weight::hang) {
      choice.followed.push_back(each);
    }
  }
}

std::optional<Suspect> cause_of(const std::vector<Suspect>& end, std::optional<int> first_rank) {
  auto cause = first_of(end, {Weight::root, Weight::general}, first_rank);
  const auto outside = first_of(end, {Weight::outside}, first_rank);
  if (cause && outside) {
    const bool is_later = is_before(*outside, *cause, {}) && outside->heard == cause->heard;
    if (is_later || was_survived(*cause, *outside)) return outside;
  }
  if (cause) return more_special(*cause, end);
  if (auto hang = first_of(end, {Weight::hang}, first_rank)) return hang;
  return outside;
}

}  // namespace

Choice choose(const std::vector<Heard>& heard, std::optional<int> first_rank) {
  for (const Heard& each : heard) {
    if (!first_rank && each.scanned.first_rank) first_rank = each.scanned.first_rank;
  }
  std::vector<Suspect> end, earlier;
  for (const Heard& each : heard) split_end(each, end, earlier);
  const std::vector<Suspect> early = take_out(end, is_early_end);
  const std::vector<Suspect> passed =
      take_out(end, [&](const Suspect& each) { return was_passed_over(each, end); });
  Choice choice;
  choice.cause = cause_of(end, first_rank);
  choice.is_sure = choice.cause.has_value();
  // What a log goes on for so long after was perhaps survived.
  if (choice.cause && !choice.cause->heard->is_told)
    choice.is_sure = quiet_lines(*choice.cause, end_of(*choice.cause->heard)) <= kLongPause / 2;
  if (!choice.cause) choice.cause = first_of(end, {Weight::ending}, first_rank);
  if (!choice.cause) choice.cause = first_of(end, {Weight::effect}, first_rank);
  if (!choice.cause && !passed.empty()) choice.cause = passed.front();
  // Ranks that wait, or lost a peer, may go on printing for long after what that peer said.
  const bool is_effect = choice.cause && (choice.cause->hit->rule->weight == Weight::hang ||
                                          choice.cause->hit->rule->weight == Weight::effect);
  if (!early.empty() && lost_a_peer(choice.cause, end, first_rank)) {
    choice.cause = early.front();
    choice.is_sure = false;
    choice.supporting.assign(early.begin() + 1, early.end());
  } else if (const auto before = is_effect ? last_cause(earlier) : std::nullopt) {
    choice.cause = before;
    choice.is_sure = false;
  }
  add_others(end, choice);
  return choice;
}

}  // namespace stoker::explain
