#include "cli/data/report/pack_report.h"

#include <algorithm>

#include "base/language/counted.h"
#include "cli/data/report/dvc_report.h"

namespace stoker::cli {
namespace {

std::string shards_text(const pack::SplitSizing& sizing) {
  return format("{} of {} ({})", counted(sizing.shards, "shard"), rounded({sizing.bytes / sizing.shards}),
                sizing.reason);
}

void print_compression(const pack::CompressionAdvice& advice, Output& out) {
  out.line("  compression measured on {} of files (1 MiB blocks, one core):",
           rounded({advice.sampled_bytes}));
  std::vector<std::vector<std::string>> rows;
  for (const pack::CompressionTrial& trial : advice.trials)
    rows.push_back({trial.name, format("{:.2f}", trial.ratio), format("{:.0f}", trial.write_mb_s),
                    format("{:.0f}", trial.read_mb_s)});
  out.table({"COMPRESSION", "RATIO", "WRITE MB/S", "READ MB/S"}, rows);
  out.line("  compression {}: {}", advice.verdict, advice.why);
}

nlohmann::ordered_json compression_json(const std::optional<pack::CompressionAdvice>& advice) {
  if (!advice) return nullptr;
  nlohmann::ordered_json trials = nlohmann::ordered_json::array();
  for (const pack::CompressionTrial& trial : advice->trials)
    trials.push_back({{"name", trial.name},
                      {"ratio", trial.ratio},
                      {"write_mb_s", trial.write_mb_s},
                      {"read_mb_s", trial.read_mb_s}});
  nlohmann::ordered_json kinds = nlohmann::ordered_json::array();
  for (const pack::CompressionKind& kind : advice->kinds)
    kinds.push_back({{"extension", kind.extension}, {"share", kind.share}, {"ratio", kind.ratio}});
  return {{"verdict", advice->verdict},
          {"why", advice->why},
          {"sampled_bytes", advice->sampled_bytes},
          {"trials", trials},
          {"kinds", kinds}};
}

void print_notes(const pack::PackPlan& plan, Output& out) {
  if (plan.compression) print_compression(*plan.compression, out);
  if (plan.version) out.line("  version {}", version_text(*plan.version));
  if (!plan.why_container.empty()) out.line("  {}", plan.why_container);
  for (const std::string& note : plan.source.notes) out.line("  {}", note);
  for (const auto& [name, samples] : plan.source.skipped_fields)
    out.line("  skipped: {} ({})", name, counted(samples, "sample"));
  if (plan.source.has_selectable_columns)
    out.line(
        "  --columns keeps such columns as files, --tensor combines several into one array "
        "(docs/formats/tables.md)");
  if (plan.source.table) print_table(*plan.source.table, plan.options.source.table, out);
}

}  // namespace

void print_table(const sources::TableFacts& table, const sources::TableOptions& options, Output& out) {
  if (!options.where.empty()) {
    std::string what =
        format("  {} of {} rows selected, {} of {} read", grouped(table.selected), grouped(table.rows),
               grouped(table.groups_read), counted(table.groups, "row group"));
    if (table.pages_pruned > 0) what += format(", {} skipped", counted(table.pages_pruned, "page"));
    if (table.files_pruned > 0)
      what += format(", {} of {} not opened", grouped(table.files_pruned),
                     counted(table.files + table.files_pruned, "file"));
    out.line("{} (--where)", what);
  }
  for (const auto& [name, lengths] : table.lengths) {
    if (lengths.padded > 0) out.line("  {}: {} padded (--tensor)", name, counted(lengths.padded, "list"));
    if (lengths.cut > 0)
      out.line("  {}: {} truncated by {} (--tensor)", name, counted(lengths.cut, "list"),
               counted(lengths.items_cut, "item"));
  }
  if (table.dropped > 0)
    out.line("  {} dropped: missing value (--missing drop)", counted(table.dropped, "row"));
}

nlohmann::ordered_json table_json(const std::optional<sources::TableFacts>& table) {
  if (!table) return nullptr;
  nlohmann::ordered_json lengths = nlohmann::ordered_json::object();
  for (const auto& [name, facts] : table->lengths)
    lengths[name] = {{"padded", facts.padded}, {"cut", facts.cut}, {"items_cut", facts.items_cut}};
  return {{"row_groups", table->groups},
          {"row_groups_read", table->groups_read},
          {"pages_pruned", table->pages_pruned},
          {"rows", table->rows},
          {"rows_selected", table->selected},
          {"rows_left_out", table->dropped},
          {"files", table->files},
          {"files_not_opened", table->files_pruned},
          {"lengths", lengths}};
}

void print_plan(const pack::PackPlan& plan, std::string_view doing, Output& out) {
  const sources::PackSource& source = plan.source;
  std::string what =
      format("{} {}: {}", doing, printable(plan.dataset_plan.source), counted(source.files, "file"));
  if (!source.classes.empty()) what += format(" in {}", counted(source.classes.size(), "class", "classes"));
  what += format(", {}", rounded({source.bytes}));
  if (plan.sizing.size() == 1) {
    out.line("{} → {}", what, shards_text(plan.sizing[0]));
    print_notes(plan, out);
    return;
  }
  out.line("{}", what);
  std::size_t widest = 0;
  for (const std::string& name : source.splits) widest = std::max(widest, name.size());
  for (std::size_t i = 0; i < plan.sizing.size(); ++i) {
    out.line("  {:<{}}  {} → {}", source.splits[i], widest, counted(plan.sizing[i].files, "file"),
             shards_text(plan.sizing[i]));
  }
  print_notes(plan, out);
}

void print_summary(const pack::PackPlan& plan, const pack::PackSummary& summary, Output& out) {
  const dataset::Manifest& manifest = summary.manifest;
  const std::string name = printable(plan.options.out.string());
  if (summary.was_restarted) out.line("  restarted: an unfinished packing had different input or options");
  if (summary.shards_kept > 0) {
    out.line("  {} of {} shards were already complete", grouped(summary.shards_kept),
             grouped(manifest.shard_count()));
  }
  out.line("{}: {}, {}, {}, version {}", name, counted(manifest.samples(), "sample"),
           counted(manifest.shard_count(), "shard"), rounded({manifest.bytes()}), manifest.short_version());
  if (summary.left_out > 0) {
    out.line("  {} left out: {} (list: {}/left-out.csv)", counted(summary.left_out, "file"),
             pack::left_out_text(manifest.left_out), name);
  }
  if (manifest.images.reencoded > 0) {
    out.line("  lossy: {} of {} {} re-encoded; the original pixels are only in the source",
             grouped(manifest.images.reencoded), counted(manifest.images.images, "image"),
             manifest.images.reencoded == 1 ? "was" : "were");
  }
  if (manifest.images.progressive > 0) {
    out.line("  progressive JPEGs: {}, decoded about 3x slower", grouped(manifest.images.progressive));
  }
}

nlohmann::ordered_json describe(const pack::PackPlan& plan, const pack::PackSummary& summary) {
  const dataset::Manifest& manifest = summary.manifest;
  nlohmann::ordered_json splits = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < manifest.splits.size(); ++i) {
    const dataset::SplitInfo& split = manifest.splits[i];
    std::uint64_t bytes = 0;
    for (const dataset::ShardInfo& shard : split.shards) bytes += shard.bytes;
    splits.push_back({{"name", split.name},
                      {"samples", split.samples},
                      {"shards", split.shards.size()},
                      {"bytes", bytes},
                      {"shard_count_reason", plan.sizing[i].reason}});
  }
  return {{"dataset", printable(plan.options.out.string())},
          {"version", manifest.version},
          {"samples", manifest.samples()},
          {"classes", manifest.schema.classes.size()},
          {"shards", manifest.shard_count()},
          {"bytes", manifest.bytes()},
          {"format", manifest.schema.container},
          {"format_reason", plan.why_container},
          {"splits", splits},
          {"images_encoded_anew", manifest.images.reencoded},
          {"files_left_out", summary.left_out},
          {"left_out", manifest.left_out},
          {"shards_done_before", summary.shards_kept},
          {"notes", plan.source.notes},
          {"skipped_fields", plan.source.skipped_fields},
          {"table", table_json(plan.source.table)},
          {"source_version", version_json(manifest.source)},
          {"compression", compression_json(plan.compression)}};
}

}  // namespace stoker::cli
