#include "surefoot/rows.hpp"

#include <bit>

namespace surefoot {
namespace {

/// Names the row of what fails in it.
template <class Work>
auto in_row(std::size_t row, const Work& work) {
  try {
    return work();
  } catch (const EnvFailure& failure) {
    throw EnvFailure("env " + std::to_string(row) + ": " + failure.what());
  }
}

}  // namespace

Rows::Rows(const std::string& id, const Options& options, std::size_t num_rows, const Endings& endings)
    : generators_(num_rows), elapsed_(num_rows, 0), endings_(endings) {
  envs_.reserve(num_rows);
  envs_.push_back(make_env(id, options));
  while (envs_.size() < num_rows) envs_.push_back(envs_.front()->clone());
  const Env& first = *envs_.front();
  obs_parts_ = first.obs_parts();
  for (const auto& part : obs_parts_) obs_size_ += part.size;
  action_size_ = first.action_size();
  mask_size_ = first.mask_size();
}

Footprint Rows::footprint() const {
  const Footprint env = envs_.front()->footprint();
  const std::size_t around = sizeof(envs_[0]) + sizeof(Generator) + sizeof(elapsed_[0]);
  return {env.filled + around, env.reserved + around};
}

void Rows::reseed(std::size_t row, const Generator::Words& words) {
  generators_[row] = Generator(words);
  reset(row);
}

void Rows::reset(std::size_t row) {
  in_row(row, [&] { envs_[row]->reset(generators_[row]); });
  elapsed_[row] = 0;
}

RowStep Rows::step(std::size_t row, const Action& action) {
  const Outcome outcome = in_row(row, [&] { return envs_[row]->step(action); });
  RowStep step{outcome.reward, outcome.terminated, false};
  step.truncated = ++elapsed_[row] >= endings_.max_episode_steps && endings_.max_episode_steps > 0;
  if (endings_.truncation_as_termination) {
    step.terminated |= step.truncated;
    step.truncated = false;
  }
  return step;
}

void Rows::advance(std::size_t row, const Action& action) {
  in_row(row, [&] { envs_[row]->advance(action); });
}

void Rows::save(std::size_t row, double* state) const {
  for (const std::uint64_t word : generators_[row].words()) *state++ = std::bit_cast<double>(word);
  *state++ = static_cast<double>(elapsed_[row]);
  envs_[row]->save(state);
}

void Rows::load(std::size_t row, const double* state) {
  Generator::Words words;
  for (std::uint64_t& word : words) word = std::bit_cast<std::uint64_t>(*state++);
  generators_[row] = Generator(words);
  elapsed_[row] = static_cast<std::size_t>(*state++);
  envs_[row]->load(state);
}

}  // namespace surefoot
