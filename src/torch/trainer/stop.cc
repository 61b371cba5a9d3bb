#include "torch/trainer/stop.h"

#include <algorithm>
#include <atomic>
#include <signal.h>

namespace stoker::torch {

namespace {

// A signal handler can reach nothing but a global.
std::atomic<bool> g_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void note_request(int) { g_requested.store(true, std::memory_order_relaxed); }

constexpr int kSignals[] = {SIGTERM, SIGUSR1};

}  // namespace

StopSignals::StopSignals() {
  g_requested.store(false);
  struct sigaction action{};
  action.sa_handler = note_request;
  action.sa_flags = SA_RESTART;
  for (const int signal : kSignals) sigaction(signal, &action, nullptr);
}

StopSignals::~StopSignals() {
  for (const int signal : kSignals) ::signal(signal, SIG_DFL);
}

bool StopSignals::requested() const { return g_requested.load(std::memory_order_relaxed); }

void StopRule::saw_step(double seconds) { longest_step_s_ = std::max(longest_step_s_, seconds); }
void StopRule::saw_write(double seconds) { longest_write_s_ = std::max(longest_write_s_, seconds); }

bool StopRule::is_due(WallTime now) const {
  if (signals_.requested()) return true;
  if (!deadline_) return false;
  const double needed_s = 2 * longest_step_s_ + 2 * longest_write_s_ + kReserve_s;
  return Seconds(*deadline_ - now).count() < needed_s;
}

const char* StopRule::reason() const { return signals_.requested() ? "asked to stop" : "little time left"; }

}  // namespace stoker::torch
