#include "sending/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/base64.h"
#include "base/protobuf_fields.h"
#include "base/text.h"
#include "output/gzip.h"
#include "output/otlp_wire.h"
#include "output/pprof.h"

namespace luaspy {
namespace {

constexpr std::string_view service_name = "service.name";

std::string_view path_of(Engine engine) {
  switch (engine) {
    case Engine::otlp:
      return "/v1development/profiles";
    case Engine::pyroscope:
      return "/ingest";
    case Engine::parca:
      return "/api/profiles/writeraw";
  }
  return {};
}

// Prometheus' label names: letters, digits and _.
std::string label_name(std::string_view name) {
  std::string label(name);
  for (char& c : label) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return label;
}

// A label's value ends at one of these, in the names that Pyroscope reads.
std::string label_value(std::string_view value) {
  std::string text = printable(value);
  for (char& c : text) {
    if (std::string_view("{},=\"").find(c) != std::string_view::npos) c = '_';
  }
  return text;
}

// A number of a process makes a series for each process that ever was.
bool is_label(std::string_view name) { return name != service_name && name != "process.pid"; }

std::string service_of(const OtlpAttributes& known) {
  const auto found = std::ranges::find(known, service_name,
                                       [](const auto& each) { return std::string_view(each.first); });
  return found != known.end() ? found->second : "luaspy";
}

// ExportProfilesServiceResponse.partial_success (opentelemetry-proto, collector/profiles/v1development): how many
// profiles were rejected, and why. Also a warning, with none.
std::string not_taken_by_otlp(const HttpAnswer& answer) {
  constexpr std::uint32_t partial = 1, rejected = 1, message = 2;
  std::uint64_t count = 0;
  std::string why;
  ProtobufFields all(answer.body);
  while (const auto field = all.next()) {
    if (field->number != partial || !field->is_bytes) continue;
    ProtobufFields fields(field->bytes);
    while (const auto inner = fields.next()) {
      if (inner->number == rejected && !inner->is_bytes) count = inner->value;
      if (inner->number == message && inner->is_bytes) why = printable(inner->bytes);
    }
  }
  if (count == 0 && why.empty()) return {};
  return fmt::format("The engine did not take {} of the profiles{}{}.", count, why.empty() ? "" : ": ", why);
}

std::string pprof_of(const Profile& profile, const WriteOptions& options) {
  std::ostringstream body;
  write_pprof(profile, options, body);
  return std::move(body).str();
}

HttpRequest pyroscope_request(const Destination& to, const Profile& profile, const WriteOptions& options,
                              const OtlpAttributes& known) {
  std::string labels;
  for (const auto& [name, value] : known) {
    if (is_label(name))
      labels += fmt::format("{}{}={}", labels.empty() ? "" : ",", label_name(name), label_value(value));
  }
  constexpr std::int64_t second = 1'000'000'000;
  const std::int64_t from = profile.about.started_s;
  const std::int64_t until = from + std::max<std::int64_t>((profile.about.duration_ns + second - 1) / second, 1);
  const std::string name = fmt::format("{}{{{}}}", label_value(service_of(known)), labels);
  return {fmt::format("{}{}name={}&from={}&until={}&format=pprof&spyName=luaspy", to.url,
                      to.url.find('?') == std::string::npos ? "?" : "&", url_escaped(name), from, until),
          {{"Content-Type", "application/octet-stream"}},
          pprof_of(profile, options)};
}

HttpRequest parca_request(const Destination& to, const Profile& profile, const WriteOptions& options,
                          const OtlpAttributes& known) {
  using nlohmann::json;
  json labels = {{{"name", "__name__"}, {"value", "luaspy"}},
                 {{"name", "service_name"}, {"value", printable(service_of(known))}}};
  for (const auto& [name, value] : known) {
    if (is_label(name)) labels.push_back({{"name", label_name(name)}, {"value", printable(value)}});
  }
  json sample = {{"rawProfile", base64(pprof_of(profile, options))}};
  json series = {{"labels", {{"labels", std::move(labels)}}}, {"samples", json::array({std::move(sample)})}};
  return {to.url,
          {{"Content-Type", "application/json"}},
          json({{"series", json::array({std::move(series)})}, {"normalized", true}}).dump()};
}

}  // namespace

Result<Destination> destination(Engine engine, const std::string& url) {
  const std::size_t scheme = url.starts_with("http://") ? 7 : url.starts_with("https://") ? 8 : 0;
  const std::size_t path = std::min(url.find_first_of("/?", scheme), url.size());
  if (scheme == 0 || path == scheme)
    return Error{Cause::usage,
                 fmt::format("{} is no URL: it has to be http://HOST:PORT or https://HOST:PORT.", printable(url))};
  if (url.substr(scheme, path - scheme).find('@') != std::string::npos)
    return Error{Cause::usage,
                 "A URL with a password is seen by everybody on this machine: put it into a file (--basic-file)."};
  Destination to{engine, url, {}};
  if (url.substr(path) == "/") to.url.pop_back();
  if (path >= to.url.size()) to.url += path_of(engine);
  return to;
}

Result<OtlpAttributes> parse_attributes(const std::vector<std::string>& texts) {
  OtlpAttributes all;
  for (const std::string& each : texts) {
    const std::size_t equals = each.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error{Cause::usage, fmt::format("--attribute {}: it has to be KEY=VALUE.", printable(each))};
    all.emplace_back(each.substr(0, equals), each.substr(equals + 1));
  }
  return all;
}

HttpRequest otlp_request(const Destination& to, const OtlpBuilder& message) {
  std::ostringstream body;
  Gzip(body).add(otlp::to_protobuf(message.message()));
  HttpRequest request = {to.url,
                         {{"Content-Type", "application/x-protobuf"}, {"Content-Encoding", "gzip"}},
                         std::move(body).str(),
                         &not_taken_by_otlp};
  request.headers.insert(request.headers.end(), to.headers.begin(), to.headers.end());
  return request;
}

HttpRequest request_for(const Destination& to, const Profile& profile, const WriteOptions& options,
                        const OtlpAttributes& known) {
  if (to.engine == Engine::otlp) {
    OtlpBuilder builder;
    builder.add(profile, options, known);
    return otlp_request(to, builder);
  }
  HttpRequest request = to.engine == Engine::pyroscope ? pyroscope_request(to, profile, options, known)
                                                       : parca_request(to, profile, options, known);
  request.headers.insert(request.headers.end(), to.headers.begin(), to.headers.end());
  return request;
}

}  // namespace luaspy
