#pragma once
// The engines that keep profiles, and what each wants to be sent.
//
// otlp       OTLP/HTTP (OpenTelemetry's profiles signal, v1development): a Collector, and whoever reads OTLP
// pyroscope  POST /ingest (grafana.com, Pyroscope's server API), pprof's format
// parca      parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw by gRPC-Web, pprof's format

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "output/otlp.h"
#include "profile/profile.h"
#include "sending/engine_options.h"
#include "sending/http.h"

namespace luaspy {

struct Destination {
  Engine engine = Engine::otlp;
  std::string url;  // with the engine's path, or, without any path, where that is
  std::vector<std::pair<std::string, std::string>> headers;
};

// An Error if it is no URL of HTTP. Credentials in it are refused: everybody on this machine sees a command line.
Result<Destination> destination(Engine engine, const std::string& url);

// KEY=VALUE, each; an Error says which one is not.
Result<OtlpAttributes> parse_attributes(const std::vector<std::string>& texts);

// A profile to be sent. It must have its times, and outlives the requests' making.
struct KnownProfile {
  const Profile* profile = nullptr;
  // What it is of, by names of OpenTelemetry's semantic conventions; service.name has to be among these for Pyroscope
  // and Parca, which know one profile by its labels.
  OtlpAttributes known;
};
// As few requests as the engines' limits allow: the smallest of their defaults that are known (engine.cpp).
std::vector<HttpRequest> requests_for(const Destination& to, std::span<const KnownProfile> profiles);

}  // namespace luaspy
