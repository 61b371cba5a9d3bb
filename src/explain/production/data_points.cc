// Questions about data: how they lie, which they are, what is kept of them on the nodes.
#include "base/text.h"
#include "explain/production/history.h"

namespace stoker::explain {
namespace {

constexpr std::uint64_t kSmallShard = 4'000'000;  // below it a shard costs a file more than it gives
constexpr std::uint64_t kFewShards = 16;

std::uint64_t shards_of(const formats::Manifest& manifest) {
  std::uint64_t shards = 0;
  for (const formats::SplitInfo& split : manifest.splits) shards += split.shards.size();
  return shards;
}

std::string file_of(const LookedAtData& data) {
  return printable((data.source / formats::kManifestFile).string());
}

// The job names no data at all: its program may read what it likes.
bool has_no_data(const ProductionFacts& facts, ProductionPoint& point) {
  if (!facts.data.empty()) return false;
  point.evidence.push_back(facts.words.say("the job names no data (data)"));
  point.cure = facts.words.say("stoker data pack FOLDER packed; data: {{train: {{source: packed}}}}");
  return true;
}

}  // namespace

ProductionPoint data_sharded(const ProductionFacts& facts) {
  ProductionPoint point{
      .name = "data-sharded", .question = "is the dataset in shards", .evidence = {}, .cure = {}};
  if (has_no_data(facts, point)) return point;
  point.answer = Answer::yes;
  for (const LookedAtData& data : facts.data) {
    if (!data.manifest) {
      point.answer = Answer::no;
      point.evidence.push_back(
          facts.words.say("{}: {} is no packed dataset", data.name, printable(data.source.string())));
      point.cure = format("stoker data pack FOLDER {}", shell_quote(data.source.string()));
      continue;
    }
    const std::uint64_t shards = shards_of(*data.manifest);
    const std::uint64_t each = shards == 0 ? 0 : data.manifest->bytes() / shards;
    const std::string size = rounded(ByteCount{each});
    point.evidence.push_back(
        shards == 1
            ? facts.words.say("{}: 1 shard of {} ({})", data.name, size, file_of(data))
            : facts.words.say("{}: {} shards of {} ({})", data.name, grouped(shards), size, file_of(data)));
    if (shards > kFewShards && each < kSmallShard) {
      point.answer = Answer::no;
      point.cure = format("stoker data pack {} packed --shard-size 100MB", shell_quote(data.source.string()));
    }
  }
  return point;
}

ProductionPoint data_hashed(const ProductionFacts& facts) {
  ProductionPoint point{.name = "data-hashed",
                        .question = "are the data versioned by a manifest with hashes",
                        .evidence = {},
                        .cure = {}};
  if (has_no_data(facts, point)) return point;
  point.answer = Answer::yes;
  for (const LookedAtData& data : facts.data) {
    if (!data.manifest) {
      point.answer = Answer::no;
      point.evidence.push_back(
          facts.words.say("{}: {} has no manifest", data.name, printable(data.source.string())));
      point.cure = format("stoker data pack FOLDER {}", shell_quote(data.source.string()));
      continue;
    }
    point.evidence.push_back(facts.words.say("{}: version {}, blocks by {} ({})", data.name,
                                             data.manifest->short_version(),
                                             to_text(data.manifest->schema.block_hash), file_of(data)));
  }
  return point;
}

ProductionPoint data_of_run(const ProductionFacts& facts) {
  ProductionPoint point{.name = "data-of-run",
                        .question = "is the version of the data recorded with the run",
                        .evidence = {},
                        .cure = {}};
  if (has_no_data(facts, point)) return point;
  const PastRun* run = facts.newest();
  if (run == nullptr) {
    point.evidence.push_back(facts.words.say("the job has not run yet"));
    point.cure = facts.words.say("stoker run, or stoker submit");
    return point;
  }
  const std::string file = printable((run->folder.capsule() / "data.json").string());
  point.answer = Answer::yes;
  for (const LookedAtData& data : facts.data) {
    const record::DataFacts* recorded = nullptr;
    if (run->capsule.data) {
      for (const record::DataFacts& each : *run->capsule.data) {
        if (each.name == data.name && !each.version.empty()) recorded = &each;
      }
    }
    if (recorded == nullptr) {
      point.answer = Answer::no;
      point.evidence.push_back(facts.words.say("{}: no version in {}", data.name, file));
      point.cure = facts.words.say("stoker data pack FOLDER packed, and run again");
      break;
    }
    point.evidence.push_back(
        facts.words.say("{}: version {} in {}", data.name, recorded->version.substr(0, 12), file));
    if (data.manifest && data.manifest->version != recorded->version) {
      point.answer = Answer::no;
      point.evidence.push_back(
          facts.words.say("{}: is version {} now", data.name, data.manifest->short_version()));
      point.cure = facts.words.say("run again with the data as they are");
    }
  }
  return point;
}

ProductionPoint cache_purged(const ProductionFacts& facts) {
  ProductionPoint point{.name = "cache-purged",
                        .question = "are data kept on the nodes' own disks, and removed again",
                        .evidence = {},
                        .cure = {}};
  if (!facts.job.stage.unpack.empty() || !facts.job.stage.copy.empty()) {
    point.answer = Answer::yes;
    point.evidence.push_back(facts.words.say(
        "{} sources are brought to every node and removed after each attempt ({})",
        facts.job.stage.unpack.size() + facts.job.stage.copy.size(),
        facts.job.origins.where("stage.unpack") == "default" ? facts.job.origins.where("stage.copy")
                                                             : facts.job.origins.where("stage.unpack")));
    return point;
  }
  if (facts.data.empty()) {
    point.evidence.push_back(facts.words.say("the job names neither data nor files to bring (data, stage)"));
    point.cure = "stage: {unpack: [data.tar]}";
    return point;
  }
  point.answer = Answer::no;
  for (const LookedAtData& data : facts.data)
    point.evidence.push_back(
        facts.words.say("{}: read from {} in every epoch", data.name, printable(data.source.string())));
  point.cure = format("stage: {{copy: [{}]}}", facts.data.front().source.filename().string());
  return point;
}

}  // namespace stoker::explain
