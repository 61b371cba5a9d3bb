#include "stage/broadcast/swarm.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <list>
#include <map>
#include <set>
#include <thread>

#include "base/hash.h"
#include "base/pacer.h"
#include "base/stopwatch.h"
#include "base/thread.h"
#include "net/channel.h"
#include "stage/broadcast/reading_queue.h"

namespace stoker::stage {
namespace {

using namespace std::chrono_literals;

constexpr Duration kConnectTimeout = 5s;
constexpr Duration kFirstRetry = 100ms;
constexpr Duration kLastRetry = 5s;
constexpr Duration kTick = 100ms;
constexpr Duration kIdle = 2s;  // then the memory of a connection is freed
constexpr Duration kReceiveSlice = 1s;
constexpr std::uint64_t kDataBytes = 4u << 20;
constexpr std::uint32_t kQueueNode = 0;

std::string plan_text_of(const SwarmPlan& plan) {
  std::string text = format("{} {}", plan.dataset, plan.addresses.size());
  for (const ShardPiece& piece : plan.pieces)
    text += format(" {} {} {}", piece.shard, piece.offset, piece.bytes);
  return hex(sha256(text));
}

}  // namespace

class Swarm::Impl {
 public:
  Impl(SwarmPlan plan, PieceStore& store)
      : plan_(std::move(plan)),
        plan_text_(plan_text_of(plan_)),
        nodes_(static_cast<std::uint32_t>(plan_.addresses.size())),
        pieces_(static_cast<std::uint32_t>(plan_.pieces.size())),
        store_(store),
        up_(plan_.rate.value),
        down_(plan_.rate.value),
        schedule_(plan_.node, swarm_neighbours(plan_.node, nodes_), pieces_, plan_.limits),
        decided_(pieces_),
        queue_(nodes_, pieces_, plan_.limits.late_reading_s) {
    for (const std::uint32_t node : swarm_neighbours(plan_.node, nodes_))
      connectors_.emplace_back(
          [this, node](const StopToken& stop) { keep_connected(node, SwarmRole::pieces, stop); });
    connectors_.emplace_back(
        [this](const StopToken& stop) { keep_connected(kQueueNode, SwarmRole::queue, stop); });
    for (std::uint32_t i = 0; i < plan_.limits.readings; ++i)
      connectors_.emplace_back([this](const StopToken& stop) { fetch_granted(stop); });
    connectors_.emplace_back([this](const StopToken& stop) { tick(stop); });
  }

  ~Impl() {
    is_stopping_ = true;
    for (Thread& thread : connectors_) thread.request_stop();
    {
      const MutexLock lock(mutex_);
      is_stopped_ = true;
      for (auto& link : accepted_) close(*link);
      for (Link* link : connected_) close(*link);
      granted_ready_.notify_all();
    }
    connectors_.clear();
    accepted_.clear();
  }

  const std::string& plan_text() const { return plan_text_; }

  void adopt(net::SecureChannel channel, const SwarmHello& hello) {
    if (hello.node >= nodes_ || (hello.role == SwarmRole::queue && plan_.node != kQueueNode)) return;
    std::list<std::unique_ptr<Link>> ended;
    const MutexLock lock(mutex_);
    if (is_stopped_) return;
    for (auto it = accepted_.begin(); it != accepted_.end();) {
      const auto next = std::next(it);
      if ((*it)->is_ended) ended.splice(ended.end(), accepted_, it);
      it = next;
    }
    accepted_.push_back(std::make_unique<Link>(std::move(channel), hello.node, hello.role));
    Link& link = *accepted_.back();
    push(link, {.kind = SwarmKind::welcome});
    if (link.role == SwarmRole::pieces) {
      push(link, {.kind = SwarmKind::have, .ranges = stored_ranges()});
    } else {
      queue_.returned(link.node);
      queue_links_[link.node] = &link;
    }
    link.sender = Thread([this, &link](const StopToken&) { send_all(link); });
    link.receiver = Thread([this, &link](const StopToken&) {
      receive_all(link);
      const MutexLock ending(mutex_);
      end_accepted(link);
    });
  }

