// A setting and the member that it fills: the one declaration from which reading, writing, help, docs and
// validation follow. Declarations are constants.
#pragma once

#include <concepts>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/enum_names.h"
#include "config/layers.h"
#include "config/setting.h"
#include "stoker/text.h"

namespace stoker::config {

/// How a member of type T is declared and stored in a Value. Other rooms specialize it for their own types:
/// `kType`, `read(Value)`, `write(T)`, and `kChoices` where the type decides them.
template <typename T>
struct FieldType;

/// A type that is an alternative of Value.
template <typename T, Type kTypeOfT>
struct StoredAsIs {
  static constexpr Type kType = kTypeOfT;
  static T read(const Value& value) { return std::get<T>(value); }
  static Value write(const T& field) { return field; }
};
template <>
struct FieldType<std::string> : StoredAsIs<std::string, Type::text> {};
template <>
struct FieldType<bool> : StoredAsIs<bool, Type::boolean> {};
template <>
struct FieldType<double> : StoredAsIs<double, Type::number> {};
template <>
struct FieldType<ByteCount> : StoredAsIs<ByteCount, Type::size> {};
template <>
struct FieldType<Duration> : StoredAsIs<Duration, Type::duration> {};
template <>
struct FieldType<std::vector<double>> : StoredAsIs<std::vector<double>, Type::numbers> {};
template <>
struct FieldType<std::vector<std::string>> : StoredAsIs<std::vector<std::string>, Type::texts> {};

template <std::unsigned_integral T>
  requires(!std::is_same_v<T, bool>)
struct FieldType<T> {
  static constexpr Type kType = Type::count;
  static T read(const Value& value) { return static_cast<T>(std::get<std::int64_t>(value)); }
  static Value write(T field) { return static_cast<std::int64_t>(field); }
};

/// All enumerators are choices, unless the setting lists fewer.
template <NamedEnum T>
struct FieldType<T> {
  static constexpr Type kType = Type::choice;
  static constexpr std::string_view kChoices = JoinedNames<T>::kJoined;
  static T read(const Value& value) { return enum_named<T>(std::get<std::string>(value)).value_or(T{}); }
  static Value write(T field) { return std::string(to_text(field)); }
};

/// Written absolute; SettingReader knows the folder that a relative one starts at.
template <>
struct FieldType<Path> {
  static constexpr Type kType = Type::path;
  static Value write(const Path& field) { return field.string(); }
};

/// Fills members from resolved settings. A setting with an error keeps its initial value; the error was
/// already reported.
class SettingReader {
 public:
  /// Paths of the file start at `file_folder`, others at `current`. REQUIRES: `effective` and `errors`
  /// outlive it.
  SettingReader(const EffectiveConfig& effective, Path file_folder, Path current, ErrorList& errors)
      : effective_(effective),
        file_folder_(std::move(file_folder)),
        current_(std::move(current)),
        errors_(errors) {}

  template <typename T>
  void operator()(std::string_view key, T& field) const {
    const auto found = effective_.entries().find(key);
    if (found == effective_.entries().end()) return;
    if constexpr (std::is_same_v<T, Path>) {
      read_path(key, field);
    } else {
      field = FieldType<T>::read(found->second.value);
    }
  }
  template <typename T>
  void operator()(std::string_view key, std::optional<T>& field) const {
    if (effective_.entries().contains(key)) (*this)(key, field.emplace());
  }
  const EffectiveConfig& effective() const { return effective_; }

 private:
  void read_path(std::string_view key, Path& field) const;

  const EffectiveConfig& effective_;
  Path file_folder_;
  Path current_;
  ErrorList& errors_;
};

/// Collects the values of members by key. Empty lists and optionals have none.
class SettingWriter {
 public:
  template <typename T>
  void operator()(std::string_view key, const T& field) {
    if constexpr (requires { field.has_value(); }) {
      if (field) (*this)(key, *field);
    } else if constexpr (std::is_same_v<T, std::vector<std::string>> ||
                         std::is_same_v<T, std::vector<double>>) {
      if (!field.empty()) values_.emplace_back(key, field);
    } else {
      values_.emplace_back(key, FieldType<T>::write(field));
    }
  }
  std::vector<std::pair<std::string, Value>> take() { return std::move(values_); }

