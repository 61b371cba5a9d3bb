#include "report/media.h"

#include <algorithm>
#include <map>
#include <utility>

#include "record/media/media.h"

namespace stoker::report {

namespace {

constexpr std::size_t kMostSeries = 4096;
constexpr std::size_t kMostRecords = 1'000'000;

using MediaFiles = std::vector<record::MediaFile>;

struct ImagePlace {
  LoggedImageFacts image;  ///< without its bytes
  std::uint64_t bytes = 0;
};

template <typename Value>
struct SeriesByStep {
  int rank = 0;
  std::map<std::int64_t, Value> by_step;
};
template <typename Value>
using AllSeries = std::map<std::string, SeriesByStep<Value>>;

/// Of histograms, their points and the last one.
struct HistogramPlace {
  DistributionPoint point;
  record::ValueHistogram histogram;
};

DistributionPoint distribution_of(const record::MediaRecord& record, int attempt) {
  const record::ValueHistogram& histogram = *record.histogram();
  return {.step = record.step,
          .attempt = attempt,
          .lowest = histogram.quantile(0),
          .quarter = histogram.quantile(0.25),
          .median = histogram.quantile(0.5),
          .three_quarters = histogram.quantile(0.75),
          .highest = histogram.quantile(1),
          .count = histogram.count(),
          .not_finite = histogram.not_finite};
}

class MediaJoiner {
 public:
  MediaJoiner(RunFacts& facts, MediaRoom& room) : facts_(facts), room_(room) {}

  void add_attempt(const AttemptSource& source, const MediaFiles& files) {
    if (source.facts->resume_step) {
      drop_after(*source.facts->resume_step, images_);
      drop_after(*source.facts->resume_step, histograms_);
    }
    AllSeries<ImagePlace> images;
    AllSeries<HistogramPlace> histograms;
    for (const record::MediaFile& file : files) {
      const std::size_t damaged = record::visit_media(file.path, [&](record::MediaRecord&& record) {
        if (const record::LoggedImage* image = record.image()) {
          const LoggedImageFacts what{record.step,  source.attempt.number(), image->type,
                                      image->width, image->height,           ""};
          put(images, file.rank, record, {what, image->bytes.size()});
          return;
        }
        auto* series =
            put(histograms, file.rank, record, {distribution_of(record, source.attempt.number()), {}});
        // The bins of the last one only: a run may have very many.
        if (series != nullptr && series->by_step.rbegin()->first == record.step) {
          if (series->by_step.size() > 1) std::next(series->by_step.rbegin())->second.histogram = {};
          series->by_step.rbegin()->second.histogram = *record.histogram();
        }
      });
      note_damage(facts_, file.path, damaged, false);
    }
    join(images, images_);
    join(histograms, histograms_);
  }

  /// `files`: by attempt.
  void finish(const std::vector<AttemptSource>& attempts, const std::vector<MediaFiles>& files) {
    if (is_truncated_)
      facts_.notes.emplace_back("media-*.jsonl: too many images and histograms; the rest is skipped");
    for (auto& [name, series] : histograms_) {
      if (series.by_step.empty()) continue;
      HistogramSeries all{
          name, series.rank, series.by_step.size(), {}, series.by_step.rbegin()->second.histogram};
      for (const auto& [step, place] : series.by_step) all.points.push_back(place.point);
      if (room_.is_last_only) all.points = {all.points.back()};
      facts_.histograms.push_back(std::move(all));
    }
    for (const auto& [name, series] : images_) {
      if (series.by_step.empty()) continue;
      ImageSeries all{name,
                      series.rank,
                      series.by_step.size(),
                      series.by_step.begin()->first,
                      series.by_step.rbegin()->first,
                      {}};
      for (const std::int64_t step : chosen_steps(series)) all.shown.push_back(series.by_step.at(step).image);
      facts_.images.push_back(std::move(all));
    }
    for (std::size_t i = 0; i < attempts.size(); ++i) read_bytes(attempts[i], files[i]);
  }

 private:
  template <typename Value>
  SeriesByStep<Value>* put(AllSeries<Value>& all, int rank, const record::MediaRecord& record, Value value) {
    auto found = all.find(record.name);
    if (found == all.end()) {
      if (all.size() == kMostSeries) {
        is_truncated_ = true;
        return nullptr;
      }
      found = all.emplace(record.name, SeriesByStep<Value>{rank, {}}).first;
    }
    if (found->second.rank != rank) return nullptr;
    if (records_ == kMostRecords) {
      is_truncated_ = true;
      return nullptr;
    }
    ++records_;
    found->second.by_step.insert_or_assign(record.step, std::move(value));
    return &found->second;
  }

