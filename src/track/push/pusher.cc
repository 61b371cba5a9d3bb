#include "track/push/pusher.h"

#include <algorithm>
#include <chrono>
#include <random>

#include "base/language/counted.h"
#include "stoker/text.h"

namespace stoker::track {
namespace {

using namespace std::chrono_literals;

constexpr Duration kInterval = 2s;
// A pass over the files of many ranks may be slow on a shared file system: it takes at most this share.
constexpr int kPassShare = 20;
constexpr Duration kFirstDelay = 500ms;
constexpr Duration kLongestDelay = 60s;
constexpr Duration kLeaseTimeout = 20s;
constexpr int kTriesOnce = 4;
constexpr int kTriesAtEnd = 2;

bool is_transient(const Status& status) {
  return status.code() == Code::unavailable || status.code() == Code::timeout ||
         status.code() == Code::no_space;
}

// Many runs must not return to a server at the same moment.
Duration with_jitter(Duration delay) {
  thread_local std::minstd_rand random(std::random_device{}());
  return delay / 2 + Duration(std::uniform_int_distribution<std::int64_t>(0, delay.count())(random));
}

}  // namespace

PushResult Pusher::run(const TrackerChoice& choice) {
  name_ = choice.name;
  state_file_ = options_.folder / (name_ + ".json");
  PushResult result{.tracker = name_, .status = {}};
  auto tracker = make_tracker(choice, options_.run, options_.folder, note_);
  result.status = tracker.ok() ? push(**tracker) : tracker.error();
  result.delivered = delivered_;
  result.total = state_.delivered;
  result.refused = state_.refused;
  if (!result.status.ok() && lease_) result.waiting = count_waiting();
  lease_.reset();
  return result;
}

Status Pusher::push(Tracker& tracker) {
  STOKER_RETURN_IF_ERROR(make_directories(options_.folder));
  STOKER_RETURN_IF_ERROR(take_lease());
  STOKER_ASSIGN_OR_RETURN(state, load_state(state_file_));
  state_ = std::move(state);
  STOKER_RETURN_IF_ERROR(keep_trying([&](bool) { return tracker.begin(describe(), state_); }));
  STOKER_RETURN_IF_ERROR(save());
  if (state_.pending) {
    reader_.begin_pass(state_.done);
    const PointBatch batch = reader_.read_again(state_.done, *state_.pending);
    STOKER_RETURN_IF_ERROR(deliver(tracker, batch, true));
  }
  for (;;) {
    // Asked before the pass, which then sees all points of an ended run.
    const bool is_last = !options_.follows || control_.is_finishing() || options_.is_over();
    const MonoTime begin = RealClock().mono();
    STOKER_RETURN_IF_ERROR(pass(tracker));
    if (is_last) break;
    control_.wait(std::max(kInterval, kPassShare * (RealClock().mono() - begin)));
    STOKER_RETURN_IF_ERROR(lease_->refresh());
  }
  const TrackedRun run = describe();
  STOKER_RETURN_IF_ERROR(keep_trying([&](bool) { return tracker.end(run, state_); }));
  STOKER_RETURN_IF_ERROR(save());
  tracker.clean_up(state_);
  return {};
}

// The process beside an earlier attempt may still send its last points.
Status Pusher::take_lease() {
  const Deadline limit = Deadline::after(kLeaseTimeout);
  for (;;) {
    auto lease = record::WorkLease::take(options_.folder / (name_ + ".lock"), "sends this run");
    if (lease.ok()) {
      lease_.emplace(*std::move(lease));
      return {};
    }
    if (!options_.follows || limit.passed() || control_.must_end()) return lease.error();
    control_.wait(kFirstDelay);
  }
}

Status Pusher::pass(Tracker& tracker) {
  reader_.begin_pass(state_.done);
  bool has_changed = false;
  for (;;) {
    const PointBatch batch = reader_.read(state_.done, tracker.batch_limit());
    if (batch.is_empty()) break;
    if (control_.must_end()) return cancelled("ended before all points were delivered");
    STOKER_RETURN_IF_ERROR(deliver(tracker, batch, false));
    has_changed = true;
  }
  return has_changed ? save() : Status();
}

Status Pusher::deliver(Tracker& tracker, const PointBatch& batch, bool is_repeated) {
  if (tracker.needs_pending() && !is_repeated && batch.has_content()) {
    ++state_.batch;
    state_.pending = batch.ends;
    STOKER_RETURN_IF_ERROR(save());
  }
  if (batch.has_content()) {
    STOKER_RETURN_IF_ERROR(
        keep_trying([&](bool is_later) { return tracker.deliver(batch, is_repeated || is_later, state_); }));
  }
  for (const auto& [key, at] : batch.ends) state_.done.insert_or_assign(key, at);
  state_.pending.reset();
  state_.delivered += batch.size();
  delivered_ += batch.size();
  if (batch.damaged > 0) note_(format("{}: {} skipped", name_, counted(batch.damaged, "damaged line")));
  STOKER_RETURN_IF_ERROR(lease_->refresh());
  return tracker.needs_pending() ? Status() : save();
}

// Without its state on the disk, a restart would deliver points twice.
Status Pusher::save() {
  return keep_trying([&](bool) { return save_state(state_file_, state_); });
}

Status Pusher::keep_trying(const std::function<Status(bool is_repeated)>& attempt) {
  Duration delay = kFirstDelay;
  int tries_at_end = 0;
  for (int tries = 1;; ++tries) {
    const Status status = attempt(tries > 1);
    if (status.ok()) {
      if (tries > 1) note_(format("{}: works again", name_));
      return status;
    }
    if (!is_transient(status) || control_.must_end()) return status;
    // A tracker that is unreachable must not keep an allocation.
    if (!options_.follows && tries == kTriesOnce) return status;
    if (control_.is_finishing() && ++tries_at_end == kTriesAtEnd) return status;
    if (tries_at_end == 1) delay = kFirstDelay;
    if (tries == 1) note_(format("{}: {}; the points wait in the run folder", name_, status.message()));
    control_.wait(with_jitter(delay));
    STOKER_RETURN_IF_ERROR(lease_->refresh());
    delay = std::min(kLongestDelay, 2 * delay);
  }
}

std::uint64_t Pusher::count_waiting() {
  PointReader reader(options_.run, options_.task);
  Positions done = state_.done;
  reader.begin_pass(done);
  std::uint64_t waiting = 0;
  while (waiting < kMostCounted) {
    const PointBatch batch = reader.read(done, 10'000);
    if (batch.is_empty()) break;
    waiting += batch.size();
    for (const auto& [key, at] : batch.ends) done.insert_or_assign(key, at);
  }
  return waiting;
}

}  // namespace stoker::track
