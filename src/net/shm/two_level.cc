#include "net/shm/two_level.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace stoker::net::shm {

namespace {

// Large data go in pieces: while one is on the network, the next is summed within the host.
constexpr std::size_t kPiece = std::size_t{4} << 20;
constexpr std::size_t kAhead = 1;
// From so many ranks of a host on they share the work of a sum, though only the first needs it.
constexpr int kSharedFrom = 3;

}  // namespace

TwoLevel::TwoLevel(TwoLevelParts parts)
    : parts_(std::move(parts)), inner_(parts_.hosts.seat_of(parts_.rank)) {}

void TwoLevel::set_answer_within(Duration duration) {
  if (parts_.inside) parts_.inside->set_answer_within(duration + kLonger);
}

void TwoLevel::set_named_after(Duration duration) {
  if (parts_.inside) parts_.inside->set_named_after(duration);
  if (parts_.between) parts_.between->set_named_after(duration);
}

void TwoLevel::cancel() {
  if (parts_.inside) parts_.inside->cancel();
  if (parts_.between) parts_.between->cancel();
}

void TwoLevel::abandon(std::string_view why) {
  if (parts_.inside) parts_.inside->abandon(why);
  if (parts_.between) parts_.between->cancel();
}

void TwoLevel::tell(Level level) {
  if (parts_.on_level) parts_.on_level(level);
}

// A call among the ranks of this host. When it fails, the other hosts wait for nothing.
template <typename Call>
Status TwoLevel::within(const Call& call) {
  if (failure_) return *failure_;
  if (!parts_.inside) return {};
  tell(Level::within_host);
  Status status = call(*parts_.inside).with_context("within its host");
  if (status.ok()) return status;
  failure_ = status;
  if (parts_.between) parts_.between->leave(status.message());
  return status;
}

// A call among the first ranks of the hosts. When it fails, the others of this host wait for nothing.
template <typename Call>
Status TwoLevel::across(const Call& call) {
  if (failure_) return *failure_;
  if (!parts_.between) return {};
  tell(Level::between_hosts);
  Status status = call(*parts_.between).with_context("between hosts");
  if (status.ok()) return status;
  failure_ = status;
  parts_.between->leave(status.message());
  if (parts_.inside) parts_.inside->abandon(status.message());
  return status;
}

// The sum of this host is on its way to the others.
Status TwoLevel::bring(std::span<std::byte> piece, Arithmetic arithmetic) {
  RETURN_IF_ERROR(within([&](Exchange& inside) {
    return inner_.size.value < kSharedFrom ? inside.reduce(piece, arithmetic, Rank(0))
                                           : inside.all_reduce(piece, arithmetic);
  }));
  return across([&](Between& between) {
    return piece.empty() ? between.barrier() : between.begin_all_reduce(piece, arithmetic);
  });
}

// The sum of all hosts goes to the ranks of this one.
Status TwoLevel::spread(std::span<std::byte> piece, Arithmetic arithmetic) {
  const auto finish = [&](Between& between) -> Status {
    if (!piece.empty()) RETURN_IF_ERROR(between.finish_all_reduce());
    if (arithmetic.reduction == Reduction::average) {
      divide(arithmetic.element, piece.data(), static_cast<std::size_t>(seat().size.value), piece.size());
    }
    return {};
  };
  RETURN_IF_ERROR(across(finish));
  return within([&](Exchange& inside) { return inside.broadcast(piece, arithmetic.element, Rank(0)); });
}

Status TwoLevel::all_reduce(std::span<std::byte> data, Arithmetic arithmetic) {
  Arithmetic partial = arithmetic;
  if (partial.reduction == Reduction::average) partial.reduction = Reduction::sum;
  const std::size_t pieces = std::max<std::size_t>(1, (data.size() + kPiece - 1) / kPiece);
  const auto piece = [&](std::size_t number) {
    const std::size_t begin = number * kPiece;
    return data.subspan(begin, std::min(kPiece, data.size() - begin));
  };
  // The same order of calls on all ranks, whatever arrives first.
  for (std::size_t i = 0; i < pieces + kAhead; ++i) {
    if (i < pieces) RETURN_IF_ERROR(bring(piece(i), partial));
    if (i >= kAhead) RETURN_IF_ERROR(spread(piece(i - kAhead), arithmetic));
  }
  return {};
}

Status TwoLevel::reduce(std::span<std::byte> data, Arithmetic arithmetic, Rank /*root*/) {
  return all_reduce(data, arithmetic);
}

Status TwoLevel::broadcast(std::span<std::byte> data, Element element, Rank root) {
  const std::size_t source = parts_.hosts.host_of(root);
  const bool is_here = source == parts_.hosts.host_of(parts_.rank);
  if (is_here) {
    const Rank seat = parts_.hosts.seat_of(root).rank;
    RETURN_IF_ERROR(within([&](Exchange& inside) { return inside.broadcast(data, element, seat); }));
  }
  RETURN_IF_ERROR(across(
      [&](Between& between) { return data.empty() ? between.barrier() : between.broadcast(data, source); }));
  if (is_here) return {};
  return within([&](Exchange& inside) { return inside.broadcast(data, element, Rank(0)); });
}

Status TwoLevel::all_gather(std::span<const std::byte> own, Element element,
                            std::span<const std::span<std::byte>> into) {
  if (own.empty()) return barrier();
  // Of every host as much as the largest one has.
  const std::size_t block = parts_.hosts.most() * own.size();
  std::vector<std::byte> here(block);
  std::vector<std::byte> all(parts_.hosts.count() * block);
  const auto place = [&](std::span<std::byte> from, std::size_t number) {
    return from.subspan(number * own.size(), own.size());
  };
  std::vector<std::span<std::byte>> seats;
  for (int seat = 0; seat < inner_.size.value; ++seat)
    seats.push_back(place(here, static_cast<std::size_t>(seat)));
  std::memcpy(here.data(), own.data(), own.size());  // for a host's only rank
  RETURN_IF_ERROR(within([&](Exchange& inside) { return inside.all_gather(own, element, seats); }));
  RETURN_IF_ERROR(across([&](Between& between) { return between.all_gather(here, all); }));
  RETURN_IF_ERROR(within([&](Exchange& inside) { return inside.broadcast(all, Element::u8, Rank(0)); }));
  for (std::size_t rank = 0; rank < into.size(); ++rank) {
    const Rank number(static_cast<int>(rank));
    const auto seat = static_cast<std::size_t>(parts_.hosts.seat_of(number).rank.value);
    const auto host = std::span(all).subspan(parts_.hosts.host_of(number) * block, block);
    std::memcpy(into[rank].data(), place(host, seat).data(), own.size());
  }
  return {};
}

Status TwoLevel::reduce_scatter(std::span<const std::span<const std::byte>> parts, std::span<std::byte> own,
                                Arithmetic arithmetic) {
  std::vector<std::byte> all(parts.size() * own.size());
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    if (!own.empty()) std::memcpy(all.data() + rank * own.size(), parts[rank].data(), own.size());
  }
  RETURN_IF_ERROR(all_reduce(all, arithmetic));
  const std::size_t mine = static_cast<std::size_t>(parts_.rank.value) * own.size();
  if (!own.empty()) std::memcpy(own.data(), all.data() + mine, own.size());
  return {};
}

Status TwoLevel::barrier() {
  RETURN_IF_ERROR(within([](Exchange& inside) { return inside.barrier(); }));
  RETURN_IF_ERROR(across([](Between& between) { return between.barrier(); }));
  return within([](Exchange& inside) { return inside.barrier(); });
}

}  // namespace stoker::net::shm
