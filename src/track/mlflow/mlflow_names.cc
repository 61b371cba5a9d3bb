#include "track/mlflow/mlflow_names.h"

#include <algorithm>

#include "base/hash.h"
#include "stoker/text.h"

namespace stoker::track {
namespace {

constexpr std::size_t kLongestKey = 250;

bool is_key_character(char c) {
  const bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  // Letters outside ASCII are word characters of the server's regular expression.
  return is_word || c == '.' || c == '-' || c == ' ' || c == '/' || static_cast<unsigned char>(c) >= 0x80;
}

std::string with_hash(const std::string& key, const std::string& name) {
  std::size_t length = std::min<std::size_t>(key.size(), 240);
  // A cut between characters.
  while (length > 0 && length < key.size() && (static_cast<unsigned char>(key[length]) & 0xc0) == 0x80)
    --length;
  return format("{}_{:08x}", key.substr(0, length), crc32c(name));
}

}  // namespace

std::string mlflow_key(const std::string& name) {
  std::string key = name;
  for (char& c : key) {
    if (!is_key_character(c)) c = '_';
  }
  // The server refuses names that a file system would resolve: a//b, ../a, /a.
  const bool is_path = !key.starts_with('/') && Path(key).lexically_normal().string() == key &&
                       !key.ends_with('/') && !key.starts_with("..") && key != ".";
  if (!is_path) std::replace(key.begin(), key.end(), '/', '_');
  if (key == "." || key == "..") key = "_" + key;
  return key.size() > kLongestKey ? with_hash(key, name) : key;
}

const std::string& MlflowKeys::key_of(const std::string& name) {
  const auto known = keys_.find(name);
  if (known != keys_.end()) return known->second;
  std::string key = mlflow_key(name);
  if (const auto taken = names_.find(key); taken != names_.end() && taken->second != name)
    key = with_hash(key, name);
  if (key != name) note_(format("mlflow: '{}' is stored as '{}'", printable(name), printable(key)));
  names_.emplace(key, name);
  return keys_.emplace(name, std::move(key)).first->second;
}

}  // namespace stoker::track
