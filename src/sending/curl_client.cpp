#include "sending/curl_client.h"

#include <dlfcn.h>
#include <fmt/format.h>

// With its checks of types, curl_easy_setopt is a macro, and has no address.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace luaspy {
namespace {

// The functions of libcurl that are used. Its ABI has not changed since 2006 (curl's docs, ABI).
struct Library {
  decltype(&::curl_global_init) global_init = nullptr;
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_reset) easy_reset = nullptr;
  decltype(&::curl_easy_setopt) easy_setopt = nullptr;
  decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&::curl_easy_perform) easy_perform = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;
};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

// It stays loaded until luaspy ends.
Result<Library> load() {
  constexpr std::array names = {"libcurl.so.4", "libcurl-gnutls.so.4"};
  void* library = nullptr;
  for (const char* const name : names) {
    if (library == nullptr) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  Library curl;
  const bool found = library != nullptr && find(library, "curl_global_init", curl.global_init) &&
                     find(library, "curl_easy_init", curl.easy_init) &&
                     find(library, "curl_easy_reset", curl.easy_reset) &&
                     find(library, "curl_easy_setopt", curl.easy_setopt) &&
                     find(library, "curl_easy_getinfo", curl.easy_getinfo) &&
                     find(library, "curl_easy_perform", curl.easy_perform) &&
                     find(library, "curl_easy_strerror", curl.easy_strerror) &&
                     find(library, "curl_easy_cleanup", curl.easy_cleanup) &&
                     find(library, "curl_slist_append", curl.slist_append) &&
                     find(library, "curl_slist_free_all", curl.slist_free_all);
  if (!found || curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    return Error{Cause::internal,
                 "Sending needs libcurl, which could not be loaded: install the package libcurl4. The static luaspy "
                 "cannot send; write a file (report -f otlp) and send that."};
  return curl;
}

// Engines answer with a line or two. What else comes is not kept.
std::size_t keep_beginning(const char* bytes, std::size_t size, std::size_t count, void* into) {
  constexpr std::size_t most = 64 << 10;
  std::string& kept = *static_cast<std::string*>(into);
  kept.append(bytes, std::min(size * count, most - std::min(most, kept.size())));
  return size * count;
}

class CurlClient : public HttpClient {
 public:
  CurlClient(const Library& curl, CurlOptions options) : curl_(curl), options_(std::move(options)) {}
  CurlClient(const CurlClient&) = delete;
  CurlClient& operator=(const CurlClient&) = delete;
  ~CurlClient() override {
    if (handle_ != nullptr) curl_.easy_cleanup(handle_);
  }

  // Connections are kept for the next request.
  Result<HttpAnswer> post(const HttpRequest& request) override {
    if (handle_ == nullptr) handle_ = curl_.easy_init();
    if (handle_ == nullptr) return Error{Cause::output, "libcurl has no memory."};
    curl_.easy_reset(handle_);
    curl_slist* headers = curl_.slist_append(nullptr, "Expect:");  // no round trip before the body
    for (const auto& [name, value] : request.headers)
      headers = curl_.slist_append(headers, fmt::format("{}: {}", name, value).c_str());
    HttpAnswer answer;
    set_options(request, headers, answer);
    std::array<char, CURL_ERROR_SIZE> why{};
    (void)curl_.easy_setopt(handle_, CURLOPT_ERRORBUFFER, why.data());
    const CURLcode code = curl_.easy_perform(handle_);
    curl_.slist_free_all(headers);
    (void)curl_.easy_setopt(handle_, CURLOPT_ERRORBUFFER, nullptr);
    if (code != CURLE_OK)
      return Error{Cause::output, fmt::format("{}.", why[0] != '\0' ? why.data() : curl_.easy_strerror(code))};
    long status = 0;
    curl_off_t retry_after = 0;
    (void)curl_.easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_.easy_getinfo(handle_, CURLINFO_RETRY_AFTER, &retry_after);
    answer.status = static_cast<int>(status);
    if (retry_after > 0) answer.retry_after = std::chrono::seconds(retry_after);
    return answer;
  }

 private:
  void set_options(const HttpRequest& request, curl_slist* headers, HttpAnswer& answer) {
    const auto set = [&](CURLoption option, auto value) { (void)curl_.easy_setopt(handle_, option, value); };
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");  // where libcurl is older than 7.85, the URL was checked anyway
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDS, request.body.data());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(CURLOPT_HTTPHEADER, headers);
    set(CURLOPT_CONNECTTIMEOUT, options_.connect_seconds);
    set(CURLOPT_TIMEOUT, options_.all_seconds);
    set(CURLOPT_WRITEFUNCTION, &keep_beginning);
    set(CURLOPT_WRITEDATA, &answer.body);
    set(CURLOPT_HEADERFUNCTION, &keep_beginning);
    set(CURLOPT_HEADERDATA, &answer.headers);
    if (!options_.ca_file.empty()) set(CURLOPT_CAINFO, options_.ca_file.c_str());
  }

  const Library curl_;
  const CurlOptions options_;
  CURL* handle_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<HttpClient>> open_curl(const CurlOptions& options) {
  const Result<Library> curl = load();
  if (!curl) return curl.error();
  return std::unique_ptr<HttpClient>(std::make_unique<CurlClient>(*curl, options));
}

}  // namespace luaspy
