#include "record/hello/hello.h"

#include <algorithm>

#include "record/json.h"

namespace stoker::record {

Path hello_path(const Path& runs) { return runs / "hello.json"; }

Status write_hello(const Path& runs, const HelloRecord& hello) {
  STOKER_RETURN_IF_ERROR(make_directories(runs));
  const Json object = {
      {"format", "stoker-hello"},     {"version", 1},
      {"time", hello.time},           {"job", hello.job},
      {"hosts", hello.hosts},         {"ranks", hello.ranks},
      {"ready", hello.is_ready},      {"all_reduced", hello.all_reduced},
      {"interface", hello.interface}, {"all_reduce_bytes_per_s", hello.all_reduce_bytes_per_s}};
  return write_file(hello_path(runs), to_file_text(object));
}

Result<HelloRecord> read_hello(const Path& runs) {
  const Path path = hello_path(runs);
  STOKER_ASSIGN_OR_RETURN(object, read_json_object(path));
  if (text_of(object, "format") != "stoker-hello" || integer_of(object, "version") != 1)
    return corrupt("{}: is not a stoker hello record of version 1", printable(path.string()));
  const auto is_true = [&](const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_boolean() && found->get<bool>();
  };
  HelloRecord hello;
  hello.time = number_of(object, "time");
  hello.job = text_of(object, "job");
  hello.hosts = texts_of(object, "hosts");
  hello.ranks = static_cast<int>(std::clamp<std::int64_t>(integer_of(object, "ranks"), 0, 1'000'000));
  hello.is_ready = is_true("ready");
  hello.all_reduced = is_true("all_reduced");
  hello.interface = text_of(object, "interface");
  hello.all_reduce_bytes_per_s = number_of(object, "all_reduce_bytes_per_s");
  return hello;
}

}  // namespace stoker::record
