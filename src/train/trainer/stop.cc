#include "train/trainer/stop.h"

#include <algorithm>
#include <atomic>
#include <unistd.h>

#include "base/exit_code.h"
#include "base/stack_signal.h"

namespace stoker::train {

namespace {

// A signal handler can only access globals.
std::atomic<bool> g_requested{false};
std::atomic<bool> g_pressed{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void handle_stop_signal(int signal, siginfo_t* info, void*) {
  // The kernel sends a terminal's signal; a supervisor's or Slurm's comes from a process.
  const bool is_pressed = signal == SIGINT && info->si_code == SI_KERNEL;
  if (is_pressed && g_pressed.exchange(true)) ::_exit(exit_code::kInterrupted);
  g_requested.store(true, std::memory_order_relaxed);
}

constexpr std::array kSignals = {SIGTERM, SIGUSR1, SIGINT, SIGHUP};

}  // namespace

StopSignals::StopSignals() : before_() {
  install_stack_signal();
  g_requested.store(false);
  g_pressed.store(false);
  struct sigaction action{};
  action.sa_sigaction = handle_stop_signal;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

bool StopSignals::requested() const { return g_requested.load(std::memory_order_relaxed); }

void StopRule::record_step_time(double seconds) { longest_step_s_ = std::max(longest_step_s_, seconds); }
void StopRule::record_write_time(double seconds) { longest_write_s_ = std::max(longest_write_s_, seconds); }

bool StopRule::is_due(WallTime now) const {
  if (signals_.requested()) return true;
  if (!deadline_) return false;
  const double needed_s = 2 * longest_step_s_ + 2 * longest_write_s_ + kReserve_s;
  return Seconds(*deadline_ - now).count() < needed_s;
}

const char* StopRule::reason() const { return signals_.requested() ? "asked to stop" : "little time left"; }

}  // namespace stoker::train
