#include "cli/output.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <unistd.h>

#include "base/json/json.h"
#include "base/table.h"
#include "base/thread.h"
#include "cli/remote/shown_commands.h"
#include "stoker/time.h"

namespace stoker::cli {

Output::Output(OutputMode mode, std::FILE* out, std::FILE* err)
    : mode_(mode),
      out_(out),
      err_(err),
      is_terminal_(::isatty(::fileno(out)) == 1),
      has_color_(is_terminal_ && std::getenv("NO_COLOR") == nullptr) {}

Output::Output(manual::CommandText* description)
    : mode_(OutputMode::text),
      out_(stdout),
      err_(stderr),
      is_terminal_(false),
      has_color_(false),
      description_(description) {}

void Output::print_line(const std::string& text) {
  if (is_json()) return;
  std::fputs((shown(text) + "\n").c_str(), out_);
}

void Output::print_note(const std::string& text) {
  std::fflush(out_);
  std::fputs((shown(text) + "\n").c_str(), err_);
}

std::string Output::shown(const std::string& text) const {
  return host_options_.empty() ? text : with_host_options(text, host_options_);
}

void Output::raw(std::string_view text) {
  if (!is_json()) std::fwrite(text.data(), 1, text.size(), out_);
}

void Output::table(const std::vector<std::string>& header,
                   const std::vector<std::vector<std::string>>& rows) {
  raw(table_text(header, rows));
}

void Output::finding(const Finding& finding, const Translator& words) {
  line("{}", words.render(finding.what));
  for (const Evidence& evidence : finding.evidence) {
    line("  {}{}{}", evidence.where, evidence.where.empty() || evidence.text.empty() ? "" : ": ",
         words.render(evidence.text));
  }
  if (!finding.cure.empty()) line("  {}", words.localize("try: {}", words.render(finding.cure)).text());
}

void Output::json(std::string_view value) {
  if (!is_json()) return;
  STOKER_CHECK(!has_json_value_);
  has_json_value_ = true;
  std::fwrite(value.data(), 1, value.size(), out_);
  std::fputc('\n', out_);
}

int Output::fail(const Status& status) {
  STOKER_CHECK(!status.ok());
  std::fflush(out_);
  if (is_json() && !has_json_value_) {
    const nlohmann::ordered_json error = {{"error",
                                           {{"code", std::string(stoker::to_text(status.code()))},
                                            {"message", std::string(status.message())},
                                            {"cure", std::string(status.cure())}}}};
    json(json_text(error));
  } else {
    print_note(status.to_string());
  }
  return exit_code::from_status(status);
}

namespace {

volatile std::sig_atomic_t stop_count = 0;

void on_stop_signal(int) {
  stop_count = stop_count + 1;
  if (stop_count > 1) ::_exit(exit_code::kInterrupted);
}

/// One line, redrawn.
class TerminalProgress final : public Progress {
 public:
  TerminalProgress(std::FILE* err, std::string_view label, bool is_shown)
      : err_(err), label_(label), is_shown_(is_shown), start_(RealClock().mono()) {}

  ~TerminalProgress() override {
    MutexLock lock(mutex_);
    if (is_drawn_) std::fputs("\r\x1b[K", err_);
  }

  void report(const ProgressState& state) override {
    if (!is_shown_) return;
    const MonoTime now = RealClock().mono();
    MutexLock lock(mutex_);
    if (now - drawn_ < std::chrono::milliseconds(100) && state.done != state.total) return;
    drawn_ = now;
    is_drawn_ = true;
    std::fputs(("\r  " + text(state, Seconds(now - start_).count()) + "\x1b[K").c_str(), err_);
    std::fflush(err_);
  }

  bool stop_requested() const override { return cli::stop_requested(); }

 private:
  std::string text(const ProgressState& state, double seconds) const {
    constexpr int kWidth = 24;
    std::string line = label_;
    if (state.total > 0) {
      const double part = std::min(1.0, static_cast<double>(state.done) / static_cast<double>(state.total));
      const int filled = static_cast<int>(part * kWidth);
      line += "  ";
      for (int i = 0; i < kWidth; ++i) line += i < filled ? "█" : "░";
      line += format("  {:3.0f} %", part * 100);
    }
    line += format("   {} {}", grouped(state.done), state.unit);
    if (seconds > 0.2 && state.bytes.value > 0) {
      line += format("   {}/s",
                     rounded({static_cast<std::uint64_t>(static_cast<double>(state.bytes.value) / seconds)}));
    }
    if (seconds > 0.5 && state.done > 0 && state.total > state.done) {
      const double left =
          seconds * static_cast<double>(state.total - state.done) / static_cast<double>(state.done);
      line +=
          format("   ETA {}", rounded_duration(std::chrono::seconds(static_cast<std::int64_t>(left) + 1)));
    }
    return line;
  }

  std::FILE* const err_;
  const std::string label_;
  const bool is_shown_;
  const MonoTime start_;
  Mutex mutex_;
  MonoTime drawn_ STOKER_GUARDED_BY(mutex_){};
  bool is_drawn_ STOKER_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::unique_ptr<Progress> Output::progress(std::string_view label) {
  return std::make_unique<TerminalProgress>(err_, label, !is_json() && ::isatty(::fileno(err_)) == 1);
}

void install_stop_signals() {
  struct sigaction action{};
  action.sa_handler = on_stop_signal;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

bool stop_requested() { return stop_count > 0; }

ScopedStopSignals::ScopedStopSignals() : interrupt_(), terminate_() {
  ::sigaction(SIGINT, nullptr, &interrupt_);
  ::sigaction(SIGTERM, nullptr, &terminate_);
  install_stop_signals();
}

ScopedStopSignals::~ScopedStopSignals() {
  ::sigaction(SIGINT, &interrupt_, nullptr);
  ::sigaction(SIGTERM, &terminate_, nullptr);
}

}  // namespace stoker::cli
