#include "cli/life/node_datasets.h"

#include <algorithm>

#include "base/hash.h"
#include "loader/advice.h"
#include "loader/shard_order.h"
#include "rank/environment.h"
#include "stage/cache/decision.h"

namespace stoker::cli {
namespace {

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

}  // namespace

NodeDatasets::~NodeDatasets() {
  datasets_.clear();
  if (memory_) (void)std::move(*memory_).remove();
}

Result<stage::TransferStats> NodeDatasets::place(const Path& staged,
                                                 std::optional<stage::BroadcastNodes> nodes,
                                                 const std::string& host, Output* notes, Progress& progress) {
  nodes_ = std::move(nodes);
  stage::TransferStats sum;
  for (const auto& [name, source] : job_.data) {
    if (source.place == job::DataPlace::shared) continue;
    STOKER_ASSIGN_OR_RETURN(request, request_for(source, job_.train && job_.train->training_data == name));
    STOKER_ASSIGN_OR_RETURN(placed, stage::place_dataset(request, progress));
    if (notes) notes->note("{}: data.{}: {}", host, name, placed.note);
    sum.files += placed.copied;
    sum.bytes += placed.copied_bytes;
    sum.received_bytes += placed.received_bytes;
    sum.cached_bytes += placed.hit_bytes;
    sum.fingerprint += stage::fingerprint_of(name, 0, crc32c(placed.version));
    if (placed.folder) {
      STOKER_RETURN_IF_ERROR(make_directories(staged / rank::kDataFolder));
      STOKER_RETURN_IF_ERROR(stage::replace_link(*placed.folder, staged / rank::kDataFolder / name));
    }
    datasets_.push_back(std::move(placed));
  }
  return sum;
}

void NodeDatasets::refresh() const {
  for (const stage::PlacedDataset& placed : datasets_) {
    if (placed.lease) placed.lease->refresh();
  }
}

Result<stage::PlaceRequest> NodeDatasets::request_for(const job::DataSource& source, bool is_training) {
  const Environment environment = current_environment();
  const Path base = job_.stage.directory ? *job_.stage.directory / stage::cache_name() : Path();
  stage::PlaceRequest request{.source = source.source,
                              .split = source.split,
                              .cache = stage::cache_path(base, environment),
                              .is_decided = source.place != job::DataPlace::automatic,
                              .epochs = job_.train ? job_.train->epochs : stage::kAssumedEpochs,
                              .memory_room = loader::detect_machine("/", environment).memory.value,
                              .nodes = nodes_};
  if (is_training) {
    request.order = [train = *job_.train, split = source.split](const dataset::OpenDataset& opened) {
      return order_of_shards(train, opened, split);
    };
  }
  if (source.place != job::DataPlace::memory) return request;
  if (!memory_) {
    STOKER_ASSIGN_OR_RETURN(folder, stage::NodeFolder::create(kMemoryDisk, run_id_));
    memory_.emplace(std::move(folder));
  }
  request.cache = memory_->path() / "cache";
  request.quota = {request.memory_room / 2};  // the ranks need memory too
  return request;
}

}  // namespace stoker::cli
