#include "rank/group/rank_monitor.h"

#include <algorithm>
#include <utility>

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;

constexpr Duration kNoticeStopped = 3s;
constexpr Duration kNoticeSilent = 10s;
// Without a beacon, silence may be normal (a download): report it later.
constexpr Duration kNoticeSilentWithoutBeacon = 60s;
constexpr Duration kNoticeUnheard = 8s;
constexpr Duration kProbeAfter = 3s;
constexpr Duration kNoticeBlocked = 5s;

Duration to_duration(double seconds) { return std::chrono::duration_cast<Duration>(Seconds(seconds)); }

class RankCheck {
 public:
  RankCheck(const RankStatus& status, RankMonitor& monitor, const MonitorFacts& facts)
      : monitor_(monitor),
        facts_(facts),
        rank_(format("rank {} ({})", status.rank.value, printable(status.host))),
        position_(status.where.is_known() ? " at " + to_text(status.where) : "") {}

  MonitorResult run() {
    const Duration stopped = to_duration(monitor_.heartbeat.stopped_s);
    const Duration silent = to_duration(monitor_.heartbeat.silent_s);
    const job::Timeouts& timeouts = facts_.timeouts;
    if (stopped > Duration::zero() && stopped >= timeouts.stopped) {
      fail(format("was stopped by a signal (state T) for {}{} (timeouts.stopped)", rounded_duration(stopped),
                  position_));
      return std::move(result_);
    }
    if (!check_heartbeat()) return std::move(result_);
    if (timeouts.stall > Duration::zero() && silent >= timeouts.stall && !facts_.is_peer_stopped) {
      fail(format("made no progress for {}{}{} (timeouts.stall)", rounded_duration(silent), position_,
                  facts_.are_all_silent ? ", like all other ranks" : ""));
      result_.failure->is_hang = true;
      return std::move(result_);
    }
    report_stopped(stopped);
    report_blocked_peer(silent);
    report_silence(silent, stopped);
    return std::move(result_);
  }

 private:
  // If a kernel acknowledges nothing for seconds, the node or its link is down, whatever the load. If it
  // acknowledges, only `stoker rank` hangs, perhaps on a shared disk, while the training continues: that
  // needs a note, but must not end the run. Returns false when the rank was given up.
  bool check_heartbeat() {
    const Duration unheard = facts_.now - monitor_.last_message.value_or(facts_.now);
    if (unheard < kProbeAfter) {
      monitor_.was_probed = monitor_.reported_unheard = false;
      return true;
    }
    if (!std::exchange(monitor_.was_probed, true)) facts_.send_probe();
    if (unheard < kNoticeUnheard) return true;
    if (facts_.has_unacknowledged_data()) {
      monitor_.is_unresponsive = true;
      fail(format(
          "sent no heartbeat for {}{}, and its host acknowledges no packets: the node or its link is down",
          rounded_duration(unheard), position_));
      result_.failure->is_loss = true;
      return false;
    }
    const bool is_stopped = facts_.is_stopped_here();
    const Duration limit = is_stopped ? facts_.timeouts.stopped : facts_.timeouts.stall;
    const std::string_view key = is_stopped ? "timeouts.stopped" : "timeouts.stall";
    if (limit > Duration::zero() && unheard >= limit) {
      monitor_.is_unresponsive = true;
      fail(format("sent no heartbeat for {}{}: its `stoker rank` hangs ({})", rounded_duration(unheard),
                  position_, key));
      return false;
    }
    if (!std::exchange(monitor_.reported_unheard, true))
      note(format("{} has sent no heartbeat for {}{}: its host answers, but its `stoker rank` hangs{}", rank_,
                  rounded_duration(unheard), position_, limit_text(limit, key)));
    return true;
  }

  void report_stopped(Duration stopped) {
    if (stopped >= kNoticeStopped && !monitor_.reported_stopped) {
      note(format("{} has been stopped by a signal (state T) for {}{}{}", rank_, rounded_duration(stopped),
                  position_, limit_text(facts_.timeouts.stopped, "timeouts.stopped")));
      monitor_.reported_stopped = true;
    }
    if (stopped == Duration::zero() && monitor_.reported_stopped) {
      note(format("{} continues", rank_));
      monitor_.reported_stopped = false;
    }
  }

  // A cut link between two ranks blocks all ranks without any of them being at fault. Their sockets identify
  // the link long before a collective times out.
  void report_blocked_peer(Duration silent) {
    if (monitor_.heartbeat.blocked_on.empty() || silent < kNoticeBlocked) {
      monitor_.reported_blocked = monitor_.reported_blocked && silent >= kNoticeBlocked;
      return;
    }
    if (std::exchange(monitor_.reported_blocked, true)) return;
    note(format(
        "{} has been blocked for {}{}: {} acknowledges none of its packets, the link between them is cut "
        "or blocked",
        rank_, rounded_duration(silent), position_, facts_.host_at(monitor_.heartbeat.blocked_on)));
    note("  try: stoker hello      (in the same allocation: lists every broken link)");
  }

  void report_silence(Duration silent, Duration stopped) {
    const Duration notice = monitor_.heartbeat.has_beacon ? kNoticeSilent : kNoticeSilentWithoutBeacon;
    if (silent < notice) monitor_.reported_silent = false;
    if (silent < notice || stopped > Duration::zero() || monitor_.reported_silent) return;
    if (facts_.is_peer_stopped) return;
    note(format("{} has been silent for {}{}: no step, no CPU time{}", rank_, rounded_duration(silent),
                position_, limit_text(facts_.timeouts.stall, "timeouts.stall")));
    monitor_.reported_silent = true;
  }

  static std::string limit_text(Duration limit, std::string_view key) {
    return limit > Duration::zero() ? format("; the run ends after {} ({})", rounded_duration(limit), key)
                                    : "";
  }
  void note(std::string line) { result_.notes.push_back(std::move(line)); }
  void fail(std::string what) { result_.failure = DetectedFailure{.what = std::move(what)}; }

  RankMonitor& monitor_;
  const MonitorFacts& facts_;
  const std::string rank_;
  const std::string position_;
  MonitorResult result_;
};

}  // namespace

bool are_peers_silent(Rank rank, const std::vector<RankStatus>& statuses,
                      const std::vector<RankMonitor>& monitors, Duration stall) {
  const double limit_s = Seconds(std::min<Duration>(stall / 2, kLongSilence)).count();
  return statuses.size() > 1 && std::ranges::all_of(statuses, [&](const RankStatus& status) {
           const double silent_s = monitors[static_cast<std::size_t>(status.rank.value)].heartbeat.silent_s;
           return status.rank.value == rank.value || (!status.ended && silent_s >= limit_s);
         });
}

MonitorResult check_rank(const RankStatus& status, RankMonitor& monitor, const MonitorFacts& facts) {
  return RankCheck(status, monitor, facts).run();
}

}  // namespace stoker::rank
