// Runs a libFuzzer entry without libFuzzer: on the files of a folder, and then
// on random mutations of them, which are the same in every run.
//
//   notation_fuzz <folder> <count of mutations> [<seed>]
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*)());

namespace {

constexpr size_t kLongestInput = 4096;

/// What is being tried, for the message when it fails.
std::string tried;

void ReportTried() {
  std::fputs("the input was \"", stderr);
  for (const char c : tried) {
    if (c >= ' ' && c <= '~' && c != '\\' && c != '"') {
      std::fputc(c, stderr);
    } else {
      std::fprintf(stderr, "\\%03o", static_cast<uint8_t>(c));
    }
  }
  std::fputs("\"\n", stderr);
}

void ReportSignal(int signal) {
  ReportTried();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void Try(const std::string& input) {
  tried = input;
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(tried.data()),
                         tried.size());
}

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<std::string> files;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(file),
                       std::istreambuf_iterator<char>());
  }
  return files;
}

class Mutator {
 public:
  Mutator(const std::vector<std::string>& seeds, uint32_t seed)
      : seeds_(seeds), pool_(seeds), rng_(seed) {}

  /// Some changes of a seed, or of what came of one before.
  std::string Next() {
    std::string text = OneOf(pool_);
    for (int i = 1 + static_cast<int>(Below(6)); i > 0; --i) Change(text);
    if (text.size() > kLongestInput) text.resize(kLongestInput);
    if (pool_.size() < 4 * seeds_.size()) {
      pool_.push_back(text);
    } else if (Below(4) == 0) {
      pool_[seeds_.size() + Below(pool_.size() - seeds_.size())] = text;
    }
    return text;
  }

 private:
  size_t Below(size_t bound) {
    return std::uniform_int_distribution<size_t>(0, bound - 1)(rng_);
  }
  const std::string& OneOf(const std::vector<std::string>& texts) {
    return texts[Below(texts.size())];
  }
  /// Mostly short.
  std::string PieceOf(const std::string& text) {
    const size_t start = Below(text.size() + 1);
    return text.substr(start, Below(Below(8) == 0 ? 200 : 8));
  }

  void Change(std::string& text) {
    const size_t at = Below(text.size() + 1);
    switch (Below(6)) {
      case 0: text.insert(at, 1, static_cast<char>(Below(256))); break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(Below(256));
        break;
      case 2: text.erase(at, 1 + Below(8)); break;
      case 3: text.insert(at, PieceOf(text)); break;
      case 4: text.insert(at, PieceOf(OneOf(pool_))); break;
      default: text.replace(at, Below(4), PieceOf(OneOf(seeds_)));
    }
  }

  const std::vector<std::string>& seeds_;
  std::vector<std::string> pool_;  // the seeds and then others
  std::mt19937 rng_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: %s <folder> <count of mutations> [<seed>]\n",
                 argv[0]);
    return 2;
  }
  if (__sanitizer_set_death_callback) {
    __sanitizer_set_death_callback(ReportTried);
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE}) {
    std::signal(signal, ReportSignal);
  }
  const std::vector<std::string> seeds = FilesIn(argv[1]);
  if (seeds.empty()) {
    std::fprintf(stderr, "%s holds no files\n", argv[1]);
    return 2;
  }
  const auto begin = std::chrono::steady_clock::now();
  for (const std::string& text : seeds) Try(text);
  const int64_t count = std::strtoll(argv[2], nullptr, 10);
  const uint32_t seed =
      argc == 4 ? static_cast<uint32_t>(std::strtoul(argv[3], nullptr, 10)) : 1;
  Mutator mutator(seeds, seed);
  for (int64_t i = 0; i < count; ++i) Try(mutator.Next());
  const std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - begin;
  std::printf("%zu inputs and %lld mutations of them in %.1f s\n", seeds.size(),
              static_cast<long long>(count), elapsed.count());
  return 0;
}
