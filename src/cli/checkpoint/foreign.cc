#include "cli/checkpoint/foreign.h"

#include <algorithm>

#include "base/file.h"
#include "base/json/json.h"
#include "base/process.h"
#include "checkpoint/convert/import.h"
#include "checkpoint/layout.h"

namespace stoker::cli {
namespace {

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

}  // namespace

bool is_pickled(const Path& path) {
  constexpr std::string_view kSuffixes[] = {".pt", ".pth", ".bin", ".ckpt"};
  return std::ranges::find(kSuffixes, path.extension().string()) != std::end(kSuffixes) &&
         !folder_exists(path);
}

bool is_foreign(const Path& path) {
  if (path.extension() == checkpoint::kTensorSuffix) return true;
  const auto names = list_directory(path);
  if (!names.ok() || path_exists(path / checkpoint::kManifestName)) return false;
  return std::ranges::any_of(
      *names, [](const std::string& name) { return name.ends_with(checkpoint::kTensorSuffix); });
}

// The Python helper prints its result as JSON.
Result<ConversionResult> convert_with_python(const Path& source, const Path& target) {
  const Command command{
      .argv = {"python3", "-m", "stoker.checkpoint_convert", source.string(), target.string()},
      .environment = {},
      .directory = {}};
  const Status missing = unavailable("{}: needs python3 with torch and the module stoker",
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
    return internal("stoker.checkpoint_convert: python3 printed '{}'", printable(error_output));
  if (!ran->exit.ok()) return parse_python_error(reply.value("code", ""), reply.value("message", ""));
  done.tensors = reply.value("tensors", std::uint64_t{0});
  done.files = reply.value("files", std::uint64_t{0});
  done.bytes = reply.value("bytes", std::uint64_t{0});
  return done;
}

Result<ConversionResult> import_foreign(const Path& source, const Path& target, Output& out) {
  if (!is_foreign(source)) return convert_with_python(source, target);
  const auto progress = out.progress("reading");
  STOKER_ASSIGN_OR_RETURN(imported, checkpoint::import_step(source, target, *progress));
  return ConversionResult{source, imported.tensors, imported.files, imported.bytes};
}

}  // namespace stoker::cli
