#include "attach/waits/sockets.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "base/text.h"
#include "base/words.h"
#include "system/calls.h"

namespace luaspy {
namespace {

struct TableForm {
  Sockets::Table table;
  const char* file;
  const char* protocol;
  int inode_word;  // counted from 0
};
// net/ipv4/tcp_ipv4.c get_tcp4_sock, net/ipv4/udp.c udp4_format_sock, net/unix/af_unix.c
// unix_seq_show, net/netlink/af_netlink.c netlink_native_seq_show; the tables of IPv6 have the same
// form as those of IPv4.
constexpr TableForm forms[] = {
    {Sockets::Table::tcp, "tcp", "tcp", 9},     {Sockets::Table::tcp6, "tcp6", "tcp", 9},
    {Sockets::Table::udp, "udp", "udp", 9},     {Sockets::Table::udp6, "udp6", "udp", 9},
    {Sockets::Table::unix_, "unix", "unix", 6}, {Sockets::Table::netlink, "netlink", "netlink", 9},
};

const TableForm& form_of(Sockets::Table table) { return *std::ranges::find(forms, table, &TableForm::table); }

std::string inet_text(const in_addr& address, unsigned port) {
  std::array<char, INET_ADDRSTRLEN> text{};
  return fmt::format("{}:{}", ::inet_ntop(AF_INET, &address, text.data(), text.size()), port);
}

// An IPv4 address of an IPv6 socket is shown as IPv4.
std::string inet_text(const in6_addr& address, unsigned port) {
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    in_addr v4{};
    std::memcpy(&v4, address.s6_addr + 12, sizeof v4);
    return inet_text(v4, port);
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  return fmt::format("[{}]:{}", ::inet_ntop(AF_INET6, &address, text.data(), text.size()), port);
}

// "0100007F:18EB": the address as words in the machine's byte order, the port as a number.
std::string parse_address(std::string_view word, bool& is_set) {
  const std::size_t colon = std::min(word.find(':'), word.size());
  const unsigned port = number<unsigned>(word.substr(std::min(colon + 1, word.size())), 16);
  is_set = port != 0;
  std::array<std::uint32_t, 4> words{};
  for (std::size_t i = 0; i < words.size() && (i + 1) * 8 <= colon; ++i)
    words[i] = number<std::uint32_t>(word.substr(i * 8, 8), 16);
  if (colon == 8) {
    in_addr address{};
    std::memcpy(&address, words.data(), sizeof address);
    return inet_text(address, port);
  }
  in6_addr address{};
  std::memcpy(&address, words.data(), sizeof address);
  return inet_text(address, port);
}

// include/net/tcp_states.h; the states that show what a thread waits for.
std::string_view tcp_state(unsigned state) {
  switch (state) {
    case 2:
      return " (connecting)";
    case 3:
      return " (being accepted)";
    case 4:
    case 5:
    case 9:
    case 11:
      return " (closing)";
    case 7:
      return " (closed)";
    case 8:
      return " (closed by the other side)";
    default:
      return "";
  }
}

Socket parse_inet(const char* protocol, std::string_view line) {
  constexpr unsigned listening = 10;
  skip_words(line, 1);
  bool is_bound = false, is_connected = false;
  const std::string local = parse_address(next_word(line), is_bound),
                    remote = parse_address(next_word(line), is_connected);
  const unsigned state = number<unsigned>(next_word(line), 16);
  const bool is_tcp = std::string_view(protocol) == "tcp";
  if (is_tcp && state == listening) return {Socket::Kind::listening, fmt::format("tcp {} listening", local)};
  if (is_connected)
    return {Socket::Kind::connection,
            fmt::format("{} {} -> {}{}", protocol, local, remote, is_tcp ? tcp_state(state) : "")};
  return {Socket::Kind::other, is_bound ? fmt::format("{} {}", protocol, local) : fmt::format("{} socket", protocol)};
}

Socket parse_unix(std::string_view line) {
  constexpr unsigned accepts = 1 << 16, connected = 3;  // __SO_ACCEPTCON; SS_CONNECTED (linux/net.h)
  skip_words(line, 3);
  const bool listening = (number<unsigned>(next_word(line), 16) & accepts) != 0;
  skip_words(line, 1);
  const bool is_connected = number<unsigned>(next_word(line), 16) == connected;
  skip_words(line, 1);
  line.remove_prefix(std::min<std::size_t>(line.size(), 1));  // a path may contain blanks
  const std::string name = line.empty() ? "unix socket" : "unix " + printable(line);
  return {listening      ? Socket::Kind::listening
          : is_connected ? Socket::Kind::connection
                         : Socket::Kind::other,
          name + (listening ? " listening" : "")};
}

}  // namespace

std::string describe_address(std::span<const std::byte> bytes) {
  sa_family_t family = AF_UNSPEC;
  if (bytes.size() < sizeof family) return {};
  std::memcpy(&family, bytes.data(), sizeof family);
  if (family == AF_INET && bytes.size() >= sizeof(sockaddr_in)) {
    sockaddr_in address{};
    std::memcpy(&address, bytes.data(), sizeof address);
    return inet_text(address.sin_addr, ntohs(address.sin_port));
  }
  if (family == AF_INET6 && bytes.size() >= sizeof(sockaddr_in6)) {
    sockaddr_in6 address{};
    std::memcpy(&address, bytes.data(), sizeof address);
    return inet_text(address.sin6_addr, ntohs(address.sin6_port));
  }
  if (family != AF_UNIX) return {};
  std::string path(reinterpret_cast<const char*>(bytes.data()) + offsetof(sockaddr_un, sun_path),
                   bytes.size() - offsetof(sockaddr_un, sun_path));
  if (!path.empty() && path[0] == '\0') path[0] = '@';  // an abstract name (unix(7)), as /proc shows it
  path.resize(std::min(path.find('\0'), path.size()));
  return printable(path);
}

void Sockets::add(Table table, std::string text) {
  const TableForm& form = form_of(table);
  const std::vector<char>& kept = texts_.emplace_back(text.begin(), text.end());
  std::string_view rest(kept.data(), kept.size());
  (void)next_line(rest);  // the heading
  while (!rest.empty()) {
    const std::string_view line = next_line(rest);
    std::string_view words = line;
    skip_words(words, form.inode_word);
    if (const auto inode = number<std::uint64_t>(next_word(words)); inode != 0) lines_[inode] = {table, line};
  }
}

void Sockets::read_tables() {
  read_ = true;
  for (const TableForm& form : forms)
    add(form.table, system::read_file(fmt::format("/proc/{}/net/{}", pid_, form.file)).value_or(""));
}

std::optional<Socket> Sockets::find(std::uint64_t inode) {
  if (!read_) read_tables();
  const auto found = lines_.find(inode);
  if (found == lines_.end()) return std::nullopt;
  const Line& line = found->second;
  if (line.table == Table::unix_) return parse_unix(line.text);
  if (line.table == Table::netlink) return Socket{Socket::Kind::other, "netlink socket"};
  return parse_inet(form_of(line.table).protocol, line.text);
}

}  // namespace luaspy
