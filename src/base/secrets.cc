#include "base/secrets.h"

#include <algorithm>
#include <array>
#include <optional>

#include "stoker/text.h"

namespace stoker {
namespace {

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// "--db-password" as {"db", "password"}, "dbPassword" as {"dbpassword"}.
std::vector<std::string> name_parts(std::string_view name) {
  std::vector<std::string> parts(1);
  for (const char c : name) {
    if (is_letter_or_digit(c)) {
      parts.back() += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    } else if (!parts.back().empty()) {
      parts.emplace_back();
    }
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

// Stricter than is_secret_name(): options of programs are often called --pad-token or --sort-key.
bool is_secret_option(std::string_view name) {
  const std::vector<std::string> parts = name_parts(name);
  if (parts.empty()) return false;
  const std::string& last = parts.back();
  const std::string before = parts.size() > 1 ? parts[parts.size() - 2] : "";
  if (last == "token")
    return !is_one_of(before, {"pad", "eos", "bos", "unk", "mask", "cls", "sep", "special", "end", "start",
                               "per", "stop", "image"});
  if (last == "key") return is_one_of(before, {"api", "access", "secret", "private", "account", "auth"});
  return is_one_of(last,
                   {"secret", "password", "passwd", "passphrase", "pwd", "pat", "apikey", "credentials"});
}

// The characters of a token after its prefix.
enum class Alphabet { letters, words, dashes, upper, path };

bool belongs(char c, Alphabet alphabet) {
  switch (alphabet) {
    case Alphabet::letters:
      return is_letter_or_digit(c);
    case Alphabet::words:
      return is_letter_or_digit(c) || c == '_';
    case Alphabet::dashes:
      return is_letter_or_digit(c) || c == '_' || c == '-' || c == '.';
    case Alphabet::upper:
      return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    case Alphabet::path:
      return is_letter_or_digit(c) || c == '_' || c == '-' || c == '/' || c == '.' || c == ':' || c == '@';
  }
  return false;
}

struct TokenFormat {
  std::string_view prefix;
  Alphabet alphabet;
  std::size_t at_least;          // characters after the prefix
  bool needs_digit = false;      // the prefix also begins plain words
  bool keeps_prefix = false;     // it names the host of the address
  bool may_follow_word = false;  // in the middle of a word, too
};

constexpr TokenFormat kFormats[] = {
    {"ghp_", Alphabet::letters, 16},
    {"gho_", Alphabet::letters, 16},
    {"ghu_", Alphabet::letters, 16},
    {"ghs_", Alphabet::letters, 16},
    {"ghr_", Alphabet::letters, 16},
    {"github_pat_", Alphabet::words, 16},
    {"glpat-", Alphabet::dashes, 16},
    {"hf_", Alphabet::letters, 16},
    {"api_org_", Alphabet::letters, 16},
    {"sk-", Alphabet::dashes, 16, true},
    {"sk_live_", Alphabet::letters, 16},
    {"sk_test_", Alphabet::letters, 16},
    {"rk_live_", Alphabet::letters, 16},
    {"gsk_", Alphabet::letters, 20},
    {"r8_", Alphabet::letters, 30},
    {"nvapi-", Alphabet::dashes, 16},
    {"wandb_v", Alphabet::words, 20},
    {"lsv2_", Alphabet::words, 20},
    {"AKIA", Alphabet::upper, 16},
    {"ASIA", Alphabet::upper, 16},
    {"AIza", Alphabet::dashes, 30},
    {"ya29.", Alphabet::dashes, 20},
    {"GOCSPX-", Alphabet::dashes, 16},
    {"xoxa-", Alphabet::dashes, 10},
    {"xoxb-", Alphabet::dashes, 10},
    {"xoxp-", Alphabet::dashes, 10},
    {"xoxr-", Alphabet::dashes, 10},
    {"xoxs-", Alphabet::dashes, 10},
    {"xapp-", Alphabet::dashes, 10},
    {"npm_", Alphabet::letters, 30},
    {"pypi-", Alphabet::dashes, 30},
    {"dckr_pat_", Alphabet::dashes, 16},
    {"dop_v1_", Alphabet::letters, 30},
    {"tskey-", Alphabet::dashes, 16},
    {"SG.", Alphabet::dashes, 40},
    {"eyJ", Alphabet::dashes, 40},
    {"hooks.slack.com/", Alphabet::path, 10, false, true, true},
    {"discord.com/api/webhooks/", Alphabet::path, 10, false, true, true},
    {"discordapp.com/api/webhooks/", Alphabet::path, 10, false, true, true},
    {"webhook.office.com/", Alphabet::path, 10, false, true, true},
    {"outlook.office.com/webhook/", Alphabet::path, 10, false, true, true},
    {"api.telegram.org/bot", Alphabet::path, 10, false, true, true},
};

// A secret in a text: [begin, end).
struct SecretSpan {
  std::size_t begin = 0;
  std::size_t end = 0;
};

std::optional<SecretSpan> token_at(std::string_view text, std::size_t at) {
  const bool follows_word = at > 0 && (is_letter_or_digit(text[at - 1]) || text[at - 1] == '_');
  for (const TokenFormat& format : kFormats) {
    if (text[at] != format.prefix.front() || !text.substr(at).starts_with(format.prefix)) continue;
    if (follows_word && !format.may_follow_word) continue;
    const std::size_t first = at + format.prefix.size();
    std::size_t end = first;
    while (end < text.size() && belongs(text[end], format.alphabet)) ++end;
    while (end > first && text[end - 1] == '.') --end;  // of a sentence
    const std::string_view rest = text.substr(first, end - first);
    if (rest.size() < format.at_least) continue;
    if (format.needs_digit && rest.find_first_of("0123456789") == std::string_view::npos) continue;
    // A JSON web token has three parts.
    if (format.prefix == "eyJ" && std::count(rest.begin(), rest.end(), '.') != 2) continue;
    return SecretSpan{format.keeps_prefix ? first : at, end};
  }
  return std::nullopt;
}

// -----BEGIN OPENSSH PRIVATE KEY----- to its end line, or to the end of the text.
std::optional<SecretSpan> private_key_at(std::string_view text, std::size_t at) {
  constexpr std::string_view kBegin = "-----BEGIN ";
  constexpr std::string_view kKind = "PRIVATE KEY";
  constexpr std::size_t kLongestKind = 40;
  if (!text.substr(at).starts_with(kBegin)) return std::nullopt;
  const std::string_view head = text.substr(at + kBegin.size(), kLongestKind);
  const std::size_t kind = head.find(kKind);
  if (kind == std::string_view::npos || head.substr(0, kind).find("--") != std::string_view::npos)
    return std::nullopt;
  std::size_t end = text.find("-----END ", at);
  if (end != std::string_view::npos) end = text.find("-----", end + 9);
  return SecretSpan{at, end == std::string_view::npos ? text.size() : end + 5};
}

// "user:password" in scheme://user:password@host.
std::optional<SecretSpan> password_at(std::string_view text, std::size_t at) {
  if (!text.substr(at).starts_with("://")) return std::nullopt;
  const std::size_t first = at + 3;
  const std::size_t authority_end = std::min(text.find_first_of("/?# \t\n\"'<>", first), text.size());
  const std::string_view authority = text.substr(first, authority_end - first);
  const std::size_t sign = authority.rfind('@');
  if (sign == std::string_view::npos) return std::nullopt;
  const std::size_t colon = authority.substr(0, sign).find(':');
  // "${PASSWORD}" is no password.
  const bool is_secret = colon != std::string_view::npos && colon + 1 < sign && authority[colon + 1] != '$' &&
                         authority.substr(0, sign) != kHidden;
  return is_secret ? std::optional(SecretSpan{first, first + sign}) : std::nullopt;
}

std::optional<SecretSpan> secret_at(std::string_view text, std::size_t at) {
  if (text[at] == '-') {
    if (const auto found = private_key_at(text, at)) return found;
  }
  if (text[at] == ':') return password_at(text, at);
  return token_at(text, at);
}

// "HF_TOKEN=x" and "--api-key=x"; nothing for another word.
std::optional<std::string> hide_assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 >= word.size()) return std::nullopt;
  const std::string_view name = word.substr(0, equals);
  const bool is_name = std::all_of(name.begin(), name.end(), [](char c) {
    return is_letter_or_digit(c) || c == '_' || c == '-' || c == '.';
  });
  if (!is_name || word[equals + 1] == '$' || !is_secret_option(name)) return std::nullopt;
  return std::string(word.substr(0, equals + 1)) + std::string(kHidden);
}

bool is_option_with_secret(std::string_view word) {
  return word.starts_with("--") && word.find('=') == std::string_view::npos && is_secret_option(word);
}

// A shell command in one word: blanks separate its words.
std::string hide_in_shell_text(std::string_view text) {
  std::string out;
  bool hides_next = false;
  for (std::size_t at = 0; at < text.size();) {
    const bool is_blank = text[at] == ' ' || text[at] == '\n' || text[at] == '\t';
    std::size_t end = at;
    while (end < text.size() && (text[end] == ' ' || text[end] == '\n' || text[end] == '\t') == is_blank)
      ++end;
    const std::string_view word = text.substr(at, end - at);
    at = end;
    if (is_blank) {
      out += word;
      continue;
    }
    const bool is_value =
        hides_next && !word.starts_with('-') && !word.starts_with('$') && !word.starts_with("\"$");
    const auto hidden = hide_assignment(word);
    out += is_value ? std::string(kHidden) : hidden ? *hidden : std::string(word);
    hides_next = is_option_with_secret(word);
  }
  return hide_secrets(out);
}

// "environment.variables.HF_TOKEN=x"; any other setting by its value only.
std::string hide_typed_setting(std::string_view setting) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string_view::npos) return hide_secrets(setting);
  return format("{}={}", setting.substr(0, equals),
                hide_setting(setting.substr(0, equals), setting.substr(equals + 1)));
}

}  // namespace

