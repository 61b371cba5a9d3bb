#include "stoker/status.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace stoker {

std::string_view to_text(Code code) {
  switch (code) {
    case Code::ok:
      return "ok";
    case Code::invalid:
      return "invalid";
    case Code::not_found:
      return "not_found";
    case Code::exists:
      return "exists";
    case Code::unavailable:
      return "unavailable";
    case Code::timeout:
      return "timeout";
    case Code::cancelled:
      return "cancelled";
    case Code::corrupt:
      return "corrupt";
    case Code::no_space:
      return "no_space";
    case Code::internal:
      return "internal";
  }
  return "internal";
}

Status::Status(Code code, std::string message) {
  STOKER_CHECK(code != Code::ok);
  detail_ = std::make_shared<const Detail>(Detail{code, std::move(message), {}});
}

std::string_view Status::message() const { return detail_ ? std::string_view(detail_->message) : "ok"; }

std::string_view Status::cure() const { return detail_ ? std::string_view(detail_->cure) : ""; }

std::string Status::to_string() const {
  std::string text(message());
  if (!cure().empty()) text += format("\n  try: {}", cure());
  return text;
}

Status Status::with_context(std::string_view context) && {
  if (!detail_) return Status();
  Detail changed = *detail_;
  changed.message = format("{}: {}", context, changed.message);
  detail_ = std::make_shared<const Detail>(std::move(changed));
  return std::move(*this);
}

Status Status::with_cure(std::string text) && {
  if (!detail_) return Status();
  Detail changed = *detail_;
  changed.cure = std::move(text);
  detail_ = std::make_shared<const Detail>(std::move(changed));
  return std::move(*this);
}

namespace {

Code code_of(int errnum) {
  switch (errnum) {
    case ENOENT:
    case ENOTDIR:
      return Code::not_found;
    case EEXIST:
    case ENOTEMPTY:
      return Code::exists;
    case ENOSPC:
    case EDQUOT:
      return Code::no_space;
    case EACCES:
    case EPERM:
    case EROFS:
    case EISDIR:
    case ENAMETOOLONG:
      return Code::invalid;
    case ETIMEDOUT:
      return Code::timeout;
    default:
      return Code::unavailable;
  }
}

}  // namespace

Status posix_error(std::string_view subject, int errnum) {
  std::string what = std::generic_category().message(errnum);
  if (!what.empty()) what[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(what[0])));
  return Status(code_of(errnum), format("{}: {}", subject, what));
}

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr,
               "stoker: internal error: %s is false (%s:%d)\n"
               "  please report this line and the command you ran\n",
               condition, file, line);
  std::abort();
}

}  // namespace stoker
