// The unpacked size of xz files: from the xz tool, and with every possible truncation or change.

#include "unwind/xz_size.h"

#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace luaspy::xz_size_test {
namespace {

std::vector<std::byte> bytes_of(std::string_view hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

constexpr const char* text =
    "fd377a585a000004e6d6b4460200210116000000742fe5a3e0001f00195d00309b2c406f33c594b6f80e029e7c588c1a785262ab4f70000000"
    "00000047ab73f3429d5ddd0001"
    "35205557d9b91fb6f37d010000000004595a";
constexpr std::uint64_t text_size = 32;
constexpr const char* zeros =
    "fd377a585a00000ae1fb0ca1020021011c00000010cf58ccffff11016c5d00006ffdffffa3b7ff473e481572396151b89228e6a38607f9eee4"
    "1e82d32fc53a3c014bb17ec98a"
    "8a4d2fa30dd97fa6e38c231153e05918c5758ae277f8b6947f0c6ac0de744964e2e95c53b204d8f7440cab5f0d6d46e9e5c37688b79657acb6"
    "4de1691d6ffb4b88106c42cb88"
    "3f5c008fd04eaf262894711f3d8f24e1709ea7235fec28cb85d195988a7e2a91f22775f719c006984d98fdd8afd5900fc42553f8f591363105"
    "a5b0ee6fc1704d470cd19111aa"
    "ad601dbaceb127185c5986e9665258bee976ac59e4e55b0508f9c7daadfcfb522b74cd1e5b2042f9dd533df82964093b80cb2a6cdfb53bf0c4"
    "bd2e5faa0f3e4b664290130eff"
    "1093f8717859f80bcdff9528460fa9fc7cdefb9a302e56c08f85f38381c065c42553f8f591363105a5b0ee6fc1704d470cd19111aaad601dba"
    "ceb127185c5986e9665258bee9"
    "76ac59e4e55b0508f9c7daadfcfb522b74cd1e5b2042f9dd533df82964093b80cb2a6cdfb53bf0c4bc4827e6589fff10012b00ec7353a7fdbe"
    "ae7c311a9fb78d316e709ea723"
    "5fec28cb85d195988a7e2a91f22775f719c006984d98fdd8afd5900fc42553f8f591363105a5b0ee6fc1704d470cd19111aaad601dbaceb127"
    "185c5986e9665258bee976ac59"
    "e4e55b0508f9c7daadfcfb522b74cd1e5b2042f9dd533df82964093b80cb2a6cdfb53bf0c4bd2e5faa0f3e4b664290130eff1093f8717859f8"
    "0bcdff9528460fa9fc7cdefb9a"
    "302e56c08f85f38381c065c42553f8f591363105a5b0ee6fc1704d470cd19111aaad601dbaceb127185c5986e9665258bee976ac59e4e55b05"
    "08f9c7daadfcfb522b74cd1e5b"
    "2042f9dd533df82964093b80cb2a6cdfb53bf0c4bd2e5faa0f3e4b664290130eff1093f8717859f80bcdff9528460fa9fc7cdefb9a302e56c0"
    "8f85f38381c065c425510f3fb2"
    "9001dc009900ec7353a7fdbeae7c311a9fb78d316e709ea7235fec28cb85d195988a7e2a91f22775f719c006984d98fdd8afd5900fc42553f8"
    "f591363105a5b0ee6fc1704d47"
    "0cd19111aaad601dbaceb127185c5986e9665258bee976ac59e4e55b0508f9c7daadfcfb522b74cd1e5b2042f9dd533df82964093b80cb2a6c"
    "dfb53bf0c4bd2e5faa0f3e4b66"
    "4290130eff1093f8717859f80bccee1bbf000000c036cbb7553a909f8b8877d4461924307f27ecb66cff928eeeafd569c3887e290001f00680"
    "80c002bd231f70b6e9df1c0200"
    "0000000a595a";
constexpr std::uint64_t zeros_size = 5242880;
constexpr const char* blocks =
    "fd377a585a000004e6d6b44602010400210116000d86351fe005db01475d0022080c43c82b1986f2b20523bf4f9994720c430b102a7d3188d5"
    "6d51376b94e73a0e7de797b34a"
    "7bb882bdbcf25524a5a87f3f60fe5ccde08daa1fffda38a3ac4d86e306a0bccb5de49c70869a8944ed9e8d8fa3d2fac62ac3724e15e3dd4121"
    "4b5a92038194f97448ab7eeff6"
    "deaa38b858e78bb030bd7b3503a2d9a73f1a5b60e5132e3e631a5c58b47ddf2525f9ed7a249e884f3169c5b2957f2099ad8736b221433f64c9"
    "1c39058fdd78c607e33a8203ab"
    "967d5b52978764106cb6e78c54ee65b602818ca6ec3e2c972b4f9f9a0e59c956fb069d7f28d57aaff3cdf2faab653d6668f715d391d0cecdf8"
    "c15f0481e6204690ac60dc0797"
    "f16a8e06d5e30dd3a006b9b0bf81b1a445b8b04b62d9637bb12ac8d54a26a17f8b5eb4cbefebea71ac59b3db2b18c5ca2fbb6ddbbe8e85d752"
    "2f41e3202694fc8b8a1da70528"
    "1f3bdd6433b5b0000000751a09e61fe28eb002010400210116000d86351fe005db000f5d00006ffdffffa3b7ff473da15d8d000000005845f4"
    "50e0637ab50201040021011600"
    "0d86351fe0025701425d00006ffdf7c22595f40a9adf433b65f39066808119e8ba8e0770a1d290b041c35074ac20bcf7fef8c4a0bf7f40c1c5"
    "295b695bfc5a270743aaf740bf"
    "c614aaa9c1b2e85e58b0f049416cf59f54201f34b5999336f8c786d722dd41a259c0367a0022a6cf545b818d833be6be31ec9149d43fc748ae"
    "0f35710165220d320ae998b2ef"
    "0ae4e39a59323800df1cc3435f9e0008e0a9adf351b6db27dc8b6f6a95bebdbc7b7411403b0a37b80681b9049e6edd81ab72bb07fa5da6eaa3"
    "753d86ef699c870d5d50396c11"
    "c2a917fa5ea707bee9f58a9ea3fd386fc1f6bcffe61b96bac7282aacea8a4d0aeea66b24630e9da42b7538e66765d3736e67ed0a28d9f417ac"
    "e9eabafebbf6444f2b8afaa0fa"
    "2f0b04bcad8e7b9d73d4e6917c0f36a79343561afba8e9b262cb6c454a779bcd497465ebf0d51ccb2494d9757fe3687557c62c8cde0000004a"
    "470def638b6efd0003e302dc0b"
    "2bdc0bde02d804000000de02f50cac273e2d040000000004595a";
constexpr std::uint64_t blocks_size = 3600;

}  // namespace

TEST_CASE("the size of what xz packed is known without unpacking it", "[unit]") {
  CHECK(unpacked_size(bytes_of(text)) == text_size);
  CHECK(unpacked_size(bytes_of(zeros)) == zeros_size);
  CHECK(unpacked_size(bytes_of(blocks)) == blocks_size);
  CHECK(unpacked_size({}) == std::nullopt);
  CHECK(unpacked_size(bytes_of("5d00008000ffffffffffffffff00")) == std::nullopt);  // the older format has no size
}

TEST_CASE("a damaged file of xz has a size or none", "[unit]") {
  const std::vector<std::byte> whole = bytes_of(blocks);
  for (std::size_t size = 0; size < whole.size(); ++size) (void)unpacked_size(std::span(whole).first(size));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int value : {0, 1, 0x7f, 0x80, 0xff}) {
      std::vector<std::byte> changed = whole;
      changed[i] = static_cast<std::byte>(value);
      (void)unpacked_size(changed);
    }
  }
}

}  // namespace luaspy::xz_size_test
