#include "heapdump/heap_words.h"

#include <catch2/catch.hpp>

namespace luaspy::heap_words_test {

TEST_CASE("a class says its type once", "[unit]") {
  const auto objects = [](ObjectType type, const char* name, std::int64_t count) {
    ObjectClass of;
    of.type = type, of.name = name;
    return objects_text(of, count);
  };
  CHECK(objects(ObjectType::lua_function, "function (a.lua:3)", 555) == "555 functions (a.lua:3)");
  CHECK(objects(ObjectType::lua_function, "main chunk (a.lua)", 2) == "2 main chunks (a.lua)");
  CHECK(objects(ObjectType::c_function, "function string.gsub [C]", 1) == "1 function string.gsub [C]");
  CHECK(objects(ObjectType::thread, "coroutine of f (a.lua:3)", 2) == "2 coroutines of f (a.lua:3)");
  CHECK(objects(ObjectType::table, "{body, id}", 48'000) == "48,000 tables {body, id}");
  CHECK(objects(ObjectType::string, "string", 1) == "1 string");
  CHECK(class_text("function (a.lua:3)", ObjectType::lua_function) == "function (a.lua:3)");
  CHECK(class_text("{body, id}", ObjectType::table) == "{body, id} (table)");
}

}  // namespace luaspy::heap_words_test