  void wants(PieceRange pieces) {
    const MutexLock lock(mutex_);
    for (std::uint32_t i = 0; i < pieces.count; ++i) schedule_.wants(pieces.first + i);
    decide(pieces);
    pump();
  }

  void has(PieceRange pieces) {
    const MutexLock lock(mutex_);
    for (std::uint32_t i = 0; i < pieces.count; ++i) schedule_.stored(pieces.first + i, now());
    decide(pieces);
    announce(pieces);
    push_to_queue({.kind = SwarmKind::have, .ranges = {pieces}});
    note_progress();
  }

  void gives_up(PieceRange pieces) {
    const MutexLock lock(mutex_);
    for (std::uint32_t i = 0; i < pieces.count; ++i) schedule_.gives_up(pieces.first + i);
    decide(pieces);
    unwanted_.push_back(pieces);
    push_to_queue({.kind = SwarmKind::unwanted, .ranges = {pieces}});
    note_progress();
  }

  void joined() {
    const MutexLock lock(mutex_);
    has_joined_ = true;
    push_to_queue({.kind = SwarmKind::joined});
  }

  std::vector<std::uint32_t> early_grants() const {
    const MutexLock lock(mutex_);
    return {early_grants_.begin(), early_grants_.end()};
  }

  std::uint32_t left() const {
    const MutexLock lock(mutex_);
    return schedule_.left();
  }

  Status wait(Deadline deadline) {
    const MutexLock lock(mutex_);
    const std::uint64_t before = events_;
    while (problem_.ok() && events_ == before && progress_.wait(mutex_, deadline)) {
    }
    return problem_;
  }

  SwarmTraffic traffic() const {
    const MutexLock lock(mutex_);
    return traffic_;
  }

 private:
  // A frame to send, or a piece.
  struct Out {
    SwarmKind kind = SwarmKind::hello;
    std::vector<PieceRange> ranges = {};  // have, unwanted
    std::uint32_t piece = 0;              // others
  };
  // A connection of either end. Two threads use its channel.
  struct Link {
    Link(net::SecureChannel connected, std::uint32_t peer, SwarmRole use)
        : channel(std::move(connected)), node(peer), role(use) {}
    net::SecureChannel channel;
    const std::uint32_t node;
    const SwarmRole role;
    Condition ready;
    std::deque<Out> outbox;
    bool is_closed = false;             // nothing is sent any more
    bool is_ended = false;              // of an accepted one: its receiver has ended
    std::vector<std::byte> block = {};  // of the sending thread
    std::map<std::uint32_t, std::uint64_t> expected =
        {};  // requested pieces, and the offset of the next data
    Thread sender;
    Thread receiver;
  };

  double now() const { return clock_.seconds(); }

  void note_progress() STOKER_REQUIRES_LOCK(mutex_) {
    events_ += 1;
    last_progress_ = now();
    progress_.notify_all();
  }

  void push(Link& link, Out out) STOKER_REQUIRES_LOCK(mutex_) {
    if (link.is_closed) return;
    // Announcements of many pieces share a frame.
    if (out.kind == SwarmKind::have && !link.outbox.empty() && link.outbox.back().kind == SwarmKind::have) {
      auto& ranges = link.outbox.back().ranges;
      ranges.insert(ranges.end(), out.ranges.begin(), out.ranges.end());
      return;
    }
    link.outbox.push_back(std::move(out));
    link.ready.notify_one();
  }

  void push_to_queue(Out out) STOKER_REQUIRES_LOCK(mutex_) {
    if (queue_link_) push(*queue_link_, std::move(out));
  }

