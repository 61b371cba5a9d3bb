#include "pack/pack.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <iterator>
#include <sched.h>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/language/counted.h"
#include "base/sanitizers.h"
#include "base/thread.h"
#include "dataset/hdf5_view.h"
#include "pack/container/container.h"
#include "pack/container_choice.h"
#include "pack/dvc/dvc.h"
#include "pack/shard/shard_writer.h"
#include "pack/shard/workspace.h"
#include "sources/files/tree.h"

namespace stoker::pack {

namespace {

// Memory limit for all samples that are read ahead of the writers.
constexpr std::uint64_t kMaxAhead = 128u << 20;
// Minimum number of files per thread.
constexpr std::uint64_t kFewFiles = 8;

// Packs all shards with several threads; the first error stops all. A thread without a shard reads ahead for
// the threads that write one.
class PackWorkers {
 public:
  PackWorkers(const PackPlan& plan, const Workspace& space, Progress& progress)
      : plan_(plan), space_(space), progress_(progress), facts_(plan.shards.size()) {
    const PackPart part = plan.options.part.value_or(PackPart{});
    for (std::size_t i = part.number - 1; i < plan.shards.size(); i += part.count) {
      own_shards_.push_back(i);
      files_ += plan.shards[i].files;
    }
    unstarted_ = own_shards_.size();
  }

  Status run() {
    std::vector<Thread> helpers;
    const auto useful_threads = static_cast<int>(
        std::min<std::uint64_t>(static_cast<std::uint64_t>(plan_.options.threads),
                                std::max<std::uint64_t>(own_shards_.size(), files_ / kFewFiles)));
    for (int t = 1; t < useful_threads; ++t) {
      helpers.emplace_back([this](const StopToken&) {
        // A separate file descriptor table: in a shared one every open, read and close of small files waits
        // for the other threads. Needs no privileges, and a failure is harmless. ThreadSanitizer would
        // confuse files with equal numbers in two tables.
        if (!kHasThreadSanitizer) (void)::unshare(CLONE_FILES);
        work();
        read_ahead_for_others();
      });
    }
    work();
    read_ahead_for_others();
    helpers.clear();
    MutexLock lock(mutex_);
    if (status_.code() == Code::cancelled) {
      return cancelled("{}: interrupted: {} of {} shards are finished", printable(plan_.options.out.string()),
                       done(), own_shards_.size())
          .cure("rerun the same command to continue");
    }
    return status_;
  }

  std::uint64_t kept() const { return kept_; }
  std::uint64_t shards() const { return own_shards_.size(); }
  /// REQUIRES: run() succeeded. Empty for shards of other parts.
  std::vector<ShardFacts>& facts() { return facts_; }

 private:
  // A shard that one thread writes.
  struct Lane {
    std::size_t shard = 0;
    std::shared_ptr<ReadAhead> samples;
    std::unique_ptr<ShardWriter> writer;
    bool has_work() const { return writer && !writer->lane().is_empty(); }
  };

  // Writes two shards in turns if blocks have a SHA-256 and there are enough shards for all threads: the data
  // of both is hashed together.
  void work() {
    const bool is_interleaved = plan_.options.hash == dataset::BlockHash::sha256 &&
                                own_shards_.size() >= 2 * static_cast<std::size_t>(plan_.options.threads);
    std::array<Lane, 2> lanes;
    const auto used_lanes = std::span(lanes).first(is_interleaved ? 2 : 1);
    for (;;) {
      for (Lane& lane : used_lanes) {
        if (Status status = advance(lane, is_interleaved ? Hashing::deferred : Hashing::immediate);
            !status.ok()) {
          for (const Lane& begun : used_lanes) {
            if (begun.writer) space_.remove_unfinished(plan_.shards[begun.shard]);
          }
          return fail(std::move(status));
        }
      }
      if (lanes[0].has_work() && lanes[1].has_work()) {
        Sha256Lane::run_both(lanes[0].writer->lane(), lanes[1].writer->lane());
      } else if (lanes[0].has_work()) {
        lanes[0].writer->lane().run();
      } else if (lanes[1].has_work()) {
        lanes[1].writer->lane().run();
      } else {
        return;
      }
    }
  }

  // Writes samples until there is data to hash or no shard is left.
  Status advance(Lane& lane, Hashing hashing) {
    while (!lane.has_work()) {
      if (!lane.writer) STOKER_RETURN_IF_ERROR(begin_next(lane, hashing));
      if (!lane.writer) return {};
      if (!lane.writer->is_complete()) {
        STOKER_RETURN_IF_ERROR(lane.writer->write_next());
        continue;
      }
      STOKER_ASSIGN_OR_RETURN(facts, space_.finish_shard(plan_.shards[lane.shard], *lane.writer));
      facts_[lane.shard] = std::move(facts);
      lane.writer.reset();
      const MutexLock lock(mutex_);
      std::erase(being_read_, std::exchange(lane.samples, nullptr));
    }
    return {};
  }

