#include "sending/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <sstream>

#include "base/protobuf_fields.h"
#include "base/text.h"
#include "output/gzip.h"
#include "output/otlp_wire.h"
#include "output/pprof.h"
#include "output/protobuf.h"
#include "output/write_options.h"
#include "sending/profile_part.h"

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
      return "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw";
  }
  return {};
}

// What one message may have, before compression. Pyroscope's defaults (pkg/validation/limits.go, 1.6.0): 2 MiB at once
// (ingestion-burst-size-mb), 16,000 samples; of stacks that are deeper than 1,000 it cuts the innermost frames. It
// reads OTLP, too. A Collector that is asked by gRPC takes 4 MiB.
struct Limits {
  std::size_t bytes = 4 << 20, samples = 16'000, frames = std::numeric_limits<std::size_t>::max();
};
Limits limits_of(Engine engine) {
  Limits limits;
  if (engine == Engine::pyroscope) limits.bytes = 2 << 20, limits.frames = 1'000;
  return limits;
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

// Names and values, each name once: of two with one name, the first counts, as in OTLP.
OtlpAttributes labels_of(const OtlpAttributes& known) {
  OtlpAttributes labels;
  for (const auto& [name, value] : known) {
    const std::string label = label_name(name);
    const bool there = std::ranges::any_of(labels, [&](const auto& each) { return each.first == label; });
    if (is_label(name) && !there) labels.emplace_back(label, value);
  }
  return labels;
}

std::string service_of(const OtlpAttributes& known) {
  const auto found = std::ranges::find(known, service_name,
                                       [](const auto& each) { return std::string_view(each.first); });
  return found != known.end() ? found->second : "luaspy";
}

// ExportProfilesServiceResponse.partial_success (opentelemetry-proto, collector/profiles/v1development): how many
// profiles were rejected, and why. Also a warning, with none.
Verdict verdict_of_otlp(const HttpAnswer& answer) {
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
  return {Verdict::Kind::as_status,
          fmt::format("The engine did not take {} of the profiles{}{}.", count, why.empty() ? "" : ": ", why)};
}

// A request, and how large what it sends is before compression.
struct Sized {
  HttpRequest request;
  std::size_t bytes = 0;
};

// What leaves this machine, whatever the engine: an argument may be a secret, and a number makes a series of its own.
// `number`: of the messages that are made at once. Workers of one service have the same labels and times, and so have
// parts.
WriteOptions written(std::size_t number) {
  constexpr std::int64_t ms = 1'000'000;
  WriteOptions options;
  options.later_ns = static_cast<std::int64_t>(number) * ms;
  options.lines = true;
  options.numbers = options.arguments = false;
  return options;
}

// Pyroscope takes "samples" for CPU time, whatever is beside them, and knows memory by the names that Go has for it
// (runtime/pprof).
std::vector<SampleValues> own_values(const Profile& profile) {
  SampleValues values;
  if (profile.about.unit == Unit::bytes) values = {"alloc_space", "bytes", {}};
  else if (profile.about.unit == Unit::objects) values = {"alloc_objects", "count", {}};
  else return {};
  for (const auto& [of, amount] : profile.counts()) values.values[of] = amount.weight;
  return {std::move(values)};
}

std::string pprof_of(const Profile& profile, std::size_t number) {
  std::ostringstream body;
  const std::vector<SampleValues> values = own_values(profile);
  WriteOptions options = written(number);
  options.values = values;
  write_pprof(profile, options, body);
  return std::move(body).str();
}

// RFC 1952, ISIZE: the last four bytes.
std::size_t size_before_gzip(std::string_view packed) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < 4; ++i) size = size << 8 | static_cast<unsigned char>(packed[packed.size() - 1 - i]);
  return size;
}

// Pyroscope answers 422 also while it starts, and to whoever sends too much in a second (1.6.0).
Verdict verdict_of_pyroscope(const HttpAnswer& answer) {
  constexpr int unprocessable = 422;
  constexpr std::array reasons = {"push rate limit", "empty ring", "failed unavailable"};
  const bool of_the_moment = std::ranges::any_of(
      reasons, [&](const char* reason) { return answer.body.find(reason) != std::string::npos; });
  return {answer.status == unprocessable && of_the_moment ? Verdict::Kind::again : Verdict::Kind::as_status};
}

// gRPC-Web (grpc.io, PROTOCOL-WEB): the status is in the headers, or in the frame of trailers, which is the last one.
Verdict verdict_of_parca(const HttpAnswer& answer) {
  constexpr int success = 200;
  constexpr std::size_t prefix = 5;  // flags, and the length in four bytes
  std::string_view lines = answer.headers, rest = answer.body;
  while (rest.size() >= prefix) {
    std::size_t length = 0;
    for (std::size_t i = 1; i < prefix; ++i) length = length << 8 | static_cast<unsigned char>(rest[i]);
    const bool is_trailer = (static_cast<unsigned char>(rest[0]) & 0x80U) != 0;
    rest.remove_prefix(prefix);
    if (is_trailer) lines = rest.substr(0, length);
    rest.remove_prefix(std::min(length, rest.size()));
  }
  const std::string status = header_in(lines, "grpc-status");
  if (status == "0" || answer.status != success) return {};
  if (status.empty()) return {Verdict::Kind::refused, "not as Parca does: the path may be wrong"};
  constexpr std::array<std::string_view, 3> of_the_moment = {"4", "8", "14"};  // too late, too much, not there
  const bool again = std::ranges::find(of_the_moment, status) != of_the_moment.end();
  return {again ? Verdict::Kind::again : Verdict::Kind::refused,
          fmt::format("status {} of gRPC, {}", status, header_in(lines, "grpc-message"))};
}

