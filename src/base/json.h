#pragma once
// JSON to be printed. It is read by nlohmann's (src/input/), whose header takes seconds to compile.

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace luaspy {

// A value. Members of an object stay in the order in which they were added.
class Json {
 public:
  struct Member;

  Json();  // null
  Json(bool value);
  Json(double number);  // null if it is not finite
  Json(int number);
  Json(unsigned number);
  Json(long number);
  Json(unsigned long number);
  Json(long long number);
  Json(unsigned long long number);
  Json(const char* text);
  Json(std::string_view text);
  Json(const std::string& text);
  Json(const void*) = delete;  // a pointer would be a bool
  Json(std::initializer_list<Member> members);
  template <typename Value>
  Json(const std::vector<Value>& values) : Json(array()) {
    for (const Value& value : values) add(value);
  }

  // As the compiler would define them, but not inline: they would be half of the code of what prints.
  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();

  static Json array();
  static Json object();
  template <typename Value>
  static Json array(const std::vector<Value>& values, Json (*json_of)(const Value&)) {
    Json json = array();
    for (const Value& value : values) json.add(json_of(value));
    return json;
  }

  // The member `key` of an object, null if it is new. Null becomes an object.
  Json& operator[](std::string_view key);
  // Adds an element to an array, and returns it. Null becomes an array.
  Json& add(Json element);

  // text(): each member and each element in a line of its own, two blanks further in for each level.
  // line(): all in one line. Both end with a line break.
  std::string text() const;
  std::string line() const;

 private:
  std::string printed(const std::string& line_break) const;  // "": in one line

  std::string text_;               // as it is printed; of an array and of an object: the brackets
  std::vector<std::string> keys_;  // of an object, one for each value
  std::vector<Json> values_;
};

struct Json::Member {
  std::string_view key;
  mutable Json value;  // the object takes it out of the initializer list
};

}  // namespace luaspy
