#include "pack/container_choice.h"

#include <algorithm>

#include "arrays/samples/writer.h"

namespace stoker::pack {

namespace {

// Nullopt for ShardFormat::automatic.
std::optional<dataset::ContainerKind> requested_kind(ShardFormat format) {
  switch (format) {
    case ShardFormat::automatic:
      break;
    case ShardFormat::tar:
      return dataset::ContainerKind::tar;
    case ShardFormat::tfrecord:
      return dataset::ContainerKind::tfrecord;
    case ShardFormat::parquet:
      return dataset::ContainerKind::parquet;
    case ShardFormat::hdf5:
      return dataset::ContainerKind::hdf5;
    case ShardFormat::zarr:
      return dataset::ContainerKind::zarr;
    case ShardFormat::zarr_2:
      return dataset::ContainerKind::zarr_2;
  }
  return std::nullopt;
}

bool has_arrays(dataset::ContainerKind kind) {
  return kind == dataset::ContainerKind::hdf5 || kind == dataset::ContainerKind::zarr ||
         kind == dataset::ContainerKind::zarr_2;
}

bool has_columns(dataset::ContainerKind kind) {
  return kind == dataset::ContainerKind::parquet || has_arrays(kind);
}

// Arrays are named after file extensions.
Status check_array_names(const PackPlan& plan) {
  if (!has_arrays(plan.container)) return {};
  const std::string name = printable(plan.options.source.where);
  for (const std::string& kind : plan.columns.files) {
    const std::string_view why = arrays::unsafe_array_name(kind);
    if (why.empty()) continue;
    return invalid("{}: files '.{}': cannot be the name of an array: it {} (--format {})", name,
                   printable(kind), why, to_text(plan.container));
  }
  return {};
}

}  // namespace

// tar, unless headers and padding cost too much.
Status choose_container(const std::vector<SampleBytes>& splits, PackPlan& plan) {
  constexpr std::uint64_t kTooMuch = 4;  // a quarter of the files' own bytes
  SampleBytes all;
  for (const SampleBytes& split : splits) all.add(split);
  const std::uint64_t overhead = all.tar - all.payload;
  const bool is_tiny = overhead > all.payload / kTooMuch;
  const ShardFormat wanted = plan.options.format;
  // Label members imply a reader of tar files.
  const bool may_choose = wanted == ShardFormat::automatic && plan.options.labels == LabelMembers::index;
  const dataset::ContainerKind chosen =
      may_choose && is_tiny ? dataset::ContainerKind::tfrecord : dataset::ContainerKind::tar;
  plan.container = requested_kind(wanted).value_or(chosen);
  if (has_columns(plan.container)) plan.columns = columns_of(plan.source);
  STOKER_RETURN_IF_ERROR(check_array_names(plan));
  const bool is_tar = plan.container == dataset::ContainerKind::tar;
  constexpr std::uint64_t kWorthALine = 4u << 20;
  if (wanted == ShardFormat::tar && (!is_tiny || overhead < kWorthALine)) return {};
  plan.why_container =
      format("as {}: {} headers and padding {} {} % to the files' {}", to_text(plan.container),
             is_tar ? "its" : "tar's", is_tar ? "add" : "would add",
             overhead * 100 / std::max<std::uint64_t>(1, all.payload), rounded({all.payload}));
  if (is_tiny && is_tar)
    plan.why_container += format(" (--format tfrecord: {} in total)", rounded({all.tfrecord}));
  return {};
}

Status check_label_kind(const PackOptions& options) {
  const std::string name = printable(options.source.where);
  const std::optional<dataset::ContainerKind> kind = requested_kind(options.format);
  if (options.labels != LabelMembers::json || !kind || *kind == dataset::ContainerKind::tar) return {};
  const std::string_view has =
      *kind == dataset::ContainerKind::tfrecord  ? "records store labels as the number 'cls', not as JSON"
      : *kind == dataset::ContainerKind::parquet ? "rows store labels as the number 'cls', not as JSON"
                                                 : "samples store labels in the array 'label', not as JSON";
  return invalid("{}: {} (--labels json, --format {})", name, has, to_text(*kind));
}

}  // namespace stoker::pack
