#include "cli/data/report/pack_report.h"

#include <algorithm>

#include "cli/data/report/dvc_report.h"

namespace stoker::cli {
namespace {

std::string plural(std::uint64_t count, std::string_view one, std::string_view many) {
  return format("{} {}", grouped(count), count == 1 ? one : many);
}

std::string shards_text(const data::SplitSizing& sizing) {
  return format("{} of {} ({})", plural(sizing.shards, "shard", "shards"),
                rounded({sizing.bytes / sizing.shards}), sizing.reason);
}

void print_compression(const data::CompressionAdvice& advice, Output& out) {
  out.line("  compression tried on {} of the files, in blocks of 1 MiB, on one core:",
           rounded({advice.sampled_bytes}));
  std::vector<std::vector<std::string>> rows;
  for (const data::CompressionTrial& trial : advice.trials)
    rows.push_back({trial.name, format("{:.2f}", trial.ratio), format("{:.0f}", trial.write_mb_s),
                    format("{:.0f}", trial.read_mb_s)});
  out.table({"COMPRESSION", "RATIO", "WRITE MB/S", "READ MB/S"}, rows);
  out.line("  compression {}: {}", advice.verdict, advice.why);
}

nlohmann::ordered_json compression_json(const std::optional<data::CompressionAdvice>& advice) {
  if (!advice) return nullptr;
  nlohmann::ordered_json trials = nlohmann::ordered_json::array();
  for (const data::CompressionTrial& trial : advice->trials)
    trials.push_back({{"name", trial.name},
                      {"ratio", trial.ratio},
                      {"write_mb_s", trial.write_mb_s},
                      {"read_mb_s", trial.read_mb_s}});
  nlohmann::ordered_json kinds = nlohmann::ordered_json::array();
  for (const data::CompressionKind& kind : advice->kinds)
    kinds.push_back({{"extension", kind.extension}, {"share", kind.share}, {"ratio", kind.ratio}});
  return {{"verdict", advice->verdict},
          {"why", advice->why},
          {"sampled_bytes", advice->sampled_bytes},
          {"trials", trials},
          {"kinds", kinds}};
}

void print_notes(const data::PackPlan& plan, Output& out) {
  if (plan.compression) print_compression(*plan.compression, out);
  if (plan.version) out.line("  version {}", version_text(*plan.version));
  if (!plan.why_container.empty()) out.line("  {}", plan.why_container);
  for (const std::string& note : plan.source.notes) out.line("  {}", note);
  for (const auto& [name, samples] : plan.source.not_carried)
    out.line("  not carried: {} ({})", name, plural(samples, "sample", "samples"));
  if (plan.source.could_choose)
    out.line(
        "  --columns makes files of such columns, --tensor an array of several numbers "
        "(docs/formats/tables.md)");
  if (plan.source.table) print_table(*plan.source.table, plan.options.source.table, out);
}

}  // namespace

void print_table(const data::TableFacts& table, const data::TableOptions& options, Output& out) {
  if (!options.where.empty()) {
    std::string what =
        format("  {} of {} rows chosen, {} of {} read", grouped(table.chosen), grouped(table.rows),
               grouped(table.groups_read), plural(table.groups, "row group", "row groups"));
    if (table.pages_passed_over > 0)
      what += format(", {} of them passed over", plural(table.pages_passed_over, "page", "pages"));
    if (table.files_passed_over > 0)
      what += format(", {} of {} not opened", grouped(table.files_passed_over),
                     plural(table.files + table.files_passed_over, "file", "files"));
    out.line("{} (--where)", what);
  }
  for (const auto& [name, lengths] : table.lengths) {
    if (lengths.padded > 0)
      out.line("  {}: {} padded (--tensor)", name, plural(lengths.padded, "list", "lists"));
    if (lengths.cut > 0)
      out.line("  {}: {} cut, which leaves out {} (--tensor)", name, plural(lengths.cut, "list", "lists"),
               plural(lengths.items_cut, "item", "items"));
  }
  if (table.dropped > 0)
    out.line("  {} left out: a value is missing (--missing drop)", plural(table.dropped, "row", "rows"));
}

nlohmann::ordered_json table_json(const std::optional<data::TableFacts>& table) {
  if (!table) return nullptr;
  nlohmann::ordered_json lengths = nlohmann::ordered_json::object();
  for (const auto& [name, facts] : table->lengths)
    lengths[name] = {{"padded", facts.padded}, {"cut", facts.cut}, {"items_cut", facts.items_cut}};
  return {{"row_groups", table->groups},
          {"row_groups_read", table->groups_read},
          {"pages_passed_over", table->pages_passed_over},
          {"rows", table->rows},
          {"rows_chosen", table->chosen},
          {"rows_left_out", table->dropped},
          {"files", table->files},
          {"files_not_opened", table->files_passed_over},
          {"lengths", lengths}};
}

void print_plan(const data::PackPlan& plan, std::string_view doing, Output& out) {
  const data::Source& source = plan.source;
  std::string what =
      format("{} {}: {}", doing, printable(plan.outline.source), plural(source.files, "file", "files"));
  if (!source.classes.empty()) what += format(" in {}", plural(source.classes.size(), "class", "classes"));
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
    out.line("  {:<{}}  {} → {}", source.splits[i], widest, plural(plan.sizing[i].files, "file", "files"),
             shards_text(plan.sizing[i]));
  }
  print_notes(plan, out);
}

