#include "data/pack/pack.h"

#include <algorithm>
#include <atomic>

#include "base/hash.h"
#include "base/thread.h"
#include "data/pack/shard_writer.h"
#include "data/pack/workspace.h"
#include "format/side_index.h"

namespace stoker::data {

namespace {

// Everything that decides the result, file by file. Not the number of threads, nor where the output goes.
std::string fingerprint_of(const PackPlan& plan) {
  Sha256 hash;
  const PackOptions& o = plan.options;
  hash.update(format("pack 1 {} {} {} {}\n", static_cast<int>(o.layout), static_cast<int>(o.order),
                     static_cast<int>(o.check), plan.source.has_label_files));
  for (const std::string& name : plan.source.classes) hash.update(format("{}:{}\n", name.size(), name));
  for (const ShardSpec& shard : plan.shards) {
    hash.update(format("shard {}\n", shard.file));
    for (const SourceSample& sample : shard.samples) {
      const SourceFolder& folder = plan.source.folders[sample.folder];
      for (std::uint32_t i = 0; i < sample.files; ++i) {
        const SourceFile& file = plan.source.file(sample, i);
        hash.update(format("{}:{}/{} {} {}\n", folder.path.size() + file.name.size(), folder.path, file.name,
                           file.bytes, file.modified_ns));
      }
    }
  }
  return hex(hash.finish());
}

Status check_places(const PackOptions& options) {
  std::error_code ignored;
  const Path source = std::filesystem::weakly_canonical(options.source, ignored);
  const Path out = std::filesystem::weakly_canonical(options.out, ignored);
  for (Path above = out; above.has_relative_path(); above = above.parent_path()) {
    if (above == source) {
      return invalid("{}: lies inside {}, which is to be packed", printable(options.out.string()),
                     printable(options.source.string()));
    }
  }
  return {};
}

}  // namespace

Result<PackPlan> plan_pack(const PackOptions& options, const Progress& progress) {
  RETURN_IF_ERROR(check_places(options));
  RETURN_IF_ERROR(Workspace::check_output(options.out));
  PackPlan plan{
      .options = options, .source = {}, .shards = {}, .sizing = {}, .shard_bytes = 0, .fingerprint = {}};
  OK_OR_RETURN(source, list_source(options.source, options.layout, options.threads, progress));
  plan.source = std::move(source);
  for (std::uint32_t split = 0; split < plan.source.splits.size(); ++split) {
    const std::vector<SourceSample>& samples = plan.source.samples[split];
    std::uint64_t bytes = 0;
    std::uint64_t files = 0;
    for (const SourceSample& sample : samples) {
      bytes += archive_bytes(plan.source, sample);
      files += sample.files;
    }
    SplitSizing sizing = size_split(samples.size(), bytes, options.sizing);
    sizing.files = files;
    std::vector<ShardSpec> shards = deal(plan.source, split, sizing.shards, options.order);
    std::move(shards.begin(), shards.end(), std::back_inserter(plan.shards));
    plan.sizing.push_back(std::move(sizing));
    plan.shard_bytes += bytes;
  }
  plan.fingerprint = fingerprint_of(plan);
  return plan;
}

std::string left_out_text(const std::map<std::string, std::uint64_t>& left_out) {
  std::vector<std::string> parts;
  for (const auto& [reason, count] : left_out) {
    if (reason != kHidden) parts.push_back(format("{} {}", grouped(count), reason));
  }
  return join(parts, ", ");
}

namespace {

std::uint64_t counted(const std::map<std::string, std::uint64_t>& left_out) {
  std::uint64_t files = 0;
  for (const auto& [reason, count] : left_out) files += reason == kHidden ? 0 : count;
  return files;
}

// All shards, by as many threads as wanted; the first error stops the others.
class Crew {
 public:
  Crew(const PackPlan& plan, const Workspace& space, Progress& progress)
      : plan_(plan), space_(space), progress_(progress), facts_(plan.shards.size()) {
    for (const ShardSpec& shard : plan.shards) files_ += shard.files;
  }

  Status run() {
    std::vector<Thread> helpers;
    for (int t = 1; t < plan_.options.threads && static_cast<std::size_t>(t) < facts_.size(); ++t) {
      helpers.emplace_back([this](const StopToken&) { work(); });
    }
    work();
    helpers.clear();
    MutexLock lock(mutex_);
    if (status_.code() == Code::cancelled) {
      return cancelled("{}: stopped: {} of {} shards are done", printable(plan_.options.out.string()),
                       finished_.load(), facts_.size())
          .cure("the same command again: it goes on from there");
    }
    return status_;
  }

