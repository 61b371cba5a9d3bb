#include "core/feed.h"

#include <nanobind/stl/string.h>
#include <unistd.h>

#include "base/enum_names.h"
#include "base/process.h"
#include "core/errors.h"
#include "core/recipes.h"
#include "image/transform/transform.h"
#include "loader/mixed_source.h"

namespace stoker::python {
namespace nb = nanobind;
namespace {

Result<std::unique_ptr<dataset::LocalShardSource>> open_split(const std::string& path,
                                                              const std::optional<std::string>& split) {
  if (split) return dataset::LocalShardSource::open(path, *split);
  STOKER_ASSIGN_OR_RETURN(manifest, dataset::read_manifest(path));
  const bool has_one = manifest.splits.size() == 1;
  return dataset::LocalShardSource::open(path, has_one ? "" : "train");
}

// Several datasets, combined into one source.
struct Mixed {
  std::vector<std::unique_ptr<dataset::LocalShardSource>> parts;
  std::unique_ptr<loader::MixedSource> whole;
};

Result<std::shared_ptr<dataset::ShardSource>> open_source(
    const FeedOptions& options, loader::LoaderOptions& o,
    std::vector<const dataset::LocalShardSource*>& local) {
  if (options.paths.size() == 1) {
    STOKER_ASSIGN_OR_RETURN(source, open_split(options.paths[0], options.split));
    source->set_chunk_cache_limit({options.chunk_cache});
    local.push_back(source.get());
    if (!options.weights.empty()) {
      STOKER_ASSIGN_OR_RETURN(weights, loader::WeightTable::create(options.weights));
      o.weights = std::make_shared<const loader::WeightTable>(std::move(weights));
      o.shuffle = Shuffle::weighted;
    }
    return std::shared_ptr<dataset::ShardSource>(std::move(source));
  }
  auto mixed = std::make_shared<Mixed>();
  std::vector<const dataset::ShardSource*> sources;
  for (const std::string& path : options.paths) {
    STOKER_ASSIGN_OR_RETURN(part, open_split(path, options.split));
    part->set_chunk_cache_limit({options.chunk_cache});
    local.push_back(part.get());
    sources.push_back(part.get());
    mixed->parts.push_back(std::move(part));
  }
  STOKER_ASSIGN_OR_RETURN(whole, loader::MixedSource::create(sources));
  if (!options.weights.empty()) {
    STOKER_ASSIGN_OR_RETURN(parts, whole->parts(options.weights));
    o.mixture = std::move(parts);
    o.shuffle = Shuffle::mixed;
  }
  mixed->whole = std::move(whole);
  return std::shared_ptr<dataset::ShardSource>(mixed, mixed->whole.get());
}

loader::Remainder remainder_named(const std::string& name) {
  if (name == "pad") return loader::Remainder::pad;
  return name == "drop" ? loader::Remainder::drop : loader::Remainder::exact;
}

loader::LoaderOptions loader_options(const FeedOptions& o) {
  loader::LoaderOptions options;
  options.seed = o.seed;
  options.shuffle = enum_named<Shuffle>(o.shuffle).value_or(Shuffle::every_epoch);
  options.window = o.window;
  options.rank = {Rank{o.rank}, WorldSize{o.world}, remainder_named(o.remainder)};
  options.batch = o.batch;
  options.last_batch = o.drops_last ? loader::LastBatch::drop : loader::LastBatch::keep;
  options.check = o.checks ? loader::Check::crc : loader::Check::none;
  options.on_damage = o.skips ? loader::DamagePolicy::skip : loader::DamagePolicy::stop;
  options.max_skipped = o.max_skipped;
  options.cache = {o.cache};
  read_content(o.content, options);
  if (options.content == loader::Content::images) {
    options.transform = {operations_of(o.transform), element_of(o.element), o.layout};
  }
  options.mixing = o.mixing;
  return options;
}

// Amount of data to load; errors as Transform::create.
Result<loader::LoaderWorkload> loader_workload(const dataset::ShardSource& source,
                                               const loader::LoaderOptions& options) {
  loader::LoaderWorkload workload;
  workload.samples = source.samples().size();
  // Decompressed size: caches keep decompressed data.
  for (const dataset::IndexSection* shard : source.samples().sections())
    workload.stored.value += shard->offset_limit();
  workload.batch = options.batch;
  workload.sample.value = workload.stored.value / std::max<std::uint64_t>(1, workload.samples);
  if (options.content == loader::Content::images) {
    STOKER_ASSIGN_OR_RETURN(transform, image::Transform::create(options.transform));
    workload.sample.value = transform.bytes();
  }
  return workload;
}

loader::OrderState state_of(const State& state) {
  const auto& [seed, epoch, position, samples] = state;
  return {.seed = seed, .epoch = epoch, .position = position, .samples = samples};
}

}  // namespace

Feed::Feed(const FeedOptions& options, const std::optional<State>& resume) : pid_(::getpid()) {
  loader::LoaderOptions o = loader_options(options);
  nb::gil_scoped_release released;
  const Status opened = open(options, o, resume);
  if (opened.ok()) return;
  nb::gil_scoped_acquire acquired;
  raise(opened);
}

Status Feed::open(const FeedOptions& options, loader::LoaderOptions& o, const std::optional<State>& resume) {
  STOKER_ASSIGN_OR_RETURN(source, open_source(options, o, local_));
  source_ = std::move(source);
  const loader::Machine machine = loader::detect_machine("/", current_environment());
  STOKER_ASSIGN_OR_RETURN(workload, loader_workload(*source_, o));
  advice_ = loader::advise(machine, workload, options.wanted);
  o.threads = advice_.threads;
  o.prefetch = advice_.prefetch;
  o.resident = advice_.resident;
  const auto small = loader::check_chunk_cache(*source_, {options.chunk_cache});
  // Resident data is decompressed once.
  if (small && o.resident.value < workload.stored.value)
    small_cache_ = stoker::format("{} (chunk_cache)\n  try: chunk_cache={}", small->message.english(),
                                  small->recommended.value);
  for (const loader::ComponentField& field : o.fields) kinds_.push_back(field.kind);
  if (options.page_locked) {
    STOKER_ASSIGN_OR_RETURN(memory, PageLockedMemory::open(*options.page_locked));
    o.allocator = std::move(memory);
  }
  const std::optional<loader::OrderState> from =
      resume ? std::optional<loader::OrderState>(state_of(*resume)) : std::nullopt;
  STOKER_ASSIGN_OR_RETURN(loader, loader::Loader::open(*source_, o, from));
  loader_ = std::move(loader);
  return Status();
}

void Feed::close() {
  if (!loader_) return;
  if (::getpid() != pid_) {
    // A fork copies this object but not its threads: joining them would wait for ever.
    static_cast<void>(new std::unique_ptr<loader::Loader>(std::move(loader_)));
    static_cast<void>(new std::shared_ptr<dataset::ShardSource>(source_));
    return;
  }
  nb::gil_scoped_release released;
  loader_->cancel();
  const std::lock_guard lock(mutex_);
  loader_.reset();
}

loader::Loader& Feed::loader() {
  if (!loader_) raise(cancelled("loader: closed"));
  if (::getpid() != pid_) {
    raise(
        invalid(
            "loader: created before a fork, which does not copy threads (created by process {}, used by {})",
            pid_, ::getpid())
            .cure("create the loader in the process that iterates over it"));
  }
  return *loader_;
}

nb::object Feed::next(double timeout_s) {
  loader();
  const Deadline deadline = timeout_s > 0
                                ? Deadline::after(std::chrono::duration_cast<Duration>(Seconds(timeout_s)))
                                : Deadline::never();
  for (;;) {
    auto next = [&]() -> Result<std::optional<loader::Batch>> {
      nb::gil_scoped_release released;
      const std::lock_guard lock(mutex_);
      if (!loader_) return cancelled("loader: closed");
      return loader_->next(Deadline::after(std::min<Duration>(kSignalPollInterval, deadline.left())));
    }();
    if (next.ok()) {
      if (!*next) return nb::none();
      return nb::cast(new PyBatch(std::move(**next), source_, kinds_), nb::rv_policy::take_ownership);
    }
    if (next.error().code() != Code::timeout || deadline.passed()) raise(next.error());
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

void Feed::restart(const State& state) {
  loader();
  const Status status = [&] {
    nb::gil_scoped_release released;
    const std::lock_guard lock(mutex_);
    return loader_ ? loader_->restart(state_of(state)) : cancelled("loader: closed");
  }();
  if (!status.ok()) raise(status);
}

State Feed::state() {
  const loader::OrderState& state = loader().state();
  return {state.seed, state.epoch, state.position, state.samples};
}

std::uint64_t Feed::batches_per_epoch() { return loader().batches_per_epoch(); }
std::uint64_t Feed::batches_left() { return loader().batches_left(); }
std::string Feed::limiting_stage() { return loader::limiting_stage(loader().stats()); }

nb::dict Feed::stats() {
  const loader::LoaderStats stats = loader().stats();
  nb::dict dict;
  dict["wait_s"] = stats.wait_s;
  dict["idle_s"] = stats.idle_s;
  dict["work_s"] = stats.work_s;
  dict["read_s"] = stats.read_s;
  dict["check_s"] = stats.check_s;
  dict["decode_s"] = stats.decode_s;
  dict["transform_s"] = stats.transform_s;
  dict["batches"] = stats.batches;
  dict["samples"] = stats.samples;
  dict["skipped"] = stats.skipped;
  dict["cached"] = stats.cached;
  dict["cache_bytes"] = stats.cache_used.value;
  dict["read_bytes"] = stats.read.value;
  std::uint64_t chunks = 0;
  for (const dataset::LocalShardSource* source : local_) chunks += source->chunk_cache_counts().loads;
  dict["chunks"] = chunks;
  return dict;
}

nb::list Feed::skipped() {
  nb::list list;
  for (const loader::SkippedSample& skipped : loader().skipped()) {
    nb::dict dict;
    dict["index"] = skipped.sample;
    dict["epoch"] = skipped.epoch.value;
    dict["error"] = nb::steal(
        PyUnicode_DecodeUTF8(skipped.why.data(), static_cast<Py_ssize_t>(skipped.why.size()), "replace"));
    list.append(dict);
  }
  return list;
}

nb::list Feed::classes() const {
  nb::list list;
  for (const std::string& name : source_->manifest().schema.classes)
    list.append(nb::steal(
        PyUnicode_DecodeUTF8(name.data(), static_cast<Py_ssize_t>(name.size()), "surrogateescape")));
  return list;
}

}  // namespace stoker::python
