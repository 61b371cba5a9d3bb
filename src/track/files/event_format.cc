#include "track/files/event_format.h"

#include "base/hash.h"
#include "stoker/text.h"
#include "track/files/proto_text.h"

namespace stoker::track {
namespace {

constexpr std::uint64_t kString = 7;   // DataType of a tensor
constexpr std::uint64_t kRgb = 3;      // colour space of an image
constexpr std::uint64_t kSuccess = 1;  // Status of the HParams plugin
constexpr std::uint64_t kFailure = 2;

void put_record(std::string_view event, std::string* out) {
  std::string length;
  append_little_endian<std::uint64_t>(event.size(), &length);
  *out += length;
  append_little_endian(masked_crc(crc32c(length)), out);
  *out += event;
  append_little_endian(masked_crc(crc32c(event)), out);
}

// An event with a summary.
void put_event(double time, std::int64_t step, const std::string& summary, std::string* out) {
  std::string event;
  put_double(1, time, &event);
  if (step > 0) put_integer(2, static_cast<std::uint64_t>(step), &event);
  put_bytes(5, summary, &event);
  put_record(event, out);
}

void put_scalar(const std::string& tag, double value, std::string* summary) {
  std::string scalar;
  put_bytes(1, tag, &scalar);
  put_float(2, static_cast<float>(value), &scalar);
  put_bytes(1, scalar, summary);
}

// HistogramProto.
std::string histogram_message(const record::ValueHistogram& histogram) {
  std::string message;
  put_double(1, histogram.lowest, &message);
  put_double(2, histogram.highest, &message);
  put_double(3, static_cast<double>(histogram.count()), &message);
  put_double(4, histogram.sum, &message);
  put_double(5, histogram.sum_squares, &message);
  std::string limits;
  std::string counts;
  for (std::size_t bin = 0; bin < histogram.counts.size(); ++bin) {
    append_little_endian(histogram.edge(bin + 1), &limits);
    append_little_endian(static_cast<double>(histogram.counts[bin]), &counts);
  }
  put_bytes(6, limits, &message);
  put_bytes(7, counts, &message);
  return message;
}

std::string media_summary(const TrackedMedia& media) {
  std::string value;
  put_bytes(1, media.name(), &value);
  if (const record::LoggedImage* image = media.record.image()) {
    std::string message;
    put_integer(1, image->height, &message);
    put_integer(2, image->width, &message);
    put_integer(3, kRgb, &message);
    put_bytes(4, image->bytes, &message);
    put_bytes(4, message, &value);
  } else {
    put_bytes(5, histogram_message(*media.record.histogram()), &value);
  }
  std::string summary;
  put_bytes(1, value, &summary);
  return summary;
}

std::string metadata_of(std::string_view plugin, std::string_view content) {
  std::string data;
  put_bytes(1, plugin, &data);
  if (!content.empty()) put_bytes(2, content, &data);
  std::string metadata;
  put_bytes(1, data, &metadata);
  return metadata;
}

// A text for the plugin `text`: Markdown.
void put_text(const std::string& tag, std::string_view text, std::string* summary) {
  std::string tensor;
  put_integer(1, kString, &tensor);
  put_bytes(8, text, &tensor);
  std::string value;
  put_bytes(1, tag, &value);
  put_bytes(8, tensor, &value);
  put_bytes(9, metadata_of("text", ""), &value);
  put_bytes(1, value, summary);
}

// A message of the plugin `hparams`, in the metadata of an empty scalar.
void put_hparams(const std::string& tag, std::uint64_t field, std::string_view message,
                 std::string* summary) {
  std::string data;
  put_bytes(field, message, &data);
  std::string tensor;
  put_integer(1, 1, &tensor);  // DT_FLOAT
  put_bytes(2, "", &tensor);   // a scalar's shape
  std::string zero;
  append_little_endian(0.0F, &zero);
  put_bytes(5, zero, &tensor);
  std::string value;
  put_bytes(1, tag, &value);
  put_bytes(8, tensor, &value);
  put_bytes(9, metadata_of("hparams", data), &value);
  put_bytes(1, value, summary);
}

// google.protobuf.Value: a number where the text is one.
std::string hparam_value(const std::string& text) {
  std::string value;
  double number = 0;
  if (parse_number(text, &number)) {
    put_double(2, number, &value);
  } else {
    put_bytes(3, text, &value);
  }
  return value;
}

std::string session_start(const TrackedRun& run) {
  std::string message;
  for (const auto& [name, value] : run.params) {
    std::string entry;
    put_bytes(1, name, &entry);
    put_bytes(2, hparam_value(value), &entry);
    put_bytes(1, entry, &message);
  }
  put_bytes(4, run.name(), &message);
  put_double(5, run.folder.description().created, &message);
  return message;
}

std::string params_table(const TrackedRun& run) {
  std::string table = format("`{}`\n\n| param | value |\n|---|---|\n", run.command());
  for (const auto& [name, value] : run.params) table += format("| {} | {} |\n", name, value);
  return table;
}

}  // namespace

Path EventFormat::path(const TrackedRun& run) const {
  const auto created = static_cast<std::int64_t>(run.folder.description().created);
  return Path("tensorboard") / format("events.out.tfevents.{:010}.stoker", created);
}

void EventFormat::head(const TrackedRun& run, std::string* out) {
  const double created = run.folder.description().created;
  std::string version;
  put_double(1, created, &version);
  // In files of this version, readers of TensorBoard drop the values of a metric from a step on that it
  // repeats. Version 2 would need an event that drops all metrics, also metrics with a different kind of
  // steps.
  put_bytes(3, "brain.Event:1", &version);
  put_record(version, out);
  std::string summary;
  put_text("run/text_summary", params_table(run), &summary);
  if (!run.params.empty()) put_hparams("_hparams_/session_start_info", 3, session_start(run), &summary);
  put_event(created, 0, summary, out);
}

void EventFormat::rows(const PointBatch& batch, FileEnd, std::string* out) {
  const std::vector<TrackedPoint>& points = batch.points;
  std::string summary;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const TrackedPoint& point = points[i];
    put_scalar(name_with_rank(point), point.value, &summary);
    const bool is_last =
        i + 1 == points.size() || points[i + 1].step != point.step || points[i + 1].time != point.time;
    if (!is_last) continue;
    put_event(point.time, point.step.value_or(0), summary, out);
    summary.clear();
  }
  for (const TrackedMedia& media : batch.media) {
    put_event(media.record.time, media.record.step, media_summary(media), out);
  }
}

void EventFormat::tail(const TrackedRun& run, FileEnd, std::string* out) {
  if (run.params.empty()) return;
  std::string message;
  put_integer(1, run.state.state == record::State::done ? kSuccess : kFailure, &message);
  put_double(2, run.state.ended, &message);
  std::string summary;
  put_hparams("_hparams_/session_end_info", 4, message, &summary);
  put_event(run.state.ended, 0, summary, out);
}

}  // namespace stoker::track
