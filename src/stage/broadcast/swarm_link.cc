#include "stage/broadcast/swarm_link.h"

#include <algorithm>
#include <utility>

#include "net/channel.h"

namespace stoker::stage {
namespace {

using namespace std::chrono_literals;

constexpr Duration kConnectTimeout = 5s;
constexpr Duration kIdle = 2s;  // then the memory of a connection is freed

}  // namespace

Result<net::SecureChannel> connect_to_node(std::uint32_t node, const std::vector<std::string>& addresses,
                                           const std::string& secret, const SwarmHello& hello) {
  if (addresses.empty()) return unavailable("node {} has no address", node);
  const Deadline deadline = Deadline::after(kConnectTimeout);
  STOKER_ASSIGN_OR_RETURN(plain, net::Channel::connect_any(addresses, deadline));
  STOKER_ASSIGN_OR_RETURN(channel, net::SecureChannel::connect(std::move(plain).release(), secret, deadline));
  STOKER_RETURN_IF_ERROR(channel.send(static_cast<std::uint8_t>(SwarmKind::hello), encode_hello(hello)));
  STOKER_ASSIGN_OR_RETURN(answer, channel.receive(deadline));
  if (answer.kind != static_cast<std::uint8_t>(SwarmKind::welcome))
    return corrupt("node {}: no welcome", node);
  return Result<net::SecureChannel>(std::move(channel));
}

void SwarmLink::push(SwarmMessage message) {
  const MutexLock lock(mutex_);
  append(std::move(message));
}

void SwarmLink::request(std::uint32_t piece) {
  const MutexLock lock(mutex_);
  expected_[piece] = 0;
  append({.kind = SwarmKind::request, .piece = piece});
}

void SwarmLink::refused(std::uint32_t piece) {
  const MutexLock lock(mutex_);
  expected_.erase(piece);
}

void SwarmLink::append(SwarmMessage message) {
  if (is_closed_) return;
  // Announcements of many pieces share a frame.
  if (message.kind == SwarmKind::have && !outbox_.empty() && outbox_.back().kind == SwarmKind::have) {
    auto& ranges = outbox_.back().ranges;
    ranges.insert(ranges.end(), message.ranges.begin(), message.ranges.end());
    return;
  }
  outbox_.push_back(std::move(message));
  ready_.notify_one();
}

std::uint32_t SwarmLink::close() {
  const MutexLock lock(mutex_);
  if (is_closed_) return 0;
  is_closed_ = true;
  const auto pieces = std::ranges::count(outbox_, SwarmKind::data, &SwarmMessage::kind);
  outbox_.clear();
  channel_.shut_down();
  ready_.notify_one();
  return static_cast<std::uint32_t>(pieces);
}

bool SwarmLink::is_closed() const {
  const MutexLock lock(mutex_);
  return is_closed_;
}

std::optional<SwarmMessage> SwarmLink::next() {
  const MutexLock lock(mutex_);
  while (outbox_.empty() && !is_closed_) {
    if (ready_.wait(mutex_, Deadline::after(kIdle))) continue;
    channel_.release_send_buffer();
    block_ = {};
  }
  if (is_closed_) return std::nullopt;
  SwarmMessage message = std::move(outbox_.front());
  outbox_.pop_front();
  return message;
}

Status SwarmLink::send(const SwarmMessage& message) {
  const auto kind = static_cast<std::uint8_t>(message.kind);
  switch (message.kind) {
    case SwarmKind::have:
    case SwarmKind::unwanted:
      return channel_.send(kind, encode_ranges(message.ranges));
    case SwarmKind::welcome:
    case SwarmKind::joined:
    case SwarmKind::ask:
      return channel_.send(kind, {});
    default:
      return channel_.send(kind, encode_piece(message.piece));
  }
}

Status SwarmLink::send_data(const PieceData& header, std::span<const std::byte> bytes) {
  return channel_.send(static_cast<std::uint8_t>(SwarmKind::data), encode_data_header(header), bytes);
}

std::span<std::byte> SwarmLink::block(std::uint64_t bytes) {
  if (block_.size() < kDataBytes) block_.resize(kDataBytes);
  return std::span(block_).first(bytes);
}

Status SwarmLink::accept_data(const PieceData& header, std::uint64_t bytes, std::uint64_t piece_bytes) {
  const MutexLock lock(mutex_);
  const auto expected = expected_.find(header.piece);
  if (expected == expected_.end() || expected->second != header.offset || header.offset >= piece_bytes ||
      bytes != std::min(kDataBytes, piece_bytes - header.offset))
    return corrupt("a peer sent data that was not requested");
  expected->second += bytes;
  if (expected->second == piece_bytes) expected_.erase(expected);
  return {};
}

}  // namespace stoker::stage