  // Until no samples are left to read.
  void read_ahead_for_others() {
    while (const std::shared_ptr<ReadAhead> samples = shard_with_most_left()) {
      if (samples->help() == ReadAhead::HelpResult::enough_read) samples->wait_for_budget();
    }
  }

  // The shard in progress with most unclaimed samples; null if there will be no such shard.
  std::shared_ptr<ReadAhead> shard_with_most_left() {
    const MutexLock lock(mutex_);
    while (!is_stopped_) {
      std::shared_ptr<ReadAhead> most;
      for (const auto& samples : being_read_) {
        if (samples->unclaimed() > (most ? most->unclaimed() : 0)) most = samples;
      }
      if (most || unstarted_ == 0) return most;
      has_begun_.wait(mutex_, Deadline::after(std::chrono::milliseconds(20)));
    }
    return nullptr;
  }

  void mark_started(std::shared_ptr<ReadAhead> samples) {
    const MutexLock lock(mutex_);
    if (samples) being_read_.push_back(std::move(samples));
    --unstarted_;
    has_begun_.notify_all();
  }

  // The next unfinished shard; none if all are claimed.
  Status begin_next(Lane& lane, Hashing hashing) {
    for (std::size_t at = next_++; at < own_shards_.size(); at = next_++) {
      lane.shard = own_shards_[at];
      const ShardSpec& spec = plan_.shards[lane.shard];
      if (std::optional<ShardFacts> before = space_.finished(spec.file)) {
        facts_[lane.shard] = std::move(*before);
        ++kept_;
        done_files_ += spec.files;
        mark_started(nullptr);
        continue;
      }
      lane.samples = std::make_shared<ReadAhead>(
          plan_, spec.samples, [this](std::uint64_t bytes) { return file_done(bytes); }, budget_);
      STOKER_ASSIGN_OR_RETURN(writer, space_.begin_shard(plan_, spec, lane.samples, hashing));
      lane.writer = std::move(writer);
      mark_started(lane.samples);
      return {};
    }
    return {};
  }

  // Shards finished by this call or an earlier one.
  std::size_t done() const {
    std::size_t shards = 0;
    for (const std::size_t i : own_shards_) shards += space_.has_finished(plan_.shards[i].file) ? 1 : 0;
    return shards;
  }

  bool file_done(std::uint64_t bytes) {
    const std::uint64_t done = done_files_ += bytes == 0 ? 0 : 1;
    progress_.report({.done = done, .total = files_, .unit = "files", .bytes = {done_bytes_ += bytes}});
    if (progress_.stop_requested()) fail(cancelled("stopped"));
    return !is_stopped_.load(std::memory_order_relaxed);
  }

  // Keeps the first real error; the resulting cancellations do not count.
  void fail(Status status) {
    is_stopped_ = true;
    next_ = own_shards_.size();
    MutexLock lock(mutex_);
    has_begun_.notify_all();
    if (status_.ok() || (status_.code() == Code::cancelled && status.code() != Code::cancelled)) {
      status_ = std::move(status);
    }
  }

  const PackPlan& plan_;
  const Workspace& space_;
  Progress& progress_;
  std::vector<std::size_t> own_shards_;  // the shards of this part
  std::uint64_t files_ = 0;

  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> kept_{0};
  std::atomic<std::uint64_t> done_files_{0};
  std::atomic<std::uint64_t> done_bytes_{0};
  std::atomic<bool> is_stopped_{false};
  std::vector<ShardFacts> facts_;  // each element is written by one thread
  ReadAheadBudget budget_{kMaxAhead};

