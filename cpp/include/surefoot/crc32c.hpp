// The checksum of records in TensorBoard's event files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace surefoot {

/// CRC-32C (Castagnoli) of some bytes.
std::uint32_t crc32c(const std::uint8_t* bytes, std::size_t count);

}  // namespace surefoot
