// `stoker checkpoint convert SOURCE TARGET`: docs/commands/checkpoint-convert.md
#include <array>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "checkpoint/convert/export.h"
#include "cli/checkpoint/directory.h"
#include "cli/checkpoint/foreign.h"
#include "cli/commands.h"

namespace stoker::cli {
namespace {

struct Conversion {
  RunChoice source;
  std::string target;
  std::string part = "model";
  std::optional<ByteCount> file_size;
  checkpoint::ExportOptions options;

  bool has_selection() const {
    return !options.only.empty() || !options.strip.empty() || file_size || part != "model";
  }
};

Result<ConversionResult> export_checkpoint(Conversion& conversion, Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(step, find_step(conversion.source));
  conversion.options.part =
      conversion.part == "model" ? checkpoint::StepPart::model : checkpoint::StepPart::optimizer;
  if (conversion.file_size) conversion.options.file_bytes = *conversion.file_size;
  STOKER_ASSIGN_OR_RETURN(exported,
                          checkpoint::export_step(step, conversion.target, conversion.options, progress));
  return ConversionResult{step, exported.tensors, exported.files, exported.bytes};
}

Result<ConversionResult> convert(Conversion& conversion, Output& out) {
  const Path source = conversion.source.run;
  const Path target = conversion.target;
  if (target.filename().empty()) conversion.target.pop_back();
  if (is_pickled(source) || is_pickled(target) || is_foreign(source)) {
    if (conversion.has_selection()) {
      return invalid(
          "checkpoint convert: --only, --strip, --part and --file-size need a Stoker checkpoint as SOURCE "
          "and safetensors as TARGET");
    }
    if (is_pickled(target)) return convert_with_python(source, conversion.target);
    return import_foreign(source, conversion.target, out);
  }
  const auto progress = out.progress("reading");
  return export_checkpoint(conversion, *progress);
}

}  // namespace

int checkpoint_convert(std::span<const std::string> words, Output& out) {
  Conversion conversion;
  Arguments arguments("checkpoint convert", "Convert checkpoints to and from other formats.");
  arguments.positional("SOURCE", &conversion.source.run,
                       "Step folder; run or checkpoint directory (its newest intact step); .safetensors file "
                       "or folder; .pt file");
  arguments.positional(
      "TARGET", &conversion.target,
      "FILE.safetensors, FILE.pt, a folder for safetensors, or DIR/step-N for a Stoker checkpoint");
  arguments.option("--only", &conversion.options.only, "NAME",
                   "Select tensors by name, prefix or pattern: backbone, '*.bias'; may be repeated");
  arguments.option("--strip", &conversion.options.strip, "PREFIX",
                   "Remove this prefix from names: backbone.");
  arguments.option("--part", &conversion.part, "PART", "Select a part: model or optimizer");
  arguments.choices(
      std::array{to_text(checkpoint::StepPart::model), to_text(checkpoint::StepPart::optimizer)});
  arguments.option("--file-size", &conversion.file_size, "SIZE",
                   "Split the output into files of this size [one file]");
  arguments.option("--runs", &conversion.source.runs, "DIR",
                   "Folder with the runs (the job's record.directory)");
  arguments.example("stoker checkpoint convert last model.safetensors --only backbone --strip backbone.");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (conversion.part != "model" && conversion.part != "optimizer") {
    return out.fail(invalid("checkpoint convert: --part: unknown part '{}' (one of: model, optimizer)",
                            printable(conversion.part)));
  }
  install_stop_signals();
  const auto done = convert(conversion, out);
  if (!done.ok()) return out.fail(done.error());
  out.line("{} → {}: {} in {}, {}", printable(done->source.string()), printable(conversion.target),
           counted(done->tensors, "tensor"), counted(done->files, "file"), rounded({done->bytes}));
  const nlohmann::ordered_json json = {{"source", done->source.string()},
                                       {"target", conversion.target},
                                       {"tensors", done->tensors},
                                       {"files", done->files},
                                       {"bytes", done->bytes}};
  out.json(json_text(json));
  return exit_code::kOk;
}

}  // namespace stoker::cli