bool is_secret_name(std::string_view name) {
  const std::string lower = to_lower(name);
  if (lower == "pwd" || lower == "oldpwd") return false;
  for (const std::string_view word :
       {"secret", "passw", "passphrase", "key", "credential", "cookie", "session"}) {
    if (lower.find(word) != std::string::npos) return true;
  }
  for (std::size_t at = lower.find("token"); at != std::string::npos; at = lower.find("token", at + 1)) {
    if (!lower.substr(at).starts_with("tokeniz")) return true;
  }
  for (std::size_t at = lower.find("auth"); at != std::string::npos; at = lower.find("auth", at + 1)) {
    if (!lower.substr(at).starts_with("author") || lower.substr(at).starts_with("authoriz")) return true;
  }
  const std::vector<std::string> parts = name_parts(name);
  const bool has_part = std::any_of(parts.begin(), parts.end(), [](const std::string& part) {
    return is_one_of(part, {"pwd", "pat", "pass", "cred", "creds", "dsn", "webhook"});
  });
  return has_part || lower.ends_with("pwd");
}

std::string hide_secrets(std::string_view text) {
  std::string out;
  std::size_t from = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto found = secret_at(text, at);
    if (!found) {
      ++at;
      continue;
    }
    out += text.substr(from, found->begin - from);
    out += kHidden;
    from = at = found->end;
  }
  out += text.substr(from);
  return out;
}