  Mutex mutex_;
  Condition has_begun_;
  std::vector<std::shared_ptr<ReadAhead>> being_read_ STOKER_GUARDED_BY(mutex_);
  std::size_t unstarted_ STOKER_GUARDED_BY(mutex_) = 0;  // shards that are neither started nor finished
  Status status_ STOKER_GUARDED_BY(mutex_);
};

}  // namespace

namespace {

// Written after publishing: a crash before it only requires `data index --export hdf5`.
Status write_views(const Path& out, const dataset::Manifest& manifest) {
  if (manifest.schema.container != to_text(dataset::ContainerKind::hdf5)) return {};
  return write_hdf5_views(out, dataset::ViewedSplits::several_shards).status();
}

// A packing that fails leaves no dataset, so the list of left-out files goes beside it.
Status with_list(Status status, const Path& out, const std::string& unlisted) {
  if (unlisted.empty()) return status;
  std::string list = out.string();
  while (list.ends_with('/')) list.pop_back();
  list += ".left-out.csv";
  if (!write_file(list, unlisted).ok()) return status;  // the message names the first ones
  const std::string cure(status.cure());
  return std::move(status).cure("{}{}all are listed in {}", cure, cure.empty() ? "" : "; ", printable(list));
}

}  // namespace

Result<PackSummary> run_pack(const PackPlan& plan, Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(space, Workspace::open(plan.options.out, plan.dataset_plan, plan.options.part));
  PackSummary summary;
  if (space.state() == Workspace::State::published) {
    STOKER_RETURN_IF_ERROR(space.clean());
    STOKER_ASSIGN_OR_RETURN(manifest, dataset::read_manifest(plan.options.out));
    summary.manifest = std::move(manifest);
    summary.left_out = count_left_out(summary.manifest.left_out);
    summary.shards_kept = plan.shards.size();
    return summary;
  }
  summary.was_restarted = space.state() == Workspace::State::restarted;
  PackWorkers workers(plan, space, progress);
  if (Status status = workers.run(); !status.ok()) {
    if (!space.has_finished_any()) space.discard();  // else the next call continues from the finished shards
    return status;
  }
  summary.shards_kept = workers.kept();
  summary.shards_done = workers.shards();
  if (plan.options.part) return summary;
  std::string unlisted;
  Result<Assembly> whole = assemble(plan.dataset_plan, workers.facts(), &unlisted);
  if (!whole.ok()) {
    space.discard();  // the source must change first, which makes these shards useless
    return with_list(whole.status(), plan.options.out, unlisted);
  }
  STOKER_RETURN_IF_ERROR(space.publish(whole->manifest, whole->index, whole->left_out_csv));
  STOKER_RETURN_IF_ERROR(write_views(plan.options.out, whole->manifest));
  summary.left_out = whole->left_out;
  summary.manifest = std::move(whole->manifest);
  return summary;
}

bool is_ready_to_merge(const Path& out) { return Workspace::is_ready_to_merge(out); }

Result<PackSummary> merge_parts(const Path& out) {
  STOKER_ASSIGN_OR_RETURN(space, Workspace::open_for_merge(out));
  PackSummary summary;
  if (space.state() == Workspace::State::published) {
    STOKER_RETURN_IF_ERROR(space.clean());
    STOKER_ASSIGN_OR_RETURN(manifest, dataset::read_manifest(out));
    summary.manifest = std::move(manifest);
    summary.left_out = count_left_out(summary.manifest.left_out);
    return summary;
  }
  const DatasetPlan& dataset_plan = space.dataset_plan();
  std::vector<ShardFacts> facts;
  std::vector<std::string> missing;
  std::set<std::size_t> parts;
  for (std::size_t i = 0; i < dataset_plan.shards.size(); ++i) {
    if (std::optional<ShardFacts> shard = space.finished(dataset_plan.shards[i].file)) {
      facts.push_back(std::move(*shard));
      continue;
    }
    missing.push_back(dataset_plan.shards[i].file);
    parts.insert(i % dataset_plan.parts + 1);
  }
  if (!missing.empty()) {
    std::vector<std::string> numbers;
    for (std::size_t part : parts) numbers.push_back(format("{}/{}", part, dataset_plan.parts));
    return not_found("{}: {} of {} shards are not packed yet, the first is {}", printable(out.string()),
                     missing.size(), dataset_plan.shards.size(), missing[0])
        .cure("stoker data pack ... --part {}", join(numbers, ", --part "));
  }
  std::string unlisted;
  Result<Assembly> whole = assemble(dataset_plan, facts, &unlisted);
  if (!whole.ok()) return with_list(whole.status(), out, unlisted);
  STOKER_RETURN_IF_ERROR(space.publish(whole->manifest, whole->index, whole->left_out_csv));
  STOKER_RETURN_IF_ERROR(write_views(out, whole->manifest));
  summary.left_out = whole->left_out;
  summary.shards_done = dataset_plan.shards.size();
  summary.manifest = std::move(whole->manifest);
  return summary;
}

namespace {

// Buffers the plan's fields for the fingerprint hash.
class Fingerprint {
 public:
  void add(std::uint64_t number) {
    text_.append(reinterpret_cast<const char*>(&number), sizeof number);
    flush(kEnough);
  }
  void add(std::string_view text) {
    add(text.size());
    text_ += text;
  }
  std::string finish() {
    flush(0);
    return hex(hash_.finish());
  }

