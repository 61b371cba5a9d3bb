#include "cli/life/node_datasets.h"

#include <algorithm>
#include <atomic>
#include <functional>

#include "base/hash.h"
#include "base/thread.h"
#include "cli/site/node_cache.h"
#include "loader/advice.h"
#include "loader/shard_order.h"
#include "rank/environment.h"
#include "stage/cache/decision.h"

namespace stoker::cli {
namespace {

using namespace std::chrono_literals;

constexpr const char* kMemoryDisk = "/dev/shm";

// The training needs the shards in the order of its first epoch.
std::vector<std::uint32_t> order_of_shards(const job::TrainOptions& train, const dataset::OpenDataset& opened,
                                           const std::optional<std::string>& split) {
  const dataset::Manifest& manifest = opened.manifest;
  std::vector<const dataset::IndexSection*> sections;
  std::size_t next = 0;
  for (const dataset::SplitInfo& one : manifest.splits) {
    for (std::size_t i = 0; i < one.shards.size(); ++i, ++next) {
      if (!split || one.name == *split) sections.push_back(&opened.index.sections()[next]);
    }
  }
  loader::OrderOptions order{.seed = train.seed, .shuffle = train.shuffle};
  if (train.window) order.window = *train.window;
  return loader::shards_by_first_use(dataset::SampleTable(std::move(sections), manifest.schema), order,
                                     Epoch{0});
}

bool starts_early(const job::Job& job, const job::DataSource& source) {
  if (source.start == job::DataStart::automatic) return job.train.has_value();
  return source.start == job::DataStart::first_shards;
}

std::string note_of(const Result<stage::PlacedDataset>& placed) {
  if (placed.ok()) return placed->note;
  if (placed.status().code() == Code::cancelled) return "copying ended with the run";
  return std::string(placed.status().message());
}

}  // namespace

bool starts_beside_copy(const job::Job& job) {
  return std::ranges::any_of(job.data, [&](const auto& named) {
    return named.second.place != job::DataPlace::shared && starts_early(job, named.second);
  });
}

// One dataset, placed by a thread, which the ranks need not wait for.
class NodeDatasets::Placement final : public Progress {
 public:
  /// `on_end` is called from the thread.
  Placement(stage::PlaceRequest request, bool is_early, Progress& progress,
            std::function<void(const Result<stage::PlacedDataset>&)> on_end)
      : request_(std::move(request)), progress_(progress), on_end_(std::move(on_end)) {
    if (is_early) {
      request_.on_usable = [this](const stage::UsableDataset& usable) {
        const MutexLock lock(mutex_);
        usable_ = usable;
        changed_.notify_all();
      };
    }
    thread_ = Thread([this](const StopToken&) { place(); });
  }
  Placement(const Placement&) = delete;
  Placement& operator=(const Placement&) = delete;
  ~Placement() override { stop(); }

  /// Until the ranks may start: what they read, if it is in the cache.
  Result<stage::UsableDataset> wait_until_usable() {
    const MutexLock lock(mutex_);
    while (!usable_ && !ended_) changed_.wait(mutex_, Deadline::after(1s));
    if (usable_) return *usable_;
    STOKER_RETURN_IF_ERROR(ended_->status());
    return stage::UsableDataset{(*ended_)->folder.value_or(Path()), (*ended_)->version};
  }
  bool has_ended() const {
    const MutexLock lock(mutex_);
    return ended_.has_value();
  }
  /// What was copied, nothing if it failed. REQUIRES: has_ended().
  stage::TransferStats stats() const {
    const MutexLock lock(mutex_);
    if (!ended_->ok()) return {};
    const stage::PlacedDataset& placed = **ended_;
    return {.files = placed.copied,
            .bytes = placed.copied_bytes,
            .received_bytes = placed.received_bytes,
            .cached_bytes = placed.hit_bytes};
  }
  void refresh() const {
    const MutexLock lock(mutex_);
    if (ended_ && ended_->ok() && (*ended_)->lease) (*ended_)->lease->refresh();
  }
  void stop() {
    is_stopped_ = true;
    thread_.join();
  }

  void report(const ProgressState& state) override { progress_.report(state); }
  bool stop_requested() const override { return is_stopped_ || progress_.stop_requested(); }

 private:
  void place() {
    auto placed = stage::place_dataset(request_, *this);
    bool is_used = false;
    {
      const MutexLock lock(mutex_);
      is_used = usable_.has_value();
    }
    // An error before the ranks start is the result of wait_until_usable().
    if (placed.ok() || is_used) on_end_(placed);
    const MutexLock lock(mutex_);
    ended_.emplace(std::move(placed));
    changed_.notify_all();
  }