  std::uint64_t kept() const { return kept_; }
  std::uint64_t finished() const { return finished_; }
  /// REQUIRES: run() was ok.
  std::vector<ShardFacts>& facts() { return facts_; }

 private:
  void work() {
    for (std::size_t i = next_++; i < facts_.size(); i = next_++) {
      const ShardSpec& spec = plan_.shards[i];
      if (std::optional<ShardFacts> before = space_.finished(spec)) {
        facts_[i] = std::move(*before);
        ++kept_;
        done_files_ += spec.files;
      } else {
        Result<ShardFacts> written =
            space_.write(spec, [this](std::uint64_t bytes) { return file_done(bytes); });
        if (!written.ok()) return fail(written.status());
        facts_[i] = std::move(*written);
      }
      ++finished_;
    }
  }

  bool file_done(std::uint64_t bytes) {
    const std::uint64_t done = done_files_ += bytes == 0 ? 0 : 1;
    progress_.report({.done = done, .total = files_, .unit = "files", .bytes = {done_bytes_ += bytes}});
    if (progress_.stop_requested()) fail(cancelled("stopped"));
    return !is_stopped_.load(std::memory_order_relaxed);
  }

  // Keeps the first error that is one: that others were stopped by it is none.
  void fail(Status status) {
    is_stopped_ = true;
    next_ = facts_.size();
    MutexLock lock(mutex_);
    if (status_.ok() || (status_.code() == Code::cancelled && status.code() != Code::cancelled)) {
      status_ = std::move(status);
    }
  }

  const PackPlan& plan_;
  const Workspace& space_;
  Progress& progress_;
  std::uint64_t files_ = 0;

  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> kept_{0};
  std::atomic<std::uint64_t> finished_{0};
  std::atomic<std::uint64_t> done_files_{0};
  std::atomic<std::uint64_t> done_bytes_{0};
  std::atomic<bool> is_stopped_{false};
  std::vector<ShardFacts> facts_;  // each element is written by one thread