bool has_secret(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (secret_at(text, at)) return true;
  }
  return false;
}

std::string hide_variable(std::string_view name, std::string_view value) {
  return !value.empty() && is_secret_name(name) ? std::string(kHidden) : hide_secrets(value);
}

std::string hide_setting(std::string_view key, std::string_view value) {
  for (const std::string_view section : {"environment.variables.", "params."}) {
    if (key.starts_with(section)) return hide_variable(key.substr(section.size()), value);
  }
  return hide_secrets(value);
}

std::vector<std::string> hide_in_command(const std::vector<std::string>& words) {
  std::vector<std::string> hidden;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::string before = i > 0 ? words[i - 1] : "";
    if (word.starts_with("--sbatch=") || before == "--sbatch") {
      hidden.push_back(word);
    } else if (before == "--set") {
      hidden.push_back(hide_typed_setting(word));
    } else if (word.starts_with("--set=")) {
      hidden.push_back("--set=" + hide_typed_setting(std::string_view(word).substr(6)));
    } else if (is_option_with_secret(before) && !word.starts_with('-')) {
      hidden.emplace_back(kHidden);
    } else {
      hidden.push_back(hide_in_shell_text(word));
    }
  }
  return hidden;
}

std::string hide_in_patch(std::string_view patch) {
  std::string out;
  out.reserve(patch.size());
  for (std::size_t at = 0; at < patch.size();) {
    const std::size_t end = std::min(patch.find('\n', at), patch.size() - 1) + 1;
    const std::string_view line = patch.substr(at, end - at);
    const bool is_added = line.starts_with('+') && !line.starts_with("+++ ");
    out += is_added ? hide_secrets(line) : std::string(line);
    at = end;
  }
  return out;
}

bool is_secret_file(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  for (const std::string_view end : {".example", ".sample", ".template", ".dist", ".pub"}) {
    if (name.ends_with(end)) return false;
  }
  if (name == ".env" || name.starts_with(".env.") || name.ends_with(".env")) return true;
  for (const std::string_view start : {"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"}) {
    if (name.starts_with(start)) return true;
  }
  for (const std::string_view end : {".pem", ".p12", ".pfx", ".key", ".keystore"}) {
    if (name.ends_with(end)) return true;
  }
  return is_one_of(name, {".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials", "kaggle.json",
                          "credentials.json", "service-account.json"}) ||
         path.ends_with(".aws/credentials");
}

}  // namespace stoker
