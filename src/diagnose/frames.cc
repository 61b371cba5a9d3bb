#include "diagnose/frames.h"

#include <array>

#include <re2/re2.h>

#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

bool is_of_library(std::string_view file) {
  for (const std::string_view part :
       {"site-packages/", "dist-packages/", "/lib/python", "<frozen", "<string>", "/torch/", "/bin/",
        "__autograph_generated", ".pyx", ".pxi"}) {
    if (file.find(part) != std::string_view::npos) return true;
  }
  return false;
}

bool is_of_system(std::string_view file) {
  for (const std::string_view part : {"/usr/", "sysdeps/", "/csu/", "sanitizer", "asan_", "/bits/"}) {
    if (file.find(part) != std::string_view::npos) return true;
  }
  return false;
}

// The meaning of a line of code in a traceback.
std::string_view part_of_code(std::string_view code) {
  static const RE2 kPositions(R"(\b(?:wpe|\w*pos\w*_emb\w*|embed_positions?)\()");
  static const RE2 kTokens(R"(\b(?:wte|word_emb\w*|tok\w*_emb\w*|embed_tokens|shared)\()");
  static const RE2 kDevices(R"(devices?\b.*\breshape\(|\bMesh\(.*\breshape\()");
  static const RE2 kReader(R"(\bjson\.loads?\(|\b(?:yaml|toml|tomllib|pickle)\.(?:safe_)?load\()");
  static const RE2 kBatch(
      R"(\b\w+(?:, ?\w+)+ = (?:batch|data|sample|next\(\w+\))\s*(?:$|;|#)|\bfor (?:\w+, ?)?\(?\w+(?:, ?\w+)+\)? in (?:enumerate\()?(?:\w+\.)?\w*(?:loader|dl)\b)");
  // Code that opens a file for writing, or saves one.
  static const RE2 kWrite(
      R"re(\bopen\(.*, ?(?:mode ?= ?)?['"](?:[rbtU]*[wax][bt+]*)['"]|\.(?:save|savez\w*|savetxt|savefig|imwrite|imsave|write_text|write_bytes|to_csv|to_json|to_pickle)\()re");
  static const RE2 kRead(R"(\b(?:read|load)\w*\()");
  const re2::StringPiece line(code.data(), code.size());
  if (RE2::PartialMatch(line, kPositions)) return "positions";
  if (RE2::PartialMatch(line, kTokens)) return "tokens";
  if (RE2::PartialMatch(line, kDevices)) return "devices";
  if (RE2::PartialMatch(line, kReader)) return "reader";
  if (RE2::PartialMatch(line, kBatch)) return "batch";
  if (RE2::PartialMatch(line, kWrite) && !RE2::PartialMatch(line, kRead)) return "write";
  return {};
}

}  // namespace

