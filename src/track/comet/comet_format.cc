#include "track/comet/comet_format.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/encode.h"
#include "base/hash.h"
#include "base/json/json.h"
#include "stoker/text.h"
#include "stoker/time.h"

namespace stoker::track {
namespace {

constexpr std::size_t kKeyDigits = 40;  // Comet: 32 to 50 letters and digits

// Bins of comet_ml.utils.Histogram.
constexpr double kSmallest = 1e-12;
constexpr double kLargest = 1e20;
constexpr double kGrowth = 1.1;
constexpr int kBinOfZero = 775;
constexpr int kLastBin = 1549;

std::int64_t comet_time(double unix_s) {
  return static_cast<std::int64_t>(std::clamp(unix_s, 0.0, 1e14) * 1000);
}

void put_message(std::string_view type, const std::string& payload, std::string* out) {
  *out += format(R"({{"payload":{},"type":"{}"}})", payload, type);
  *out += '\n';
}

void put_other(const std::string& key, const std::string& value, std::string* out) {
  if (value.empty()) return;
  put_message("log_other", format(R"({{"key":{},"value":{}}})", json_string(key), json_string(value)), out);
}

std::string value_json(double value) {
  if (std::isnan(value)) return R"("NaN")";
  if (std::isinf(value)) return value > 0 ? R"("Infinity")" : R"("-Infinity")";
  return format("{}", value);
}

std::string param_json(const std::string& text) {
  double number = 0;
  return parse_number(text, &number) && std::isfinite(number) ? format("{}", number) : json_string(text);
}

// Samples have no step: theirs would be seconds, on the axis of the steps of the program.
std::string step_json(const TrackedPoint& point) {
  return point.step && point.rank ? format("{}", *point.step) : "null";
}

void put_metric(const TrackedPoint& point, std::string* out) {
  put_message(
      "metric_msg",
      format(
          R"({{"local_timestamp":{},"metric":{{"metricName":{},"metricValue":{},"step":{},"epoch":null}}}})",
          comet_time(point.time), json_string(name_with_rank(point)), value_json(point.value),
          step_json(point)),
      out);
}

// Comet has fixed bins: each of ours counts in the one that contains its middle.
std::string histogram_json(const record::ValueHistogram& histogram) {
  std::map<int, std::uint64_t> counts;
  for (std::size_t bin = 0; bin < histogram.counts.size(); ++bin) {
    if (histogram.counts[bin] > 0)
      counts[comet_bin(histogram.edge(bin) / 2 + histogram.edge(bin + 1) / 2)] += histogram.counts[bin];
  }
  std::string pairs;
  for (const auto& [bin, count] : counts) pairs += format("{}[{},{}]", pairs.empty() ? "" : ",", bin, count);
  return format(
      R"({{"version":2,"index_values":[{}],"values":null,"offset":0,"start":1e-12,"stop":1e+20,"step":1.1}})",
      pairs);
}

// A file is sent once, so each record has its own. `number` is that of the record in the run.
std::string comet_file_name(const TrackedMedia& media, std::uint64_t number) {
  const record::LoggedImage* image = media.record.image();
  if (image == nullptr) return format("histogram-{:09}.json", number);
  return format("image-{:09}.{}", number, image->type == "png" ? "png" : "jpg");
}

void put_upload(const TrackedMedia& media, std::uint64_t number, const std::string& id, std::string* out) {
  const record::LoggedImage* image = media.record.image();
  const std::string name = json_string(media.name());
  const std::string params =
      image != nullptr
          ? format(R"("figCounter":0,"figName":{},"imageId":"{}","extension":"{}")", name, id, image->type)
          : format(R"("fileName":{},"assetId":"{}","type":"histogram3d")", name, id);
  put_message(
      "file_upload",
      format(R"({{"additional_params":{{"context":null,"overwrite":false,"runId":null,"step":{},{}}},)"
             R"("clean":true,"file_path":"{}","local_timestamp":{},"metadata":{{}},"upload_type":"{}"}})",
             media.record.step, params, comet_file_name(media, number), comet_time(media.record.time),
             image != nullptr ? "visualization" : "histogram3d"),
      out);
}

// An id that no other file has, and that the same file has each time it is written.
std::string upload_id(const TrackedMedia& media, std::uint64_t number) {
  const std::string seed = format("{} {} {}", media.attempt, number, media.name());
  std::string digits;
  for (const std::byte byte : sha256(seed)) digits += format("{:02x}", std::to_integer<int>(byte));
  return digits.substr(0, 32);
}

}  // namespace

int comet_bin(double value) {
  const double size = std::abs(value);
  if (size <= kSmallest) return kBinOfZero;
  if (size >= kLargest) return value > 0 ? kLastBin : 0;
  const int steps = static_cast<int>(std::ceil(std::log(size / kSmallest) / std::log(kGrowth)));
  return std::clamp(value > 0 ? kBinOfZero + steps : kBinOfZero - 1 - steps, 0, kLastBin);
}

std::string comet_experiment_key(const TrackedRun& run) {
  std::string digits;
  for (const std::byte byte : sha256(run.name())) digits += format("{:02x}", std::to_integer<int>(byte));
  return digits.substr(0, kKeyDigits);
}

Path comet_archive_name(const TrackedRun& run, std::uint64_t number) {
  return Path("comet") / format("{}-{:03}", comet_experiment_key(run), number);
}

std::string comet_experiment_json(const TrackedRun& run, const std::string& project, std::uint64_t number) {
  const bool has_failed = run.state.state == record::State::failed || run.state.state == record::State::lost;
  const double stop =
      run.has_ended() && run.state.ended > 0 ? run.state.ended : unix_seconds(RealClock().wall());
  nlohmann::ordered_json experiment = {{"offline_id", comet_experiment_key(run)},
                                       {"project_name", project},
                                       {"workspace", nullptr},
                                       {"start_time", comet_time(run.folder.description().created)},
                                       {"stop_time", comet_time(stop)},
                                       {"tags", {run.folder.description().name}},
                                       {"resume_strategy", number == 1 ? "create" : "get"},
                                       {"customer_error_reported", has_failed},
                                       {"customer_error_message", nullptr},
                                       {"user_provided_experiment_key", true},
                                       {"comet_start_sourced", false}};
  if (has_failed)  // without a text, Comet does not mark the experiment
    experiment["customer_error_message"] =
        run.state.reason.empty() ? std::string(record::to_text(run.state.state)) : run.state.reason;
  return json_text(experiment);
}

Path CometFormat::path(const TrackedRun& run) const {
  return comet_archive_name(run, number_) / "messages.json";
}

void CometFormat::head(const TrackedRun& run, std::string* out) {
  const record::RunDescription& what = run.folder.description();
  put_message("log_other", R"({"key":"offline_experiment","value":true})", out);
  put_other("Name", run.name(), out);
  put_other("stoker.run", run.name(), out);
  put_other("stoker.folder", run.folder.folder().string(), out);
  put_other("stoker.command", run.command(), out);
  put_other("stoker.user", what.user, out);
  put_other("stoker.commit", what.git, out);
  put_other("stoker.ranks", format("{}", what.world_size), out);
  put_other("stoker.hosts", join(what.hosts, ","), out);
  put_other("stoker.slurm_job", what.scheduler_job, out);
  for (const auto& [name, value] : run.changes) put_other(name, value, out);
  for (const auto& [name, value] : run.params) {
    put_message(
        "parameter_msg",
        format(
            R"({{"local_timestamp":{},"param":{{"paramName":{},"paramValue":{},"step":null,"source":"manual"}}}})",
            comet_time(what.created), json_string(name), param_json(value)),
        out);
  }
}

void CometFormat::rows(const PointBatch& batch, FileEnd before, std::string* out) {
  for (const TrackedPoint& point : batch.points) put_metric(point, out);
  std::uint64_t number = before.points + batch.points.size();
  for (const TrackedMedia& media : batch.media) {
    put_upload(media, number, upload_id(media, number), out);
    ++number;
    for (const TrackedPoint& point : points_of(media)) {
      if (point.name.ends_with("/not_finite")) put_metric(point, out);
    }
  }
}

std::vector<SideFile> CometFormat::side_files(const PointBatch& batch, FileEnd before) {
  histograms_.clear();
  std::vector<SideFile> files;
  std::uint64_t number = before.points + batch.points.size();
  for (const TrackedMedia& media : batch.media) {
    const record::LoggedImage* image = media.record.image();
    if (image == nullptr) histograms_.push_back(histogram_json(*media.record.histogram()));
    files.push_back({comet_file_name(media, number++), image != nullptr ? image->bytes : histograms_.back()});
  }
  return files;
}

void CometFormat::tail(const TrackedRun& run, FileEnd, std::string* out) {
  put_other("stoker.state", std::string(record::to_text(run.state.state)), out);
  if (run.state.exit_code) put_other("stoker.exit_code", format("{}", *run.state.exit_code), out);
  for (const record::DataInfo& data : run.data)
    put_other("data." + data.name, format("{} version {}", data.source, data.version), out);
}

}  // namespace stoker::track
