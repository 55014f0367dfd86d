#include "sending/connection.h"

#include <fmt/format.h>

#include <utility>

#include "sending/curl_client.h"

namespace luaspy {

Result<Connection> prepare_connection(const EngineOptions& options) {
  Result<Destination> to = destination(options.engine, options.to);
  if (!to) return to.error();
  Result<std::vector<std::pair<std::string, std::string>>> headers = authorization_headers(options.authorization);
  if (!headers) return headers.error();
  to->headers = std::move(*headers);
  Result<OtlpAttributes> attributes = parse_attributes(options.attributes);
  if (!attributes) return attributes.error();
  // Pyroscope's default (validation.max-label-names-per-series, 1.6.0) is 30, of which 15 are luaspy's or its own.
  constexpr std::size_t most_labels = 15;
  if (options.engine == Engine::pyroscope && attributes->size() > most_labels)
    return Error{Cause::usage, fmt::format("There are {} attributes: Pyroscope takes {} besides luaspy's and its own.",
                                           attributes->size(), most_labels)};
  Result<std::unique_ptr<HttpClient>> client = open_curl({.ca_file = options.ca_file});
  if (!client) return client.error();
  return Connection{std::move(*to), std::move(*attributes), std::move(*client)};
}

}  // namespace luaspy