  void close(Link& link) STOKER_REQUIRES_LOCK(mutex_) {
    if (link.is_closed) return;
    link.is_closed = true;
    for (const Out& out : link.outbox) backlog_ -= out.kind == SwarmKind::data ? 1 : 0;
    link.outbox.clear();
    link.channel.shut_down();
    link.ready.notify_one();
  }

  // Of the neighbours that pull from this node.
  void announce(PieceRange pieces) STOKER_REQUIRES_LOCK(mutex_) {
    for (auto& link : accepted_) {
      if (link->role == SwarmRole::pieces && !link->is_ended)
        push(*link, {.kind = SwarmKind::have, .ranges = {pieces}});
    }
  }

  std::vector<PieceRange> stored_ranges() const STOKER_REQUIRES_LOCK(mutex_) {
    std::vector<PieceRange> ranges;
    for (std::uint32_t piece = 0; piece < pieces_; ++piece) {
      if (!schedule_.has(piece)) continue;
      if (!ranges.empty() && ranges.back().first + ranges.back().count == piece) {
        ranges.back().count += 1;
      } else {
        ranges.push_back({piece, 1});
      }
    }
    return ranges;
  }

  // Everything that this node can do now.
  void pump() STOKER_REQUIRES_LOCK(mutex_) {
    while (const auto request = schedule_.next_request(now())) {
      const auto link = std::ranges::find_if(connected_, [&](const Link* one) {
        return one->node == request->node && one->role == SwarmRole::pieces;
      });
      if (link == connected_.end() || (*link)->is_closed) {
        schedule_.neighbour_gone(request->node);
        continue;
      }
      (*link)->expected[request->piece] = 0;
      push(**link, {.kind = SwarmKind::request, .piece = request->piece});
    }
    if (is_alone_) return grant_to_self();
    while (queue_link_ && !queue_link_->is_closed && schedule_.asks_to_read(backlog_))
      push_to_queue({.kind = SwarmKind::ask});
  }

  // What failed is missed after a while.
  void grant_to_self() STOKER_REQUIRES_LOCK(mutex_) {
    for (;;) {
      const auto piece = schedule_.first_without_holder(failed_here_);
      if (!piece || !schedule_.asks_to_read(0)) return;
      if (schedule_.granted(*piece)) granted_.push_back(*piece);
      granted_ready_.notify_all();
    }
  }

  // Connects to a node, again after each failure, and receives from it.
  void keep_connected(std::uint32_t node, SwarmRole role, const StopToken& stop) {
    Duration pause = kFirstRetry;
    while (!stop.stop_requested()) {
      auto channel = connect(node, role);
      if (channel.ok()) {
        serve_connected(std::move(*channel), node, role);
        pause = kFirstRetry;
      }
      const Deadline retry = Deadline::after(pause);
      pause = std::min(2 * pause, kLastRetry);
      while (!retry.passed() && !stop.stop_requested()) std::this_thread::sleep_for(20ms);
    }
  }

  Result<net::SecureChannel> connect(std::uint32_t node, SwarmRole role) const {
    const std::vector<std::string>& addresses = plan_.addresses[node];
    if (addresses.empty()) return unavailable("node {} has no address", node);
    const Deadline deadline = Deadline::after(kConnectTimeout);
    STOKER_ASSIGN_OR_RETURN(plain, net::Channel::connect_any(addresses, deadline));
    STOKER_ASSIGN_OR_RETURN(channel,
                            net::SecureChannel::connect(std::move(plain).release(), plan_.secret, deadline));
    const auto hello = encode_hello({.role = role, .node = plan_.node, .plan = plan_text_});
    STOKER_RETURN_IF_ERROR(channel.send(static_cast<std::uint8_t>(SwarmKind::hello), hello));
    STOKER_ASSIGN_OR_RETURN(answer, channel.receive(deadline));
    if (answer.kind != static_cast<std::uint8_t>(SwarmKind::welcome))
      return corrupt("node {}: no welcome", node);
    return Result<net::SecureChannel>(std::move(channel));
  }

