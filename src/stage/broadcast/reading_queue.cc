#include "stage/broadcast/reading_queue.h"

#include <algorithm>
#include <utility>

namespace stoker::stage {

ReadingQueue::ReadingQueue(std::uint32_t nodes, std::uint32_t pieces, double late_s)
    : pieces_(pieces), late_s_(late_s), nodes_(nodes), waiting_(nodes), unread_(pieces) {
  for (std::uint32_t piece = 0; piece < pieces; ++piece) unread_.insert(piece);
}

void ReadingQueue::joined(std::uint32_t node) {
  if (nodes_[node].has_joined) return;
  nodes_[node].has_joined = true;
  if (!nodes_[node].is_gone) waiting_ -= 1;
}

void ReadingQueue::has(std::uint32_t node, std::uint32_t piece) {
  unread_.erase(piece);
  const auto reading = std::ranges::find_if(
      readings_, [&](const Reading& one) { return one.piece == piece && one.node == node; });
  if (reading == readings_.end()) return;
  usual_.add(now_ - reading->begin);
  std::erase_if(readings_, [&](const Reading& one) { return one.piece == piece; });
}

void ReadingQueue::refuses(std::uint32_t node, std::uint32_t piece) {
  if (!nodes_[node].refused) nodes_[node].refused.emplace(pieces_);
  nodes_[node].refused->insert(piece);
}

void ReadingQueue::ask(std::uint32_t node) {
  if (nodes_[node].is_gone) return;
  nodes_[node].asks += 1;
  turn_.push_back(node);
}

void ReadingQueue::misses(std::uint32_t node, std::uint32_t piece) {
  if (unread_.contains(piece) || is_being_read(piece)) return;
  repeated_ += 1;
  // Nodes that have it may have asked before, for others.
  missed_.push_back({node, piece});
}

void ReadingQueue::failed(std::uint32_t node, std::uint32_t piece) {
  refuses(node, piece);
  const auto removed =
      std::erase_if(readings_, [&](const Reading& one) { return one.piece == piece && one.node == node; });
  if (removed > 0 && !is_being_read(piece)) release(piece);
}

void ReadingQueue::gone(std::uint32_t node) {
  if (nodes_[node].is_gone) return;
  nodes_[node].is_gone = true;
  nodes_[node].asks = 0;
  if (!nodes_[node].has_joined) waiting_ -= 1;
  std::erase(turn_, node);
  std::vector<std::uint32_t> lost;
  std::erase_if(readings_, [&](const Reading& one) {
    if (one.node == node) lost.push_back(one.piece);
    return one.node == node;
  });
  for (const std::uint32_t piece : lost) {
    if (!is_being_read(piece)) release(piece);
  }
}

std::vector<ReadingGrant> ReadingQueue::next(double now) {
  now_ = now;
  std::vector<ReadingGrant> grants = std::exchange(missed_, {});
  for (const ReadingGrant& one : grants)
    readings_.push_back({.node = one.node, .piece = one.piece, .begin = now});
  if (!is_started_ && waiting_ > 0) return grants;
  first_unread_ = std::min(unread_.first_from(first_unread_), pieces_);
  // Late ones are searched for now and then.
  if (first_unread_ == pieces_ && now < next_late_search_) return grants;
  next_late_search_ = now + usual_.late_after(late_s_) / 8;
  std::deque<std::uint32_t> kept;
  while (!turn_.empty()) {
    const std::uint32_t node = turn_.front();
    turn_.pop_front();
    const auto piece = first_for(nodes_[node]);
    const auto granted = piece ? piece : late_for(node, now);
    if (!granted) {
      kept.push_back(node);
      continue;
    }
    unread_.erase(*granted);
    readings_.push_back({.node = node, .piece = *granted, .begin = now, .is_repeated = !piece});
    nodes_[node].asks -= 1;
    grants.push_back({node, *granted});
    first_unread_ = std::min(unread_.first_from(first_unread_), pieces_);
  }
  turn_ = std::move(kept);
  return grants;
}

std::optional<std::uint32_t> ReadingQueue::first_for(const Node& node) const {
  std::uint32_t piece = unread_.first_from(first_unread_);
  while (piece != PieceSet::kNone && node.refused && node.refused->contains(piece))
    piece = unread_.first_from(piece + 1);
  return piece == PieceSet::kNone ? std::nullopt : std::optional(piece);
}

std::optional<std::uint32_t> ReadingQueue::late_for(std::uint32_t node, double now) {
  const double limit = usual_.late_after(late_s_);
  for (Reading& reading : readings_) {
    if (reading.is_repeated || reading.node == node || now - reading.begin < limit) continue;
    if (nodes_[node].refused && nodes_[node].refused->contains(reading.piece)) continue;
    reading.is_repeated = true;
    repeated_ += 1;
    return reading.piece;
  }
  return std::nullopt;
}

void ReadingQueue::release(std::uint32_t piece) {
  unread_.insert(piece);
  first_unread_ = std::min(first_unread_, piece);
  repeated_ += 1;
}

bool ReadingQueue::is_being_read(std::uint32_t piece) const {
  return std::ranges::any_of(readings_, [&](const Reading& one) { return one.piece == piece; });
}

}  // namespace stoker::stage