 private:
  static constexpr std::size_t kEnough = 1u << 16;
  void flush(std::size_t enough) {
    if (text_.size() < enough) return;
    hash_.update(text_);
    text_.clear();
  }
  std::string text_;
  Sha256 hash_;
};

// Everything that determines the result, file by file; not the number of threads or parts, nor the output
// path. Depends on the byte order of the machine.
std::string fingerprint_of(const PackPlan& plan) {
  Fingerprint print;
  const PackOptions& o = plan.options;
  print.add("pack 3");
  print.add(static_cast<std::uint64_t>(o.source.layout));
  print.add(static_cast<std::uint64_t>(o.order));
  print.add(static_cast<std::uint64_t>(o.check));
  print.add(static_cast<std::uint64_t>(o.labels));
  print.add(static_cast<std::uint64_t>(o.jpeg));
  print.add(static_cast<std::uint64_t>(o.hash));
  print.add(static_cast<std::uint64_t>(plan.container));
  print.add(static_cast<std::uint64_t>(o.reencode.shorter_side.value_or(0)));
  print.add(static_cast<std::uint64_t>(o.reencode.quality.value_or(0)));
  print.add(static_cast<std::uint64_t>(plan.source.has_label_files));
  if (o.source.table.is_set()) print.add(o.source.table.fingerprint());
  for (const std::string& name : plan.source.classes) print.add(name);
  for (const ShardSpec& shard : plan.shards) {
    print.add(shard.file);
    for (const sources::SourceSample& sample : shard.samples) {
      print.add(plan.source.folders[sample.folder].path);
      print.add(static_cast<std::uint64_t>(sample.label));
      for (std::uint32_t i = 0; i < sample.files; ++i) {
        const sources::SourceFile& file = plan.source.file(sample, i);
        print.add(file.name);
        print.add(file.bytes);
        print.add(static_cast<std::uint64_t>(file.modified_ns));
      }
    }
  }
  return print.finish();
}

Status check_places(const PackOptions& options) {
  std::error_code ignored;
  const Path source = std::filesystem::weakly_canonical(options.source.where, ignored);
  const Path out = std::filesystem::weakly_canonical(options.out, ignored);
  for (Path above = out; above.has_relative_path(); above = above.parent_path()) {
    if (above == source) {
      return invalid("{}: is inside the source {}", printable(options.out.string()),
                     printable(options.source.where));
    }
  }
  return {};
}

// The deepest existing parent of the output: on the filesystem with room for the dataset.
Path scratch_beside(const Path& out) {
  std::error_code ignored;
  Path folder = std::filesystem::absolute(out, ignored);
  while (folder.has_relative_path() && !folder_exists(folder)) folder = folder.parent_path();
  return folder;
}

// A source file "<key>.json" would conflict with the label member.
Status check_label_members(const sources::PackSource& source) {
  for (const sources::SourceFolder& folder : source.folders) {
    for (const sources::SourceFile& file : folder.files) {
      if (sources::extension_of(file.name) != "json") continue;
      return invalid("{}: conflicts with the label member (--labels json)",
                     source.tree->display_path(source.path_of(folder, file)));
    }
  }
  return {};
}

// A mask must not be resized (it would lose its classes), and would not match its resized picture.
Status check_single_images(const sources::PackSource& source) {
  for (const std::vector<sources::SourceSample>& split : source.samples) {
    for (const sources::SourceSample& sample : split) {
      int images = 0;
      for (std::uint32_t i = 0; i < sample.files; ++i)
        images += sources::is_image_extension(sources::extension_of(source.file(sample, i).name)) ? 1 : 0;
      if (images <= 1) continue;
      return invalid("{}: sample '{}' has {}, which would no longer match after resizing (--resize)",
                     source.tree->display_path(""), printable(source.key(sample)), counted(images, "image"));
    }
  }
  return {};
}

DatasetPlan make_dataset_plan(const PackPlan& plan) {
  DatasetPlan dataset_plan;
  dataset_plan.source = plan.options.source.where == "-" ? "standard input" : plan.options.source.where;
  dataset_plan.splits = plan.source.splits;
  dataset_plan.classes = plan.source.classes;
  dataset_plan.has_labels = plan.source.has_labels();
  dataset_plan.declares_classes = plan.source.declares_classes;
  dataset_plan.hash = plan.options.hash;
  dataset_plan.container = to_text(plan.container);
  dataset_plan.is_strict = plan.options.is_strict;
  dataset_plan.max_left_out_percent = plan.options.max_left_out_percent;
  dataset_plan.files = plan.source.files;
  dataset_plan.parts = plan.options.part.value_or(PackPart{}).count;
  dataset_plan.left_out = plan.source.left_out;
  dataset_plan.version = plan.version;
  for (const SplitSizing& sizing : plan.sizing) dataset_plan.shard_bytes += sizing.bytes;
  for (const ShardSpec& shard : plan.shards) dataset_plan.shards.push_back({shard.file, shard.split});
  dataset_plan.fingerprint = fingerprint_of(plan);
  return dataset_plan;
}

// The source's version from DVC; of a dataset else the recorded version.
Result<std::optional<dataset::SourceVersion>> version_of(const PackOptions& options, Progress& progress) {
  using Version = std::optional<dataset::SourceVersion>;
  const std::string& where = options.source.where;
  if (options.dvc == DvcCheck::off || where == "-") return Version();
  STOKER_ASSIGN_OR_RETURN(dvc, find_dvc_file(where));
  if (!dvc) {
    const bool is_dataset = path_exists(Path(where) / dataset::kManifestFile);
    const Result<dataset::Manifest> manifest =
        is_dataset ? dataset::read_manifest(where) : Result<dataset::Manifest>(dataset::Manifest());
    return manifest.ok() ? manifest->source : Version();
  }
  const DvcDepth depth = options.dvc == DvcCheck::full ? DvcDepth::bytes : DvcDepth::sizes;
  STOKER_ASSIGN_OR_RETURN(compared, compare_with_dvc(where, *dvc, depth, options.threads, progress));
  if (!compared.difference.empty())
    return invalid("{}: {} (--dvc)", printable(where), compared.difference).cure("{}", dvc_cure(where, *dvc));
  if (options.dvc == DvcCheck::sizes || compared.ignored_by.empty()) return Version(dvc->version);
  return invalid("{}: cannot be compared: only dvc can apply {} (--dvc full)", printable(where),
                 compared.ignored_by)
      .cure("dvc status {}", shell_quote(dvc->stage.empty() ? dvc->version.file : dvc->stage));
}

}  // namespace

Result<PackPlan> plan_pack(const PackOptions& options, Progress& progress) {
  STOKER_RETURN_IF_ERROR(check_places(options));
  STOKER_RETURN_IF_ERROR(Workspace::check_output(options.out));
  PackPlan plan{.options = options, .source = {}, .shards = {}, .sizing = {}, .dataset_plan = {}};
  sources::SourceOptions listing = options.source;
  if (listing.scratch.empty()) listing.scratch = scratch_beside(options.out);
  STOKER_ASSIGN_OR_RETURN(source, list_source(listing, progress));
  plan.source = std::move(source);
  STOKER_ASSIGN_OR_RETURN(version, version_of(options, progress));
  plan.version = std::move(version);
  const std::string name = printable(options.source.where);
  if (options.order == SampleOrder::stratified && plan.source.classes.empty() &&
      !plan.source.has_number_labels) {
    return invalid("{}: has no classes in its folders or list, which stratifying needs (--order stratified)",
                   name);
  }
  if (options.labels == LabelMembers::json) STOKER_RETURN_IF_ERROR(check_label_members(plan.source));
  STOKER_RETURN_IF_ERROR(check_label_kind(options));
  if (options.reencode.shorter_side) STOKER_RETURN_IF_ERROR(check_single_images(plan.source));
  std::vector<SampleBytes> bytes(plan.source.splits.size());
  for (std::uint32_t split = 0; split < plan.source.splits.size(); ++split) {
    for (const sources::SourceSample& sample : plan.source.samples[split])
      bytes[split].add(sample_bytes(plan.source, sample, options.labels));
  }
  STOKER_RETURN_IF_ERROR(choose_container(bytes, plan));
  for (std::uint32_t split = 0; split < plan.source.splits.size(); ++split) {
    const std::vector<sources::SourceSample>& samples = plan.source.samples[split];
    Result<SplitSizing> sizing = size_split(format("{}: split '{}'", name, plan.source.splits[split]),
                                            samples.size(), bytes[split].in(plan.container), options.sizing);
    if (!sizing.ok()) return sizing.status();
    for (const sources::SourceSample& sample : samples) sizing->files += sample.files;
    std::vector<ShardSpec> shards = assign_samples(plan.source, split, sizing->shards,
                                                   {options.order, options.source.seed, plan.container});
    std::move(shards.begin(), shards.end(), std::back_inserter(plan.shards));
    plan.sizing.push_back(std::move(*sizing));
  }
  plan.dataset_plan = make_dataset_plan(plan);
  return plan;
}

}  // namespace stoker::pack
