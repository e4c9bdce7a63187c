// The numbers below were drawn with numpy 2.4: numpy.random.Generator(numpy.random.PCG64(seed)).
#include <algorithm>
#include <array>

#include "check.hpp"
#include "surefoot/random.hpp"
#include "surefoot/step_random.hpp"

namespace surefoot {
namespace {

struct Drawn {
  Generator::Words words;            // PCG64(seed).state
  std::array<std::uint64_t, 4> raw;  // random_raw(4)
  std::array<double, 4> uniform;     // random(4)
  std::array<double, 4> small;       // uniform(-0.05, 0.05, 4)
  std::array<double, 6> normal;      // standard_normal(6)
  double sum, lowest, highest;       // of standard_normal(10000), which also takes the ziggurat's rare branches
  std::uint64_t raw_after;           // random_raw() after those 10000
};

constexpr std::array<Drawn, 3> kDrawn{{
    {{0x1aa1b5345996452d, 0x09585eb7a69561e3, 0x418ddadb3af71a82, 0x588133bc447873a9},
     {0xa30febcfd9c2825f, 0x4510bdf882d9d721, 0x0a7d3da94ecde8b8, 0x043b27b61342f01d},
     {0x1.461fd79fb3850p-1, 0x1.1442f7e20b674p-2, 0x1.4fa7b529d9bd0p-5, 0x1.0ec9ed84d0bc0p-6},
     {0x1.c0cbca647ced0p-7, -0x1.792e736320f47p-6, -0x1.7808d4489d6d2p-5, -0x1.8c0f80ec8f29dp-5},
     {0x1.017ed89db8441p-3, -0x1.0e8cfe9bd45ccp-3, 0x1.47e57a468b06dp-1, 0x1.adabbec84d4f0p-4, -0x1.1243418e643edp-1,
      0x1.7245f95ced1e6p-2},
     0x1.f8f3725db4d7dp+5,
     -0x1.f3204051f2938p+1,
     0x1.bdacd7b576d4bp+1,
     0x8a27cd353101fc81},
    {{0xcea44f6798798f2a, 0xacbc7c9d68860ac8, 0xfa505436c9a8416e, 0x66caf2e28d25abff},
     {0xc621fbcd16d92688, 0x705a5661a791ffc1, 0xdbcd12c26eda1624, 0xb286b60e1600888d},
     {0x1.8c43f79a2db24p-1, 0x1.c16959869e47ep-2, 0x1.b79a2584ddb42p-1, 0x1.650d6c1c2c011p-1},
     {0x1.c0d97eba2bd40p-6, -0x1.9090f63c0b010p-8, 0x1.25c36f3afc536p-5, 0x1.435e26c08cd04p-6},
     {0x1.3807c1104fc6bp-2, -0x1.0a3c65fca9a7ep+0, 0x1.803b239e77350p-1, 0x1.e191b2d157f36p-1, -0x1.f3770ac89d08fp+0,
      -0x1.4d5ba2db7ebc8p+0},
     -0x1.99feb967c22f2p+6,
     -0x1.18e740dc1907ap+2,
     0x1.01a719e2bdb3fp+2,
     0xc80cff0ee234a015},
    {{0x01fb8c639807d4f9, 0xa743faed3238ef4c, 0x3107b338eaa5d534, 0xd4a60eb363925cd9},
     {0x07182e9ce6a6f13c, 0xe81d7ead95d3cecd, 0xe1a3020c572e02b9, 0x9ff944914ad4ae86},
     {0x1.c60ba739a9bc0p-6, 0x1.d03afd5b2ba79p-1, 0x1.c3460418ae5c0p-1, 0x1.3ff2892295a95p-1},
     {-0x1.82e5d13d1de9dp-5, 0x1.4d2b2ef845d8ep-5, 0x1.3870068de3c66p-5, 0x1.99436daa243b8p-7},
     {-0x1.e3fd3d9250650p-3, 0x1.17eb34caa8e0fp-1, 0x1.9b267017291b0p-4, 0x1.ad371d18a17afp+0, 0x1.fab88858885fbp-2,
      0x1.257662396380dp+0},
     0x1.ba30cab03f3d3p+5,
     -0x1.d3b85e7c4d96fp+1,
     0x1.fdf2b15d9fb61p+1,
     0xd699bc2009cb0370},
}};  // seeds 0, 42 and 123456789

TEST(generator_draws_words_as_numpy) {
  for (const auto& drawn : kDrawn) {
    Generator random(drawn.words);
    for (const auto raw : drawn.raw) CHECK_EQUAL(random.next(), raw);
  }
}

TEST(generator_draws_uniforms_as_numpy) {
  for (const auto& drawn : kDrawn) {
    Generator random(drawn.words), again(drawn.words);
    for (const double uniform : drawn.uniform) CHECK_EQUAL(random.uniform(), uniform);
    for (const double small : drawn.small) CHECK_EQUAL(again.uniform(-0.05, 0.05), small);
  }
}

TEST(generator_draws_normals_as_numpy) {
  for (const auto& drawn : kDrawn) {
    Generator random(drawn.words), again(drawn.words);
    for (const double normal : drawn.normal) CHECK_EQUAL(random.normal(), normal);
    double sum = 0, lowest = 0, highest = 0;
    for (int i = 0; i < 10000; ++i) {
      const double normal = again.normal();
      sum += normal;
      lowest = std::min(lowest, normal);
      highest = std::max(highest, normal);
    }
    CHECK_EQUAL(sum, drawn.sum);
    CHECK_EQUAL(lowest, drawn.lowest);
    CHECK_EQUAL(highest, drawn.highest);
    CHECK_EQUAL(again.next(), drawn.raw_after);
  }
}

TEST(generator_goes_on_from_its_words) {
  Generator random(kDrawn[1].words);
  CHECK_EQUAL(random.words(), kDrawn[1].words);
  for (int i = 0; i < 7; ++i) random.normal();
  Generator copy(random.words());
  for (int i = 0; i < 20; ++i) CHECK_EQUAL(copy.normal(), random.normal());
  CHECK_EQUAL(copy.words(), random.words());
}

TEST(steps_draw_what_python_draws) {
  Generator numpy(
      {0x9d0aecc4e7b18891, 0x9ae2415a6b292038, 0xc4751896ce8acebf, 0x66887f5ac070d959});  // numpy.random.default_rng(7)
  StepRandom random(numpy);
  random.next_step();
  CHECK_EQUAL(random.uniform(), 0.7857382393636637);
  CHECK_EQUAL(random.uniform(-2.0, 5.0), 0.9280143789247131);
  CHECK_EQUAL(random.normal(), -0.6989941331897584);
  double state[StepRandom::kStateSize];
  CHECK(random.save(state) == state + StepRandom::kStateSize);
  CHECK_EQUAL(random.normal(), -0.03242959821814365);
  StepRandom other;
  StateReader reader(state);
  other.load(reader);
  other.next_step();
  CHECK_EQUAL(other.normal(), 0.6339275786925435);
}

}  // namespace
}  // namespace surefoot
