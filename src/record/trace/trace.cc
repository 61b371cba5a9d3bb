#include "record/trace/trace.h"

#include <utility>

#include "base/encode.h"
#include "record/json.h"
#include "stoker/time.h"

namespace stoker::record {

namespace {

double in_us(Duration duration) { return std::chrono::duration<double, std::micro>(duration).count(); }

std::string name_of(const Collective& collective) {
  std::string text = collective.operation;
  if (!collective.element.empty()) text += " " + collective.element;
  std::string sizes;
  for (const std::uint32_t size : collective.shape) {
    if (size == 0) break;
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  }
  return sizes.empty() ? text : text + " [" + sizes + "]";
}

}  // namespace

Trace::Trace(File file, int rank, std::uint64_t steps)
    : rank_(rank),
      most_steps_(steps),
      wall_us_(in_us(RealClock().wall().time_since_epoch())),
      mono_us_(in_us(RealClock().mono().time_since_epoch())),
      file_(std::move(file)) {}

Result<std::unique_ptr<Trace>> Trace::create(const Path& path, int rank, std::string_view host,
                                             std::uint64_t steps) {
  STOKER_ASSIGN_OR_RETURN(file, File::create(path));
  auto trace = std::unique_ptr<Trace>(new Trace(std::move(file), rank, steps));
  const MutexLock lock(trace->mutex_);
  trace->text_ = format(
      "[\n{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{},\"args\":{{\"name\":{}}}}},\n"
      "{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{},\"tid\":0,\"args\":{{\"name\":\"training\"}}}}",
      rank, json_string(format("rank {} ({})", rank, host)), rank);
  return trace;
}

// Ranks of several hosts share one time axis, as far as their clocks agree.
double Trace::now_us() const { return wall_us_ + (in_us(RealClock().mono().time_since_epoch()) - mono_us_); }

void Trace::close_phase(double now) {
  if (phase_since_ < 0) return;
  text_ += format(
      ",\n{{\"name\":\"{}\",\"cat\":\"phase\",\"ph\":\"X\",\"pid\":{},\"tid\":0,\"ts\":{:.1f},\"dur\":{:.1f}}"
      "}",
      to_text(phase_), rank_, phase_since_, now - phase_since_);
  phase_since_ = -1;
}

void Trace::close_step(double now) {
  close_phase(now);
  if (step_since_ < 0) return;
  text_ += format(
      ",\n{{\"name\":\"step "
      "{}\",\"cat\":\"step\",\"ph\":\"X\",\"pid\":{},\"tid\":0,\"ts\":{:.1f},\"dur\":{:.1f},"
      "\"args\":{{\"epoch\":{},\"step\":{}}}}}",
      step_, rank_, step_since_, now - step_since_, epoch_, step_);
  step_since_ = -1;
}

void Trace::flush() {
  Status status = file_.write(text_);
  text_.clear();
  if (status.ok()) return;
  if (error_.ok()) error_ = std::move(status);
  is_over_ = true;
}

void Trace::enter(Phase phase) {
  const MutexLock lock(mutex_);
  if (is_over_) return;
  const double now = now_us();
  close_phase(now);
  phase_ = phase;
  phase_since_ = now;
}

void Trace::at(std::uint32_t epoch, std::uint64_t step) {
  const MutexLock lock(mutex_);
  if (is_over_ || (step_since_ >= 0 && step == step_ && epoch == epoch_)) return;
  const double now = now_us();
  close_step(now);
  if (steps_ == most_steps_) {
    text_ += "\n]\n";
    flush();
    is_over_ = true;
    return;
  }
  flush();
  steps_ += 1;
  epoch_ = epoch;
  step_ = step;
  step_since_ = now;
}

void Trace::begin(std::uint64_t number, const Collective& collective) {
  const MutexLock lock(mutex_);
  if (is_over_) return;
  text_ += format(
      ",\n{{\"name\":{},\"cat\":\"exchange\",\"ph\":\"b\",\"id\":\"{}.{}\",\"pid\":{},\"tid\":0,\"ts\":{:.1f}"
      ","
      "\"args\":{{\"bytes\":{},\"number\":{}}}}}",
      json_string(name_of(collective)), rank_, number, rank_, now_us(), collective.bytes, number);
}

void Trace::end(std::uint64_t number, CollectiveOutcome outcome) {
  const MutexLock lock(mutex_);
  if (is_over_) return;
  text_ += format(
      ",\n{{\"cat\":\"exchange\",\"ph\":\"e\",\"id\":\"{}.{}\",\"pid\":{},\"tid\":0,\"ts\":{:.1f},"
      "\"args\":{{\"outcome\":\"{}\"}}}}",
      rank_, number, rank_, now_us(), outcome == CollectiveOutcome::done ? "done" : "failed");
}

Status Trace::finish() {
  const MutexLock lock(mutex_);
  if (!is_over_) {
    close_step(now_us());
    text_ += "\n]\n";
    flush();
    is_over_ = true;
  }
  Status closed = file_.close();
  return error_.ok() ? closed : error_;
}

}  // namespace stoker::record
