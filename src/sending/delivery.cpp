#include "sending/delivery.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace luaspy {
namespace {

constexpr std::size_t most_words = 300;

// The engine's own words, as one line.
std::string words_of(const HttpAnswer& answer) {
  std::string text = answer.body;
  for (char& c : text) c = c == '\n' || c == '\r' || c == '\t' ? ' ' : c;
  text.erase(0, text.find_first_not_of(' '));
  text.erase(text.find_last_not_of(' ') + 1);
  return printable(text, most_words);
}

// Who has pages for people answers every path with one (Parca).
bool is_page(const HttpAnswer& answer) { return header_in(answer.headers, "content-type").starts_with("text/html"); }

// RFC 9110, and what OTLP/HTTP adds (opentelemetry.io, OTLP specification, "Failures").
bool may_be_tried_again(int status) {
  constexpr int timeout = 408, too_many = 429, broken = 500, not_implemented = 501, version = 505;
  return status == timeout || status == too_many ||
         (status >= broken && status != not_implemented && status != version);
}

}  // namespace

RetryPause::Duration RetryPause::next(std::optional<std::chrono::seconds> retry_after) {
  constexpr std::chrono::seconds first{1}, longest{60}, most_asked_for{300};
  constexpr int most_doublings = 6;
  const Duration whole = std::min<Duration>(longest, first * (1 << std::min(tries_, most_doublings)));
  ++tries_;
  std::uniform_int_distribution<Duration::rep> some(whole.count() / 2, whole.count());
  const Duration wait(some(random_));
  return retry_after ? std::max<Duration>(wait, std::min(*retry_after, most_asked_for)) : wait;
}

Outcome send_once(HttpClient& client, const HttpRequest& request) {
  const Result<HttpAnswer> answer = client.post(request);
  if (!answer) return {Outcome::Kind::again, answer.error().text, {}};
  const Verdict verdict = request.verdict != nullptr ? request.verdict(*answer) : Verdict();
  constexpr int success = 200, redirection = 300;
  const bool is_success = answer->status >= success && answer->status < redirection;
  const bool by_status = verdict.kind == Verdict::Kind::as_status;
  if (is_success && by_status && !is_page(*answer)) return {Outcome::Kind::delivered, verdict.why, {}};
  std::string words = !by_status && !verdict.why.empty() ? printable(verdict.why, most_words) : words_of(*answer);
  if (is_success && by_status) words = "a page for people, not for programs: the path may be wrong";
  std::string why = fmt::format("{} answered {}{}{}.", request.url, answer->status, words.empty() ? "" : ": ", words);
  if (why.ends_with("..")) why.pop_back();
  const bool again = by_status ? may_be_tried_again(answer->status) : verdict.kind == Verdict::Kind::again;
  return {again ? Outcome::Kind::again : Outcome::Kind::refused, std::move(why), answer->retry_after};
}

Result<void> deliver(HttpClient& client, const HttpRequest& request, RetryPause& retry_pause,
                     const DeliveryOptions& options) {
  const auto end = options.now() + options.patience;
  for (;;) {
    const Outcome outcome = send_once(client, request);
    if (outcome.kind == Outcome::Kind::delivered) {
      if (!outcome.why.empty() && options.say) options.say(outcome.why);
      retry_pause.reset();
      return {};
    }
    if (outcome.kind == Outcome::Kind::refused) return Error{Cause::output, outcome.why};
    const RetryPause::Duration wait = retry_pause.next(outcome.retry_after);
    if (options.now() + wait > end) return Error{Cause::output, outcome.why};
    if (options.say)
      options.say(fmt::format("{} Again in {:.1f} s.", outcome.why, std::chrono::duration<double>(wait).count()));
    if (!options.sleep(wait)) return Error{Cause::output, outcome.why};
  }
}

}  // namespace luaspy
