// Whether what is kept of packed chunks is enough for the samples that need them.
#include <filesystem>

#include "data/dataset.h"
#include "data/loader/advice.h"
#include "explain/preflight/notes.h"

namespace stoker::explain {
namespace {

// Read within a moment from any storage; larger ones are the trainer's to judge.
constexpr std::uint64_t kMostIndex = (64_MiB).value;

bool may_have_chunks(const formats::Manifest& manifest) {
  return manifest.schema.container != "tar" && manifest.schema.container != "tfrecord";
}

}  // namespace

void check_chunks(const job::Job& job, const formats::Manifest& manifest, Notes& notes) {
  const std::string& name = job.train->training_data;
  const job::DataSource& source = job.data.at(name);
  std::error_code error;
  const auto bytes = std::filesystem::file_size(source.source / formats::kIndexFile, error);
  if (!may_have_chunks(manifest) || error || bytes > kMostIndex) return;
  const auto dataset = data::Dataset::open(source.source, source.split.value_or(""), data::Labels::unneeded);
  // What is wrong with it the trainer says, and `stoker data verify` before.
  if (!dataset.ok()) return;
  const auto small = data::small_cache(dataset->source(), job.train->chunk_cache, notes.words());
  if (!small) return;
  notes.found("small-chunk-cache", Level::time, "train.chunk_cache",
              quoted(format("data.{}: {}", name, small->what)),
              format("train: {{chunk_cache: {}}}", to_text(small->enough)));
}

}  // namespace stoker::explain
