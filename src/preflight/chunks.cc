#include "preflight/chunks.h"

#include <filesystem>

#include "loader/advice.h"
#include "stoker/dataset.h"

namespace stoker::preflight {
namespace {

// Fast to read from any storage; the trainer checks larger indexes.
constexpr std::uint64_t kMaxIndex = (64_MiB).value;

bool may_have_chunks(const dataset::Manifest& manifest) {
  return manifest.schema.container != "tar" && manifest.schema.container != "tfrecord";
}

}  // namespace

void check_chunks(const job::Job& job, const dataset::Manifest& manifest, Notes& notes) {
  const std::string& name = job.train->training_data;
  const job::DataSource& source = job.data.at(name);
  std::error_code error;
  const auto bytes = std::filesystem::file_size(source.source / dataset::kIndexFile, error);
  if (!may_have_chunks(manifest) || error || bytes > kMaxIndex) return;
  const auto dataset =
      dataset::Dataset::open(source.source, source.split.value_or(""), dataset::LabelPolicy::optional);
  // The trainer and `stoker data verify` report errors of the dataset.
  if (!dataset.ok()) return;
  const auto small = loader::check_chunk_cache(dataset->source(), job.train->chunk_cache);
  if (!small) return;
  notes.found("small-chunk-cache", Level::time, "train.chunk_cache",
              message("data.{}: {}", name, small->message),
              format("train: {{chunk_cache: {}}}", to_text(small->recommended)));
}

}  // namespace stoker::preflight
