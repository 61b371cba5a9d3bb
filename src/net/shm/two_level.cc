#include "net/shm/two_level.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace stoker::net::shm {

namespace {

// Large data is split: while one piece is on the network, the next one is reduced within the host.
constexpr std::size_t kPiece = std::size_t{4} << 20;
constexpr std::size_t kAhead = 1;
// From this number of ranks per host on, all ranks share the work of a sum, though only the first needs the
// result.
constexpr int kSharedFrom = 3;

}  // namespace

TwoLevel::TwoLevel(TwoLevelParts parts)
    : parts_(std::move(parts)), inner_(parts_.hosts.position_of(parts_.rank)) {}

void TwoLevel::set_call_timeout(Duration duration) {
  if (parts_.intra_node) parts_.intra_node->set_call_timeout(duration + kPeerTimeoutMargin);
}

void TwoLevel::set_straggler_after(Duration duration) {
  if (parts_.intra_node) parts_.intra_node->set_straggler_after(duration);
  if (parts_.inter_node) parts_.inter_node->set_straggler_after(duration);
}

void TwoLevel::cancel() {
  if (parts_.intra_node) parts_.intra_node->cancel();
  if (parts_.inter_node) parts_.inter_node->cancel();
}

void TwoLevel::abandon(std::string_view why) {
  if (parts_.intra_node) parts_.intra_node->abandon(why);
  if (parts_.inter_node) parts_.inter_node->cancel();
}

void TwoLevel::report_level(CommunicationLevel level) {
  if (parts_.on_level) parts_.on_level(level);
}

// Runs a call among the ranks of this host. On failure, leaves the other hosts.
template <typename Call>
Status TwoLevel::run_intra_node(const Call& call) {
  if (failure_) return *failure_;
  if (!parts_.intra_node) return {};
  report_level(CommunicationLevel::intra_node);
  Status status = call(*parts_.intra_node).with_context("within the host");
  if (status.ok()) return status;
  failure_ = status;
  if (parts_.inter_node) parts_.inter_node->leave(status.message());
  return status;
}

// Runs a call among the first ranks of the hosts. On failure, the other ranks of this host fail, too.
template <typename Call>
Status TwoLevel::run_inter_node(const Call& call) {
  if (failure_) return *failure_;
  if (!parts_.inter_node) return {};
  report_level(CommunicationLevel::inter_node);
  Status status = call(*parts_.inter_node).with_context("between hosts");
  if (status.ok()) return status;
  failure_ = status;
  parts_.inter_node->leave(status.message());
  if (parts_.intra_node) parts_.intra_node->abandon(status.message());
  return status;
}

// Begins to send the sum of this host to the other hosts.
Status TwoLevel::start_all_reduce(std::span<std::byte> piece, ReduceSpec arithmetic) {
  STOKER_RETURN_IF_ERROR(run_intra_node([&](Exchange& intra_node) {
    return inner_.size.value < kSharedFrom ? intra_node.reduce(piece, arithmetic, Rank(0))
                                           : intra_node.all_reduce(piece, arithmetic);
  }));
  return run_inter_node([&](InterNode& inter_node) {
    return piece.empty() ? inter_node.barrier() : inter_node.begin_all_reduce(piece, arithmetic);
  });
}

// Broadcasts the sum of all hosts to the ranks of this host.
Status TwoLevel::broadcast_result(std::span<std::byte> piece, ReduceSpec arithmetic) {
  const auto finish = [&](InterNode& inter_node) -> Status {
    if (!piece.empty()) STOKER_RETURN_IF_ERROR(inter_node.finish_all_reduce());
    if (arithmetic.reduction == Reduction::average) {
      divide(arithmetic.element, piece.data(), static_cast<std::size_t>(position().size.value), piece.size());
    }
    return {};
  };
  STOKER_RETURN_IF_ERROR(run_inter_node(finish));
  return run_intra_node(
      [&](Exchange& intra_node) { return intra_node.broadcast(piece, arithmetic.element, Rank(0)); });
}

