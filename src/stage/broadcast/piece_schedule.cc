#include "stage/broadcast/piece_schedule.h"

#include <algorithm>
#include <utility>

namespace stoker::stage {
namespace {

// Of the first pieces that a neighbour has, the rarest is requested, so that nodes get different ones.
constexpr int kChoices = 16;
// One of this number of requests is for the first one.
constexpr std::uint32_t kFirstOf = 4;

// An order of pieces that differs between nodes.
std::uint64_t mixed(std::uint64_t node, std::uint64_t piece) {
  std::uint64_t x = node * 0x9e3779b97f4a7c15u + piece * 0xbf58476d1ce4e5b9u;
  x ^= x >> 31;
  x *= 0x94d049bb133111ebu;
  return x ^ x >> 29;
}

}  // namespace

PieceSchedule::PieceSchedule(std::uint32_t node, const std::vector<std::uint32_t>& neighbours,
                             std::uint32_t pieces, SwarmLimits limits)
    : node_(node),
      pieces_(pieces),
      limits_(limits),
      stored_(pieces),
      open_(pieces),
      wanted_(pieces),
      holders_(pieces) {
  for (const std::uint32_t neighbour : neighbours) neighbours_.push_back({neighbour, PieceSet(pieces), {}});
}

void PieceSchedule::wants(std::uint32_t piece) {
  if (wanted_.contains(piece) || stored_.contains(piece)) return;
  wanted_.insert(piece);
  open_.insert(piece);
  first_ = std::min(first_, piece);
  left_ += 1;
}

void PieceSchedule::gives_up(std::uint32_t piece) {
  if (!wanted_.contains(piece)) return;
  wanted_.erase(piece);
  open_.erase(piece);
  left_ -= 1;
}

void PieceSchedule::stored(std::uint32_t piece, double now) {
  gives_up(piece);
  stored_.insert(piece);
  for (Neighbour& neighbour : neighbours_) {
    const auto request = neighbour.requests.find(piece);
    if (request == neighbour.requests.end()) continue;
    usual_.add(now - request->second);
    neighbour.requests.erase(request);
    requests_ -= 1;
  }
}

void PieceSchedule::neighbour_has(std::uint32_t neighbour, std::uint32_t piece) {
  Neighbour* const found = find(neighbour);
  if (!found || found->has.contains(piece)) return;
  found->has.insert(piece);
  if (holders_[piece] < 255) holders_[piece] += 1;
}

void PieceSchedule::refused(std::uint32_t neighbour, std::uint32_t piece) {
  Neighbour* const found = find(neighbour);
  if (!found) return;
  if (found->has.contains(piece)) {
    found->has.erase(piece);
    holders_[piece] -= holders_[piece] > 0 ? 1 : 0;
  }
  if (found->requests.erase(piece) == 0) return;
  requests_ -= 1;
  reopen(piece);
}

void PieceSchedule::neighbour_gone(std::uint32_t neighbour) {
  Neighbour* const found = find(neighbour);
  if (!found) return;
  for (std::uint32_t piece = found->has.first_from(0); piece != PieceSet::kNone;
       piece = found->has.first_from(piece + 1))
    holders_[piece] -= holders_[piece] > 0 ? 1 : 0;
  found->has = PieceSet(pieces_);
  const auto requests = std::exchange(found->requests, {});
  requests_ -= static_cast<std::uint32_t>(requests.size());
  for (const auto& [piece, since] : requests) reopen(piece);
}

std::optional<PieceRequest> PieceSchedule::next_request(double now) {
  if (requests_ >= limits_.requests) return std::nullopt;
  first_ = std::min(wanted_.first_from(first_), pieces_);
  // Late ones are searched for now and then.
  const bool searches_late = now >= next_late_search_;
  for (const bool is_late : {false, true}) {
    if (is_late && !searches_late) break;
    if (is_late) next_late_search_ = now + usual_.late_after(limits_.late_request_s) / 8;
    for (std::size_t i = 0; i < neighbours_.size(); ++i) {
      Neighbour& neighbour = neighbours_[turn_ = (turn_ + 1) % neighbours_.size()];
      if (neighbour.requests.size() >= limits_.requests_per_neighbour) continue;
      const auto piece = is_late ? choose_late(neighbour, now) : choose(neighbour);
      if (!piece) continue;
      open_.erase(*piece);
      neighbour.requests.emplace(*piece, now);
      requests_ += 1;
      return PieceRequest{neighbour.node, *piece};
    }
  }
  return std::nullopt;
}

std::optional<std::uint32_t> PieceSchedule::choose(const Neighbour& neighbour) {
  const int choices = ++chosen_ % kFirstOf == 0 ? 1 : kChoices;
  std::optional<std::uint32_t> best;
  std::pair<unsigned, std::uint64_t> best_rank;
  std::uint32_t piece = PieceSet::first_in_both(first_, open_, neighbour.has);
  const std::uint32_t end = piece < limits_.urgent ? limits_.urgent : pieces_;
  for (int i = 0; i < choices && piece < end; ++i) {
    const std::pair<unsigned, std::uint64_t> rank{holders_[piece], mixed(node_, piece)};
    if (!best || rank < best_rank) {
      best = piece;
      best_rank = rank;
    }
    piece = PieceSet::first_in_both(piece + 1, open_, neighbour.has);
  }
  return best;
}

std::optional<std::uint32_t> PieceSchedule::choose_late(const Neighbour& neighbour, double now) const {
  for (const Neighbour& other : neighbours_) {
    if (&other == &neighbour) continue;
    for (const auto& [piece, since] : other.requests) {
      if (now - since > usual_.late_after(limits_.late_request_s) && neighbour.has.contains(piece) &&
          !neighbour.requests.contains(piece))
        return piece;
    }
  }
  return std::nullopt;
}

bool PieceSchedule::asks_to_read(std::uint32_t backlog) {
  if (asked_ >= limits_.readings || backlog > limits_.backlog || left_ == 0) return false;
  asked_ += 1;
  return true;
}

bool PieceSchedule::granted(std::uint32_t piece) {
  if (!wanted_.contains(piece)) {
    if (asked_ > reading_) asked_ -= 1;
    return false;
  }
  open_.erase(piece);
  reading_ += 1;
  asked_ = std::max(asked_, reading_);
  return true;
}

void PieceSchedule::reading_ended(std::uint32_t piece, bool is_ok, double now) {
  asked_ -= 1;
  reading_ -= 1;
  if (is_ok) {
    stored(piece, now);
  } else {
    reopen(piece);
  }
}

std::optional<std::uint32_t> PieceSchedule::first_without_holder(
    const std::set<std::uint32_t>& except) const {
  std::uint32_t piece = open_.first_from(first_);
  while (piece != PieceSet::kNone && (holders_[piece] > 0 || except.contains(piece)))
    piece = open_.first_from(piece + 1);
  return piece == PieceSet::kNone ? std::nullopt : std::optional(piece);
}

std::optional<std::uint32_t> PieceSchedule::missed(double now) {
  const std::uint32_t piece = first_without_holder().value_or(PieceSet::kNone);
  if (piece != missed_) {
    missed_ = piece;
    missed_since_ = now;
  }
  if (piece == PieceSet::kNone || now - missed_since_ < usual_.late_after(limits_.missed_s))
    return std::nullopt;
  missed_since_ = now;
  return piece;
}

PieceSchedule::Neighbour* PieceSchedule::find(std::uint32_t node) {
  const auto found =
      std::ranges::find_if(neighbours_, [&](const Neighbour& one) { return one.node == node; });
  return found == neighbours_.end() ? nullptr : &*found;
}

// It is open again, unless it was requested twice.
void PieceSchedule::reopen(std::uint32_t piece) {
  const bool is_requested =
      std::ranges::any_of(neighbours_, [&](const Neighbour& one) { return one.requests.contains(piece); });
  if (!is_requested && wanted_.contains(piece)) open_.insert(piece);
}

}  // namespace stoker::stage
