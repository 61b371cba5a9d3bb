#include "data/pack/pack.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <sched.h>
#include <set>

#include "base/hash.h"
#include "base/thread.h"
#include "data/pack/shard/shard_writer.h"
#include "data/pack/source/tree.h"
#include "data/pack/workspace.h"

namespace stoker::data {

namespace {

// Numbers and texts of the plan on their way into its fingerprint.
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

// Everything that decides the result, file by file. Not the number of threads or parts, nor where the output
// goes. On a machine with another byte order the plan of this one counts as another plan.
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
  print.add(static_cast<std::uint64_t>(o.shrink.shorter_side.value_or(0)));
  print.add(static_cast<std::uint64_t>(o.shrink.quality.value_or(0)));
  print.add(static_cast<std::uint64_t>(plan.source.has_label_files));
  for (const std::string& name : plan.source.classes) print.add(name);
  for (const ShardSpec& shard : plan.shards) {
    print.add(shard.file);
    for (const SourceSample& sample : shard.samples) {
      print.add(plan.source.folders[sample.folder].path);
      print.add(static_cast<std::uint64_t>(sample.label));
      for (std::uint32_t i = 0; i < sample.files; ++i) {
        const SourceFile& file = plan.source.file(sample, i);
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
      return invalid("{}: lies inside {}, which is to be packed", printable(options.out.string()),
                     printable(options.source.where));
    }
  }
  return {};
}

// What there is of the folders above the output, the deepest: on the filesystem that has room for the
// dataset.
Path scratch_beside(const Path& out) {
  std::error_code ignored;
  Path folder = std::filesystem::absolute(out, ignored);
  while (folder.has_relative_path() && !folder_exists(folder)) folder = folder.parent_path();
  return folder;
}

// A source's own "<key>.json" would meet the label's.
Status check_label_members(const Source& source) {
  for (const SourceFolder& folder : source.folders) {
    for (const SourceFile& file : folder.files) {
      if (extension_of(file.name) != "json") continue;
      return invalid("{}: would stand where the label is to go (--labels json)",
                     source.tree->shown(child(folder.path, file.name)));
    }
  }
  return {};
}

// tar unless its headers and padding cost too much, and why.
void choose_container(const std::vector<SampleBytes>& splits, PackPlan& plan) {
  constexpr std::uint64_t kTooMuch = 4;  // a quarter of the files' own bytes
  SampleBytes all;
  for (const SampleBytes& split : splits) all.add(split);
  const std::uint64_t overhead = all.tar - all.payload;
  const bool is_tiny = overhead > all.payload / kTooMuch;
  const ShardFormat wanted = plan.options.format;
  // Who wants label members has a reader of tars.
  const bool may_choose = wanted == ShardFormat::automatic && plan.options.labels == LabelMembers::index;
  const bool is_tfrecord = wanted == ShardFormat::tfrecord || (may_choose && is_tiny);
  plan.container = wanted == ShardFormat::parquet ? ContainerKind::parquet
                   : is_tfrecord                  ? ContainerKind::tfrecord
                                                  : ContainerKind::tar;
  if (plan.container == ContainerKind::parquet) plan.columns = columns_of(plan.source);
  const bool is_tar = plan.container == ContainerKind::tar;
  constexpr std::uint64_t kWorthALine = 4u << 20;
  if (wanted == ShardFormat::tar && (!is_tiny || overhead < kWorthALine)) return;
  plan.why_container =
      format("as {}: {} headers and padding {} {} % to the files' {}", to_text(plan.container),
             is_tar ? "its" : "tar's", is_tar ? "add" : "would add",
             overhead * 100 / std::max<std::uint64_t>(1, all.payload), rounded({all.payload}));
  if (is_tiny && is_tar)
    plan.why_container += format(" (--format tfrecord: {} in all)", rounded({all.tfrecord}));
}

// A mask that is not resized with its picture would no longer fit it, and a resized one would no longer hold
// classes.
Status check_single_images(const Source& source) {
  for (const std::vector<SourceSample>& split : source.samples) {
    for (const SourceSample& sample : split) {
      int images = 0;
      for (std::uint32_t i = 0; i < sample.files; ++i)
        images += is_image_extension(extension_of(source.file(sample, i).name)) ? 1 : 0;
      if (images <= 1) continue;
      return invalid("{}: sample '{}' has {} images, which would no longer fit each other (--resize)",
                     source.tree->shown(""), printable(source.key(sample)), images);
    }
  }
  return {};
}

Outline outline_of(const PackPlan& plan) {
  Outline outline;
  outline.source = plan.options.source.where == "-" ? "standard input" : plan.options.source.where;
  outline.splits = plan.source.splits;
  outline.classes = plan.source.classes;
  outline.has_labels = plan.source.has_labels();
  outline.hash = plan.options.hash;
  outline.container = to_text(plan.container);
  outline.is_strict = plan.options.is_strict;
  outline.most_left_out_percent = plan.options.most_left_out_percent;
  outline.files = plan.source.files;
  outline.parts = plan.options.part.value_or(PackPart{}).of;
  outline.left_out = plan.source.left_out;
  for (const SplitSizing& sizing : plan.sizing) outline.shard_bytes += sizing.bytes;
  for (const ShardSpec& shard : plan.shards) outline.shards.push_back({shard.file, shard.split});
  outline.fingerprint = fingerprint_of(plan);
  return outline;
}

}  // namespace

Result<PackPlan> plan_pack(const PackOptions& options, Progress& progress) {
  RETURN_IF_ERROR(check_places(options));
  RETURN_IF_ERROR(Workspace::check_output(options.out));
  PackPlan plan{.options = options, .source = {}, .shards = {}, .sizing = {}, .outline = {}};
  SourceOptions listing = options.source;
  if (listing.scratch.empty()) listing.scratch = scratch_beside(options.out);
  OK_OR_RETURN(source, list_source(listing, progress));
  plan.source = std::move(source);
  const std::string name = printable(options.source.where);
  if (options.order == SampleOrder::stratified && plan.source.classes.empty() &&
      !plan.source.has_number_labels) {
    return invalid("{}: has no classes before its files are read (--order stratified)", name);
  }
  if (options.labels == LabelMembers::json) RETURN_IF_ERROR(check_label_members(plan.source));
  if (options.labels == LabelMembers::json && options.format == ShardFormat::tfrecord) {
    return invalid("{}: a record has its label as the number 'cls' (--labels json, --format tfrecord)", name);
  }
  if (options.labels == LabelMembers::json && options.format == ShardFormat::parquet) {
    return invalid("{}: a row has its label as the number 'cls' (--labels json, --format parquet)", name);
  }
  if (options.shrink.shorter_side) RETURN_IF_ERROR(check_single_images(plan.source));
  std::vector<SampleBytes> bytes(plan.source.splits.size());
  for (std::uint32_t split = 0; split < plan.source.splits.size(); ++split) {
    for (const SourceSample& sample : plan.source.samples[split])
      bytes[split].add(sample_bytes(plan.source, sample, options.labels));
  }
  choose_container(bytes, plan);
  for (std::uint32_t split = 0; split < plan.source.splits.size(); ++split) {
    const std::vector<SourceSample>& samples = plan.source.samples[split];
    Result<SplitSizing> sizing = size_split(format("{}: split '{}'", name, plan.source.splits[split]),
                                            samples.size(), bytes[split].in(plan.container), options.sizing);
    if (!sizing.ok()) return sizing.status();
    for (const SourceSample& sample : samples) sizing->files += sample.files;
    std::vector<ShardSpec> shards =
        deal(plan.source, split, sizing->shards, {options.order, options.source.seed, plan.container});
    std::move(shards.begin(), shards.end(), std::back_inserter(plan.shards));
    plan.sizing.push_back(std::move(*sizing));
  }
  plan.outline = outline_of(plan);
  return plan;
}

namespace {

// All shards, by as many threads as wanted; the first error stops the others.
class Crew {
 public:
  Crew(const PackPlan& plan, const Workspace& space, Progress& progress)
      : plan_(plan), space_(space), progress_(progress), facts_(plan.shards.size()) {
    const PackPart part = plan.options.part.value_or(PackPart{});
    for (std::size_t i = part.number - 1; i < plan.shards.size(); i += part.of) {
      mine_.push_back(i);
      files_ += plan.shards[i].files;
    }
  }