std::string frame_of(std::string_view text) {
  static const RE2 kFrame(R"re(^\s*File "([^"]+)", line (\d+))re");
  static const RE2 kBoxed(R"(^│ (\S+\.py):(\d+) in )");
  const re2::StringPiece subject(text.data(), text.size());
  // Of a sanitizer: "    #1 0x55 in main /users/ada/a.cpp:4:7".
  static const RE2 kNative(R"(^\s+#\d+ 0x[0-9a-f]+ in .* (\S+?):(\d+)(?::\d+)?$)");
  std::string file, line;
  const bool is_python =
      RE2::PartialMatch(subject, kFrame, &file, &line) || RE2::PartialMatch(subject, kBoxed, &file, &line);
  if (!is_python && !RE2::PartialMatch(subject, kNative, &file, &line)) return "";
  if (is_of_library(file) || (!is_python && is_of_system(file))) return "";
  return printable(file.substr(file.rfind('/') + 1)) + ":" + line;
}

std::optional<std::string> library_of(std::string_view text) {
  static const RE2 kFile(R"re(^\s*File "([^"]+)", line \d)re");
  static const RE2 kPackage(R"((?:site|dist)-packages/(\w[\w-]*))");
  static const RE2 kStandard(R"(/lib/python3\.\d+/(\w+))");
  static const RE2 kCython(R"(^(\w+)/.*\.pyx$)");
  std::string file, library;
  if (!RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), kFile, &file)) return std::nullopt;
  if (!RE2::PartialMatch(file, kPackage, &library) && !RE2::PartialMatch(file, kStandard, &library))
    (void)RE2::PartialMatch(file, kCython, &library);
  return library;
}

std::string_view part_of_library(std::string_view text) {
  const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  if (has("PyTorchFileReader(")) return "torch.load";
  if (has(" in find_class")) return "unpickle";
  if (has("torch/serialization.py") && (has(" in save") || has(" in _save"))) return "torch.save";
  if (has("torch/utils/data/")) return "torch.utils.data";
  if (has("torch/utils/file_baton.py")) return "torch.extension";
  if (has("xla_bridge.py") && has(" in backends")) return "jax.backends";
  if (has("jax/_src/pmap.py")) return "jax.pmap";
  if (has("jax/_src/dispatch.py") && has(" in apply_primitive")) return "jax.dispatch";
  if (has(" in _execute_child") || (has("popen_fork.py") && has(" in _launch"))) return "process.start";
  if (has(" in _fixup_main_from_path")) return "spawn";
  if (has("pip-build-env") || has("setuptools/build_meta.py")) return "pip.build";
  if ((has("<frozen os>") || has("/os.py\"")) && has(" in __getitem__")) return "environ";
  if (has("deepspeed/runtime/config") || has("deepspeed/runtime/zero/config")) return "deepspeed.config";
  if (has("/http_proxy.py\"")) return "proxy";
  if (has("zarr/core/group.py") || has("h5py/_hl/group.py")) return "store";
  if (has("pandas/core/indexes/base.py") && has(" in get_loc")) return "table";
  if (has("lightning/") && has("core/saving.py") && has(" in _load_state")) return "lightning.load";
  if (has("transformers/models/")) return "transformers.model";
  return part_of_code(text);
}

bool is_waiting_frame(std::string_view text) {
  static const RE2 kWaits(
      R"re(/lib/python3[\d.]*/(?:threading|selectors|socket|ssl|subprocess|queue|asyncio/\w+|multiprocessing/\w+|concurrent/futures/\w+)\.py", line \d+ in (?:_?poll|_?wait\w*|_?join\w*|_?acquire|_?read\w*|_?recv\w*|_?select|_?accept|_?get|_try_wait|communicate|_communicate|result)$)re");
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), kWaits);
}

std::string_view python_needed(std::string_view code, std::string_view message) {
  struct Syntax {
    const char* pattern;
    std::string_view version;
  };
  static const std::array<Syntax, 4> kSyntax = {{
      {R"(^\s*type \w+(?:\[.*\])? = )", "3.12"},
      {R"(^\s*(?:(?:async )?def|class) \w+\[)", "3.12"},
      {R"(^\s*except ?\*)", "3.11"},
      {R"(^\s*(?:match|case) [^=]+:\s*(?:#.*)?$)", "3.10"},
  }};
  static const RE2 kNestedQuotes(R"re(\bf"[^"{]*\{[^}"]*"[^}]*\}|\bf'[^'{]*\{[^}']*'[^}]*\})re");
  const auto matches = [](std::string_view text, const RE2& pattern) {
    return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), pattern);
  };
  if (message.find("f-string expression part cannot include a backslash") != std::string_view::npos)
    return "3.12";
  if (message.find("f-string: ") != std::string_view::npos) return matches(code, kNestedQuotes) ? "3.12" : "";
  if (message.find("invalid syntax") == std::string_view::npos) return "";
  for (const Syntax& each : kSyntax) {
    if (matches(code, RE2(each.pattern))) return each.version;
  }
  return "";
}

bool is_exception(std::string_view text) {
  static const RE2 kException(
      R"(^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Expired|Timeout|Empty|Full|Iteration|Failure)\b|)"
      R"(^(?:\w+\.)+[A-Z]\w*:)");
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), kException);
}

}  // namespace stoker::diagnose