  stage::PlaceRequest request_;
  Progress& progress_;
  const std::function<void(const Result<stage::PlacedDataset>&)> on_end_;
  std::atomic<bool> is_stopped_{false};
  mutable Mutex mutex_;
  Condition changed_;
  std::optional<stage::UsableDataset> usable_ STOKER_GUARDED_BY(mutex_);
  std::optional<Result<stage::PlacedDataset>> ended_ STOKER_GUARDED_BY(mutex_);
  Thread thread_;
};

NodeDatasets::NodeDatasets(const job::Job& job, RunNode node, Output* notes, Progress& progress)
    : job_(job), node_(std::move(node)), notes_(notes), progress_(progress) {}

NodeDatasets::~NodeDatasets() {
  datasets_.clear();
  if (memory_) (void)std::move(*memory_).remove();
}

Result<stage::TransferStats> NodeDatasets::place(const Path& staged,
                                                 std::optional<stage::BroadcastNodes> nodes) {
  nodes_ = std::move(nodes);
  stage::TransferStats sum;
  for (const std::string& name : names()) {
    const job::DataSource& source = job_.data.at(name);
    STOKER_ASSIGN_OR_RETURN(request, request_for(source, name == training_data()));
    datasets_.push_back(std::make_unique<Placement>(
        std::move(request), starts_early(job_, source), progress_, [this, name](const auto& placed) {
          if (notes_) notes_->note("{}: data.{}: {}", node_.host, name, note_of(placed));
        }));
    Placement& placement = *datasets_.back();
    STOKER_ASSIGN_OR_RETURN(usable, placement.wait_until_usable());
    if (placement.has_ended()) {
      sum += placement.stats();
    } else {
      rest_.push_back(&placement);
    }
    sum.fingerprint += stage::fingerprint_of(name, 0, crc32c(usable.version));
    if (usable.folder.empty()) continue;
    STOKER_RETURN_IF_ERROR(make_directories(staged / rank::kDataFolder));
    STOKER_RETURN_IF_ERROR(stage::replace_link(usable.folder, staged / rank::kDataFolder / name));
  }
  return sum;
}

std::optional<stage::TransferStats> NodeDatasets::take_rest() {
  if (rest_.empty() || !std::ranges::all_of(rest_, &Placement::has_ended)) return std::nullopt;
  stage::TransferStats sum;
  for (const Placement* placement : rest_) sum += placement->stats();
  rest_.clear();
  return sum;
}

void NodeDatasets::stop() {
  for (const auto& placement : datasets_) placement->stop();
}

void NodeDatasets::refresh() const {
  for (const auto& placement : datasets_) placement->refresh();
}

// That are copied; the training's first.
std::vector<std::string> NodeDatasets::names() const {
  std::vector<std::string> names;
  for (const auto& [name, source] : job_.data) {
    if (source.place != job::DataPlace::shared) names.push_back(name);
  }
  std::ranges::stable_partition(names, [&](const std::string& name) { return name == training_data(); });
  return names;
}

std::string NodeDatasets::training_data() const { return job_.train ? job_.train->training_data : ""; }

Result<stage::PlaceRequest> NodeDatasets::request_for(const job::DataSource& source, bool is_training) {
  const Environment environment = current_environment();
  const Path base = job_.stage.directory ? *job_.stage.directory / stage::cache_name() : Path();
  const NodeCache cache = node_cache(base, job_.site);
  stage::PlaceRequest request{.source = source.source,
                              .split = source.split,
                              .cache = cache.folder,
                              .quota = cache.quota,
                              .is_shared = cache.is_shared,
                              .is_decided = source.place != job::DataPlace::automatic,
                              .epochs = job_.train ? job_.train->epochs : stage::kAssumedEpochs,
                              .memory_room = loader::detect_machine("/", environment).memory.value,
                              .nodes = nodes_};
  if (is_training) {
    // A training that draws from all shards at once would read nearly everything at the source.
    request.needs_order = source.start == job::DataStart::automatic;
    request.order = [train = *job_.train, split = source.split](const dataset::OpenDataset& opened) {
      return order_of_shards(train, opened, split);
    };
  }
  if (source.place != job::DataPlace::memory) return request;
  if (!memory_) {
    STOKER_ASSIGN_OR_RETURN(folder, stage::NodeFolder::create(kMemoryDisk, node_.run_id));
    memory_.emplace(std::move(folder));
  }
  request.cache = memory_->path() / "cache";
  request.quota = {request.memory_room / 2};  // the ranks need memory too
  return request;
}

}  // namespace stoker::cli