 private:
  std::vector<std::pair<std::string, Value>> values_;
};

/// A setting of `Owner`. `name` is the user-defined name in the place of `*`, or "".
template <typename Owner>
struct BoundSetting {
  Setting setting;
  void (*read)(const SettingReader& reader, std::string_view key, std::string_view name,
               Owner& owner) = nullptr;
  void (*write)(SettingWriter& writer, std::string_view key, std::string_view name,
                const Owner& owner) = nullptr;
  /// The user-defined names that the owner has; null without a `*`.
  std::vector<std::string> (*names)(const Owner& owner) = nullptr;
};

namespace binding {

template <typename Pointer>
inline constexpr bool kLeadsToMap = false;
template <typename Class, typename T>
inline constexpr bool kLeadsToMap<std::map<std::string, T> Class::*> = true;

template <typename T>
struct ValueOf {
  using type = T;
};
template <typename T>
struct ValueOf<std::optional<T>> : ValueOf<T> {};
template <typename T>
struct ValueOf<std::map<std::string, T>> : ValueOf<T> {};

template <typename Pointer>
struct MemberOf;
template <typename Class, typename Field>
struct MemberOf<Field Class::*> {
  using Owner = Class;
  using Value = typename ValueOf<Field>::type;
};

// Calls visit(field) for the member at the end of the chain. An optional on the way that is empty ends it.
template <auto Member, auto... Rest, typename Owner, typename Visit>
void visit_member(Owner& owner, std::string_view name, const Visit& visit) {
  auto& field = owner.*Member;
  if constexpr (kLeadsToMap<decltype(Member)>) {
    auto found = field.find(std::string(name));
    if constexpr (!std::is_const_v<Owner>) found = field.try_emplace(std::string(name)).first;
    if (found == field.end()) return;
    if constexpr (sizeof...(Rest) == 0) {
      visit(found->second);
    } else {
      visit_member<Rest...>(found->second, {}, visit);
    }
  } else if constexpr (sizeof...(Rest) == 0) {
    visit(field);
  } else if constexpr (requires { field.has_value(); }) {
    if (field) visit_member<Rest...>(*field, name, visit);
  } else {
    visit_member<Rest...>(field, name, visit);
  }
}

template <auto First, auto... Rest>
struct Chain {
  using Owner = typename MemberOf<decltype(First)>::Owner;
  using Value = typename Chain<Rest...>::Value;
};
template <auto Last>
struct Chain<Last> {
  using Owner = typename MemberOf<decltype(Last)>::Owner;
  using Value = typename MemberOf<decltype(Last)>::Value;
};

// The names in the map that the chain passes.
template <auto Member, auto... Rest, typename Owner>
std::vector<std::string> names_in(const Owner& owner) {
  if constexpr (kLeadsToMap<decltype(Member)>) {
    std::vector<std::string> names;
    for (const auto& [name, value] : owner.*Member) names.push_back(name);
    return names;
  } else {
    return names_in<Rest...>(owner.*Member);
  }
}

}  // namespace binding

/// Binds a setting to the member that the chain of pointers leads to: `bind<&Job::resources,
/// &Resources::nodes>({...})`. The member's type decides Setting::type, and Setting::choices of an enum
/// unless they are given. The key of a map on the way is the user-defined name of the key's `*`.
template <auto First, auto... Rest>
consteval auto bind(Setting setting) {
  using Chain = binding::Chain<First, Rest...>;
  using Owner = typename Chain::Owner;
  using Field = FieldType<typename Chain::Value>;
  setting.type = Field::kType;
  if constexpr (requires { Field::kChoices; }) {
    if (setting.choices.empty()) setting.choices = Field::kChoices;
  } else if (Field::kType == Type::text && !setting.choices.empty()) {
    setting.type = Type::choice;
  }
  BoundSetting<Owner> bound{.setting = setting};
  bound.read = [](const SettingReader& reader, std::string_view key, std::string_view name, Owner& owner) {
    binding::visit_member<First, Rest...>(owner, name, [&](auto& field) { reader(key, field); });
  };
  bound.write = [](SettingWriter& writer, std::string_view key, std::string_view name, const Owner& owner) {
    binding::visit_member<First, Rest...>(owner, name, [&](const auto& field) { writer(key, field); });
  };
  if constexpr (binding::kLeadsToMap<decltype(First)> || (binding::kLeadsToMap<decltype(Rest)> || ...))
    bound.names = [](const Owner& owner) { return binding::names_in<First, Rest...>(owner); };
  return bound;
}

/// The declarations alone, for a Schema.
template <typename Owner>
std::vector<Setting> declarations(std::span<const BoundSetting<Owner>> settings) {
  std::vector<Setting> all;
  for (const BoundSetting<Owner>& bound : settings) all.push_back(bound.setting);
  return all;
}

/// "data.train.source" for the pattern "data.*.source" and the name "train".
std::string key_of(std::string_view pattern, std::string_view name);
/// "data" for "data.*.source"; "" for a key without `*`.
std::string_view group_of(std::string_view pattern);

/// Fills all members of `owner` that are set.
template <typename Owner>
void read_all(std::span<const BoundSetting<Owner>> settings, const SettingReader& reader, Owner& owner) {
  for (const BoundSetting<Owner>& bound : settings) {
    if (bound.read == nullptr) continue;
    if (bound.names == nullptr) {
      bound.read(reader, bound.setting.key, "", owner);
      continue;
    }
    for (const std::string& name : reader.effective().names(group_of(bound.setting.key)))
      bound.read(reader, key_of(bound.setting.key, name), name, owner);
  }
}

/// The values of all members that are set, in order of declaration, grouped by user-defined name.
template <typename Owner>
std::vector<std::pair<std::string, Value>> values_of(std::span<const BoundSetting<Owner>> settings,
                                                     const Owner& owner) {
  SettingWriter writer;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const BoundSetting<Owner>& first = settings[i];
    if (first.names == nullptr) {
      if (first.write != nullptr) first.write(writer, first.setting.key, "", owner);
      continue;
    }
    std::size_t end = i + 1;
    while (end < settings.size() && group_of(settings[end].setting.key) == group_of(first.setting.key)) ++end;
    for (const std::string& name : first.names(owner)) {
      for (const BoundSetting<Owner>& bound : settings.subspan(i, end - i))
        bound.write(writer, key_of(bound.setting.key, name), name, owner);
    }
    i = end - 1;
  }
  return writer.take();
}

}  // namespace stoker::config
