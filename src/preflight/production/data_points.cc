#include "preflight/production/data_points.h"

#include "preflight/production/history.h"
#include "stoker/text.h"

namespace stoker::preflight {
namespace {

constexpr std::uint64_t kSmallShard = 4'000'000;  // a smaller shard is not worth a file
constexpr std::uint64_t kFewShards = 16;

std::uint64_t shards_of(const dataset::Manifest& manifest) {
  std::uint64_t shards = 0;
  for (const dataset::SplitInfo& split : manifest.splits) shards += split.shards.size();
  return shards;
}

std::string file_of(const JobDataset& data) {
  return printable((data.source / dataset::kManifestFile).string());
}

// Without `data` the program may read anything.
bool has_no_data(const ProductionFacts& facts, ProductionPoint& point) {
  if (!facts.data.empty()) return false;
  point.evidence.push_back(message("the job has no data (data)"));
  point.cure = message("stoker data pack FOLDER packed; data: {{train: {{source: packed}}}}");
  return true;
}

}  // namespace

ProductionPoint data_sharded(const ProductionFacts& facts) {
  ProductionPoint point{
      .name = "data-sharded", .question = "is the dataset in shards", .evidence = {}, .cure = {}};
  if (has_no_data(facts, point)) return point;
  point.answer = PointAnswer::yes;
  for (const JobDataset& data : facts.data) {
    if (!data.manifest) {
      point.answer = PointAnswer::no;
      point.evidence.push_back(
          message("{}: {} is not a packed dataset", data.name, printable(data.source.string())));
      point.cure = format("stoker data pack FOLDER {}", shell_quote(data.source.string()));
      continue;
    }
    const std::uint64_t shards = shards_of(*data.manifest);
    const std::uint64_t each = shards == 0 ? 0 : data.manifest->bytes() / shards;
    const std::string size = rounded(ByteCount{each});
    point.evidence.push_back(
        shards == 1 ? message("{}: 1 shard of {} ({})", data.name, size, file_of(data))
                    : message("{}: {} shards of {} ({})", data.name, grouped(shards), size, file_of(data)));
    if (shards > kFewShards && each < kSmallShard) {
      point.answer = PointAnswer::no;
      point.cure = format("stoker data pack {} packed --shard-size 100MB", shell_quote(data.source.string()));
    }
  }
  return point;
}

ProductionPoint data_hashed(const ProductionFacts& facts) {
  ProductionPoint point{.name = "data-hashed",
                        .question = "is the data versioned by a manifest with hashes",
                        .evidence = {},
                        .cure = {}};
  if (has_no_data(facts, point)) return point;
  point.answer = PointAnswer::yes;
  for (const JobDataset& data : facts.data) {
    if (!data.manifest) {
      point.answer = PointAnswer::no;
      point.evidence.push_back(message("{}: {} has no manifest", data.name, printable(data.source.string())));
      point.cure = format("stoker data pack FOLDER {}", shell_quote(data.source.string()));
      continue;
    }
    point.evidence.push_back(message("{}: version {}, blocks by {} ({})", data.name,
                                     data.manifest->short_version(),
                                     to_text(data.manifest->schema.block_hash), file_of(data)));
  }
  return point;
}

ProductionPoint data_of_run(const ProductionFacts& facts) {
  ProductionPoint point{.name = "data-of-run",
                        .question = "is the data version recorded with the run",
                        .evidence = {},
                        .cure = {}};
  if (has_no_data(facts, point)) return point;
  const PastRun* run = facts.newest();
  if (run == nullptr) {
    point.evidence.push_back(message("the job has not run yet"));
    point.cure = message("stoker run, or stoker submit");
    return point;
  }
  const std::string file = printable((run->folder.capsule() / "data.json").string());
  point.answer = PointAnswer::yes;
  for (const JobDataset& data : facts.data) {
    const record::DataInfo* recorded = nullptr;
    if (run->capsule.data) {
      for (const record::DataInfo& each : *run->capsule.data) {
        if (each.name == data.name && !each.version.empty()) recorded = &each;
      }
    }
    if (recorded == nullptr) {
      point.answer = PointAnswer::no;
      point.evidence.push_back(message("{}: no version in {}", data.name, file));
      point.cure = message("stoker data pack FOLDER packed, and run again");
      break;
    }
    point.evidence.push_back(
        message("{}: version {} in {}", data.name, recorded->version.substr(0, 12), file));
    if (data.manifest && data.manifest->version != recorded->version) {
      point.answer = PointAnswer::no;
      point.evidence.push_back(message("{}: is version {} now", data.name, data.manifest->short_version()));
      point.cure = message("run again with the current data");
    }
  }
  return point;
}

ProductionPoint stage_cleaned(const ProductionFacts& facts) {
  ProductionPoint point{.name = "cache-purged",
                        .question = "is data cached on node-local disks and removed again",
                        .evidence = {},
                        .cure = {}};
  if (!facts.job.stage.unpack.empty() || !facts.job.stage.copy.empty()) {
    point.answer = PointAnswer::yes;
    point.evidence.push_back(message("sources staged to every node and removed after each attempt: {} ({})",
                                     facts.job.stage.unpack.size() + facts.job.stage.copy.size(),
                                     facts.job.origins.where("stage.unpack") == "default"
                                         ? facts.job.origins.where("stage.copy")
                                         : facts.job.origins.where("stage.unpack")));
    return point;
  }
  if (facts.data.empty()) {
    point.evidence.push_back(message("the job has neither data nor files to stage (data, stage)"));
    point.cure = "stage: {unpack: [data.tar]}";
    return point;
  }
  point.answer = PointAnswer::no;
  for (const JobDataset& data : facts.data)
    point.evidence.push_back(
        message("{}: read from {} in every epoch", data.name, printable(data.source.string())));
  point.cure = format("stage: {{copy: [{}]}}", facts.data.front().source.filename().string());
  return point;
}

}  // namespace stoker::preflight
