#include "data/pack/choose.h"

#include <algorithm>

#include "format/samples/writer.h"

namespace stoker::data {

namespace {

// Nothing where it is ours to choose.
std::optional<ContainerKind> kind_wanted(ShardFormat format) {
  switch (format) {
    case ShardFormat::automatic:
      break;
    case ShardFormat::tar:
      return ContainerKind::tar;
    case ShardFormat::tfrecord:
      return ContainerKind::tfrecord;
    case ShardFormat::parquet:
      return ContainerKind::parquet;
    case ShardFormat::hdf5:
      return ContainerKind::hdf5;
    case ShardFormat::zarr:
      return ContainerKind::zarr;
    case ShardFormat::zarr_2:
      return ContainerKind::zarr_2;
  }
  return std::nullopt;
}

bool has_arrays(ContainerKind kind) {
  return kind == ContainerKind::hdf5 || kind == ContainerKind::zarr || kind == ContainerKind::zarr_2;
}

bool has_columns(ContainerKind kind) { return kind == ContainerKind::parquet || has_arrays(kind); }

// Those of files are named by their kinds.
Status check_array_names(const PackPlan& plan) {
  if (!has_arrays(plan.container)) return {};
  const std::string name = printable(plan.options.source.where);
  for (const std::string& kind : plan.columns.files) {
    const std::string_view why = formats::unsafe_array_name(kind);
    if (why.empty()) continue;
    return invalid("{}: files '.{}': no array can have that name: it {} (--format {})", name, printable(kind),
                   why, to_text(plan.container));
  }
  return {};
}

}  // namespace

// tar unless its headers and padding cost too much.
Status choose_container(const std::vector<SampleBytes>& splits, PackPlan& plan) {
  constexpr std::uint64_t kTooMuch = 4;  // a quarter of the files' own bytes
  SampleBytes all;
  for (const SampleBytes& split : splits) all.add(split);
  const std::uint64_t overhead = all.tar - all.payload;
  const bool is_tiny = overhead > all.payload / kTooMuch;
  const ShardFormat wanted = plan.options.format;
  // Who wants label members has a reader of tars.
  const bool may_choose = wanted == ShardFormat::automatic && plan.options.labels == LabelMembers::index;
  const ContainerKind chosen = may_choose && is_tiny ? ContainerKind::tfrecord : ContainerKind::tar;
  plan.container = kind_wanted(wanted).value_or(chosen);
  if (has_columns(plan.container)) plan.columns = columns_of(plan.source);
  RETURN_IF_ERROR(check_array_names(plan));
  const bool is_tar = plan.container == ContainerKind::tar;
  constexpr std::uint64_t kWorthALine = 4u << 20;
  if (wanted == ShardFormat::tar && (!is_tiny || overhead < kWorthALine)) return {};
  plan.why_container =
      format("as {}: {} headers and padding {} {} % to the files' {}", to_text(plan.container),
             is_tar ? "its" : "tar's", is_tar ? "add" : "would add",
             overhead * 100 / std::max<std::uint64_t>(1, all.payload), rounded({all.payload}));
  if (is_tiny && is_tar)
    plan.why_container += format(" (--format tfrecord: {} in all)", rounded({all.tfrecord}));
  return {};
}

Status check_label_kind(const PackOptions& options) {
  const std::string name = printable(options.source.where);
  const std::optional<ContainerKind> kind = kind_wanted(options.format);
  if (options.labels != LabelMembers::json || !kind || *kind == ContainerKind::tar) return {};
  const std::string_view has = *kind == ContainerKind::tfrecord ? "a record has its label as the number 'cls'"
                               : *kind == ContainerKind::parquet
                                   ? "a row has its label as the number 'cls'"
                                   : "a sample has its label in the array 'label'";
  return invalid("{}: {} (--labels json, --format {})", name, has, to_text(*kind));
}

}  // namespace stoker::data