  void serve_connected(net::SecureChannel channel, std::uint32_t node, SwarmRole role) {
    Link link(std::move(channel), node, role);
    {
      const MutexLock lock(mutex_);
      if (is_stopped_) return;
      connected_.push_back(&link);
      if (role == SwarmRole::queue) begin_queue(link);
    }
    link.sender = Thread([this, &link](const StopToken&) { send_all(link); });
    receive_all(link);
    {
      const MutexLock lock(mutex_);
      close(link);
      std::erase(connected_, &link);
      if (role == SwarmRole::queue) {
        queue_link_ = nullptr;
        forget_asks();
      } else {
        schedule_.neighbour_gone(node);
        pump();
      }
    }
    link.sender.join();
  }

  // The queue has forgotten this node, or has never known it.
  void begin_queue(Link& link) STOKER_REQUIRES_LOCK(mutex_) {
    queue_link_ = &link;
    is_alone_ = false;
    forget_asks();
    push(link, {.kind = SwarmKind::have, .ranges = stored_ranges()});
    push(link, {.kind = SwarmKind::unwanted, .ranges = unwanted_});
    if (has_joined_) push(link, {.kind = SwarmKind::joined});
    pump();
  }

  void end_accepted(Link& link) STOKER_REQUIRES_LOCK(mutex_) {
    close(link);
    link.is_ended = true;
    const auto found = queue_links_.find(link.node);
    if (link.role != SwarmRole::queue || found == queue_links_.end() || found->second != &link) return;
    queue_links_.erase(found);
    queue_.gone(link.node);
    grant();
  }

  void send_all(Link& link) {
    for (;;) {
      Out out;
      {
        const MutexLock lock(mutex_);
        while (link.outbox.empty() && !link.is_closed) {
          if (link.ready.wait(mutex_, Deadline::after(kIdle))) continue;
          link.channel.release_send_buffer();
          link.block = {};
        }
        if (link.is_closed) return;
        out = std::move(link.outbox.front());
        link.outbox.pop_front();
      }
      const Status status =
          out.kind == SwarmKind::data ? send_piece(link, out.piece) : send_message(link, out);
      const MutexLock lock(mutex_);
      if (out.kind == SwarmKind::data) {
        backlog_ -= 1;
        pump();
      }
      if (!status.ok()) return close(link);
    }
  }

  static Status send_message(Link& link, const Out& out) {
    const auto kind = static_cast<std::uint8_t>(out.kind);
    switch (out.kind) {
      case SwarmKind::have:
      case SwarmKind::unwanted:
        return link.channel.send(kind, encode_ranges(out.ranges));
      case SwarmKind::welcome:
      case SwarmKind::joined:
      case SwarmKind::ask:
        return link.channel.send(kind, {});
      default:
        return link.channel.send(kind, encode_piece(out.piece));
    }
  }

  Status send_piece(Link& link, std::uint32_t number) {
    const ShardPiece& piece = plan_.pieces[number];
    if (link.block.size() < kDataBytes) link.block.resize(kDataBytes);
    for (std::uint64_t offset = 0; offset < piece.bytes; offset += kDataBytes) {
      const auto buffer = std::span(link.block).first(std::min(kDataBytes, piece.bytes - offset));
      if (!store_.read(number, offset, buffer).ok())
        return link.channel.send(static_cast<std::uint8_t>(SwarmKind::refuse), encode_piece(number));
      up_.acquire(buffer.size(), [this] { return is_stopping_.load(); });
      STOKER_RETURN_IF_ERROR(link.channel.send(static_cast<std::uint8_t>(SwarmKind::data),
                                               encode_data_header({number, offset}), buffer));
      const MutexLock lock(mutex_);
      traffic_.sent_bytes += buffer.size();
    }
    return {};
  }

