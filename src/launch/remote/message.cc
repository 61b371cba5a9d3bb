#include "launch/remote/message.h"

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "base/json/json.h"
#include "record/state.h"
#include "stage/listing.h"

namespace stoker::launch {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kGreeting = "stoker-remote ";
constexpr std::string_view kProgram = "stoker";
constexpr std::array<std::string_view, 3> kKinds = {"command", "fetch", "transfer"};

Json list_of(const std::vector<std::string>& texts) {
  Json list = Json::array();
  // JSON cannot represent bytes that are not UTF-8, so they are sent as hexadecimal.
  for (const std::string& text : texts)
    list.push_back(hex(std::as_bytes(std::span(text.data(), text.size()))));
  return list;
}

int digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

std::optional<std::string> text_of(const Json& value) {
  if (!value.is_string()) return std::nullopt;
  const auto& digits = value.get_ref<const std::string&>();
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string text;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const int high = digit(digits[i]), low = digit(digits[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    text += static_cast<char>(high * 16 + low);
  }
  return text;
}

bool read(const Json& object, const char* key, std::vector<std::string>* out) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return false;
  for (const Json& each : *found) {
    auto text = text_of(each);
    if (!text || text->find('\0') != std::string::npos) return false;
    out->push_back(std::move(*text));
  }
  return true;
}

bool read(const Json& object, const char* key, std::string* out) {
  std::vector<std::string> one;
  const auto found = object.find(key);
  if (found == object.end()) return false;
  auto text = text_of(*found);
  if (!text || text->find('\0') != std::string::npos) return false;
  *out = std::move(*text);
  return true;
}

bool are_clean(const std::vector<std::string>& names) {
  return std::all_of(names.begin(), names.end(), [](const std::string& name) {
    const auto clean = stage::clean_name("", name);
    return clean.ok() && *clean == name && !name.empty();
  });
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.';
}

// Two folders with the same name, or the same path on two machines, must not collide.
std::string folder_for(const Path& here) {
  std::string name;
  for (char c : here.filename().string()) name += is_letter(c) ? c : '_';
  if (name.empty() || name[0] == '.') name = "folder" + name;
  const Digest digest = sha256(record::this_process().host + "\n" + here.string());
  return format("stoker/{}-{}", name.substr(0, 48), hex(std::span(digest).first(4)));
}

}  // namespace

std::string to_line(const RemoteRequest& request) {
  const auto hexadecimal = [](const std::string& text) { return list_of({text})[0]; };
  const Json object = {{"kind", std::string(kKinds[static_cast<std::size_t>(request.kind)])},
                       {"words", list_of(request.words)},
                       {"folder", hexadecimal(request.folder)},
                       {"runs", hexadecimal(request.runs)},
                       {"checkpoints", request.has_checkpoints},
                       {"below", hexadecimal(request.sent_below)},
                       {"files", list_of(request.files)},
                       {"bytes", request.bytes},
                       {"host_options", hexadecimal(request.host_options)}};
  return json_text(object) + "\n";
}

Result<RemoteRequest> parse_request(std::string_view line) {
  const Status wrong = corrupt("remote: invalid request");
  const Json object = parse_json<Json>(line);
  if (!object.is_object()) return wrong;
  RemoteRequest request;
  const auto kind = object.find("kind");
  const auto bytes = object.find("bytes");
  const auto checkpoints = object.find("checkpoints");
  const auto known = kind != object.end() && kind->is_string()
                         ? std::find(kKinds.begin(), kKinds.end(), kind->get_ref<const std::string&>())
                         : kKinds.end();
  const bool is_whole = known != kKinds.end() && bytes != object.end() && bytes->is_number_unsigned() &&
                        checkpoints != object.end() && checkpoints->is_boolean() &&
                        read(object, "words", &request.words) && read(object, "folder", &request.folder) &&
                        read(object, "runs", &request.runs) && read(object, "below", &request.sent_below) &&
                        read(object, "files", &request.files) &&
                        read(object, "host_options", &request.host_options);
  if (!is_whole || request.words.empty() || request.folder.empty() || request.runs.empty()) return wrong;
  request.kind = static_cast<RemoteRequest::Kind>(known - kKinds.begin());
  request.bytes = bytes->get<std::uint64_t>();
  request.has_checkpoints = checkpoints->get<bool>();
  if (!are_clean(request.files) || !(request.sent_below.empty() || are_clean({request.sent_below})))
    return wrong;
  return request;
}

std::string greeting(std::string_view nonce, std::string_view version) {
  return format("{}{} {}", kGreeting, nonce, version);
}

std::optional<std::string> parse_greeting(std::string_view line, std::string_view nonce) {
  line = trim(line);
  const std::string begin = format("{}{} ", kGreeting, nonce);
  if (!line.starts_with(begin)) return std::nullopt;
  return std::string(line.substr(begin.size()));
}

Result<RemoteHost> parse_host(const std::string& text, const std::string& program, const Path& here) {
  const std::size_t colon = text.find(':');
  RemoteHost host{.host = text.substr(0, colon),
                  .folder = colon == std::string::npos ? "" : text.substr(colon + 1),
                  .program = program.empty() ? std::string(kProgram) : program};
  const bool is_bad = host.host.empty() || host.host[0] == '-' ||
                      std::any_of(host.host.begin(), host.host.end(),
                                  [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; });
  if (is_bad)
    return invalid("--host {}: invalid host (examples: login.cluster, ada@login.cluster:exp)",
                   printable(text));
  // ssh starts in the user's home.
  if (host.folder.starts_with("~/")) host.folder.erase(0, 2);
  if (host.folder.empty()) host.folder = folder_for(here);
  return host;
}

std::vector<std::string> ssh_arguments(const RemoteHost& host, const std::string& nonce) {
  const bool is_at_home = host.program.starts_with("~/");
  const std::string program =
      is_at_home ? "~/" + shell_quote(host.program.substr(2)) : shell_quote(host.program);
  // Detects a dead connection within two minutes, unless the user's ssh settings override it.
  return {
      "ssh", "-T", "-o", "ServerAliveInterval=30", "--", host.host, format("{} remote {}", program, nonce)};
}

}  // namespace stoker::launch