  Status run() {
    std::vector<Thread> helpers;
    for (int t = 1; t < plan_.options.threads && static_cast<std::size_t>(t) < mine_.size(); ++t) {
      helpers.emplace_back([this](const StopToken&) {
        // A table of open files of its own: with a shared one every open, read and close of small files waits
        // for the other threads. Works without privileges; where it does not, nothing is lost.
        (void)::unshare(CLONE_FILES);
        work();
      });
    }
    work();
    helpers.clear();
    MutexLock lock(mutex_);
    if (status_.code() == Code::cancelled) {
      return cancelled("{}: stopped: {} of {} shards are done", printable(plan_.options.out.string()),
                       finished_.load(), mine_.size())
          .cure("the same command again: it goes on from there");
    }
    return status_;
  }

  std::uint64_t kept() const { return kept_; }
  std::uint64_t finished() const { return finished_; }
  std::uint64_t shards() const { return mine_.size(); }
  /// REQUIRES: run() was ok. Empty ones are another part's.
  std::vector<ShardFacts>& facts() { return facts_; }

 private:
  // A shard that a thread writes.
  struct Lane {
    std::size_t shard = 0;
    std::unique_ptr<ShardWriting> writing;
    bool has_work() const { return writing && !writing->lane().is_empty(); }
  };

