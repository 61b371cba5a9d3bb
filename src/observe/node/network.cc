#include "observe/node/network.h"

#include <algorithm>

#include "base/file.h"

namespace stoker::observe {

namespace {

constexpr std::size_t kMostLinks = 16;
constexpr std::size_t kReceivedBytes = 0;  // columns of /proc/net/dev behind the name
constexpr std::size_t kSentBytes = 8;

/// Names become parts of column names, which have neither commas nor blanks at an end.
bool is_plain(std::string_view name) {
  return !name.empty() && name.size() <= 32 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
}

std::vector<std::string> choose_interfaces(const Path& classes) {
  std::vector<std::string> physical;
  std::vector<std::string> any;
  for (const std::string& name : names_in(classes)) {
    if (!is_plain(name) || name == "lo") continue;
    any.push_back(name);
    if (path_exists(classes / name / "device")) physical.push_back(name);
  }
  std::vector<std::string>& chosen = physical.empty() ? any : physical;
  if (chosen.size() > kMostLinks) chosen.resize(kMostLinks);
  return chosen;
}

/// The words behind "name:" in /proc/net/dev; empty without it.
std::vector<std::string_view> words_behind(std::string_view table, std::string_view name) {
  for (std::string_view line : split(table, '\n')) {
    line = trim(line);
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ':')
      return words_of(line.substr(name.size() + 1));
  }
  return {};
}

/// Data counters count units of four bytes.
Counter bytes_of_words(Counter words) {
  constexpr std::uint64_t kWord = 4;
  if (!words || *words > UINT64_MAX / kWord) return std::nullopt;
  return *words * kWord;
}

}  // namespace

NetworkReader NetworkReader::find(const NodeRoots& roots) {
  NetworkReader reader;
  reader.proc_ = roots.proc;
  reader.interfaces_ = choose_interfaces(roots.sys / "class/net");
  for (const std::string& name : reader.interfaces_) reader.names_.push_back("net." + name);
  const Path fabric = roots.sys / "class/infiniband";
  for (const std::string& device : names_in(fabric)) {
    for (const std::string& port : names_in(fabric / device / "ports")) {
      const Path folder = fabric / device / "ports" / port;
      const auto state = read_pseudo_file(folder / "state");
      const bool is_active = state.ok() && state->find("ACTIVE") != std::string::npos;
      if (!is_active || !is_plain(device) || !is_plain(port) || reader.ports_.size() == kMostLinks) continue;
      reader.ports_.push_back(folder / "counters");
      reader.names_.push_back(format("ib.{}/{}", device, port));
    }
  }
  return reader;
}

std::vector<LinkUse> NetworkReader::read() const {
  std::vector<LinkUse> links;
  const auto table = interfaces_.empty() ? Result<std::string>("") : read_pseudo_file(proc_ / "net/dev");
  for (const std::string& name : interfaces_) {
    LinkUse use;
    if (const auto words = table.ok() ? words_behind(*table, name) : std::vector<std::string_view>();
        words.size() > kSentBytes) {
      use.received_bytes = leading_number(words[kReceivedBytes]);
      use.sent_bytes = leading_number(words[kSentBytes]);
    }
    links.push_back(use);
  }
  for (const Path& counters : ports_) {
    links.push_back({bytes_of_words(read_counter(counters / "port_rcv_data")),
                     bytes_of_words(read_counter(counters / "port_xmit_data"))});
  }
  return links;
}

}  // namespace stoker::observe