  // Until the connection ends, or the peer breaks the protocol.
  void receive_all(Link& link) {
    for (;;) {
      const auto frame = link.channel.receive(Deadline::after(kReceiveSlice));
      if (frame.status().code() == Code::timeout) continue;
      if (!frame.ok() || !handle(link, *frame).ok()) return;
    }
  }

  Status handle(Link& link, const net::SecureFrame& frame) {
    const auto kind = static_cast<SwarmKind>(frame.kind);
    if (kind == SwarmKind::data) return handle_data(link, frame.bytes);
    const MutexLock lock(mutex_);
    if (kind == SwarmKind::have || kind == SwarmKind::unwanted) {
      STOKER_ASSIGN_OR_RETURN(ranges, parse_ranges(frame.bytes, pieces_));
      for (const PieceRange& range : ranges) {
        for (std::uint32_t piece = range.first; piece < range.first + range.count; ++piece)
          note_piece(link, kind, piece);
      }
    } else if (kind == SwarmKind::joined) {
      if (is_queue_of(link)) queue_.joined(link.node);
    } else if (kind == SwarmKind::ask) {
      if (is_queue_of(link)) queue_.ask(link.node);
    } else {
      STOKER_ASSIGN_OR_RETURN(piece, parse_piece(frame.bytes, pieces_));
      STOKER_RETURN_IF_ERROR(handle_piece(link, kind, piece));
    }
    if (is_queue_of(link)) grant();
    pump();
    return {};
  }

  bool is_queue_of(const Link& link) const STOKER_REQUIRES_LOCK(mutex_) {
    const auto found = queue_links_.find(link.node);
    return link.role == SwarmRole::queue && found != queue_links_.end() && found->second == &link;
  }

  void note_piece(const Link& link, SwarmKind kind, std::uint32_t piece) STOKER_REQUIRES_LOCK(mutex_) {
    if (link.role == SwarmRole::pieces) {
      if (kind == SwarmKind::have && !damaged_.contains({link.node, piece}))
        schedule_.neighbour_has(link.node, piece);
    } else if (is_queue_of(link)) {
      if (kind == SwarmKind::have) queue_.has(link.node, piece);
      if (kind == SwarmKind::unwanted) queue_.refuses(link.node, piece);
    }
  }

  Status handle_piece(Link& link, SwarmKind kind, std::uint32_t piece) STOKER_REQUIRES_LOCK(mutex_) {
    if (is_queue_of(link)) {
      if (kind == SwarmKind::misses) queue_.misses(link.node, piece);
      if (kind == SwarmKind::failed) queue_.failed(link.node, piece);
      return {};
    }
    switch (kind) {
      case SwarmKind::request:
        if (!schedule_.has(piece)) {
          push(link, {.kind = SwarmKind::refuse, .piece = piece});
        } else if (!link.is_closed) {
          backlog_ += 1;
          push(link, {.kind = SwarmKind::data, .piece = piece});
        }
        return {};
      case SwarmKind::refuse:
        link.expected.erase(piece);
        schedule_.refused(link.node, piece);
        return {};
      case SwarmKind::grant:
        if (decided_.contains(piece)) {
          accept_grant(piece);
        } else {
          early_grants_.insert(piece);
          events_ += 1;
          progress_.notify_all();
        }
        return {};
      default:
        return corrupt("a peer sent a message of unknown kind");
    }
  }

  void accept_grant(std::uint32_t piece) STOKER_REQUIRES_LOCK(mutex_) {
    if (schedule_.granted(piece)) {
      granted_.push_back(piece);
      granted_ready_.notify_one();
    } else if (schedule_.has(piece)) {
      push_to_queue({.kind = SwarmKind::have, .ranges = {{piece, 1}}});
    } else {
      push_to_queue({.kind = SwarmKind::failed, .piece = piece});
    }
  }

