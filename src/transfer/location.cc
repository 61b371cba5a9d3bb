#include "transfer/location.h"

#include <algorithm>

namespace stoker::transfer {
namespace {

constexpr std::string_view kProgram = "stoker";

bool is_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }

// The end of the host in "host:path" or "user@[::1]:path"; npos for a path.
std::size_t end_of_host(const std::string& text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const std::size_t bracket = text.find('[');
  if (bracket < slash && (bracket == 0 || text[bracket - 1] == '@')) {
    const std::size_t end = text.find("]:", bracket);
    return end < slash ? end + 1 : std::string::npos;
  }
  const std::size_t colon = text.find(':');
  return colon < slash ? colon : std::string::npos;
}

}  // namespace

std::string Location::with_path(const std::string& other) const {
  return host ? text.substr(0, end_of_host(text) + 1) + printable(other) : printable(other);
}

Result<Location> parse_location(const std::string& text, const std::string& program) {
  Location location{.text = printable(text), .host = {}, .path = text, .transfer_node = {}};
  if (const std::size_t end = end_of_host(text); end != std::string::npos) {
    std::string host = text.substr(0, end);
    location.path = text.substr(end + 1);
    std::erase_if(host, [](char c) { return c == '[' || c == ']'; });
    const bool is_bad = host.empty() || host[0] == '-' || std::any_of(host.begin(), host.end(), [](char c) {
                          return is_control(c) || c == ' ';
                        });
    if (is_bad)
      return invalid("{}: invalid host (examples: login.cluster:data, ada@login.cluster:/scratch/data)",
                     location.text)
          .cure("./{}      (a path with a colon)", location.text);
    location.host = launch::RemoteHost{
        .host = host, .folder = "", .program = program.empty() ? std::string(kProgram) : program};
    // ssh starts in the user's home.
    if (location.path.starts_with("~/")) location.path.erase(0, 2);
    if (location.path.starts_with('~')) {
      return invalid("{}: only ~/ is expanded on a host; write an absolute path", location.text);
    }
  }
  while (location.path.size() > 1 && location.path.ends_with('/')) location.path.pop_back();
  if (location.path.empty())
    return invalid("{}: no path of a dataset (example: login.cluster:data/photos-s)", location.text);
  if (std::any_of(location.path.begin(), location.path.end(), is_control))
    return invalid("{}: contains a control character", location.text);
  return location;
}

}  // namespace stoker::transfer
