#include "core/feed.h"

#include <nanobind/stl/string.h>
#include <unistd.h>

#include "base/process.h"
#include "core/errors.h"
#include "core/recipes.h"
#include "data/mixed_source.h"

namespace stoker::python {
namespace nb = nanobind;
namespace {

Result<std::unique_ptr<formats::LocalShardSource>> open_split(const std::string& path,
                                                              const std::optional<std::string>& split) {
  if (split) return formats::LocalShardSource::open(path, *split);
  OK_OR_RETURN(manifest, formats::read_manifest(path));
  const bool has_one = manifest.splits.size() == 1;
  return formats::LocalShardSource::open(path, has_one ? "" : "train");
}

// Several datasets, and what they are read as.
struct Mixed {
  std::vector<std::unique_ptr<formats::LocalShardSource>> parts;
  std::unique_ptr<data::MixedSource> whole;
};

Result<std::shared_ptr<formats::ShardSource>> open_source(
    const FeedOptions& options, data::LoaderOptions& o,
    std::vector<const formats::LocalShardSource*>& local) {
  if (options.paths.size() == 1) {
    OK_OR_RETURN(source, open_split(options.paths[0], options.split));
    source->keep_chunks({options.chunk_cache});
    local.push_back(source.get());
    if (!options.weights.empty()) {
      OK_OR_RETURN(weights, data::WeightTable::create(options.weights));
      o.weights = std::make_shared<const data::WeightTable>(std::move(weights));
      o.shuffle = data::Shuffle::weighted;
    }
    return std::shared_ptr<formats::ShardSource>(std::move(source));
  }
  auto mixed = std::make_shared<Mixed>();
  std::vector<const formats::ShardSource*> sources;
  for (const std::string& path : options.paths) {
    OK_OR_RETURN(part, open_split(path, options.split));
    part->keep_chunks({options.chunk_cache});
    local.push_back(part.get());
    sources.push_back(part.get());
    mixed->parts.push_back(std::move(part));
  }
  OK_OR_RETURN(whole, data::MixedSource::create(sources));
  if (!options.weights.empty()) {
    OK_OR_RETURN(parts, whole->parts(options.weights));
    o.mixture = std::move(parts);
    o.shuffle = data::Shuffle::mixed;
  }
  mixed->whole = std::move(whole);
  return std::shared_ptr<formats::ShardSource>(mixed, mixed->whole.get());
}

data::Shuffle shuffle_named(const std::string& name) {
  if (name == "none") return data::Shuffle::none;
  if (name == "full") return data::Shuffle::full;
  if (name == "by_chunk") return data::Shuffle::by_chunk;
  return name == "by_shard" ? data::Shuffle::by_shard : data::Shuffle::every_epoch;
}

data::Remainder remainder_named(const std::string& name) {
  if (name == "pad") return data::Remainder::pad;
  return name == "drop" ? data::Remainder::drop : data::Remainder::exact;
}

data::LoaderOptions loader_options(const FeedOptions& o) {
  data::LoaderOptions options;
  options.seed = o.seed;
  options.shuffle = shuffle_named(o.shuffle);
  options.window = o.window;
  options.rank = {Rank{o.rank}, WorldSize{o.world}, remainder_named(o.remainder)};
  options.batch = o.batch;
  options.last_batch = o.drops_last ? data::LastBatch::drop : data::LastBatch::keep;
  options.check = o.checks ? data::Check::crc : data::Check::none;
  options.faults = o.skips ? data::Faults::skip : data::Faults::stop;
  options.most_faults = o.most_faults;
  options.cache = {o.cache};
  read_content(o.content, options);
  if (options.content == data::Content::images) {
    options.transform = {operations_of(o.transform), element_of(o.element), o.layout};
  }
  options.mixing = o.mixing;
  return options;
}

// How much there is to load; fails as Transform::create does.
Result<data::Feeding> feeding_of(const formats::ShardSource& source, const data::LoaderOptions& options) {
  data::Feeding feeding;
  feeding.samples = source.samples().size();
  // Unpacked: that is what would be kept.
  for (const formats::IndexSection* shard : source.samples().sections())
    feeding.stored.value += shard->reach();
  feeding.batch = options.batch;
  feeding.sample.value = feeding.stored.value / std::max<std::uint64_t>(1, feeding.samples);
  if (options.content == data::Content::images) {
    OK_OR_RETURN(transform, data::Transform::create(options.transform));
    feeding.sample.value = transform.bytes();
  }
  return feeding;
}

data::OrderState state_of(const State& state) {
  const auto& [seed, epoch, position, samples] = state;
  return {.seed = seed, .epoch = epoch, .position = position, .samples = samples};
}

}  // namespace

Feed::Feed(const FeedOptions& options, const std::optional<State>& resume) : pid_(::getpid()) {
  data::LoaderOptions o = loader_options(options);
  nb::gil_scoped_release released;
  const Status opened = open(options, o, resume);
  if (opened.ok()) return;
  nb::gil_scoped_acquire acquired;
  raise(opened);
}

Status Feed::open(const FeedOptions& options, data::LoaderOptions& o, const std::optional<State>& resume) {
  OK_OR_RETURN(source, open_source(options, o, local_));
  source_ = std::move(source);
  const data::Machine machine = data::this_machine("/", current_environment());
  OK_OR_RETURN(feeding, feeding_of(*source_, o));
  advice_ = data::advise(machine, feeding, options.wanted);
  o.threads = advice_.threads;
  o.prefetch = advice_.prefetch;
  o.resident = advice_.resident;
  const auto small = data::small_cache(*source_, {options.chunk_cache});
  // What stays in memory is unpacked once.
  if (small && o.resident.value < feeding.stored.value)
    small_cache_ =
        stoker::format("{} (chunk_cache)\n  try: chunk_cache={}", small->what, small->enough.value);
  for (const data::Field& field : o.fields) kinds_.push_back(field.kind);
  const std::optional<data::OrderState> from =
      resume ? std::optional<data::OrderState>(state_of(*resume)) : std::nullopt;
  OK_OR_RETURN(loader, data::Loader::open(*source_, o, from));
  loader_ = std::move(loader);
  return Status();
}

void Feed::close() {
  if (!loader_) return;
  if (::getpid() != pid_) {
    // A fork has copied this object, not its threads: joining them would wait for ever.
    static_cast<void>(new std::unique_ptr<data::Loader>(std::move(loader_)));
    static_cast<void>(new std::shared_ptr<formats::ShardSource>(source_));
    return;
  }
  nb::gil_scoped_release released;
  loader_->cancel();
  const std::lock_guard lock(mutex_);
  loader_.reset();
}

data::Loader& Feed::loader() {
  if (!loader_) raise(cancelled("loader: it was closed"));
  if (::getpid() != pid_) {
    raise(
        invalid("loader: it was made before a fork, which copies no threads (made by process {}, used by {})",
                pid_, ::getpid())
            .cure("make the loader in the process that iterates over it"));
  }
  return *loader_;
}

nb::object Feed::next(double timeout_s) {
  loader();
  const Deadline deadline = timeout_s > 0
                                ? Deadline::after(std::chrono::duration_cast<Duration>(Seconds(timeout_s)))
                                : Deadline::never();
  for (;;) {
    auto next = [&]() -> Result<std::optional<data::Batch>> {
      nb::gil_scoped_release released;
      const std::lock_guard lock(mutex_);
      if (!loader_) return cancelled("loader: it was closed");
      return loader_->next(Deadline::after(std::min<Duration>(kSignalSlice, deadline.left())));
    }();
    if (next.ok()) {
      if (!*next) return nb::none();
      return nb::cast(new Batch(std::move(**next), source_, kinds_), nb::rv_policy::take_ownership);
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
    return loader_ ? loader_->restart(state_of(state)) : cancelled("loader: it was closed");
  }();
  if (!status.ok()) raise(status);
}

State Feed::state() {
  const data::OrderState& state = loader().state();
  return {state.seed, state.epoch, state.position, state.samples};
}

std::uint64_t Feed::batches_per_epoch() { return loader().batches_per_epoch(); }
std::uint64_t Feed::batches_left() { return loader().batches_left(); }
std::string Feed::limiting_stage() { return data::limiting_stage(loader().stats()); }

nb::dict Feed::stats() {
  const data::LoaderStats stats = loader().stats();
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
  for (const formats::LocalShardSource* source : local_) chunks += source->chunk_counts().loads;
  dict["chunks"] = chunks;
  return dict;
}

nb::list Feed::skipped() {
  nb::list list;
  for (const data::SkippedSample& skipped : loader().skipped()) {
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
