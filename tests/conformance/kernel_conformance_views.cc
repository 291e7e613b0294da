// Views that have no strides, element by element.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "core/view/make_gather_steps.h"
#include "tests/conformance/kernel_conformance.h"

namespace tensord::test {
namespace {

using core::ModeVector;
using core::Order;
using core::PlacedTransform;
using core::Stage;
namespace transform = core::transform;

constexpr int64_t kStorageElements = 24 * 40 * 5;

/// Of a storage of extents (24, 40, 5), the last mode fastest.
std::vector<std::vector<Stage>> Views() {
  const PlacedTransform first{transform::PassThrough{}, {0}, {0}};
  const PlacedTransform second{transform::PassThrough{}, {1}, {1}};
  const PlacedTransform third{transform::PassThrough{}, {2}, {2}};
  const Stage padded{{{transform::Pad{2, 3}, {0}, {0}},
                      {transform::Pad{0, 1}, {1}, {1}},
                      third}};
  const Stage backwards{{{transform::Slice{23, -1, -2}, {0}, {2}},
                         {second.transform, {1}, {1}},
                         {third.transform, {2}, {0}}}};
  const Stage merged{{{transform::Merge{Order::kFirstModeFastest}, {0, 1}, {0}},
                      {third.transform, {2}, {1}}}};
  const Stage swizzled{{{transform::Slice{0, 32, 1}, {1}, {1}}, first, third}};
  const Stage swizzle{{{transform::Xor{}, {0, 1}, {0, 1}}, third}};
  const Stage repeated{
      {first, second, third, {transform::Replicate{{3}}, {}, {3}}}};
  const Stage nothing{{{transform::Slice{4, 4, 1}, {0}, {0}}, second, third}};
  const Stage around{{first, second, third, {transform::Pad{1, 1}, {3}, {3}}}};
  return {{},
          {padded},
          {backwards},
          {merged},
          {padded, merged},
          {swizzled, swizzle},
          {repeated, around},
          {nothing}};
}

TEST_P(KernelConformance, GathersViews) {
  const auto backend = GetParam().create(2);
  const auto stream = backend->CreateStream().value();
  const core::Layout layout =
      core::PackedLayout({24, 40, 5}, Order::kLastModeFastest);
  for (const int element_bytes : {1, 2, 4, 8, 16}) {
    const auto size = static_cast<size_t>(element_bytes);
    std::vector<std::byte> elements(kStorageElements * size);
    for (size_t i = 0; i < elements.size(); ++i) {
      elements[i] = static_cast<std::byte>(i * 37 + i / 251);
    }
    std::array<std::byte, 16> padding;
    padding.fill(std::byte{0xee});
    const auto bytes = static_cast<int64_t>(elements.size());
    const auto storage =
        core::Buffer::Allocate(backend->memory(), bytes).value();
    GetParam().copy(storage.data(), elements.data(), elements.size());
    for (const std::vector<Stage>& stages : Views()) {
      const core::View view = core::View::Create(layout, 0, stages).value();
      SCOPED_TRACE(core::ToString(view.extents()));
      const core::GatherSteps steps =
          core::MakeGatherSteps(view, Order::kLastModeFastest).value();
      const auto count = static_cast<size_t>(view.element_count());
      const auto d =
          core::Buffer::Allocate(backend->memory(),
                                 static_cast<int64_t>(count * size) + 16)
              .value();
      std::vector<std::byte> got(count * size + 16, std::byte{0x55});
      GetParam().copy(d.data(), got.data(), got.size());
      ASSERT_TRUE(backend
                      ->Gather(steps,
                               {.storage = storage.data(),
                                .d = d.data(),
                                .element_bytes = element_bytes,
                                .padding = padding},
                               *stream)
                      .ok());
      ASSERT_TRUE(stream->Synchronize().ok());
      GetParam().copy(got.data(), d.data(), got.size());
      ModeVector indices(view.extents().size(), 0);
      for (size_t i = 0; i < count; ++i) {
        const auto element = view.Locate(indices);
        const std::byte* const wanted =
            element ? elements.data() + static_cast<size_t>(*element) * size
                    : padding.data();
        ASSERT_EQ(std::memcmp(got.data() + i * size, wanted, size), 0)
            << element_bytes << " bytes, " << core::ToString(indices);
        for (size_t m = indices.size(); m-- > 0;) {
          if (++indices[m] < view.extents()[m]) break;
          indices[m] = 0;
        }
      }
      for (size_t i = count * size; i < got.size(); ++i) {
        ASSERT_EQ(got[i], std::byte{0x55}) << "behind the end";
      }
    }
  }
}

TEST_P(KernelConformance, ScattersToViewsAndDropsPadding) {
  const auto backend = GetParam().create(2);
  const auto stream = backend->CreateStream().value();
  const core::Layout layout =
      core::PackedLayout({24, 40, 5}, Order::kLastModeFastest);
  for (const int element_bytes : {1, 2, 4, 8, 16}) {
    const auto size = static_cast<size_t>(element_bytes);
    const size_t storage_bytes = kStorageElements * size;
    const auto storage =
        core::Buffer::Allocate(backend->memory(),
                               static_cast<int64_t>(storage_bytes))
            .value();
    for (const std::vector<Stage>& stages : Views()) {
      const core::View view = core::View::Create(layout, 0, stages).value();
      if (!view.IsInjective()) continue;
      SCOPED_TRACE(core::ToString(view.extents()));
      const core::GatherSteps steps =
          core::MakeGatherSteps(view, Order::kLastModeFastest).value();
      const auto count = static_cast<size_t>(view.element_count());
      std::vector<std::byte> elements(count * size);
      for (size_t i = 0; i < elements.size(); ++i) {
        elements[i] = static_cast<std::byte>(i * 41 + i / 239);
      }
      const auto a = core::Buffer::Allocate(backend->memory(),
                                            static_cast<int64_t>(count * size))
                         .value();
      if (count > 0) {
        GetParam().copy(a.data(), elements.data(), elements.size());
      }
      std::vector<std::byte> wanted(storage_bytes, std::byte{0x55});
      GetParam().copy(storage.data(), wanted.data(), wanted.size());
      ASSERT_TRUE(backend
                      ->Scatter(steps,
                                {.a = a.data(),
                                 .storage = storage.data(),
                                 .element_bytes = element_bytes},
                                *stream)
                      .ok());
      ASSERT_TRUE(stream->Synchronize().ok());
      std::vector<std::byte> got(storage_bytes);
      GetParam().copy(got.data(), storage.data(), got.size());
      ModeVector indices(view.extents().size(), 0);
      for (size_t i = 0; i < count; ++i) {
        if (const auto element = view.Locate(indices)) {
          std::memcpy(wanted.data() + static_cast<size_t>(*element) * size,
                      elements.data() + i * size, size);
        }
        for (size_t m = indices.size(); m-- > 0;) {
          if (++indices[m] < view.extents()[m]) break;
          indices[m] = 0;
        }
      }
      ASSERT_EQ(got, wanted) << element_bytes << " bytes";
    }
  }
}

/// Offsets of all elements of a loop nest in operand `operand`, in order.
template <size_t operand_count>
std::vector<int64_t> OffsetsOf(const core::LoopModes<operand_count>& modes,
                               size_t operand, int64_t first) {
  std::vector<int64_t> offsets = {first};
  for (const auto& mode : modes) {
    std::vector<int64_t> next;
    for (int64_t i = 0; i < mode.extent; ++i) {
      for (const int64_t offset : offsets) {
        next.push_back(offset + i * mode.strides[operand]);
      }
    }
    offsets = std::move(next);
  }
  return offsets;
}

std::byte* At(std::vector<std::byte>& bytes, int64_t element, size_t size) {
  return bytes.data() + static_cast<size_t>(element) * size;
}

constexpr size_t kNestElements = size_t{1} << 18;
/// Nests of more elements, which take parts, are tried with elements of 4 bytes
/// alone: widths differ in nothing there.
constexpr int64_t kFewElements = 20'000;

TEST_P(KernelConformance, FillsLoopNests) {
  const auto backend = GetParam().create(2);
  const auto stream = backend->CreateStream().value();
  struct Case {
    core::LoopModes<1> modes;
    int64_t first;  // element
  };
  const std::vector<Case> cases = {{{}, 3},
                                   {{{0, {0}}}, 0},
                                   {{{1 << 18, {1}}}, 0},
                                   {{{100'001, {1}}}, 7},
                                   {{{17'000, {3}}}, 1},
                                   {{{2, {1}}, {9'000, {5}}}, 2},
                                   {{{1'001, {1}}}, 7},
                                   {{{128, {1}}, {30, {160}}, {5, {8000}}}, 0},
                                   {{{7, {2}}, {5, {30}}, {3, {1000}}}, 11}};
  for (const int element_bytes : {1, 2, 4, 8, 16}) {
    const auto size = static_cast<size_t>(element_bytes);
    const auto d =
        core::Buffer::Allocate(backend->memory(),
                               static_cast<int64_t>(kNestElements * size))
            .value();
    std::array<std::byte, 16> value;
    for (size_t i = 0; i < value.size(); ++i) {
      value[i] = static_cast<std::byte>(i + 1);
    }
    for (const Case& c : cases) {
      if (element_bytes != 4 && ElementCount(c.modes) > kFewElements) continue;
      std::vector<std::byte> wanted(kNestElements * size, std::byte{0x55});
      GetParam().copy(d.data(), wanted.data(), wanted.size());
      for (const int64_t element : OffsetsOf(c.modes, 0, c.first)) {
        std::memcpy(At(wanted, element, size), value.data(), size);
      }
      core::FillOperands operands;
      operands.modes = c.modes;
      operands.d = d.data() + c.first * element_bytes;
      operands.element_bytes = element_bytes;
      operands.value = value;
      ASSERT_TRUE(backend->Fill(operands, *stream).ok());
      ASSERT_TRUE(stream->Synchronize().ok());
      std::vector<std::byte> got(wanted.size());
      GetParam().copy(got.data(), d.data(), got.size());
      ASSERT_TRUE(got == wanted) << element_bytes << " bytes, from " << c.first;
    }
  }
}

// As a client's memory is mapped: shared, and of a file.
TEST_P(KernelConformance, ReachesPinnedMemoryOfTheHost) {
  constexpr size_t kCount = 100'000, kBytes = kCount * sizeof(float);
  const auto backend = GetParam().create(2);
  const auto stream = backend->CreateStream().value();
  const int file = memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, kBytes), 0);
  void* const start =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  ASSERT_NE(start, MAP_FAILED);
  const std::span host(static_cast<float*>(start), kCount);
  std::iota(host.begin(), host.end(), 1.0f);
  {
    const auto pinned = backend->Pin(start, kBytes);
    ASSERT_TRUE(pinned.ok()) << pinned.status();
    const auto device =
        core::Buffer::Allocate(backend->memory(), kBytes).value();
    auto* const elements = reinterpret_cast<float*>(device.data());
    ASSERT_TRUE(stream->CopyToDevice(elements, start, kBytes).ok());
    // Backwards, by a kernel that writes there.
    ASSERT_TRUE(backend
                    ->Copy({.modes = {{kCount, {-1, 1}}},
                            .a = elements + kCount - 1,
                            .d = start,
                            .element_bytes = 4},
                           *stream)
                    .ok());
    ASSERT_TRUE(stream->Synchronize().ok());
    for (size_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(host[i], static_cast<float>(kCount - i)) << i;
    }
    // And by one that reads there.
    ASSERT_TRUE(backend
                    ->Copy({.modes = {{kCount / 2, {2, 1}}},
                            .a = start,
                            .d = elements,
                            .element_bytes = 4},
                           *stream)
                    .ok());
    ASSERT_TRUE(stream->CopyToHost(start, elements, kBytes / 2).ok());
    ASSERT_TRUE(stream->Synchronize().ok());
    for (size_t i = 0; i < kCount / 2; ++i) {
      ASSERT_EQ(host[i], static_cast<float>(kCount - 2 * i)) << i;
    }
  }
  munmap(start, kBytes);
}

TEST_P(KernelConformance, CopiesLoopNests) {
  const auto backend = GetParam().create(2);
  const auto stream = backend->CreateStream().value();
  struct Case {
    core::LoopModes<2> modes;
    int64_t a_first, d_first;  // elements
  };
  const std::vector<Case> cases = {
      {{}, 5, 3},
      {{{0, {0, 0}}}, 0, 0},
      {{{100'001, {1, 1}}}, 7, 2},
      {{{10'000, {-1, 1}}}, 10'003, 0},                 // backwards
      {{{10'000, {1, -1}}}, 1, 10'002},                 // scattered
      {{{512, {1, 1}}, {30, {-640, 512}}}, 19'200, 0},  // rows upside down
      {{{3, {1, 1}}, {5'000, {-3, 3}}}, 15'000, 0},
      {{{3, {-1, 1}}, {40'000, {3, 3}}}, 2, 0},  // of short runs
      {{{3, {-1, 1}}, {200, {4, 3}}, {9, {-900, 600}}}, 90'000, 16},
      {{{1000, {2, 1}}, {10, {0, 1000}}}, 0, 0},  // repeated
      {{{16, {16, 1}}, {5, {-2, 32}}}, 64, 64}};
  for (const int element_bytes : {1, 2, 4, 8, 16}) {
    const auto size = static_cast<size_t>(element_bytes);
    const auto bytes = static_cast<int64_t>(kNestElements * size);
    const auto a = core::Buffer::Allocate(backend->memory(), bytes).value();
    const auto d = core::Buffer::Allocate(backend->memory(), bytes).value();
    std::vector<std::byte> elements(kNestElements * size);
    for (size_t i = 0; i < elements.size(); ++i) {
      elements[i] = static_cast<std::byte>(i * 37 + i / 251);
    }
    GetParam().copy(a.data(), elements.data(), elements.size());
    for (const Case& c : cases) {
      if (element_bytes != 4 && ElementCount(c.modes) > kFewElements) continue;
      std::vector<std::byte> wanted(kNestElements * size, std::byte{0x55});
      GetParam().copy(d.data(), wanted.data(), wanted.size());
      const auto from = OffsetsOf(c.modes, core::CopyOperands::kA, c.a_first);
      const auto to = OffsetsOf(c.modes, core::CopyOperands::kD, c.d_first);
      for (size_t i = 0; i < to.size(); ++i) {
        std::memcpy(At(wanted, to[i], size), At(elements, from[i], size), size);
      }
      core::CopyOperands operands;
      operands.modes = c.modes;
      operands.a = a.data() + c.a_first * element_bytes;
      operands.d = d.data() + c.d_first * element_bytes;
      operands.element_bytes = element_bytes;
      ASSERT_TRUE(backend->Copy(operands, *stream).ok());
      ASSERT_TRUE(stream->Synchronize().ok());
      std::vector<std::byte> got(wanted.size());
      GetParam().copy(got.data(), d.data(), got.size());
      ASSERT_TRUE(got == wanted) << element_bytes << " bytes, from "
                                 << c.a_first << " to " << c.d_first;
    }
  }
}

}  // namespace
}  // namespace tensord::test
