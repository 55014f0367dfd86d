#include "sending/engine.h"

#include <catch2/catch.hpp>

namespace luaspy {

TEST_CASE("a URL without a path gets the engine's", "[unit]") {
  const auto url = [](Engine engine, const std::string& text) { return destination(engine, text)->url; };
  CHECK(url(Engine::otlp, "http://a:4318") == "http://a:4318/v1development/profiles");
  CHECK(url(Engine::otlp, "https://a/") == "https://a/v1development/profiles");
  CHECK(url(Engine::otlp, "http://a/own") == "http://a/own");
  CHECK(url(Engine::otlp, "http://a/own/") == "http://a/own/");
  CHECK(url(Engine::pyroscope, "http://[::1]:4040") == "http://[::1]:4040/ingest");
  CHECK(url(Engine::pyroscope, "http://a?x=y") == "http://a?x=y");
  CHECK(url(Engine::parca, "http://a") == "http://a/api/profiles/writeraw");
}

TEST_CASE("what is no URL of HTTP, or has a password, is refused without repeating the password", "[unit]") {
  for (const std::string text : {"", "a", "a:4318", "file:///etc/passwd", "http://", "https:///path", "HTTP//a"})
    CHECK(destination(Engine::otlp, text).error().cause == Cause::usage);
  const Error error = destination(Engine::otlp, "https://me:secret@host/path").error();
  CHECK(error.text.find("secret") == std::string::npos);
  CHECK(destination(Engine::otlp, "https://host/path@x"));
}

}  // namespace luaspy
