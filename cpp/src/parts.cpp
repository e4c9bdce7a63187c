#include "surefoot/parts/critic.hpp"
#include "surefoot/parts/encoder.hpp"
#include "surefoot/parts/head.hpp"
#include "surefoot/parts/memory.hpp"
#include "surefoot/parts/term.hpp"
#include "surefoot/parts/transform.hpp"

namespace surefoot {

template <class Role>
std::map<std::string, MakePart<Role>>& known_parts() {
  static std::map<std::string, MakePart<Role>> known;
  return known;
}

template <class Role>
std::unique_ptr<Role> make_part(const PartPlan& plan, const Kernels& kernels) {
  const auto& known = known_parts<Role>();
  const auto found = known.find(plan.kind());
  if (found == known.end()) plan.refuse("kind", "is '" + plan.kind() + "', which the core does not know");
  std::unique_ptr<Role> part = found->second(plan, kernels);
  plan.refuse_unread();
  return part;
}

template std::map<std::string, MakePart<Encoder>>& known_parts<Encoder>();
template std::map<std::string, MakePart<Head>>& known_parts<Head>();
template std::map<std::string, MakePart<Memory>>& known_parts<Memory>();
template std::map<std::string, MakePart<Critic>>& known_parts<Critic>();
template std::map<std::string, MakePart<Term>>& known_parts<Term>();
template std::map<std::string, MakePart<Transform>>& known_parts<Transform>();
template std::unique_ptr<Encoder> make_part<Encoder>(const PartPlan&, const Kernels&);
template std::unique_ptr<Head> make_part<Head>(const PartPlan&, const Kernels&);
template std::unique_ptr<Memory> make_part<Memory>(const PartPlan&, const Kernels&);
template std::unique_ptr<Critic> make_part<Critic>(const PartPlan&, const Kernels&);
template std::unique_ptr<Term> make_part<Term>(const PartPlan&, const Kernels&);
template std::unique_ptr<Transform> make_part<Transform>(const PartPlan&, const Kernels&);

void Head::noise(std::size_t rows, const NoiseKey& key, float* out) const {
  kernels_.uniforms({key.seed, key.step, key.first_row, key.stream, rows, noise_size(), key.rows}, out);
  shape_noise(rows, out);
}

}  // namespace surefoot
