// Finds secrets by name and by value, so that nothing that Stoker writes for others to read contains one.
// Used by the records of a run, by its report and by code snapshots. Functions without state. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoker {

/// Replaces a secret.
inline constexpr std::string_view kHidden = "(hidden)";

/// Whether the name of a variable suggests a secret: HF_TOKEN, AWS_SECRET_ACCESS_KEY, DB_PWD, GITHUB_PAT, ...
/// PWD and OLDPWD are folders.
bool is_secret_name(std::string_view name);

/// `text` with its secrets replaced: tokens with a known prefix (GitHub, GitLab, Hugging Face, OpenAI, AWS,
/// Slack, ...), JSON web tokens, private keys in PEM format, passwords in URLs, addresses of webhooks.
std::string hide_secrets(std::string_view text);
/// Whether hide_secrets() replaces anything.
bool has_secret(std::string_view text);

/// The value of a variable for a record: hidden by its name or by its value.
std::string hide_variable(std::string_view name, std::string_view value);

/// The value of a setting for a record: below `environment.variables` and `params` also by its name.
std::string hide_setting(std::string_view key, std::string_view value);

/// A command line for a record: hides secrets by value, assignments (HF_TOKEN=x), options (--api-key x) and
/// settings (--set environment.variables.HF_TOKEN=x). Leaves the values of --sbatch, which a resume repeats.
std::vector<std::string> hide_in_command(const std::vector<std::string>& words);

/// Changed code for a record: hides secrets by value in the added lines, so that the patch still applies.
std::string hide_in_patch(std::string_view patch);

/// Whether a file usually holds secrets, by its name: .env, .env.local, .netrc, id_rsa, *.pem, ... Templates
/// (.env.example) do not.
bool is_secret_file(std::string_view path);

}  // namespace stoker
