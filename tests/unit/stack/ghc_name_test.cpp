#include "stack/ghc_name.h"

#include <catch2/catch.hpp>

namespace luaspy::ghc_name_test {

TEST_CASE("symbols of GHC are decoded", "[unit]") {
  CHECK(ghc_name("base_GHCziBase_map_info") == "base:GHC.Base.map");
  CHECK(ghc_name("ghczmprim_GHCziTypes_ZC_con_info") == "ghc-prim:GHC.Types.:");
  CHECK(ghc_name("ghczmprim_GHCziTuple_Z3T_con_entry") == "ghc-prim:GHC.Tuple.(,,)");
  CHECK(ghc_name("ghczmprim_GHCziTuple_Z0T_closure") == "ghc-prim:GHC.Tuple.()");
  CHECK(ghc_name("Main_zdwgo_info") == "Main.$wgo");
  CHECK(ghc_name("Main_zdwgo_r3Xk_info") == "Main.$wgo_r3Xk");
  CHECK(ghc_name("textzm1zi2zi5_DataziText_zlzgzq_ret") == "text-1.2.5:Data.Text.<>'");
  CHECK(ghc_name("base_GHCziBase_zgzgze") == "base:GHC.Base.>>=");
  CHECK(ghc_name("Main_z3bbU_info") == "Main.\u03bb");
}

TEST_CASE("other symbols are left as they are", "[unit]") {
  for (const char* symbol : {"",
                             "_",
                             "_info",
                             "z",
                             "Z",
                             "main",
                             "gzip_info",
                             "zip_entry",
                             "mz_zip_entry",
                             "ZIP_zip_info",
                             "tcp_get_info",
                             "SSL_get_info",
                             "stg_ap_v_info",
                             "luaV_execute",
                             "Main_main_info",
                             "base_GHCzBase_map_info",
                             "base_GHCziBase",
                             "a__GHCziBase_b_info",
                             "base_GHCzi_map_info",
                             "Main_zffffffffU_info",
                             "Main_z9",
                             "Main_z999999U_info",
                             "Main_Z999T_info",
                             "_ZN3fooEv",
                             "Zend_hash_zval_info"}) {
    INFO(symbol);
    CHECK(ghc_name(symbol) == std::nullopt);
  }
}

}  // namespace luaspy::ghc_name_test