  template <typename Value>
  static void drop_after(std::int64_t step, AllSeries<Value>& all) {
    for (auto& [name, series] : all)
      series.by_step.erase(series.by_step.upper_bound(step), series.by_step.end());
  }

  // What an attempt repeats replaces what earlier ones have from there on.
  template <typename Value>
  static void join(AllSeries<Value>& own, AllSeries<Value>& all) {
    for (auto& [name, series] : own) {
      if (series.by_step.empty()) continue;
      SeriesByStep<Value>& before = all[name];
      before.rank = series.rank;
      before.by_step.erase(before.by_step.lower_bound(series.by_step.begin()->first), before.by_step.end());
      before.by_step.merge(series.by_step);
    }
  }

  // The first and the last one, and others evenly between them, as far as the page has room.
  std::vector<std::int64_t> chosen_steps(const SeriesByStep<ImagePlace>& series) {
    std::vector<std::int64_t> chosen;
    if (room_.names == 0) return chosen;
    std::vector<std::int64_t> steps;
    for (const auto& [step, place] : series.by_step) steps.push_back(step);
    const std::size_t wanted = std::min(room_.images_of_name, steps.size());
    for (std::size_t i = 0; i < wanted; ++i) {
      const std::size_t last = steps.size() - 1;
      const std::int64_t step = steps[wanted == 1 ? last : i * last / (wanted - 1)];
      const std::uint64_t bytes = series.by_step.at(step).bytes;
      if (bytes > room_.image_bytes) continue;
      room_.image_bytes -= bytes;
      chosen.push_back(step);
    }
    room_.names -= chosen.empty() ? 0 : 1;
    return chosen;
  }

  void read_bytes(const AttemptSource& source, const MediaFiles& files) {
    std::map<std::pair<std::string, std::int64_t>, std::pair<int, std::string*>> wanted;
    for (ImageSeries& series : facts_.images) {
      for (LoggedImageFacts& image : series.shown) {
        if (image.attempt == source.attempt.number())
          wanted[{series.name, image.step}] = {series.rank, &image.bytes};
      }
    }
    if (wanted.empty()) return;
    for (const record::MediaFile& file : files) {
      (void)record::visit_media(file.path, [&](record::MediaRecord&& record) {
        const auto found = wanted.find({record.name, record.step});
        if (found == wanted.end() || found->second.first != file.rank || record.image() == nullptr) return;
        *found->second.second = record.image()->bytes;
      });
    }
  }

  RunFacts& facts_;
  AllSeries<ImagePlace> images_;
  AllSeries<HistogramPlace> histograms_;
  std::size_t records_ = 0;
  bool is_truncated_ = false;
  MediaRoom& room_;
};

void join_media(const std::vector<AttemptSource>& attempts, const std::vector<MediaFiles>& files,
                RunFacts& facts, MediaRoom& room) {
  MediaJoiner joiner(facts, room);
  for (std::size_t i = 0; i < attempts.size(); ++i) joiner.add_attempt(attempts[i], files[i]);
  joiner.finish(attempts, files);
}

}  // namespace

void read_media(const std::vector<AttemptSource>& attempts, RunFacts& facts, MediaRoom& room) {
  std::vector<MediaFiles> files;
  for (const AttemptSource& source : attempts) files.push_back(record::list_media_files(source.attempt));
  join_media(attempts, files, facts, room);
}

void read_task_media(const std::vector<AttemptSource>& attempts, std::vector<TaskFacts>& tasks,
                     MediaRoom& room) {
  std::map<std::uint32_t, std::vector<MediaFiles>> by_task;
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    for (record::MediaFile& file : record::list_media_files(attempts[i].attempt)) {
      auto& files = by_task[static_cast<std::uint32_t>(file.rank)];
      files.resize(attempts.size());
      files[i].push_back(std::move(file));
    }
  }
  for (TaskFacts& task : tasks) {
    const auto found = by_task.find(task.number);
    if (found != by_task.end()) join_media(attempts, found->second, task.run, room);
  }
}

}  // namespace stoker::report
