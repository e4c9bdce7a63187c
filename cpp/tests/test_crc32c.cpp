#include <cstring>
#include <numeric>
#include <vector>

#include "check.hpp"
#include "surefoot/crc32c.hpp"

namespace surefoot {
namespace {

std::uint32_t of(const std::vector<std::uint8_t>& bytes) { return crc32c(bytes.data(), bytes.size()); }

// The examples of RFC 3720, B.4.
TEST(crc32c_of_the_examples_of_its_standard) {
  std::vector<std::uint8_t> rising(32);
  std::iota(rising.begin(), rising.end(), std::uint8_t{0});
  CHECK_EQUAL(of(std::vector<std::uint8_t>(32, 0)), 0x8a9136aau);
  CHECK_EQUAL(of(std::vector<std::uint8_t>(32, 0xff)), 0x62a8ab43u);
  CHECK_EQUAL(of(rising), 0x46dd794eu);
  CHECK_EQUAL(of({}), 0u);
  CHECK_EQUAL(of({'1', '2', '3', '4', '5', '6', '7', '8', '9'}), 0xe3069283u);
}

}  // namespace
}  // namespace surefoot
