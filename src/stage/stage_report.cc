#include "stage/stage_report.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/enum_names.h"
#include "base/json/json.h"

namespace stoker::stage {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMark = "stoker-stage";

Code code_of(std::string_view name) {
  constexpr std::array kCodes = {Code::invalid,     Code::not_found, Code::exists,
                                 Code::unavailable, Code::timeout,   Code::cancelled,
                                 Code::corrupt,     Code::no_space,  Code::internal};
  for (Code code : kCodes) {
    if (to_text(code) == name) return code;
  }
  return Code::unavailable;
}

}  // namespace

std::string to_line(const StageReport& answer) {
  Json object = {{"format", kMark},
                 {"node", answer.node},
                 {"host", answer.host},
                 {"phase", to_text(answer.phase)},
                 {"has_rest", answer.has_rest},
                 {"folder", answer.folder},
                 {"files", answer.files},
                 {"bytes", answer.bytes},
                 {"received", answer.received_bytes},
                 {"cached", answer.cached_bytes},
                 {"seconds", answer.seconds},
                 {"fingerprint", format("{:016x}", answer.fingerprint)}};
  if (!answer.problem.ok()) {
    object["code"] = to_text(answer.problem.code());
    object["problem"] = answer.problem.message();
    object["cure"] = answer.problem.cure();
  }
  return json_text(object) + "\n";
}

std::optional<StageReport> parse_stage_report(std::string_view line) {
  const Json object = parse_json<Json>(line);
  if (!object.is_object()) return std::nullopt;
  const auto text = [&](const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const auto number = [&](const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number() ? found->get<double>() : 0.0;
  };
  const auto count = [&](const char* key) {
    const double value = number(key);
    return value >= 0 && value < 9e15 ? static_cast<std::uint64_t>(value) : 0;
  };
  if (text("format") != kMark) return std::nullopt;
  StageReport answer;
  answer.node = static_cast<int>(std::min<std::uint64_t>(count("node"), 1'000'000));
  answer.host = text("host");
  answer.phase = enum_named<StagePhase>(text("phase")).value_or(StagePhase::in);
  const auto has_rest = object.find("has_rest");
  answer.has_rest = has_rest != object.end() && has_rest->is_boolean() && has_rest->get<bool>();
  answer.folder = text("folder");
  answer.files = count("files");
  answer.bytes = count("bytes");
  answer.received_bytes = count("received");
  answer.cached_bytes = count("cached");
  answer.seconds = number("seconds");
  const std::string mark = text("fingerprint");
  (void)std::from_chars(mark.data(), mark.data() + mark.size(), answer.fingerprint, 16);
  if (object.contains("problem")) {
    answer.problem = Status(code_of(text("code")), text("problem"));
    const std::string cure = text("cure");
    if (!cure.empty()) answer.problem = std::move(answer.problem).cure("{}", cure);
  }
  return answer;
}

}  // namespace stoker::stage
