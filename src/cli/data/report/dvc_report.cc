#include "cli/data/report/dvc_report.h"

#include "stoker/bytes.h"
#include "stoker/text.h"

namespace stoker::cli {

std::string version_text(const dataset::SourceVersion& version) {
  constexpr std::size_t kDigits = 8;
  std::string text = format("{}, MD5 {}, ", printable(version.file), version.md5.substr(0, kDigits));
  if (version.files > 0)
    text += format("{} {} of ", grouped(version.files), version.files == 1 ? "file" : "files");
  return text + rounded({version.bytes});
}

nlohmann::ordered_json version_json(const std::optional<dataset::SourceVersion>& version) {
  if (!version) return nullptr;
  return {
      {"dvc", version->file}, {"md5", version->md5}, {"bytes", version->bytes}, {"files", version->files}};
}

Result<DvcState> dvc_state(const Path& dataset, pack::DvcDepth depth, int threads, Progress& progress) {
  DvcState state;
  STOKER_ASSIGN_OR_RETURN(dvc, pack::find_dvc_file(dataset));
  if (!dvc) return state;
  state.version = dvc->version;
  state.cure = pack::dvc_cure(dataset, *dvc);
  STOKER_ASSIGN_OR_RETURN(compared, pack::compare_with_dvc(dataset, *dvc, depth, threads, progress));
  state.compared = std::move(compared);
  return state;
}

nlohmann::ordered_json to_json(const DvcState& state) {
  nlohmann::ordered_json json = version_json(state.version);
  if (!state.version) return json;
  json["is_compared"] = state.compared.ignored_by.empty();
  json["difference"] = nullptr;
  if (!state.compared.difference.empty()) json["difference"] = state.compared.difference;
  return json;
}

}  // namespace stoker::cli
