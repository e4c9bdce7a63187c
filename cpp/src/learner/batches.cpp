#include "batches.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "surefoot/philox.hpp"
#include "surefoot/statistics.hpp"

namespace surefoot {

namespace {

constexpr int kDigitBits = 11;

Minibatch flat_minibatch(const Update& update, const std::int64_t* units, std::size_t count, std::size_t most_rows) {
  const std::size_t micro = update.micro_batch_size == 0 ? most_rows : std::min(update.micro_batch_size, most_rows);
  Minibatch minibatch;
  minibatch.count = count;
  const std::size_t pieces = (count + micro - 1) / micro;
  for (std::size_t i = 0, first = 0; i < pieces; ++i) {
    const std::size_t size = count / pieces + (i < count % pieces ? 1 : 0);
    minibatch.pieces.push_back({{units + first, units + first + size}});
    first += size;
  }
  return minibatch;
}

std::vector<Minibatch> flat_minibatches(const Update& update, const std::int64_t* order, std::size_t most_rows) {
  std::vector<Minibatch> minibatches;
  for (std::size_t begin = 0; begin < update.units; begin += update.batch_size) {
    const std::size_t count = std::min(update.batch_size, update.units - begin);
    minibatches.push_back(flat_minibatch(update, order + begin, count, most_rows));
  }
  return minibatches;
}

/// Assigns each run to one of about equal count of at most about `size` samples; see `_shares` in rollout/sequences.py.
std::vector<std::vector<std::size_t>> shares(const std::vector<std::size_t>& runs, const std::vector<Run>& all,
                                             std::size_t size) {
  std::size_t total = 0;
  for (const std::size_t run : runs) total += all[run].length;
  const std::size_t count = (total + size - 1) / size;
  std::vector<std::vector<std::size_t>> shares(count);
  std::size_t end = 0;
  for (const std::size_t run : runs) {
    end += all[run].length;
    shares[(2 * end - all[run].length) * count / (2 * total)].push_back(run);
  }
  std::erase_if(shares, [](const auto& share) { return share.empty(); });
  return shares;
}

void sort_by_length(std::vector<std::size_t>& runs, const std::vector<Run>& all) {
  std::stable_sort(runs.begin(), runs.end(),
                   [&](std::size_t a, std::size_t b) { return all[a].length > all[b].length; });
}

Minibatch sequence_minibatch(const Update& update, std::vector<std::size_t> chosen) {
  const SequenceSamples& sequences = *update.samples.sequences;
  Minibatch minibatch;
  for (const std::size_t run : chosen) minibatch.count += sequences.runs[run].length;
  sort_by_length(chosen, sequences.runs);
  const bool is_whole = update.micro_batch_size == 0 || minibatch.count <= update.micro_batch_size;
  const std::size_t size = is_whole ? minibatch.count : update.micro_batch_size;
  for (const std::vector<std::size_t>& share : shares(chosen, sequences.runs, size)) {
    std::vector<Run> runs;
    std::vector<std::size_t> places;
    for (const std::size_t run : share) {
      runs.push_back(sequences.runs[run]);
      places.push_back(sequences.places[run]);
    }
    minibatch.pieces.push_back(packed(runs, places));
  }
  return minibatch;
}

std::vector<Minibatch> sequence_minibatches(const Update& update, const std::int64_t* order) {
  std::vector<Minibatch> minibatches;
  for (std::vector<std::size_t>& chosen :
       shares({order, order + update.units}, update.samples.sequences->runs, update.batch_size)) {
    minibatches.push_back(sequence_minibatch(update, std::move(chosen)));
  }
  return minibatches;
}

}  // namespace

Piece packed(const std::vector<Run>& runs, const std::vector<std::size_t>& places) {
  std::vector<std::size_t> order(runs.size());
  std::iota(order.begin(), order.end(), 0);
  sort_by_length(order, runs);
  Piece piece;
  std::vector<std::int64_t> sizes;
  std::size_t running = runs.size();
  for (std::size_t step = 0; running > 0; ++step) {
    while (running > 0 && runs[order[running - 1]].length <= step) --running;
    if (running == 0) break;
    sizes.push_back(static_cast<std::int64_t>(running));
    for (std::size_t i = 0; i < running; ++i) {
      piece.samples.push_back(static_cast<std::int64_t>(runs[order[i]].first + step));
    }
  }
  for (const std::size_t run : order) piece.places.push_back(places[run]);
  piece.steps = PackedSteps(std::move(sizes));
  return piece;
}

void permute(const Update& update, std::size_t epoch, std::vector<std::int64_t>& order) {
  // Random words with their positions: sorting them permutes the positions.
  std::vector<std::uint64_t> keys(order.size()), others(order.size());
  const std::array<std::uint32_t, 2> key{static_cast<std::uint32_t>(update.seed),
                                         static_cast<std::uint32_t>(update.seed >> 32)};
  for (std::size_t i = 0; i < keys.size(); i += 4) {
    const auto words = philox({static_cast<std::uint32_t>(i / 4), static_cast<std::uint32_t>(update.index),
                               static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(Stream::kShuffle)},
                              key);
    for (std::size_t j = i; j < std::min(i + 4, keys.size()); ++j) keys[j] = std::uint64_t{words[j - i]} << 32 | j;
  }
  // Radix sort by the word alone, eleven bits at a time; stable.
  for (int shift = 32; shift < 64; shift += kDigitBits) {
    std::array<std::size_t, std::size_t{1} << kDigitBits> begins{};
    const auto digit = [&](std::uint64_t one) { return (one >> shift) & (begins.size() - 1); };
    for (const std::uint64_t one : keys) ++begins[digit(one)];
    std::size_t begin = 0;
    for (std::size_t& count : begins) begin += std::exchange(count, begin);
    for (const std::uint64_t one : keys) others[begins[digit(one)]++] = one;
    keys.swap(others);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) order[i] = static_cast<std::int64_t>(keys[i] & 0xFFFFFFFF);
}

std::vector<Minibatch> minibatches_of(const Update& update, const std::vector<std::int64_t>& order,
                                      std::size_t most_rows) {
  return update.samples.sequences == nullptr ? flat_minibatches(update, order.data(), most_rows)
                                             : sequence_minibatches(update, order.data());
}

std::vector<Minibatch> shared_minibatches_of(const Update& update, std::size_t epoch, std::size_t most_rows) {
  std::vector<Minibatch> minibatches;
  for (const SharedMinibatches::One& one : update.shared->epochs[epoch]) {
    const std::int64_t* const units = update.shared->units.data() + one.first;
    Minibatch& minibatch = minibatches.emplace_back();
    if (one.units > 0) {
      minibatch = update.samples.sequences == nullptr ? flat_minibatch(update, units, one.units, most_rows)
                                                      : sequence_minibatch(update, {units, units + one.units});
    }
    minibatch.count = one.count;
    minibatch.mean = one.mean;
    minibatch.scale = one.scale;
  }
  return minibatches;
}

std::size_t piece_size(const Update& update, std::size_t most_rows) {
  const std::size_t size =
      std::min(update.batch_size, update.micro_batch_size == 0 ? update.batch_size : update.micro_batch_size);
  if (update.samples.sequences == nullptr) return std::min(size, most_rows);
  std::size_t longest = 0;  // sequences are not cut, so a piece may exceed its size by half a sequence at either end
  for (const Run& run : update.samples.sequences->runs) longest = std::max(longest, run.length);
  return size + 2 * longest;
}

void measure_advantages(const Update& update, Minibatch& minibatch) {
  if (!update.normalizes_advantages || update.shared != nullptr || minibatch.count < 2) return;
  const float* const advantage = update.samples.advantage;
  const float* const weight = update.samples.weight;
  const Standard standard = standard_of([&](const auto& take) {
    for (const Piece& piece : minibatch.pieces) {
      for (const std::int64_t sample : piece.samples) {
        if (weight == nullptr || weight[sample] != 0) take(static_cast<double>(advantage[sample]));
      }
    }
  });
  minibatch.mean = standard.mean;
  minibatch.scale = standard.scale;
}

}  // namespace surefoot
