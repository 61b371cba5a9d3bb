#include "stage/broadcast/swarm.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <list>
#include <set>
#include <thread>

#include "base/hash.h"
#include "base/pacer.h"
#include "base/stopwatch.h"
#include "base/thread.h"
#include "stage/broadcast/queue_server.h"
#include "stage/broadcast/swarm_link.h"

namespace stoker::stage {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstRetry = 100ms;
constexpr Duration kLastRetry = 5s;
constexpr Duration kTick = 100ms;
constexpr Duration kReceiveSlice = 1s;
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
      for (auto& one : accepted_) close(one->link);
      for (SwarmLink* link : connected_) close(*link);
      granted_ready_.notify_all();
    }
    connectors_.clear();
    accepted_.clear();
  }

  const std::string& plan_text() const { return plan_text_; }

  void adopt(net::SecureChannel channel, const SwarmHello& hello) {
    if (hello.node >= nodes_ || (hello.role == SwarmRole::queue && plan_.node != kQueueNode)) return;
    std::list<std::unique_ptr<Accepted>> ended;
    const MutexLock lock(mutex_);
    if (is_stopped_) return;
    for (auto it = accepted_.begin(); it != accepted_.end();) {
      const auto next = std::next(it);
      if ((*it)->is_ended) ended.splice(ended.end(), accepted_, it);
      it = next;
    }
    accepted_.push_back(std::make_unique<Accepted>(std::move(channel), hello));
    Accepted& one = *accepted_.back();
    one.link.push({.kind = SwarmKind::welcome});
    if (hello.role == SwarmRole::pieces) {
      one.link.push({.kind = SwarmKind::have, .ranges = stored_ranges()});
    } else {
      queue_.add(one.link);
    }
    one.sender = Thread([this, &one](const StopToken&) { send_all(one.link); });
    one.receiver = Thread([this, &one](const StopToken&) {
      receive_all(one.link);
      const MutexLock ending(mutex_);
      close(one.link);
      one.is_ended = true;
      queue_.remove(one.link, now());
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
  // A connection that a peer began.
  struct Accepted {
    Accepted(net::SecureChannel channel, const SwarmHello& hello)
        : link(std::move(channel), hello.node, hello.role) {}
    SwarmLink link;
    bool is_ended = false;  // its receiver has ended
    Thread sender;
    Thread receiver;
  };

  double now() const { return clock_.seconds(); }

  void note_progress() STOKER_REQUIRES_LOCK(mutex_) {
    events_ += 1;
    last_progress_ = now();
    progress_.notify_all();
  }

  void push_to_queue(SwarmMessage message) STOKER_REQUIRES_LOCK(mutex_) {
    if (queue_link_) queue_link_->push(std::move(message));
  }

  void close(SwarmLink& link) STOKER_REQUIRES_LOCK(mutex_) { backlog_ -= link.close(); }

  // Of the neighbours that pull from this node.
  void announce(PieceRange pieces) STOKER_REQUIRES_LOCK(mutex_) {
    for (auto& one : accepted_) {
      if (one->link.role() == SwarmRole::pieces && !one->is_ended)
        one->link.push({.kind = SwarmKind::have, .ranges = {pieces}});
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
      const auto link = std::ranges::find_if(connected_, [&](const SwarmLink* one) {
        return one->node() == request->node && one->role() == SwarmRole::pieces;
      });
      if (link == connected_.end() || (*link)->is_closed()) {
        schedule_.neighbour_gone(request->node);
        continue;
      }
      (*link)->request(request->piece);
    }
    if (is_alone_) return grant_to_self();
    while (queue_link_ && !queue_link_->is_closed() && schedule_.asks_to_read(backlog_))
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
      auto channel = connect_to_node(node, plan_.addresses[node], plan_.secret,
                                     {.role = role, .node = plan_.node, .plan = plan_text_});
      if (channel.ok()) {
        serve_connected(std::move(*channel), node, role);
        pause = kFirstRetry;
      }
      const Deadline retry = Deadline::after(pause);
      pause = std::min(2 * pause, kLastRetry);
      while (!retry.passed() && !stop.stop_requested()) std::this_thread::sleep_for(20ms);
    }
  }

  void serve_connected(net::SecureChannel channel, std::uint32_t node, SwarmRole role) {
    SwarmLink link(std::move(channel), node, role);
    {
      const MutexLock lock(mutex_);
      if (is_stopped_) return;
      connected_.push_back(&link);
      if (role == SwarmRole::queue) begin_queue(link);
    }
    Thread sender([this, &link](const StopToken&) { send_all(link); });
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
    sender.join();
  }

  // The queue has forgotten this node, or has never known it.
  void begin_queue(SwarmLink& link) STOKER_REQUIRES_LOCK(mutex_) {
    queue_link_ = &link;
    is_alone_ = false;
    forget_asks();
    link.push({.kind = SwarmKind::have, .ranges = stored_ranges()});
    link.push({.kind = SwarmKind::unwanted, .ranges = unwanted_});
    if (has_joined_) link.push({.kind = SwarmKind::joined});
    pump();
  }

  void send_all(SwarmLink& link) {
    while (const auto message = link.next()) {
      const bool is_data = message->kind == SwarmKind::data;
      const Status status = is_data ? send_piece(link, message->piece) : link.send(*message);
      const MutexLock lock(mutex_);
      if (is_data) {
        backlog_ -= 1;
        pump();
      }
      if (!status.ok()) return close(link);
    }
  }

  Status send_piece(SwarmLink& link, std::uint32_t number) {
    const ShardPiece& piece = plan_.pieces[number];
    for (std::uint64_t offset = 0; offset < piece.bytes; offset += kDataBytes) {
      const auto buffer = link.block(std::min(kDataBytes, piece.bytes - offset));
      if (!store_.read(number, offset, buffer).ok())
        return link.send({.kind = SwarmKind::refuse, .piece = number});
      up_.acquire(buffer.size(), [this] { return is_stopping_.load(); });
      STOKER_RETURN_IF_ERROR(link.send_data({number, offset}, buffer));
      const MutexLock lock(mutex_);
      traffic_.sent_bytes += buffer.size();
    }
    return {};
  }

  // Until the connection ends, or the peer breaks the protocol.
  void receive_all(SwarmLink& link) {
    for (;;) {
      const auto frame = link.receive(Deadline::after(kReceiveSlice));
      if (frame.status().code() == Code::timeout) continue;
      if (!frame.ok() || !handle(link, *frame).ok()) return;
    }
  }

  Status handle(SwarmLink& link, const net::SecureFrame& frame) {
    const auto kind = static_cast<SwarmKind>(frame.kind);
    if (kind == SwarmKind::data) return handle_data(link, frame.bytes);
    const MutexLock lock(mutex_);
    if (queue_.serves(link)) {
      STOKER_RETURN_IF_ERROR(queue_.handle(link, frame));
      queue_.grant(now());
    } else if (kind == SwarmKind::have || kind == SwarmKind::unwanted) {
      STOKER_ASSIGN_OR_RETURN(ranges, parse_ranges(frame.bytes, pieces_));
      if (link.role() == SwarmRole::pieces && kind == SwarmKind::have) note_holder(link.node(), ranges);
    } else if (kind != SwarmKind::joined && kind != SwarmKind::ask) {
      STOKER_ASSIGN_OR_RETURN(piece, parse_piece(frame.bytes, pieces_));
      STOKER_RETURN_IF_ERROR(handle_piece(link, kind, piece));
    }
    pump();
    return {};
  }

  void note_holder(std::uint32_t node, const std::vector<PieceRange>& ranges) STOKER_REQUIRES_LOCK(mutex_) {
    for (const PieceRange& range : ranges) {
      for (std::uint32_t piece = range.first; piece < range.first + range.count; ++piece) {
        if (!damaged_.contains({node, piece})) schedule_.neighbour_has(node, piece);
      }
    }
  }

  Status handle_piece(SwarmLink& link, SwarmKind kind, std::uint32_t piece) STOKER_REQUIRES_LOCK(mutex_) {
    switch (kind) {
      case SwarmKind::request:
        if (!schedule_.has(piece)) {
          link.push({.kind = SwarmKind::refuse, .piece = piece});
        } else if (!link.is_closed()) {
          backlog_ += 1;
          link.push({.kind = SwarmKind::data, .piece = piece});
        }
        return {};
      case SwarmKind::refuse:
        link.refused(piece);
        schedule_.refused(link.node(), piece);
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

  Status handle_data(SwarmLink& link, std::span<const std::byte> bytes) {
    STOKER_ASSIGN_OR_RETURN(data, parse_data_header(bytes, pieces_));
    const auto block = bytes.subspan(kDataHeader);
    const std::uint64_t size = plan_.pieces[data.piece].bytes;
    STOKER_RETURN_IF_ERROR(link.accept_data(data, block.size(), size));
    bool is_wanted = false;
    {
      const MutexLock lock(mutex_);
      is_wanted = !schedule_.has(data.piece);
    }
    down_.acquire(block.size(), [this] { return is_stopping_.load(); });
    const bool is_last = data.offset + block.size() == size;
    const Status status = is_wanted ? store_.write(data.piece, data.offset, block) : Status();
    if (status.ok() && is_wanted && is_last) store_.written(data.piece);
    const MutexLock lock(mutex_);
    if (!status.ok()) {
      // Its peer's disk is damaged, or this one is full: the rest of the piece is not wanted from there.
      schedule_.refused(link.node(), data.piece);
      if (status.code() == Code::corrupt) damaged_.insert({link.node(), data.piece});
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
        if (plan_.node == kQueueNode) queue_.grant(now());
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

  mutable Mutex mutex_;  // locked before the one of a link
  PieceSchedule schedule_ STOKER_GUARDED_BY(mutex_);
  PieceSet decided_ STOKER_GUARDED_BY(mutex_);
  std::set<std::uint32_t> early_grants_ STOKER_GUARDED_BY(mutex_);  // of shards that are not open yet
  QueueServer queue_ STOKER_GUARDED_BY(mutex_);                     // of the first node
  std::list<std::unique_ptr<Accepted>> accepted_ STOKER_GUARDED_BY(mutex_);
  std::vector<SwarmLink*> connected_ STOKER_GUARDED_BY(mutex_);
  SwarmLink* queue_link_ STOKER_GUARDED_BY(mutex_) = nullptr;
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
