#include "format/hdf5/describe.h"

#include <algorithm>

#include "base/file.h"
#include "base/json/json.h"
#include "format/chunks/filters.h"
#include "format/hdf5/api.h"
#include "format/hdf5/ask/datasets.h"
#include "format/hdf5/child.h"

namespace stoker::formats::hdf5 {

namespace {

using Json = nlohmann::json;

constexpr ByteCount kAnswerLimit = 1_GiB;

// The child may have answered nonsense before it died of a damaged file: every value is looked at.
class Answer {
 public:
  Answer(const Json& json, std::string_view subject) : json_(json), subject_(subject) {}

  const Status& status() const { return status_; }
  bool has(const char* key) const { return json_.is_object() && json_.contains(key); }
  const Json& at(const char* key) {
    static const Json kNone;
    if (has(key)) return *json_.find(key);
    wrong();
    return kNone;
  }
  std::uint64_t number(const char* key) {
    const Json& value = at(key);
    if (value.is_number_unsigned()) return value.get<std::uint64_t>();
    wrong();
    return 0;
  }
  std::string text(const char* key) {
    const Json& value = at(key);
    if (value.is_string()) return value.get<std::string>();
    wrong();
    return {};
  }
  std::vector<std::uint64_t> numbers(const char* key) {
    std::vector<std::uint64_t> found;
    const Json& value = at(key);
    if (!value.is_array()) wrong();
    for (const Json& entry : value) {
      if (!entry.is_number_unsigned()) wrong();
      found.push_back(entry.is_number_unsigned() ? entry.get<std::uint64_t>() : 0);
    }
    return found;
  }
  std::vector<std::byte> bytes(const char* key) {
    std::vector<std::byte> found;
    for (const std::uint64_t value : numbers(key)) found.push_back(static_cast<std::byte>(value & 255));
    return found;
  }
  void wrong() {
    if (status_.ok()) status_ = corrupt("{}: libhdf5's answer makes no sense", subject_);
  }