  // Two shards in turns where each block gets a SHA-256 and there are enough of them for all threads: what
  // both have written is hashed in step.
  void work() {
    const bool in_step = plan_.options.hash == formats::BlockHash::sha256 &&
                         mine_.size() >= 2 * static_cast<std::size_t>(plan_.options.threads);
    std::array<Lane, 2> lanes;
    const auto busy = std::span(lanes).first(in_step ? 2 : 1);
    for (;;) {
      for (Lane& lane : busy) {
        if (Status status = advance(lane, in_step ? Hashing::later : Hashing::now); !status.ok()) {
          for (const Lane& begun : busy) {
            if (begun.writing) space_.drop_shard(plan_.shards[begun.shard]);
          }
          return fail(std::move(status));
        }
      }
      if (lanes[0].has_work() && lanes[1].has_work()) {
        Sha256Lane::run_both(lanes[0].writing->lane(), lanes[1].writing->lane());
      } else if (lanes[0].has_work()) {
        lanes[0].writing->lane().run();
      } else if (lanes[1].has_work()) {
        lanes[1].writing->lane().run();
      } else {
        return;
      }
    }
  }

  // Writes samples, of the next shard when one is done, until there is something to hash or nothing is left.
  Status advance(Lane& lane, Hashing hashing) {
    while (!lane.has_work()) {
      if (!lane.writing) RETURN_IF_ERROR(begin_next(lane, hashing));
      if (!lane.writing) return {};
      if (!lane.writing->is_complete()) {
        RETURN_IF_ERROR(lane.writing->write_next());
        continue;
      }
      OK_OR_RETURN(facts, space_.finish_shard(plan_.shards[lane.shard], *lane.writing));
      facts_[lane.shard] = std::move(facts);
      lane.writing.reset();
      ++finished_;
    }
    return {};
  }

  // The next shard that is not there yet; none when all are taken.
  Status begin_next(Lane& lane, Hashing hashing) {
    for (std::size_t at = next_++; at < mine_.size(); at = next_++) {
      lane.shard = mine_[at];
      const ShardSpec& spec = plan_.shards[lane.shard];
      if (std::optional<ShardFacts> before = space_.finished(spec.file)) {
        facts_[lane.shard] = std::move(*before);
        ++kept_;
        ++finished_;
        done_files_ += spec.files;
        continue;
      }
      OK_OR_RETURN(
          writing,
          space_.begin_shard(plan_, spec, [this](std::uint64_t bytes) { return file_done(bytes); }, hashing));
      lane.writing = std::move(writing);
      return {};
    }
    return {};
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
    next_ = mine_.size();
    MutexLock lock(mutex_);
    if (status_.ok() || (status_.code() == Code::cancelled && status.code() != Code::cancelled)) {
      status_ = std::move(status);
    }
  }

  const PackPlan& plan_;
  const Workspace& space_;
  Progress& progress_;
  std::vector<std::size_t> mine_;  // the shards of this part
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

}  // namespace

Result<PackSummary> run_pack(const PackPlan& plan, Progress& progress) {
  OK_OR_RETURN(space, Workspace::open(plan.options.out, plan.outline, plan.options.part));
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
  summary.shards_done = crew.shards();
  if (plan.options.part) return summary;
  Result<Assembly> whole = assemble(plan.outline, crew.facts());
  if (!whole.ok()) {
    space.discard();  // the source must change first, and then nothing of this is of use
    return whole.status();
  }
  RETURN_IF_ERROR(space.publish(whole->manifest, whole->index, whole->left_out_csv));
  summary.left_out = whole->left_out;
  summary.manifest = std::move(whole->manifest);
  return summary;
}

Result<PackSummary> merge_parts(const Path& out) {
  OK_OR_RETURN(space, Workspace::open_for_merge(out));
  PackSummary summary;
  if (space.state() == Workspace::State::published) {
    RETURN_IF_ERROR(space.clean());
    OK_OR_RETURN(manifest, formats::read_manifest(out));
    summary.manifest = std::move(manifest);
    summary.left_out = counted(summary.manifest.left_out);
    return summary;
  }
  const Outline& outline = space.outline();
  std::vector<ShardFacts> facts;
  std::vector<std::string> missing;
  std::set<std::size_t> parts;
  for (std::size_t i = 0; i < outline.shards.size(); ++i) {
    if (std::optional<ShardFacts> shard = space.finished(outline.shards[i].file)) {
      facts.push_back(std::move(*shard));
      continue;
    }
    missing.push_back(outline.shards[i].file);
    parts.insert(i % outline.parts + 1);
  }
  if (!missing.empty()) {
    std::vector<std::string> numbers;
    for (std::size_t part : parts) numbers.push_back(format("{}/{}", part, outline.parts));
    return not_found("{}: {} of {} shards are not packed yet, the first is {}", printable(out.string()),
                     missing.size(), outline.shards.size(), missing[0])
        .cure("stoker data pack ... --part {}", join(numbers, ", --part "));
  }
  OK_OR_RETURN(whole, assemble(outline, facts));
  RETURN_IF_ERROR(space.publish(whole.manifest, whole.index, whole.left_out_csv));
  summary.left_out = whole.left_out;
  summary.shards_done = outline.shards.size();
  summary.manifest = std::move(whole.manifest);
  return summary;
}

}  // namespace stoker::data
