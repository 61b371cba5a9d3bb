#include "report/progress_note.h"

#include "report/sentence.h"

namespace stoker::report {

std::string progress_text(const observe::RunProgress& progress, const std::optional<std::uint32_t>& epochs) {
  if (!progress.epoch) return progress.step ? format("step {}", *progress.step) : "-";
  std::string text = format("epoch {}", *progress.epoch + 1);
  if (epochs) text += format("/{}", *epochs);
  if (progress.step) text += format(" step {}", *progress.step);
  return text;
}

std::string progress_note(const observe::RunProgress& progress) {
  if (progress.validation_top1) return format("top-1 {:.1f} %", 100 * *progress.validation_top1);
  if (!progress.main_metric) return "";
  return format("{} {}", printable(progress.main_metric->metric), metric_text(progress.main_metric->mean));
}

std::string metric_line(const record::LastValue& value) {
  std::string line = format("{} {} at step {}", printable(value.metric), metric_text(value.mean), value.step);
  if (value.ranks > 1) {
    line +=
        format(" ({} to {} on {} ranks)", metric_text(value.lowest), metric_text(value.highest), value.ranks);
  }
  return line;
}

}  // namespace stoker::report
