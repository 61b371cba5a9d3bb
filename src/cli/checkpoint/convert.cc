// `stoker checkpoint convert SOURCE TARGET`: docs/commands/checkpoint-convert.md
#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/json/json.h"
#include "base/language/counted.h"
#include "base/process.h"
#include "checkpoint/convert/export.h"
#include "checkpoint/convert/import.h"
#include "checkpoint/layout.h"
#include "cli/checkpoint/directory.h"
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

// The source, and what the conversion wrote.
struct ConversionResult {
  Path source;
  std::uint64_t tensors = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};

// Files of torch.save, which only Python can read.
bool is_pickled(const Path& path) {
  constexpr std::string_view kSuffixes[] = {".pt", ".pth", ".bin", ".ckpt"};
  return std::ranges::find(kSuffixes, path.extension().string()) != std::end(kSuffixes) &&
         !folder_exists(path);
}

// A safetensors file or folder that is not a Stoker checkpoint.
bool is_foreign(const Path& path) {
  if (path.extension() == checkpoint::kTensorSuffix) return true;
  const auto names = list_directory(path);
  if (!names.ok() || path_exists(path / checkpoint::kManifestName)) return false;
  return std::ranges::any_of(
      *names, [](const std::string& name) { return name.ends_with(checkpoint::kTensorSuffix); });
}

// Parses an error printed by the Python helper: the code's name, and the message with its cure.
Status parse_python_error(const std::string& code, const std::string& text) {
  constexpr Code kCodes[] = {Code::not_found, Code::exists, Code::unavailable, Code::corrupt, Code::no_space};
  const auto* const found = std::ranges::find(kCodes, code, [](Code c) { return std::string(to_text(c)); });
  const std::size_t end = text.find('\n');
  constexpr std::string_view kTry = "\n  try: ";
  const std::size_t cure = text.find(kTry);
  Status status(found == std::end(kCodes) ? Code::invalid : *found, text.substr(0, end));
  return cure == std::string::npos ? status : std::move(status).cure("{}", text.substr(cure + kTry.size()));
}

// The Python helper prints its result as JSON.
Result<ConversionResult> convert_with_python(const Path& source, const Path& target) {
  const Command command{
      .argv = {"python3", "-m", "stoker.checkpoint_convert", source.string(), target.string()},
      .environment = {},
      .directory = {}};
  const Status missing = unavailable("checkpoint convert: {} needs python3 with torch and the module stoker",
                                     printable((is_pickled(source) ? source : target).filename().string()));
  auto ran = run_program(command, Deadline::never());
  if (!ran.ok())
    return Status(missing).cure("pip install torch && pip install .      (in Stoker's checkout)");
  if (ran->exit.code == 3) return Status(missing).cure("{}", trim(ran->err));
  const std::string_view error_output = trim(ran->err);
  if (error_output.find("stoker.checkpoint_convert") != std::string_view::npos ||
      error_output.find("'stoker'") != std::string_view::npos)
    return Status(missing).cure("pip install .      (in Stoker's checkout)");
  ConversionResult done{source, 0, 0, 0};
  const nlohmann::json reply = parse_json<nlohmann::json>(ran->out);
  if (!reply.is_object())
    return internal("checkpoint convert: python3 printed '{}'", printable(error_output));
  if (!ran->exit.ok()) return parse_python_error(reply.value("code", ""), reply.value("message", ""));
  done.tensors = reply.value("tensors", std::uint64_t{0});
  done.files = reply.value("files", std::uint64_t{0});
  done.bytes = reply.value("bytes", std::uint64_t{0});
  return done;
}

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
    if (!is_foreign(source)) return convert_with_python(source, conversion.target);
    if (is_pickled(target)) return convert_with_python(source, conversion.target);
    const auto progress = out.progress("reading");
    STOKER_ASSIGN_OR_RETURN(imported, checkpoint::import_step(source, conversion.target, *progress));
    return ConversionResult{source, imported.tensors, imported.files, imported.bytes};
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