  // Whether the pieces are wanted, had or given up is known: what was granted before is read or refused.
  void decide(PieceRange pieces) STOKER_REQUIRES_LOCK(mutex_) {
    for (std::uint32_t i = 0; i < pieces.count; ++i) decided_.insert(pieces.first + i);
    const auto begin = early_grants_.lower_bound(pieces.first);
    const auto end = early_grants_.lower_bound(pieces.first + pieces.count);
    const std::vector<std::uint32_t> due(begin, end);
    early_grants_.erase(begin, end);
    for (const std::uint32_t piece : due) accept_grant(piece);
  }

  void forget_asks() STOKER_REQUIRES_LOCK(mutex_) {
    early_grants_.clear();
    schedule_.forget_asks();
  }

  Status handle_data(Link& link, std::span<const std::byte> bytes) {
    STOKER_ASSIGN_OR_RETURN(data, parse_data_header(bytes, pieces_));
    const auto block = bytes.subspan(kDataHeader);
    const std::uint64_t size = plan_.pieces[data.piece].bytes;
    bool is_wanted = false;
    {
      const MutexLock lock(mutex_);
      const auto expected = link.expected.find(data.piece);
      if (expected == link.expected.end() || expected->second != data.offset || data.offset >= size ||
          block.size() != std::min(kDataBytes, size - data.offset))
        return corrupt("a peer sent data that was not requested");
      expected->second += block.size();
      if (expected->second == size) link.expected.erase(expected);
      is_wanted = !schedule_.has(data.piece);
    }
    down_.acquire(block.size(), [this] { return is_stopping_.load(); });
    const bool is_last = data.offset + block.size() == size;
    const Status status = is_wanted ? store_.write(data.piece, data.offset, block) : Status();
    if (status.ok() && is_wanted && is_last) store_.written(data.piece);
    const MutexLock lock(mutex_);
    if (!status.ok()) {
      // Its peer's disk is damaged, or this one is full: the rest of the piece is not wanted from there.
      schedule_.refused(link.node, data.piece);
      if (status.code() == Code::corrupt) damaged_.insert({link.node, data.piece});
      return status.code() == Code::corrupt ? status : Status();
    }
    if (is_wanted) {
      traffic_.received_bytes += block.size();
      last_progress_ = now();
    }
    if (is_last && is_wanted) {
      schedule_.stored(data.piece, now());
      announce({data.piece, 1});
      note_progress();
    }
    pump();
    return {};
  }

  // On the first node.
  void grant() STOKER_REQUIRES_LOCK(mutex_) {
    for (const ReadingGrant& one : queue_.next(now())) {
      const auto link = queue_links_.find(one.node);
      if (link == queue_links_.end()) {
        queue_.gone(one.node);
      } else {
        push(*link->second, {.kind = SwarmKind::grant, .piece = one.piece});
      }
    }
  }

  void fetch_granted(const StopToken& stop) {
    for (;;) {
      std::uint32_t piece = 0;
      {
        const MutexLock lock(mutex_);
        while (granted_.empty() && !stop.stop_requested()) granted_ready_.wait(mutex_, Deadline::after(1s));
        if (stop.stop_requested()) return;
        piece = granted_.front();
        granted_.pop_front();
      }
      const Status status = store_.fetch(piece);
      const MutexLock lock(mutex_);
      schedule_.reading_ended(piece, status.ok(), now());
      if (status.ok()) {
        traffic_.read_bytes += plan_.pieces[piece].bytes;
        announce({piece, 1});
        push_to_queue({.kind = SwarmKind::have, .ranges = {{piece, 1}}});
        note_progress();
      } else if (status.code() == Code::corrupt || status.code() == Code::cancelled) {
        if (problem_.ok()) problem_ = status;
        progress_.notify_all();
      } else {
        failed_here_.insert(piece);
        push_to_queue({.kind = SwarmKind::failed, .piece = piece});
      }
      pump();
    }
  }

