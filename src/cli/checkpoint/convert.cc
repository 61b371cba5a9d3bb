// `stoker checkpoint convert SOURCE TARGET`: docs/commands/checkpoint-convert.md
#include <algorithm>

#include "base/file.h"
#include "base/json/json.h"
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

  bool wants_choice() const {
    return !options.only.empty() || !options.strip.empty() || file_size || part != "model";
  }
};

// What was written, and of what.
struct Done {
  Path source;
  std::uint64_t tensors = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};

// torch.save's: only Python reads these.
bool is_pickled(const Path& path) {
  constexpr std::string_view kSuffixes[] = {".pt", ".pth", ".bin", ".ckpt"};
  return std::ranges::find(kSuffixes, path.extension().string()) != std::end(kSuffixes) &&
         !folder_exists(path);
}

// A file or folder of safetensors that is no checkpoint of ours.
bool is_foreign(const Path& path) {
  if (path.extension() == checkpoint::kTensorSuffix) return true;
  const auto names = list_directory(path);
  if (!names.ok() || path_exists(path / checkpoint::kManifestName)) return false;
  return std::ranges::any_of(
      *names, [](const std::string& name) { return name.ends_with(checkpoint::kTensorSuffix); });
}

// What Python tells of an error: the code by its name, and the text with its cure.
Status error_of(const std::string& code, const std::string& text) {
  constexpr Code kCodes[] = {Code::not_found, Code::exists, Code::unavailable, Code::corrupt, Code::no_space};
  const auto* const found = std::ranges::find(kCodes, code, [](Code c) { return std::string(to_text(c)); });
  const std::size_t end = text.find('\n');
  constexpr std::string_view kTry = "\n  try: ";
  const std::size_t cure = text.find(kTry);
  Status status(found == std::end(kCodes) ? Code::invalid : *found, text.substr(0, end));
  return cure == std::string::npos ? status : std::move(status).cure("{}", text.substr(cure + kTry.size()));
}

// Python prints what it has done, as JSON.
Result<Done> by_python(const Path& source, const Path& target) {
  const Command command{
      .argv = {"python3", "-m", "stoker.checkpoint_convert", source.string(), target.string()},
      .environment = {},
      .directory = {}};
  const Status missing = unavailable("checkpoint convert: {} needs python3 with torch and the module stoker",
                                     printable((is_pickled(source) ? source : target).filename().string()));
  auto ran = run_program(command, Deadline::never());
  if (!ran.ok()) return Status(missing).cure("pip install torch, and in Stoker's checkout: pip install .");
  if (ran->exit.code == 3) return Status(missing).cure("{}", trim(ran->err));
  const std::string_view said = trim(ran->err);
  if (said.find("stoker.checkpoint_convert") != std::string_view::npos ||
      said.find("'stoker'") != std::string_view::npos)
    return Status(missing).cure("in Stoker's checkout: pip install .");
  Done done{source, 0, 0, 0};
  const nlohmann::json told = parse_json<nlohmann::json>(ran->out);
  if (!told.is_object()) return internal("checkpoint convert: python3 said '{}'", printable(said));
  if (!ran->exit.ok()) return error_of(told.value("code", ""), told.value("message", ""));
  done.tensors = told.value("tensors", std::uint64_t{0});
  done.files = told.value("files", std::uint64_t{0});
  done.bytes = told.value("bytes", std::uint64_t{0});
  return done;
}

Result<Done> by_export(Conversion& conversion, Progress& progress) {
  OK_OR_RETURN(step, find_step(conversion.source));
  conversion.options.part =
      conversion.part == "model" ? checkpoint::Part::model : checkpoint::Part::optimizer;
  if (conversion.file_size) conversion.options.file_bytes = *conversion.file_size;
  OK_OR_RETURN(exported, checkpoint::export_step(step, conversion.target, conversion.options, progress));
  return Done{step, exported.tensors, exported.files, exported.bytes};
}

Result<Done> convert(Conversion& conversion, Output& out) {
  const Path source = conversion.source.run;
  const Path target = conversion.target;
  if (target.filename().empty()) conversion.target.pop_back();
  if (is_pickled(source) || is_pickled(target) || is_foreign(source)) {
    if (conversion.wants_choice()) {
      return invalid(
          "checkpoint convert: --only, --strip, --part and --file-size are for checkpoints of Stoker "
          "on their way to safetensors");
    }
    if (!is_foreign(source)) return by_python(source, conversion.target);
    if (is_pickled(target)) return by_python(source, conversion.target);
    const auto progress = out.progress("reading");
    OK_OR_RETURN(imported, checkpoint::import_step(source, conversion.target, *progress));
    return Done{source, imported.tensors, imported.files, imported.bytes};
  }
  const auto progress = out.progress("reading");
  return by_export(conversion, *progress);
}

}  // namespace

int checkpoint_convert(std::span<const std::string> words, Output& out) {
  Conversion conversion;
  Arguments arguments("checkpoint convert",
                      "Writes a checkpoint of Stoker as other tools' files, or the reverse.");
  arguments.positional(
      "SOURCE", &conversion.source.run,
      "a step folder, or a run or checkpoint directory (its newest whole step); a .safetensors file, a "
      "folder of them, or a .pt file");
  arguments.positional(
      "TARGET", &conversion.target,
      "FILE.safetensors, FILE.pt, a folder for safetensors, or DIR/step-N for a checkpoint of Stoker");
  arguments.option(
      "--only", &conversion.options.only, "NAME",
      "tensors of that name, below it, or that fit the pattern: backbone, '*.bias'; may be repeated");
  arguments.option("--strip", &conversion.options.strip, "PREFIX",
                   "is taken off the front of names: backbone.");
  arguments.option("--part", &conversion.part, "PART", "model or optimizer");
  arguments.option("--file-size", &conversion.file_size, "SIZE",
                   "of a folder: begin a new file beyond that [one file]");
  arguments.option("--runs", &conversion.source.runs, "DIR",
                   "folder that holds the runs (the job's record.directory)");
  arguments.example("stoker checkpoint convert last model.safetensors --only backbone --strip backbone.");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (conversion.part != "model" && conversion.part != "optimizer") {
    return out.fail(invalid("checkpoint convert: --part: unknown part '{}' (one of: model, optimizer)",
                            printable(conversion.part)));
  }
  install_stop_signals();
  const auto done = convert(conversion, out);
  if (!done.ok()) return out.fail(done.error());
  out.line("{} → {}: {} tensors in {} {}, {}", printable(done->source.string()), printable(conversion.target),
           grouped(done->tensors), grouped(done->files), done->files == 1 ? "file" : "files",
           rounded({done->bytes}));
  const nlohmann::ordered_json json = {{"source", done->source.string()},
                                       {"target", conversion.target},
                                       {"tensors", done->tensors},
                                       {"files", done->files},
                                       {"bytes", done->bytes}};
  out.json(json_text(json));
  return exit_code::kOk;
}

}  // namespace stoker::cli