void print_summary(const data::PackPlan& plan, const data::PackSummary& summary, Output& out) {
  const formats::Manifest& manifest = summary.manifest;
  const std::string name = printable(plan.options.out.string());
  if (summary.was_restarted)
    out.line("  an unfinished packing of other input or options was there: begun anew");
  if (summary.shards_kept > 0) {
    out.line("  {} of {} shards were done before", grouped(summary.shards_kept),
             grouped(manifest.shard_count()));
  }
  out.line("{}: {}, {}, {}, version {}", name, plural(manifest.samples(), "sample", "samples"),
           plural(manifest.shard_count(), "shard", "shards"), rounded({manifest.bytes()}),
           manifest.short_version());
  if (summary.left_out > 0) {
    out.line("  {} left out: {} (list: {}/left-out.csv)", plural(summary.left_out, "file", "files"),
             data::left_out_text(manifest.left_out), name);
  }
  if (manifest.images.encoded_anew > 0) {
    out.line("  lossy: {} of {} images were encoded anew; their own pixels are only in the source",
             grouped(manifest.images.encoded_anew), grouped(manifest.images.images));
  }
  if (manifest.images.progressive > 0) {
    out.line("  progressive JPEGs: {}, decoded about 3x slower", grouped(manifest.images.progressive));
  }
}

nlohmann::ordered_json describe(const data::PackPlan& plan, const data::PackSummary& summary) {
  const formats::Manifest& manifest = summary.manifest;
  nlohmann::ordered_json splits = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < manifest.splits.size(); ++i) {
    const formats::SplitInfo& split = manifest.splits[i];
    std::uint64_t bytes = 0;
    for (const formats::ShardInfo& shard : split.shards) bytes += shard.bytes;
    splits.push_back({{"name", split.name},
                      {"samples", split.samples},
                      {"shards", split.shards.size()},
                      {"bytes", bytes},
                      {"why_so_many_shards", plan.sizing[i].reason}});
  }
  return {{"dataset", printable(plan.options.out.string())},
          {"version", manifest.version},
          {"samples", manifest.samples()},
          {"classes", manifest.schema.classes.size()},
          {"shards", manifest.shard_count()},
          {"bytes", manifest.bytes()},
          {"format", manifest.schema.container},
          {"why_this_format", plan.why_container},
          {"splits", splits},
          {"images_encoded_anew", manifest.images.encoded_anew},
          {"files_left_out", summary.left_out},
          {"left_out", manifest.left_out},
          {"shards_done_before", summary.shards_kept},
          {"notes", plan.source.notes},
          {"not_carried", plan.source.not_carried},
          {"table", table_json(plan.source.table)},
          {"source_version", version_json(manifest.source)},
          {"compression", compression_json(plan.compression)}};
}

}  // namespace stoker::cli