 private:
  const Json& json_;
  std::string subject_;
  Status status_;
};

ElementType::TextEnd text_end(Answer& answer) {
  using TextEnd = ElementType::TextEnd;
  constexpr TextEnd kPaddings[] = {TextEnd::at_zero, TextEnd::before_zeros,
                                   TextEnd::before_blanks};  // H5T_STR_*
  const std::uint64_t padding = answer.number("padding");
  if (padding < std::size(kPaddings)) return kPaddings[padding];
  answer.wrong();
  return {};
}

ElementType type_of(Answer& answer) {
  constexpr std::string_view kLetters = "biufEcSV";
  constexpr std::string_view kVarying = "TL";
  using Kind = ElementType::Kind;
  constexpr Kind kKinds[] = {Kind::boolean,  Kind::signed_integer, Kind::unsigned_integer,
                             Kind::floating, Kind::brain,          Kind::complex,
                             Kind::bytes,    Kind::bytes};
  const std::string letter = answer.text("letter");
  const std::uint64_t bytes = answer.number("bytes");
  if (letter.size() == 1 && kVarying.find(letter[0]) != std::string_view::npos) {
    if (bytes != ElementType::kReferenceBytes) answer.wrong();
    return ElementType::of_any_length(letter[0]);
  }
  const std::size_t kind = letter.size() == 1 ? kLetters.find(letter[0]) : std::string_view::npos;
  if (kind == std::string_view::npos || bytes == 0 || bytes > (1u << 20)) {
    answer.wrong();
    return {};
  }
  ElementType type{
      .kind = kKinds[kind], .bytes = static_cast<std::uint32_t>(bytes), .letter = letter[0], .time_unit = {}};
  if (letter == "S") type.text_end = text_end(answer);
  return type;
}

// What lists of different lengths are of.
void take_varying(Answer& answer, Description& into) {
  into.heap_base = answer.number("base");
  if (into.type.letter != ElementType::kNumbers) return;
  Answer of(answer.at("of"), "");
  const std::optional<DType> dtype = type_of(of).dtype();
  if (of.at("is_big") == true) into.order_of_values = ByteOrder::big;
  if (!of.status().ok() || !dtype) return answer.wrong();
  into.type.of = *dtype;
}

void take_chunks(Answer& answer, Description& into) {
  into.layout = Description::Layout::chunked;
  into.chunks = answer.numbers("chunks");
  for (const Json& entry : answer.at("filters")) {
    Answer filter(entry, "");
    Filter taken{static_cast<std::uint32_t>(filter.number("id")), filter.text("name"), {}};
    for (const std::uint64_t value : filter.numbers("values"))
      taken.values.push_back(static_cast<std::uint32_t>(value));
    if (!filter.status().ok()) answer.wrong();
    into.filters.push_back(std::move(taken));
  }
  if (into.shape.empty() || into.chunks.size() != into.shape.size() ||
      std::find(into.chunks.begin(), into.chunks.end(), 0) != into.chunks.end()) {
    return answer.wrong();
  }
  const std::vector<std::uint64_t> places = answer.numbers("places");
  if (places.size() % 4 != 0) return answer.wrong();
  for (std::size_t i = 0; i < places.size(); i += 4) {
    into.places.push_back(
        {places[i], places[i + 1], places[i + 2], static_cast<std::uint32_t>(places[i + 3])});
  }
  std::sort(into.places.begin(), into.places.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
}

// A member of records: where it lies in one of them, and how many of the last dimensions are its own.
void take_record(Answer& answer, Description& into) {
  if (!answer.has("record")) return;
  Answer record(answer.at("record"), "");
  const std::uint64_t own = record.number("dimensions");
  RecordMember member{record.number("bytes"), record.number("offset"), 0};
  if (!record.status().ok() || own > into.shape.size()) return answer.wrong();
  const auto records = std::span(into.shape).first(into.shape.size() - own);
  const auto dimensions = std::span(into.shape).last(own);
  member.bytes = product(dimensions, into.type.bytes).value_or(0);
  const bool has_chunks = into.layout == Description::Layout::chunked;
  const bool is_whole = !has_chunks || std::equal(dimensions.begin(), dimensions.end(),
                                                  into.chunks.end() - static_cast<std::ptrdiff_t>(own));
  const bool fits = member.holds() && product(records, member.record_bytes).has_value();
  if (!is_whole || !fits || into.type.kind == ElementType::Kind::varying) return answer.wrong();
  into.member = member;
}

void take_parts(Answer& answer, Description& into) {
  into.layout = Description::Layout::parts;
  for (const Json& entry : answer.at("parts")) {
    Answer part(entry, "");
    into.parts.push_back({part.text("file"), part.text("dataset"), part.number("first_row"),
                          part.number("source_row"), part.number("rows")});
    if (!part.status().ok()) answer.wrong();
  }
  std::sort(into.parts.begin(), into.parts.end(),
            [](const auto& a, const auto& b) { return a.first_row < b.first_row; });
  std::uint64_t end = 0;
  for (const VirtualPart& part : into.parts) {
    const std::uint64_t rows = into.shape.empty() ? 0 : into.shape[0];
    if (part.first_row < end || part.rows == 0 || part.first_row > rows ||
        part.rows > rows - part.first_row) {
      return answer.wrong();
    }
    end = part.first_row + part.rows;
  }
}

Result<Description> description(const Json& json, const Path& file) {
  Answer answer(json, file.string());
  Description found;
  found.path = answer.text("path");
  found.file = answer.text("file");
  found.shape = answer.numbers("shape");
  found.type = type_of(answer);
  const Json& is_big = answer.at("is_big");
  if (is_big == true && found.type.swap_unit() > 1) found.order = ByteOrder::big;
  found.fill = answer.bytes("fill");
  if (found.type.kind == ElementType::Kind::varying) take_varying(answer, found);
  if (found.fill.size() != found.type.bytes || found.shape.size() > kMostDimensions) answer.wrong();
  RETURN_IF_ERROR(answer.status());
  if (found.order == ByteOrder::big) swap_bytes(found.fill, found.type.swap_unit());
  const std::string layout = answer.text("layout");
  if (layout == "inline") {
    found.layout = Description::Layout::inline_;
    found.inline_bytes = answer.bytes("inline");
  } else if (layout == "contiguous") {
    found.offset = answer.number("offset");
  } else if (layout == "chunked") {
    take_chunks(answer, found);
  } else {
    take_parts(answer, found);
  }
  if (answer.status().ok()) take_record(answer, found);
  RETURN_IF_ERROR(answer.status());
  if (!product(found.shape, found.type.bytes))
    return corrupt("{}: dataset '{}' is too large", file, printable(found.path));
  return found;
}

// What a child said, or its error.
Result<Json> parsed(const std::string& text, const Path& file) {
  const Json json = parse_json<Json>(text);
  if (!json.is_object()) return corrupt("{}: libhdf5's answer makes no sense", file);
  const auto error = json.find("error");
  if (error == json.end()) return json;
  Answer answer(json, file.string());
  const std::uint64_t code = answer.number("code");
  if (!error->is_string() || code == 0 || code > static_cast<std::uint64_t>(Code::internal)) {
    return corrupt("{}: libhdf5's answer makes no sense", file);
  }
  const std::string cure = answer.has("cure") ? answer.text("cure") : std::string();
  return Status(static_cast<Code>(code), error->get<std::string>()).cure("{}", cure);
}

}  // namespace

Result<std::vector<std::string>> list_datasets(const Path& file, Deadline deadline) {
  OK_OR_RETURN(h5, api());
  RETURN_IF_ERROR(File::open_read(file).status());  // its own words for a file that is not there
  OK_OR_RETURN(text, in_child([&] { return ask_names(*h5, file); }, file.string(), deadline, kAnswerLimit));
  OK_OR_RETURN(json, parsed(text, file));
  std::vector<std::string> names;
  for (const Json& name : json.value("names", Json::array())) {
    if (!name.is_string()) return corrupt("{}: libhdf5's answer makes no sense", file);
    names.push_back(name.get<std::string>());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());  // a damaged record's members
  return names;
}

Result<std::vector<Description>> describe(const Path& file, const std::vector<std::string>& names,
                                          ExternalLinks links, Deadline deadline) {
  OK_OR_RETURN(h5, api());
  RETURN_IF_ERROR(File::open_read(file).status());  // its own words for a file that is not there
  OK_OR_RETURN(text, in_child([&] { return ask_datasets(*h5, file, names, links); }, file.string(), deadline,
                              kAnswerLimit));
  return parse_answer(text, file, names.size());
}

Result<std::vector<Description>> parse_answer(const std::string& text, const Path& file, std::size_t count) {
  OK_OR_RETURN(json, parsed(text, file));
  const Json datasets = json.value("datasets", Json::array());
  if (!datasets.is_array() || datasets.size() != count) {
    return corrupt("{}: libhdf5's answer makes no sense", file);
  }
  std::vector<Description> found;
  for (const Json& dataset : datasets) {
    OK_OR_RETURN(described, description(dataset, file));
    found.push_back(std::move(described));
  }
  return found;
}

}  // namespace stoker::formats::hdf5