Status TwoLevel::all_reduce(std::span<std::byte> data, ReduceSpec arithmetic) {
  ReduceSpec partial = arithmetic;
  if (partial.reduction == Reduction::average) partial.reduction = Reduction::sum;
  const std::size_t pieces = std::max<std::size_t>(1, (data.size() + kPiece - 1) / kPiece);
  const auto piece = [&](std::size_t number) {
    const std::size_t begin = number * kPiece;
    return data.subspan(begin, std::min(kPiece, data.size() - begin));
  };
  // The same order of calls on all ranks, whatever arrives first.
  for (std::size_t i = 0; i < pieces + kAhead; ++i) {
    if (i < pieces) STOKER_RETURN_IF_ERROR(start_all_reduce(piece(i), partial));
    if (i >= kAhead) STOKER_RETURN_IF_ERROR(broadcast_result(piece(i - kAhead), arithmetic));
  }
  return {};
}

Status TwoLevel::reduce(std::span<std::byte> data, ReduceSpec arithmetic, Rank /*root*/) {
  return all_reduce(data, arithmetic);
}

Status TwoLevel::broadcast(std::span<std::byte> data, Element element, Rank root) {
  const std::size_t source = parts_.hosts.host_of(root);
  const bool is_here = source == parts_.hosts.host_of(parts_.rank);
  if (is_here) {
    const Rank position = parts_.hosts.position_of(root).rank;
    STOKER_RETURN_IF_ERROR(
        run_intra_node([&](Exchange& intra_node) { return intra_node.broadcast(data, element, position); }));
  }
  STOKER_RETURN_IF_ERROR(run_inter_node([&](InterNode& inter_node) {
    return data.empty() ? inter_node.barrier() : inter_node.broadcast(data, source);
  }));
  if (is_here) return {};
  return run_intra_node([&](Exchange& intra_node) { return intra_node.broadcast(data, element, Rank(0)); });
}

Status TwoLevel::all_gather(std::span<const std::byte> own, Element element,
                            std::span<const std::span<std::byte>> into) {
  if (own.empty()) return barrier();
  // Every host sends as many bytes as the largest one.
  const std::size_t block = parts_.hosts.max_ranks_per_host() * own.size();
  std::vector<std::byte> here(block);
  std::vector<std::byte> all(parts_.hosts.count() * block);
  const auto place = [&](std::span<std::byte> from, std::size_t number) {
    return from.subspan(number * own.size(), own.size());
  };
  std::vector<std::span<std::byte>> positions;
  for (int position = 0; position < inner_.size.value; ++position)
    positions.push_back(place(here, static_cast<std::size_t>(position)));
  std::memcpy(here.data(), own.data(), own.size());  // for the only rank of a host
  STOKER_RETURN_IF_ERROR(
      run_intra_node([&](Exchange& intra_node) { return intra_node.all_gather(own, element, positions); }));
  STOKER_RETURN_IF_ERROR(
      run_inter_node([&](InterNode& inter_node) { return inter_node.all_gather(here, all); }));
  STOKER_RETURN_IF_ERROR(
      run_intra_node([&](Exchange& intra_node) { return intra_node.broadcast(all, Element::u8, Rank(0)); }));
  for (std::size_t rank = 0; rank < into.size(); ++rank) {
    const Rank number(static_cast<int>(rank));
    const auto position = static_cast<std::size_t>(parts_.hosts.position_of(number).rank.value);
    const auto host = std::span(all).subspan(parts_.hosts.host_of(number) * block, block);
    std::memcpy(into[rank].data(), place(host, position).data(), own.size());
  }
  return {};
}

Status TwoLevel::reduce_scatter(std::span<const std::span<const std::byte>> parts, std::span<std::byte> own,
                                ReduceSpec arithmetic) {
  std::vector<std::byte> all(parts.size() * own.size());
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    if (!own.empty()) std::memcpy(all.data() + rank * own.size(), parts[rank].data(), own.size());
  }
  STOKER_RETURN_IF_ERROR(all_reduce(all, arithmetic));
  const std::size_t own_offset = static_cast<std::size_t>(parts_.rank.value) * own.size();
  if (!own.empty()) std::memcpy(own.data(), all.data() + own_offset, own.size());
  return {};
}

Status TwoLevel::barrier() {
  STOKER_RETURN_IF_ERROR(run_intra_node([](Exchange& intra_node) { return intra_node.barrier(); }));
  STOKER_RETURN_IF_ERROR(run_inter_node([](InterNode& inter_node) { return inter_node.barrier(); }));
  return run_intra_node([](Exchange& intra_node) { return intra_node.barrier(); });
}

}  // namespace stoker::net::shm
