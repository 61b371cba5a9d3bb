#include "train/trainer/report/progress_line.h"

#include <algorithm>
#include <cmath>

#include "stoker/text.h"
#include "train/trainer/report/recorder.h"

namespace stoker::train {

namespace {

// "0.4 %" below ten, "12 %" from there.
std::string percent(double part) {
  const double value = 100 * part;
  return value < 9.95 ? format("{:.1f} %", value) : format("{:.0f} %", value);
}

// Two decimals, more only for small ones.
std::string loss_text(double loss) { return loss < 0.1 ? format("{:.2g}", loss) : format("{:.2f}", loss); }

std::string whole(double value) {
  return grouped(static_cast<std::uint64_t>(std::llround(std::max(0.0, value))));
}

}  // namespace

void StepTotals::add(const StepRow& row) {
  steps += 1;
  samples += row.samples;
  loss_sum += row.loss * static_cast<double>(row.samples);
  top1 += std::llround(row.top1 * static_cast<double>(row.samples));
  seconds += row.step_s;
  data_s += row.data_s;
  communication_s += row.communication_s;
}

std::string progress_line(const ProgressStats& facts) {
  const StepTotals& s = facts.totals;
  const double samples = static_cast<double>(std::max<std::int64_t>(1, s.samples));
  const double seconds = std::max(1e-9, s.seconds);
  std::string line = format("epoch {}/{}   step {}/{}   loss {}   top-1 {}   {} {}/s   data {}   comm {}",
                            facts.epoch, facts.epochs, facts.step, facts.steps,
                            loss_text(s.loss_sum / samples), percent(static_cast<double>(s.top1) / samples),
                            whole(static_cast<double>(s.samples) * facts.world_size / seconds), facts.unit,
                            percent(s.data_s / seconds), percent(s.communication_s / seconds));
  if (facts.seconds_left > 0) {
    line += "   ETA " + rounded_duration(std::chrono::duration_cast<Duration>(Seconds(facts.seconds_left)));
  }
  return line;
}

std::string epoch_line(const EpochStats& facts) {
  std::string line = format("epoch {}/{}   {}   loss {}   top-1 {}", facts.epoch, facts.epochs,
                            rounded_duration(std::chrono::duration_cast<Duration>(Seconds(facts.seconds))),
                            loss_text(facts.train_loss), percent(facts.train_top1));
  if (facts.validated) {
    line += format("   validation: loss {}   top-1 {}   top-5 {}", loss_text(facts.val_loss),
                   percent(facts.val_top1), percent(facts.val_top5));
  }
  return line;
}

constexpr std::string_view kGpuMemory = "GPU memory: ";
constexpr double kGiB = 1 << 30;

std::string gpu_memory_line(std::uint64_t bytes) {
  return format("{}{:.3f} GiB at most", kGpuMemory, static_cast<double>(bytes) / kGiB);
}

std::uint64_t gpu_memory_in(std::string_view output) {
  const std::size_t at = output.rfind(kGpuMemory);
  if (at == std::string_view::npos) return 0;
  const std::string_view rest = output.substr(at + kGpuMemory.size());
  double gib = 0;
  const bool is_number = parse_number(rest.substr(0, rest.find(' ')), &gib) && gib > 0 && gib < 1e6;
  return is_number ? static_cast<std::uint64_t>(gib * kGiB) : 0;
}

}  // namespace stoker::train
