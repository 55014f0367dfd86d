#include "base/label_expression.h"

#include <catch2/catch.hpp>

namespace luaspy::label_expression_test {

TEST_CASE("a label is a name and a path of Lua's names", "[unit]") {
  const auto path = [](std::string_view text) {
    const std::optional<LabelExpression> expression = label_expression(text);
    return expression ? expression->path : std::vector<std::string>{};
  };
  CHECK(path("uri=req.uri") == std::vector<std::string>{"req", "uri"});
  CHECK(path("http.route=_G.app.current.route") == std::vector<std::string>{"_G", "app", "current", "route"});
  CHECK(path("a-b=_x1") == std::vector<std::string>{"_x1"});
  CHECK(path("key=KEYS[1]") == std::vector<std::string>{"KEYS", "1"});
  CHECK(path("key=a.b[12][3].c") == std::vector<std::string>{"a", "b", "12", "3", "c"});
  CHECK(label_expression("uri=req.uri")->name == "uri");
  for (const char* const wrong :
       {"", "uri", "uri=", "=req", "1a=x", "u i=x", "id=a..b", "id=.a", "id=a.", "id=[1]", "id=a[0]", "id=a[]",
        "id=a[1", "id=a[1]b", "id=a[100]", "id=a[x]", "id=f()", "id=a.1", "id=a b"}) {
    INFO(wrong);
    CHECK_FALSE(label_expression(wrong));
  }
  CHECK(label_expression("id=a." + std::string(40, 'x')));
  CHECK_FALSE(label_expression("id=a." + std::string(41, 'x')));
}

}  // namespace luaspy::label_expression_test