HttpRequest pyroscope_request(const Destination& to, const Profile& profile, std::string pprof,
                              const OtlpAttributes& known) {
  std::string labels;
  for (const auto& [name, value] : labels_of(known))
    labels += fmt::format("{}{}={}", labels.empty() ? "" : ",", name, label_value(value));
  constexpr std::int64_t second = 1'000'000'000;
  const std::int64_t from = profile.about.started_s;
  const std::int64_t until = from + std::max<std::int64_t>((profile.about.duration_ns + second - 1) / second, 1);
  const std::string name = fmt::format("{}{{{}}}", label_value(service_of(known)), labels);
  return {fmt::format("{}{}name={}&from={}&until={}&format=pprof&spyName=luaspy", to.url,
                      to.url.find('?') == std::string::npos ? "?" : "&", url_escaped(name), from, until),
          {{"Content-Type", "application/octet-stream"}},
          std::move(pprof),
          &verdict_of_pyroscope};
}

// parca.profilestore.v1alpha1, WriteRawRequest: labels and samples of a series, and whether addresses are normalised.
HttpRequest parca_request(const Destination& to, std::string_view pprof, const OtlpAttributes& known) {
  ProtobufMessage labels, sample, series, request;
  const auto add_label = [&](std::string_view name, std::string_view value) {
    ProtobufMessage label;
    label.add(1, name);
    label.add(2, value);
    labels.add(1, label);
  };
  add_label("__name__", "luaspy");
  add_label("service_name", printable(service_of(known)));
  for (const auto& [name, value] : labels_of(known)) add_label(name, printable(value));
  sample.add(1, pprof);
  series.add(1, labels);
  series.add(2, sample);
  request.add(2, series);
  request.add(3, std::uint64_t{1});
  const auto size = static_cast<std::uint32_t>(request.bytes().size());
  std::string frame(1, '\0');
  for (int shift = 24; shift >= 0; shift -= 8) frame += static_cast<char>(size >> shift);
  return {to.url, {{"Content-Type", "application/grpc-web+proto"}}, frame + request.bytes(), &verdict_of_parca};
}

Sized otlp_request(const Destination& to, std::span<const KnownProfile> profiles, std::size_t number) {
  OtlpBuilder builder;
  for (const auto& [profile, known] : profiles) builder.add(*profile, written(number), known);
  const std::string message = otlp::to_protobuf(builder.message());
  std::ostringstream body;
  Gzip(body).add(message);
  return {{to.url,
           {{"Content-Type", "application/x-protobuf"}, {"Content-Encoding", "gzip"}},
           std::move(body).str(),
           &verdict_of_otlp},
          message.size()};
}

Sized pprof_request(const Destination& to, const KnownProfile& one, std::size_t number) {
  std::string pprof = pprof_of(*one.profile, number);
  const std::size_t size = size_before_gzip(pprof);
  return {to.engine == Engine::pyroscope ? pyroscope_request(to, *one.profile, std::move(pprof), one.known)
                                         : parca_request(to, pprof, one.known),
          size};
}

// Halves what is too large, until each message fits or has one sample.
class Requests {
 public:
  explicit Requests(const Destination& to) : to_(to), limits_(limits_of(to.engine)) {}

  void add(std::span<const KnownProfile> profiles) {
    if (profiles.empty()) return;
    if (profiles.size() > 1 && to_.engine != Engine::otlp) return add_halves(profiles);
    const bool may_fit = std::ranges::all_of(
        profiles, [&](const KnownProfile& each) { return each.profile->counts().size() <= limits_.samples; });
    if (may_fit && add_whole(profiles)) return;
    if (profiles.size() > 1) return add_halves(profiles);
    const auto& [profile, known] = profiles.front();
    const std::size_t samples = profile->counts().size(), half = samples / 2;
    add_part(profiles.front(), 0, half);
    add_part(profiles.front(), half, samples - half);
  }
  std::vector<HttpRequest> take() && { return std::move(requests_); }

 private:
  void add_halves(std::span<const KnownProfile> profiles) {
    const std::size_t half = profiles.size() / 2;
    add(profiles.first(half));
    add(profiles.subspan(half));
  }

  void add_part(const KnownProfile& whole, std::size_t first, std::size_t count) {
    const Profile part = part_of(*whole.profile, first, count, limits_.frames);
    const KnownProfile known = {&part, whole.known};
    add({&known, 1});
  }

  // False: it is too large, and can be smaller.
  bool add_whole(std::span<const KnownProfile> profiles) {
    const KnownProfile& first = profiles.front();
    if (limits_.frames != Limits().frames && depth_of(*first.profile) > limits_.frames) {
      add_part(first, 0, first.profile->counts().size());
      return true;
    }
    auto [request, bytes] = to_.engine == Engine::otlp ? otlp_request(to_, profiles, requests_.size())
                                                       : pprof_request(to_, first, requests_.size());
    if (bytes > limits_.bytes && (profiles.size() > 1 || first.profile->counts().size() > 1)) return false;
    request.headers.insert(request.headers.end(), to_.headers.begin(), to_.headers.end());
    requests_.push_back(std::move(request));
    return true;
  }

  const Destination& to_;
  const Limits limits_;
  std::vector<HttpRequest> requests_;
};

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

std::vector<HttpRequest> requests_for(const Destination& to, std::span<const KnownProfile> profiles) {
  Requests requests(to);
  requests.add(profiles);
  return std::move(requests).take();
}

}  // namespace luaspy