  Mutex mutex_;
  Status status_ GUARDED_BY(mutex_);
};

std::vector<LeftOut> collect_left_out(const PackPlan& plan, std::vector<ShardFacts>& facts) {
  std::vector<LeftOut> all = plan.source.left_out;
  for (ShardFacts& shard : facts)
    std::move(shard.left_out.begin(), shard.left_out.end(), std::back_inserter(all));
  std::sort(all.begin(), all.end());
  return all;
}

std::string csv_field(std::string_view text) {
  const std::string shown = printable(text);
  if (shown.find_first_of(",\"") == std::string::npos) return shown;
  std::string quoted = "\"";
  for (char c : shown) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string to_csv(const std::vector<LeftOut>& left_out) {
  if (left_out.empty()) return {};
  std::string text = "path,reason,detail\n";
  for (const LeftOut& file : left_out) {
    text += format("{},{},{}\n", csv_field(file.path), csv_field(file.reason), csv_field(file.detail));
  }
  return text;
}

// Too much was left out, or anything when that is an error.
Status check_left_out(const PackPlan& plan, const std::vector<LeftOut>& left_out, std::uint64_t counted) {
  const PackOptions& o = plan.options;
  const double percent = 100.0 * static_cast<double>(counted) /
                         static_cast<double>(std::max<std::uint64_t>(1, plan.source.files));
  const bool too_many = percent > o.most_left_out_percent;
  if (counted == 0 || (!too_many && !o.is_strict)) return {};
  constexpr std::size_t kShown = 5;
  std::string some;
  std::size_t shown = 0;
  for (const LeftOut& file : left_out) {
    if (file.reason == kHidden || shown++ >= kShown) continue;
    some += format("\n    {}: {}{}", printable(file.path), file.reason,
                   file.detail.empty() ? "" : " (" + printable(file.detail) + ")");
  }
  if (shown > kShown) some += format("\n    and {} more", grouped(shown - kShown));
  const std::string what = format("{}: {} of {} files are no images or broken", printable(o.source.string()),
                                  grouped(counted), grouped(plan.source.files));
  if (!too_many) return corrupt("{} (--strict){}", what, some);
  return corrupt("{}, more than {} % (--most-left-out){}", what, o.most_left_out_percent, some);
}

// The manifest but for the index, which is made from the same sections.
Result<formats::Manifest> describe(const PackPlan& plan, const std::vector<ShardFacts>& facts) {
  formats::Manifest manifest;
  formats::Schema& schema = manifest.schema;
  schema.has_labels = plan.source.has_labels();
  schema.classes = plan.source.classes;
  for (const std::string& name : plan.source.splits) {
    manifest.splits.push_back({.name = name, .samples = 0, .shards = {}, .class_samples = {}});
    manifest.splits.back().class_samples.resize(schema.classes.size());
  }
  std::vector<std::string> components;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const ShardFacts& shard = facts[i];
    formats::SplitInfo& split = manifest.splits[plan.shards[i].split];
    OK_OR_RETURN(section,
                 formats::IndexSection::parse(std::as_bytes(std::span(shard.section)), plan.shards[i].file));
    split.shards.push_back({.file = plan.shards[i].file,
                            .bytes = shard.bytes,
                            .samples = shard.samples,
                            .hash = formats::shard_hash(shard.blocks),
                            .blocks = shard.blocks});
    split.samples += shard.samples;
    for (std::uint64_t s = 0; s < section.samples() && !split.class_samples.empty(); ++s) {
      if (section.label(s) >= 0) ++split.class_samples[static_cast<std::size_t>(section.label(s))];
    }
    components.insert(components.end(), section.names().begin(), section.names().end());
    manifest.images.add(shard.images);
  }
  std::sort(components.begin(), components.end());
  components.erase(std::unique(components.begin(), components.end()), components.end());
  for (const std::string& name : components) {
    schema.components.push_back({.name = name, .is_image = is_image_extension(name)});
  }
  manifest.version = formats::dataset_version(manifest);
  return manifest;
}

Status check_classes(const PackPlan& plan, const formats::Manifest& manifest) {
  for (const formats::SplitInfo& split : manifest.splits) {
    if (split.samples == 0) {
      return invalid("{}: split '{}' has no good image", printable(plan.options.source.string()), split.name);
    }
  }
  for (std::size_t c = 0; c < manifest.schema.classes.size(); ++c) {
    std::uint64_t samples = 0;
    for (const formats::SplitInfo& split : manifest.splits) samples += split.class_samples[c];
    if (samples == 0) {
      return invalid("{}: class '{}' has no good image", printable(plan.options.source.string()),
                     printable(manifest.schema.classes[c]));
    }
  }
  return {};
}

// What the dataset is, if what was packed may be one.
Result<formats::Manifest> judge(const PackPlan& plan, const std::vector<LeftOut>& left_out,
                                const std::vector<ShardFacts>& facts) {
  std::map<std::string, std::uint64_t> counts;
  for (const LeftOut& file : left_out) ++counts[file.reason];
  RETURN_IF_ERROR(check_left_out(plan, left_out, counted(counts)));
  OK_OR_RETURN(manifest, describe(plan, facts));
  RETURN_IF_ERROR(check_classes(plan, manifest));
  manifest.left_out = std::move(counts);
  return manifest;
}

}  // namespace

Result<PackSummary> run_pack(const PackPlan& plan, Progress& progress) {
  OK_OR_RETURN(space, Workspace::open(plan));
  PackSummary summary;
  if (space.state() == Workspace::State::published) {
    RETURN_IF_ERROR(space.clean());
    OK_OR_RETURN(manifest, formats::read_manifest(plan.options.out));
    summary.manifest = std::move(manifest);
    summary.left_out = counted(summary.manifest.left_out);
    summary.shards_kept = plan.shards.size();
    return summary;
  }
  summary.was_restarted = space.state() == Workspace::State::restarted;
  Crew crew(plan, space, progress);
  if (Status status = crew.run(); !status.ok()) {
    if (crew.finished() == 0) space.discard();  // else the next call goes on from what is finished
    return status;
  }
  summary.shards_kept = crew.kept();
  std::vector<ShardFacts>& facts = crew.facts();
  const std::vector<LeftOut> left_out = collect_left_out(plan, facts);
  Result<formats::Manifest> manifest = judge(plan, left_out, facts);
  if (!manifest.ok()) {
    space.discard();  // the source must change first, and then nothing of this is of use
    return manifest.status();
  }
  std::vector<std::string> sections;
  for (ShardFacts& shard : facts) sections.push_back(std::move(shard.section));
  const std::string index = formats::encode_index(sections);
  manifest->index_bytes = index.size();
  manifest->index_hash = sha256(index);
  RETURN_IF_ERROR(space.publish(*manifest, index, to_csv(left_out)));
  summary.left_out = counted(manifest->left_out);
  summary.manifest = std::move(*manifest);
  return summary;
}

}  // namespace stoker::data
