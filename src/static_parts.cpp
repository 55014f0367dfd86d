// What only the static luaspy is made of (target luaspy_static).

#define FMT_HEADER_ONLY
#include <fmt/format.h>

#include <elfutils/libdwfl.h>

// Debian's libfmt-dev has no archive: these emit the functions that its shared library has, under
// the same names.
namespace luaspy {
namespace {

[[gnu::used]] const auto vformat = static_cast<std::string (*)(fmt::string_view, fmt::format_args)>(&fmt::vformat);
[[gnu::used]] const auto vprint_to = static_cast<void (*)(std::FILE*, fmt::string_view, fmt::format_args)>(
    &fmt::vprint);
[[gnu::used]] const auto vprint = static_cast<void (*)(fmt::string_view, fmt::format_args)>(&fmt::vprint);
[[gnu::used]] const auto throw_format_error = &fmt::detail::throw_format_error;
[[gnu::used]] const auto is_printable = static_cast<bool (*)(std::uint32_t)>(&fmt::detail::is_printable);
[[gnu::used]] const auto thousands_sep = &fmt::detail::thousands_sep_impl<char>;
[[gnu::used]] const auto float_to_decimal = &fmt::detail::dragonbox::to_decimal<float>;
[[gnu::used]] const auto double_to_decimal = &fmt::detail::dragonbox::to_decimal<double>;

}  // namespace
}  // namespace luaspy

// No library can be loaded into a static program that may belong to another C library: libcurl is not there
// (sending/curl_client.cpp).
extern "C" {
void* dlopen(const char*, int) noexcept { return nullptr; }
void* dlsym(void* __restrict, const char* __restrict) noexcept { return nullptr; }
}

// libdwfl would load libdebuginfod, which can ask the network: into a static program that may
// belong to another C library. So these, its door to that (elfutils, libdwfl/libdwflP.h), stand in
// its place and find nothing.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the names are libdw's
int __libdwfl_debuginfod_find_executable(Dwfl*, const unsigned char*, size_t) { return -1; }
int __libdwfl_debuginfod_find_debuginfo(Dwfl*, const unsigned char*, size_t) { return -1; }
void __libdwfl_debuginfod_end(void*) {}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
}