  void tick(const StopToken& stop) {
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(kTick);
      std::optional<std::uint32_t> unreachable;
      {
        const MutexLock lock(mutex_);
        if (plan_.node == kQueueNode && now() > plan_.limits.join_s) queue_.start();
        if (plan_.node == kQueueNode) grant();
        if (!is_alone_ && schedule_.left() > 0 && now() - last_progress_ > plan_.limits.alone_s) {
          is_alone_ = true;
          forget_asks();
        }
        pump();
        const auto missed = schedule_.missed(now());
        if (missed) push_to_queue({.kind = SwarmKind::misses, .piece = *missed});
        if (missed && failed_here_.contains(*missed)) unreachable = missed;
      }
      if (unreachable) store_.unreachable(*unreachable);
    }
  }

  const SwarmPlan plan_;
  const std::string plan_text_;
  const std::uint32_t nodes_;
  const std::uint32_t pieces_;
  PieceStore& store_;
  const Stopwatch clock_;
  Pacer up_;
  Pacer down_;
  std::atomic<bool> is_stopping_ = false;

  mutable Mutex mutex_;
  PieceSchedule schedule_ STOKER_GUARDED_BY(mutex_);
  PieceSet decided_ STOKER_GUARDED_BY(mutex_);
  std::set<std::uint32_t> early_grants_ STOKER_GUARDED_BY(mutex_);  // of shards that are not open yet
  ReadingQueue queue_ STOKER_GUARDED_BY(mutex_);                    // of the first node
  std::map<std::uint32_t, Link*> queue_links_ STOKER_GUARDED_BY(mutex_);
  std::list<std::unique_ptr<Link>> accepted_ STOKER_GUARDED_BY(mutex_);
  std::vector<Link*> connected_ STOKER_GUARDED_BY(mutex_);
  Link* queue_link_ STOKER_GUARDED_BY(mutex_) = nullptr;
  std::vector<PieceRange> unwanted_ STOKER_GUARDED_BY(mutex_);
  std::deque<std::uint32_t> granted_ STOKER_GUARDED_BY(mutex_);
  Condition granted_ready_;
  std::set<std::uint32_t> failed_here_ STOKER_GUARDED_BY(mutex_);
  std::uint32_t backlog_ STOKER_GUARDED_BY(mutex_) = 0;
  std::set<std::pair<std::uint32_t, std::uint32_t>> damaged_
      STOKER_GUARDED_BY(mutex_);  // nodes and their pieces
  bool has_joined_ STOKER_GUARDED_BY(mutex_) = false;
  bool is_alone_ STOKER_GUARDED_BY(mutex_) = false;
  bool is_stopped_ STOKER_GUARDED_BY(mutex_) = false;
  double last_progress_ STOKER_GUARDED_BY(mutex_) = 0;
  std::uint64_t events_ STOKER_GUARDED_BY(mutex_) = 0;
  Condition progress_;
  Status problem_ STOKER_GUARDED_BY(mutex_);
  SwarmTraffic traffic_ STOKER_GUARDED_BY(mutex_);
  std::vector<Thread> connectors_;
};

Swarm::Swarm(SwarmPlan plan, PieceStore& store) : impl_(std::make_unique<Impl>(std::move(plan), store)) {}
Swarm::~Swarm() = default;
const std::string& Swarm::plan_text() const { return impl_->plan_text(); }
void Swarm::adopt(net::SecureChannel channel, const SwarmHello& hello) {
  impl_->adopt(std::move(channel), hello);
}
void Swarm::wants(PieceRange pieces) { impl_->wants(pieces); }
void Swarm::has(PieceRange pieces) { impl_->has(pieces); }
void Swarm::gives_up(PieceRange pieces) { impl_->gives_up(pieces); }
void Swarm::joined() { impl_->joined(); }
std::vector<std::uint32_t> Swarm::early_grants() const { return impl_->early_grants(); }
std::uint32_t Swarm::left() const { return impl_->left(); }
Status Swarm::wait(Deadline deadline) { return impl_->wait(deadline); }
SwarmTraffic Swarm::traffic() const { return impl_->traffic(); }

}  // namespace stoker::stage
