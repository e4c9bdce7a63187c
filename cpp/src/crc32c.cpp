#include "surefoot/crc32c.hpp"

#include <array>

namespace surefoot {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reversed

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ (rest & 1 ? kPolynomial : 0);
    table[byte] = rest;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kTable = make_table();

}  // namespace

std::uint32_t crc32c(const std::uint8_t* bytes, std::size_t count) {
  std::uint32_t rest = ~0u;
  for (std::size_t i = 0; i < count; ++i) rest = (rest >> 8) ^ kTable[(rest ^ bytes[i]) & 0xff];
  return ~rest;
}

}  // namespace surefoot
